//! A log that comes back shorter after a fail-over and is written anew: a real Redis at the level
//! that waits for nobody, and its replica, which had not seen the end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use waitroom_core::{Event, Joined, Ticket, Timestamp, What, codec};
use waitroom_outbox::relay::{Pace, Relay};
use waitroom_outbox::{Filter, SinkFigures};
use waitroom_redis::{Level, Options, RedisStore, Where};
use waitroom_store::{Batch, Head, Lease, LeaseName, RoomName, Seams, Store};

use crate::cutter::Cutter;
use crate::house::{Recorder, SOON, TestNames, room_name, sink_name, soon};
use crate::servers::{DURABLE, Server};

/// Somebody who owns the room and appends one join after the other.
struct Owner {
    store: Arc<RedisStore>,
    room: RoomName,
    lease: Lease,
    next: u64,
}

impl Owner {
    async fn of(store: &Arc<RedisStore>, room: &RoomName) -> Owner {
        let until = Instant::now() + SOON;
        loop {
            let lease = store.lease(&LeaseName::room(room), "owner", 60_000).await;
            match lease {
                Ok(lease) => {
                    let (store, room) = (store.clone(), room.clone());
                    return Owner { store, room, lease, next: 0 };
                }
                Err(error) => assert!(Instant::now() < until, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn joins(&mut self, count: u64) {
        for _ in 0..count {
            let head = self.store.committed_head(&self.room).await.expect("it is there");
            let ticket = Ticket::new(0, head.0);
            let what = What::Joined(Joined { ticket, ..Joined::default() });
            let at = Timestamp(u64::from(self.lease.epoch) * 1_000 + self.next);
            let mut payload = Vec::new();
            codec::encode(&[Event { at, what }], &mut payload);
            let batch = Batch { number: self.next, events: 1, payload };
            let told = self.store.append(&self.room, &self.lease, head, batch).await;
            assert_eq!(told.expect("it is there").head, Head(head.0 + 1));
            self.next += 1;
        }
    }
}

fn heads(recorder: &Recorder) -> Vec<u64> {
    recorder.taken().iter().map(|message| message.id.head).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_went_back_is_noticed_and_no_id_is_used_for_two_events() {
    let primary = Server::redis(&DURABLE);
    let to_replica = Cutter::to(primary.port);
    let follows = ["--replicaof", "127.0.0.1", &to_replica.port.to_string()].map(str::to_owned);
    let settings: Vec<&str> = DURABLE.into_iter().chain(follows.iter().map(|it| &**it)).collect();
    let replica = Server::redis(&settings);
    let address = Cutter::to(primary.port);
    let mut options = Options::new(Where::Single { url: address.url() }, Level::Async);
    // A busy machine is not a broken one.
    options.connect_timeout = Duration::from_secs(20);
    let opened = RedisStore::open(options, Seams::real()).await;
    let store = Arc::new(opened.expect("it is fit").0);
    let room = room_name("spring-sale");
    let mut owner = Owner::of(&store, &room).await;
    owner.joins(5).await;

    let recorder = Recorder::default();
    let figures = Arc::new(SinkFigures::default());
    let relay = Relay {
        store: store.clone(),
        room: room.clone(),
        name: sink_name("test"),
        sink: recorder.clone(),
        names: Arc::new(TestNames(None)),
        filter: Filter::everything(),
        pace: Pace { retry_most: Duration::from_millis(200), ..Pace::default() },
        figures: figures.clone(),
    };
    let running = tokio::spawn(async move { relay.run().await });
    soon("the first five", || (heads(&recorder).len() == 5).then_some(())).await;
    let until = Instant::now() + SOON;
    while store.cursor(&room, &sink_name("test")).await.expect("readable").map(|it| it.at)
        != Some(Head(5))
    {
        assert!(Instant::now() < until, "the cursor is written");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let ask = "HGET waitroom:{spring-sale}:keep cursor:test";
    soon("the replica has all of it", || replica.say(ask).starts_with("5 ").then_some(())).await;

    // The replica sees no more. What is told now is known to one server and to the bus.
    to_replica.close();
    owner.joins(5).await;
    soon("ten", || (heads(&recorder).len() == 10).then_some(())).await;
    replica.say("REPLICAOF NO ONE");
    address.lead_to(replica.port);

    let mut owner = Owner::of(&store, &room).await;
    assert_eq!(store.committed_head(&room).await, Ok(Head(5)), "it went back");
    assert_eq!(figures.gaps.get(), 0, "which is not yet a reason to give anything up");
    owner.joins(3).await;
    soon("it is noticed", || (figures.gaps.get() == 1).then_some(())).await;
    assert_eq!(heads(&recorder).len(), 10, "nothing was told under a name that was used");
    owner.joins(4).await;
    soon("what is behind the gap", || (heads(&recorder).len() == 12).then_some(())).await;
    let mut told = heads(&recorder);
    told.sort_unstable();
    assert_eq!(told, (1..=12).collect::<Vec<u64>>(), "each id once");
    let cursor = store.cursor(&room, &sink_name("test")).await.expect("readable");
    let gap = cursor.expect("it is there").gap.expect("it is written down");
    assert_eq!((gap.after, gap.to), (Head(5), Head(10)));
    running.abort();
}
