//! The relay against a sink that fails, hangs and is killed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use waitroom_outbox::{Filter, Kind, Message, Nameless, Sink, Trouble};
use waitroom_store::{Head, Retention, Seams, Store};

use crate::checker::{Seen, check, expected};
use crate::house::{House, Recorder, TestRoom, kills, sink_name, soon};

/// All that a room has to tell by now.
pub async fn should(house: &House, room: &TestRoom) -> Vec<Seen> {
    let log = house.log(room.handle.name()).await;
    let head = log.last().map_or(0, |(head, ..)| *head);
    room.handle.board_at(head).await;
    expected(room.handle.name(), &log, &*room.names).iter().map(Seen::of).collect()
}

fn came(recorder: &Recorder) -> Vec<Seen> {
    recorder.taken().iter().map(Seen::of).collect()
}

/// Waits until the last thing that happened has come, and judges all of it.
async fn judge(house: &House, room: &TestRoom, recorder: &Recorder) {
    let should = should(house, room).await;
    let last = should.last().expect("something happened").clone();
    soon("the last message", || came(recorder).contains(&last).then_some(())).await;
    assert_eq!(check(&should, &came(recorder)), Vec::<String>::new());
}

async fn a_busy_day(room: &TestRoom) {
    let (ana, bo) = (room.join().await, room.join().await);
    room.join_many(50).await;
    room.leave(bo).await;
    room.admit(20).await;
    room.complete(ana).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_comes_in_order_and_the_cursor_follows() {
    let house = House::new();
    let room = house.room("spring-sale").await;
    let recorder = Recorder::default();
    let relay = house.relay(&room, "test", recorder.clone());
    let running = tokio::spawn(async move { relay.run().await });
    a_busy_day(&room).await;
    judge(&house, &room, &recorder).await;
    let head = room.handle.committed();
    let name = room.handle.name().clone();
    // The cursor is written a moment later.
    let until = std::time::Instant::now() + crate::house::SOON;
    while house.cursor(&name, "test").await < head {
        assert!(std::time::Instant::now() < until, "the cursor stays behind");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    running.abort();
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sink_that_fails_gets_the_same_again_and_nothing_is_lost() {
    let house = House::new();
    let room = house.room("spring-sale").await;
    let recorder = Recorder::default();
    recorder.fail(4);
    let relay = house.relay(&room, "test", recorder.clone());
    let figures = relay.figures.clone();
    let running = tokio::spawn(async move { relay.run().await });
    a_busy_day(&room).await;
    judge(&house, &room, &recorder).await;
    assert_eq!(figures.failures.get(), 4);
    assert_eq!(figures.trouble(), None, "it works again");
    running.abort();
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_killed_at_any_point_loses_nothing() {
    let house = House::new();
    let room = house.room("spring-sale").await;
    let recorder = Recorder::default();
    let mut visitors = Vec::new();
    for kill in 0..kills(40) {
        let mut relay = house.relay(&room, "test", recorder.clone());
        // Small steps and no patience, so that there are many points to be killed at.
        relay.pace.batch = 3;
        relay.pace.advance_every = Duration::from_millis(kill % 5);
        // Some are killed in the middle of a delivery that took nothing: a cursor that had moved
        // before it would have lost what was in it.
        let held = kill % 4 == 3;
        recorder.hold(held);
        let tried = recorder.tried();
        let running = tokio::spawn(async move { relay.run().await });
        visitors.push(room.join().await);
        room.join_many((kill % 7) as usize).await;
        if kill % 3 == 0 {
            room.admit(2).await;
        }
        if held {
            soon("a delivery begins", || (recorder.tried() > tried).then_some(())).await;
        }
        tokio::time::sleep(Duration::from_micros(kill * 337 % 4_000)).await;
        running.abort();
        let _ = running.await;
    }
    recorder.hold(false);
    let relay = house.relay(&room, "test", recorder.clone());
    let running = tokio::spawn(async move { relay.run().await });
    judge(&house, &room, &recorder).await;
    running.abort();
    house.stop().await;
}

/// A sink that never answers.
#[derive(Debug)]
struct Dead;

impl Sink for Dead {
    async fn deliver(&self, _: &[Message]) -> Result<(), Trouble> {
        std::future::pending().await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_sink_slows_neither_the_room_nor_other_sinks_and_its_lag_is_seen() {
    let house = House::new();
    let room = house.room("spring-sale").await;
    let dead = house.relay(&room, "dead", Dead);
    let figures = dead.figures.clone();
    let hung = tokio::spawn(async move { dead.run().await });
    room.join().await;
    let recorder = Recorder::default();
    let live = house.relay(&room, "live", recorder.clone());
    let running = tokio::spawn(async move { live.run().await });
    a_busy_day(&room).await;
    judge(&house, &room, &recorder).await;
    assert_eq!(house.cursor(room.handle.name(), "dead").await, 0);
    let head = room.handle.committed();
    let lag = soon("the lag to be seen", || {
        let lags = figures.lags(u64::MAX);
        lags.first().filter(|lag| lag.events == head).cloned()
    });
    assert!(lag.await.ms > 0);
    hung.abort();
    running.abort();
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_leaves_out_what_is_not_wanted_and_the_cursor_moves_over_it() {
    let house = House::new();
    let room = house.room("spring-sale").await;
    let recorder = Recorder::default();
    let mut relay = house.relay(&room, "test", recorder.clone());
    relay.filter = Filter::of_words(["session.*"]).expect("words");
    let running = tokio::spawn(async move { relay.run().await });
    a_busy_day(&room).await;
    let over = |it: &Message| it.kind == Kind::SessionTerminated;
    soon("the end of a session", || recorder.taken().iter().any(over).then_some(())).await;
    let taken = recorder.taken();
    assert!(taken.iter().all(|it| it.kind.word().starts_with("session.")), "{taken:?}");
    assert_eq!(taken.len(), 21);
    running.abort();
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sink_that_was_given_up_goes_on_after_its_gap_and_says_so() {
    let house = House::new();
    let room = house.room("spring-sale").await;
    let name = room.handle.name().clone();
    room.join_many(10).await;
    let recorder = Recorder::default();
    let relay = Arc::new(house.relay(&room, "test", recorder.clone()));
    let figures = relay.figures.clone();
    recorder.fail(u64::MAX);
    let running = tokio::spawn({
        let relay = relay.clone();
        async move { relay.run().await }
    });
    soon("a failure", || (recorder.tried() > 0).then_some(())).await;
    let head = room.handle.committed();
    let gave_up = waitroom_store::Head(head);
    house.store.mark_broken(&name, &sink_name("test"), gave_up).await.expect("given up");
    recorder.fail(0);
    room.join_many(5).await;
    let joined = |it: &Message| it.kind == Kind::Enqueued && it.id.head > head;
    soon("what came after the gap", || {
        (recorder.taken().iter().filter(|it| joined(it)).count() == 5).then_some(())
    })
    .await;
    assert_eq!(figures.gaps.get(), 1);
    let cursor = house.store.cursor(&name, &sink_name("test")).await.expect("readable");
    let cursor = cursor.expect("it is there");
    assert!(!cursor.broken);
    assert_eq!(cursor.gap.map(|gap| gap.to.0), Some(head));
    // What is kept is bounded by age and size; nothing here is old or large.
    let keep = Retention { keep_bytes: 1 << 30, keep_age_ms: u64::MAX };
    assert_eq!(house.store.retire(&name, keep).await, Ok(vec![]));
    running.abort();
    house.stop().await;
}

/// A sink that takes four batches at once; each ends as the test says, and not before.
#[derive(Clone, Debug, Default)]
struct Four(Arc<Mutex<Told>>);

#[derive(Debug, Default)]
struct Told {
    /// The first event of each delivery, in the order they began.
    begun: Vec<u64>,
    ends: BTreeMap<usize, Result<(), Trouble>>,
    /// From this delivery on all end well by themselves.
    well_from: Option<usize>,
}

impl Four {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().expect("nobody panics holding it")
    }

    fn begun(&self) -> Vec<u64> {
        self.told().begun.clone()
    }
}

impl Sink for Four {
    const AT_ONCE: usize = 4;

    async fn deliver(&self, batch: &[Message]) -> Result<(), Trouble> {
        let at = {
            let mut told = self.told();
            told.begun.push(batch[0].id.head);
            told.begun.len() - 1
        };
        loop {
            let (end, well_from) = {
                let told = self.told();
                (told.ends.get(&at).cloned(), told.well_from)
            };
            if let Some(end) = end.or_else(|| (at >= well_from?).then_some(Ok(()))) {
                return end;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_batches_under_way_the_cursor_follows_the_oldest_and_a_failure_calls_the_others_back() {
    let house = House::new();
    let room = house.room("spring-sale").await;
    room.join_many(10).await;
    let head = room.handle.committed();
    let four = Four::default();
    let mut relay = house.relay(&room, "test", four.clone());
    relay.filter = Filter::of_words(["position.*"]).expect("words");
    relay.pace.batch = 1;
    relay.pace.advance_every = Duration::ZERO;
    let figures = relay.figures.clone();
    let at = || figures.lags(0).first().map_or(0, |lag| lag.at);
    let running = tokio::spawn(async move { relay.run().await });
    soon("four are under way", || (four.begun().len() == 4).then_some(())).await;
    let first = four.begun()[0];
    assert_eq!(four.begun(), [first, first + 1, first + 2, first + 3], "in order");
    // The second arrives before the first: until that has, nothing is known to be told.
    four.told().ends.insert(1, Ok(()));
    assert!(at() < first);
    four.told().ends.insert(0, Ok(()));
    soon("both are told", || (at() == first + 1).then_some(())).await;
    soon("two more are sent", || (four.begun().len() == 6).then_some(())).await;
    assert_eq!(four.begun()[4..], [first + 4, first + 5]);
    // The oldest fails, and again, and one behind it has arrived: all behind it come again once it
    // has arrived, and not before.
    four.told().ends.insert(3, Ok(()));
    four.told().ends.insert(6, Err(Trouble::new("told to fail")));
    four.told().well_from = Some(7);
    four.told().ends.insert(2, Err(Trouble::new("told to fail")));
    soon("all of it is told", || (at() == head).then_some(())).await;
    assert_eq!(four.begun()[6], first + 2, "the oldest by itself");
    assert_eq!(four.begun()[7..], (first + 2..=first + 9).collect::<Vec<_>>()[..], "in order");
    assert_eq!(figures.failures.get(), 2);
    running.abort();
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bus_is_kept_busy_from_one_read_of_the_log_to_the_next_and_the_lag_is_of_the_oldest() {
    let house = House::new();
    let room = house.room("spring-sale").await;
    let begins = room.handle.committed();
    let clock = Seams::real().clock;
    for _ in 0..6 {
        room.join().await;
        // So that each was written at a time of its own.
        let written = clock.wall_ms();
        soon("the clock goes on", || (clock.wall_ms() > written).then_some(())).await;
    }
    let name = room.handle.name();
    let log = house.store.read(name, Head(begins), 1 << 20).await.expect("the log");
    let four = Four::default();
    let mut relay = house.relay(&room, "test", four.clone());
    relay.filter = Filter::of_words(["position.*"]).expect("words");
    relay.pace.read_bytes = 1;
    let figures = relay.figures.clone();
    let lag = || figures.lags(log[5].at_ms + 60_000).into_iter().next().expect("one room");
    let running = tokio::spawn(async move { relay.run().await });
    soon("four are under way", || (four.begun().len() == 4).then_some(())).await;
    assert_eq!(lag().ms, log[5].at_ms + 60_000 - log[0].at_ms);
    four.told().ends.insert(0, Ok(()));
    soon("the next one is sent", || (four.begun().len() == 5).then_some(())).await;
    assert_eq!(lag().ms, log[5].at_ms + 60_000 - log[1].at_ms);
    four.told().well_from = Some(1);
    soon("all of it is told", || (lag().ms == 0).then_some(())).await;
    running.abort();
    house.stop().await;
}

/// A sink whose deliveries all go through one lock, as those to one connection do.
#[derive(Debug, Default)]
struct OneDoor {
    door: tokio::sync::Mutex<()>,
    begun: AtomicUsize,
    first_may: tokio::sync::Notify,
    first_waits: AtomicBool,
}

impl Sink for OneDoor {
    const AT_ONCE: usize = 3;

    async fn deliver(&self, _: &[Message]) -> Result<(), Trouble> {
        let at = self.begun.fetch_add(1, Ordering::SeqCst);
        if at == 0 {
            self.first_may.notified().await;
            self.first_waits.store(true, Ordering::SeqCst);
        }
        let _through = self.door.lock().await;
        match at {
            1 => Err(Trouble::new("told to fail")),
            _ => Ok(()),
        }
    }
}

/// The third is handed the lock when the second fails. It must not keep it from the first.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_behind_a_failure_holds_nothing_that_the_oldest_waits_for() {
    let house = House::new();
    let room = house.room("spring-sale").await;
    room.join_many(3).await;
    let head = room.handle.committed();
    let sink = Arc::new(OneDoor::default());
    let closed = sink.door.lock().await;
    let mut relay = house.relay(&room, "test", sink.clone());
    relay.filter = Filter::of_words(["position.*"]).expect("words");
    relay.pace.batch = 1;
    let figures = relay.figures.clone();
    let running = tokio::spawn(async move { relay.run().await });
    soon("three are under way", || (sink.begun.load(Ordering::SeqCst) == 3).then_some(())).await;
    sink.first_may.notify_one();
    soon("the first waits behind them", || sink.first_waits.load(Ordering::SeqCst).then_some(()))
        .await;
    drop(closed);
    let told = || figures.lags(0).first().is_some_and(|lag| lag.at == head).then_some(());
    soon("all of it is told", told).await;
    running.abort();
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_under_way_is_not_forgotten_for_a_name_that_never_comes() {
    let house = House::new();
    let room = house.room("spring-sale").await;
    let ana = room.join().await;
    room.join_many(2).await;
    let head = room.handle.committed();
    // About a ticket, where joins bring their own name along.
    room.leave(ana).await;
    let four = Four::default();
    four.told().well_from = Some(0);
    let mut relay = house.relay(&room, "test", four.clone());
    relay.names = Arc::new(Nameless);
    relay.filter = Filter::of_words(["position.*"]).expect("words");
    relay.pace.batch = 1;
    let figures = relay.figures.clone();
    let running = tokio::spawn(async move { relay.run().await });
    soon("it says what is wrong", || figures.trouble()).await;
    assert_eq!(house.cursor(room.handle.name(), "test").await, head);
    assert_eq!(four.begun().len(), 3, "each was sent once");
    running.abort();
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_cannot_be_told_is_late_from_the_start() {
    let house = House::new();
    let room = house.room("spring-sale").await;
    let ana = room.join().await;
    let mut relay = house.relay(&room, "test", Recorder::default());
    relay.names = Arc::new(Nameless);
    let figures = relay.figures.clone();
    let far = u64::MAX;
    let lag = || figures.lags(far).into_iter().next().map_or((0, 0), |lag| (lag.at, lag.ms));
    let running = tokio::spawn(async move { relay.run().await });
    let head = room.handle.committed();
    soon("she is told of", || (lag() == (head, 0)).then_some(())).await;
    // Nobody knows whom this is about.
    room.leave(ana).await;
    soon("it says what is wrong", || figures.trouble()).await;
    assert!(lag().1 > 0, "and since when");
    running.abort();
    house.stop().await;
}
