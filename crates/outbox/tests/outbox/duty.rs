//! One sink for every room: found when they are made, told again when asked, run by one instance.

use std::sync::{Arc, Mutex};

use tokio::sync::{mpsc, oneshot};
use waitroom_outbox::duty::{Duty, NotReplayed, Replay, Rooms};
use waitroom_outbox::{Filter, Names, Pace, SinkFigures, Told};
use waitroom_store::{FileStore, Retention, RoomName};

use crate::checker::{Seen, check};
use crate::house::{House, Recorder, TestRoom, room_name, sink_name, soon};
use crate::relay::should;

#[derive(Clone, Default)]
struct Known(Arc<Mutex<Vec<Named>>>);

type Named = (RoomName, Arc<dyn Names>);

impl Known {
    fn add(&self, room: &TestRoom) {
        let names: Arc<dyn Names> = room.names.clone();
        self.0.lock().expect("nobody panics").push((room.handle.name().clone(), names));
    }
}

impl Rooms for Known {
    fn rooms(&self) -> Vec<(RoomName, Arc<dyn Names>)> {
        self.0.lock().expect("nobody panics").clone()
    }
}

fn duty(
    house: &House,
    instance: &str,
    recorder: &Recorder,
) -> (Duty<FileStore, Told<Recorder>>, mpsc::Sender<Replay>) {
    let (asks, replays) = mpsc::channel(4);
    let duty = Duty {
        store: house.store.clone(),
        instance: instance.to_owned(),
        name: sink_name("test"),
        sink: Arc::new(Told::new(recorder.clone())),
        filter: Filter::everything(),
        pace: Pace::default(),
        keep: Retention { keep_bytes: 1 << 30, keep_age_ms: u64::MAX },
        figures: Arc::new(SinkFigures::default()),
        replays,
    };
    (duty, asks)
}

async fn replay(asks: &mpsc::Sender<Replay>, room: &str, from: u64) -> Result<(), NotReplayed> {
    let (done, answer) = oneshot::channel();
    asks.send(Replay { room: room_name(room), from, done }).await.expect("it runs");
    tokio::time::timeout(crate::house::SOON, answer).await.expect("in time").expect("an answer")
}

async fn all_came(house: &House, room: &TestRoom, recorder: &Recorder, times: usize) {
    let should = should(house, room).await;
    let last = should.last().expect("something happened").id.clone();
    let own = format!("{}:", room.handle.name());
    let came = || -> Vec<Seen> {
        let all = recorder.taken();
        all.iter().map(Seen::of).filter(|it| it.id.starts_with(&own)).collect()
    };
    soon("the last message", || {
        (came().iter().filter(|it| it.id == last).count() >= times).then_some(())
    })
    .await;
    assert_eq!(check(&should, &came()), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_that_is_made_later_is_told_of_too_and_all_of_it_again_when_asked() {
    let house = House::new();
    let (known, recorder) = (Known::default(), Recorder::default());
    let one = house.room("one").await;
    known.add(&one);
    let (duty, asks) = duty(&house, "a", &recorder);
    let running = tokio::spawn(duty.run(Arc::new(known.clone())));
    one.join_many(10).await;
    all_came(&house, &one, &recorder, 1).await;
    let other = house.room("other").await;
    other.join_many(10).await;
    known.add(&other);
    all_came(&house, &other, &recorder, 1).await;
    // A bus that forgot: everything again, in the same order, with the same ids.
    assert_eq!(replay(&asks, "one", 1).await, Ok(()));
    all_came(&house, &one, &recorder, 2).await;
    one.admit(3).await;
    all_came(&house, &one, &recorder, 1).await;
    let head = one.handle.committed();
    assert_eq!(replay(&asks, "one", head + 1).await, Err(NotReplayed::NotYet { head }));
    assert_eq!(replay(&asks, "nowhere", 1).await, Err(NotReplayed::NoSuchRoom));
    running.abort();
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_instance_runs_a_sink_and_another_takes_over() {
    let house = House::new();
    let known = Known::default();
    let room = house.room("one").await;
    known.add(&room);
    let (first, second) = (Recorder::default(), Recorder::default());
    let (duty_a, asks_a) = duty(&house, "a", &first);
    let running = tokio::spawn(duty_a.run(Arc::new(known.clone())));
    // Once it answers, it holds the lease.
    assert_eq!(replay(&asks_a, "one", 1).await, Ok(()));
    let (duty_b, asks_b) = duty(&house, "b", &second);
    let waiting = tokio::spawn(duty_b.run(Arc::new(known)));
    assert_eq!(replay(&asks_b, "one", 1).await, Err(NotReplayed::NotHere));
    room.join_many(10).await;
    all_came(&house, &room, &first, 1).await;
    assert_eq!(second.taken(), vec![], "it is not its turn");
    running.abort();
    let _ = running.await;
    room.join_many(10).await;
    let head = room.handle.committed();
    soon("the other takes over", || {
        second.taken().iter().any(|it| it.id.head == head).then_some(())
    })
    .await;
    let together: Vec<Seen> = first.taken().iter().chain(&second.taken()).map(Seen::of).collect();
    assert_eq!(check(&should(&house, &room).await, &together), Vec::<String>::new());
    waiting.abort();
    house.stop().await;
}
