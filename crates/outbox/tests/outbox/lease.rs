//! Who runs a sink is certain of its lease or stops: by its own clock, whatever the store does, and
//! with however many rooms. Time is the test's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use waitroom_outbox::carry::Errand;
use waitroom_outbox::duty::{Duty, Rooms};
use waitroom_outbox::{Carry, Filter, Nameless, Names, Pace, SinkFigures, Trouble};
use waitroom_store::{Head, ManualClock, MemoryStore, Retention, RoomName, Seams, Store};

use crate::house::{room_name, sink_name};
use crate::shy::Shy;

/// The part of a lease of six seconds that an instance counts on.
const CERTAIN: Duration = Duration::from_millis(5_700);

/// Carries nothing, and counts how many do so at this moment.
#[derive(Debug, Default)]
struct Carriers(Arc<AtomicUsize>);

struct One(Arc<AtomicUsize>);

impl Drop for One {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Carry for Carriers {
    async fn carry<S: Store>(self: Arc<Self>, _: Errand<S>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        let _one = One(self.0.clone());
        std::future::pending().await
    }

    async fn go_back(&self, _: &RoomName, _: Head) -> Result<(), Trouble> {
        Ok(())
    }
}

struct Many(usize);

impl Rooms for Many {
    fn rooms(&self) -> Vec<(RoomName, Arc<dyn Names>)> {
        let nameless: Arc<dyn Names> = Arc::new(Nameless);
        (0..self.0).map(|at| (room_name(&format!("room-{at}")), nameless.clone())).collect()
    }
}

/// A duty that runs, and what it does.
struct Running {
    began: Instant,
    carriers: Arc<AtomicUsize>,
    duty: JoinHandle<()>,
}

impl Running {
    fn begin(store: &Shy, rooms: usize) -> Running {
        let carriers = Carriers::default();
        let count = carriers.0.clone();
        let duty = Duty {
            store: Arc::new(store.clone()),
            instance: "a".to_owned(),
            name: sink_name("test"),
            sink: Arc::new(carriers),
            filter: Filter::everything(),
            pace: Pace::default(),
            keep: Retention { keep_bytes: 1 << 30, keep_age_ms: u64::MAX },
            figures: Arc::new(SinkFigures::default()),
            replays: mpsc::channel(1).1,
        };
        let (began, rooms) = (Instant::now(), Arc::new(Many(rooms)));
        Running { began, carriers: count, duty: tokio::spawn(duty.run(rooms)) }
    }

    /// How many rooms are carried so long after the beginning.
    async fn carried_after(&self, since: Duration) -> usize {
        sleep_until(self.began + since).await;
        self.carriers.load(Ordering::SeqCst)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.duty.abort();
    }
}

/// The store's clock stands still: to the store the lease lasts for ever, so that whoever stops does
/// so by its own clock.
fn store() -> Shy {
    let seams = Seams::seeded(ManualClock::at(1_000_000), 1);
    Shy::new(Arc::new(MemoryStore::new(seams)))
}

const A_MOMENT: Duration = Duration::from_millis(100);

#[tokio::test(start_paused = true)]
async fn a_store_that_says_nothing_ends_the_duty_before_the_lease_may_have_run_out() {
    let store = store();
    store.slow("renew", Duration::MAX);
    let running = Running::begin(&store, 3);
    assert_eq!(running.carried_after(A_MOMENT).await, 3);
    store.slow("lease", Duration::MAX);
    assert_eq!(running.carried_after(CERTAIN - A_MOMENT).await, 3, "it is certain until then");
    assert_eq!(running.carried_after(CERTAIN + A_MOMENT).await, 0, "another may have it now");
    assert_eq!(store.asked("lease").len(), 2, "and it asks for it again");
}

#[tokio::test(start_paused = true)]
async fn a_lease_counts_from_when_it_was_asked_for_and_not_from_the_answer() {
    let store = store();
    store.slow("lease", Duration::from_secs(5));
    store.slow("renew", Duration::MAX);
    let running = Running::begin(&store, 3);
    assert_eq!(running.carried_after(Duration::from_secs(5) + A_MOMENT).await, 3);
    assert_eq!(running.carried_after(CERTAIN - A_MOMENT).await, 3);
    assert_eq!(running.carried_after(CERTAIN + A_MOMENT).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_counts_from_when_it_was_asked_for_and_not_from_the_answer() {
    let store = store();
    store.slow("renew", Duration::from_secs(3));
    let running = Running::begin(&store, 3);
    // Asked after two seconds, answered after five; the next answer comes too late.
    running.carried_after(CERTAIN + A_MOMENT).await;
    store.slow("lease", Duration::MAX);
    let [first, second] = store.asked("renew")[..] else { panic!("{:?}", store.asked("renew")) };
    let certain = first + CERTAIN - running.began;
    assert!(second - first < CERTAIN && second + Duration::from_secs(3) > first + CERTAIN);
    assert_eq!(running.carried_after(certain - A_MOMENT).await, 3, "the first one was in time");
    assert_eq!(running.carried_after(certain + A_MOMENT).await, 0);
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_renewed_between_the_rooms_however_many_there_are() {
    const ROOMS: usize = 300;
    let store = store();
    // All of them take fifteen seconds, which is longer than a lease.
    store.slow("retire", Duration::from_millis(50));
    let running = Running::begin(&store, ROOMS);
    let seen = running.carried_after(Duration::from_secs(60)).await;
    assert_eq!(seen, ROOMS, "nobody stopped");
    assert_eq!(store.asked("lease").len(), 1, "it was never lost");
    let renewals = store.asked("renew");
    let since = std::iter::once(running.began).chain(renewals.iter().copied());
    for (before, after) in since.zip(&renewals) {
        assert!(*after - before < CERTAIN, "{:?} between two renewals", *after - before);
    }
    let looked = store.asked("retire").len();
    assert!(looked >= 2 * ROOMS, "and all rooms are looked after, again and again: {looked}");
}
