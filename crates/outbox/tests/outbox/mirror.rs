//! Mirrors in all three places, with everybody killed now and then: what is read back is the log.

use std::sync::Arc;
use std::time::{Duration, Instant};

use waitroom_outbox::mirror::{
    Assembly, Broken, KafkaMirror, Mark, Marks, NatsMirror, Place, PostgresMirror,
};
use waitroom_outbox::{Carry, Keeper, Whole};
use waitroom_store::{Head, RoomName, Store, Stored};

use crate::database::Postgres;
use crate::house::{House, SOON, TestRoom, soon};
use crate::parts::{Kafka, Nats};
use crate::projection::errand;

const NAME: &str = "WAITROOM_MIRROR";

/// A digest whenever it is at rest.
fn marks() -> Marks {
    Marks::every(Duration::ZERO)
}

struct Read {
    log: Vec<Stored>,
    mark: Option<Mark>,
}

async fn read(place: &Place, name: &str, room: &RoomName) -> Result<Read, Broken> {
    let mut assembly = Assembly::new(room);
    let mut log = Vec::new();
    let taken = place.read(name, room, |piece| {
        log.extend(assembly.take(piece)?);
        Ok(())
    });
    match taken.await {
        Ok(taken) => taken?,
        // It is made by whoever is first to write to it.
        Err(trouble) => eprintln!("not there yet: {trouble}"),
    }
    Ok(Read { log, mark: assembly.mark() })
}

async fn log(house: &House, room: &RoomName) -> Vec<Stored> {
    let mut log: Vec<Stored> = Vec::new();
    loop {
        let at = log.last().map_or(Head::EMPTY, |it| it.head);
        let more = house.store.read(room, at, 1 << 20).await.expect("readable");
        if more.is_empty() {
            return log;
        }
        log.extend(more);
    }
}

/// Waits until the mirror holds the log and a digest at its end, and compares.
async fn judge(house: &House, room: &TestRoom, place: &Place, name: &str) {
    let room_name = room.handle.name();
    let should = log(house, room_name).await;
    let head = should.last().expect("something happened").head;
    let digest = room.handle.board_at(head.0).await.state().digest();
    let until = Instant::now() + SOON;
    loop {
        let is = read(place, name, room_name).await.expect("a mirror that holds");
        if is.log.len() == should.len() && is.mark.is_some_and(|mark| mark.at == head) {
            assert_eq!(is.log, should);
            assert_eq!(is.mark, Some(Mark { at: head, digest }), "the room's own digest");
            return;
        }
        assert!(Instant::now() < until, "{} of {} batches", is.log.len(), should.len());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Carries a busy room to a mirror and kills whoever carries at odd moments.
async fn a_day_with_kills<K: Keeper>(house: &House, room: &TestRoom, mirror: impl Fn() -> K) {
    for kill in 0..15u64 {
        let keeper = Arc::new(Whole::new(mirror()));
        let carrying = tokio::spawn(keeper.carry(errand(house, room, "mirror")));
        for _ in 0..4 {
            room.join_many(20).await;
            room.admit(5).await;
        }
        tokio::time::sleep(Duration::from_micros(kill * 7_919 % 50_000)).await;
        carrying.abort();
        let _ = carrying.await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_in_nats_is_the_log_whoever_is_killed() {
    let mut nats = Nats::start();
    let link = waitroom_outbox::nats::Link { servers: nats.url(), credentials: None };
    let place = Place::Nats(link.clone());
    let house = House::new();
    let (room, other) = (house.room("spring-sale").await, house.room("other").await);
    let mirror = || NatsMirror::new(link.clone(), NAME, 1, marks());
    a_day_with_kills(&house, &room, mirror).await;
    // One mirror for two rooms, and a server that goes away under it.
    let keeper = Arc::new(Whole::new(mirror()));
    let both: Vec<_> = [&room, &other]
        .into_iter()
        .map(|room| tokio::spawn(keeper.clone().carry(errand(&house, room, "mirror"))))
        .collect();
    for _ in 0..3 {
        room.join_many(30).await;
        other.join_many(30).await;
        nats.kill();
        room.join_many(30).await;
        nats.start_again();
    }
    judge(&house, &room, &place, NAME).await;
    // The last ones undisturbed: each is there once.
    for _ in 0..3 {
        other.join_many(30).await;
        judge(&house, &other, &place, NAME).await;
    }
    both.iter().for_each(|it| it.abort());

    // A message that somebody deletes is missed, at the event where it was.
    let context = async_nats::jetstream::new(async_nats::connect(nats.url()).await.expect("up"));
    let stream = context.get_stream(NAME).await.expect("the mirror");
    let newest = stream.get_last_raw_message_by_subject("waitroom_mirror.other");
    let newest = newest.await.expect("there is one").sequence;
    let whole = read(&place, NAME, other.handle.name()).await.expect("whole").log;
    // The newest is a digest; go back to the newest batch that is not the last one.
    let mut gone = 0;
    for sequence in (1..newest).rev() {
        let Ok(message) = stream.get_raw_message(sequence).await else { continue };
        if message.subject.as_str() == "waitroom_mirror.other" && message.payload[1] == b'B' {
            gone += 1;
            if gone == 2 {
                assert!(stream.delete_message(sequence).await.expect("deleted"));
                break;
            }
        }
    }
    let broken = read(&place, NAME, other.handle.name()).await.err().expect("a gap");
    let before = &whole[whole.len() - 3];
    assert_eq!(broken.after, before.head, "{broken}");
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_in_kafka_is_the_log_whoever_is_killed() {
    let kafka = Kafka::shared();
    let link = waitroom_outbox::kafka::Link { brokers: kafka.brokers() };
    let topic = "mirror-of-one-test";
    let house = House::new();
    let room = house.room("spring-sale").await;
    let mirror = || KafkaMirror::new(link.clone(), topic, marks());
    a_day_with_kills(&house, &room, mirror).await;
    let keeper = Arc::new(Whole::new(mirror()));
    let carrying = tokio::spawn(keeper.carry(errand(&house, &room, "mirror")));
    room.join_many(30).await;
    judge(&house, &room, &Place::Kafka(link), topic).await;
    carrying.abort();
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_in_postgres_is_the_log_whoever_is_killed() {
    let mut postgres = Postgres::start().await;
    let link = crate::projection::link(&postgres);
    let place = Place::Postgres(link.clone());
    let house = House::new();
    let room = house.room("spring-sale").await;
    let mirror = || PostgresMirror::new(link.clone(), marks());
    a_day_with_kills(&house, &room, mirror).await;
    postgres.kill();
    let keeper = Arc::new(Whole::new(mirror()));
    let carrying = tokio::spawn(keeper.carry(errand(&house, &room, "mirror")));
    room.join_many(30).await;
    postgres.start_again().await;
    judge(&house, &room, &place, NAME).await;
    carrying.abort();
    let _ = carrying.await;

    // An altered piece is refused where it is.
    let client = postgres.client().await;
    let log = log(&house, room.handle.name()).await;
    let (before, altered) = (&log[5], &log[6]);
    let flip = "UPDATE waitroom.mirror SET piece = set_byte(piece, length(piece) - 1,
                255 - get_byte(piece, length(piece) - 1)) WHERE head = $1";
    let changed = client.execute(flip, &[&(altered.head.0 as i64)]).await.expect("altered");
    assert!(changed >= 1);
    let broken = read(&place, NAME, room.handle.name()).await.err().expect("not the log");
    assert_eq!(broken.after, before.head, "{broken}");
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_of_another_history_is_left_alone() {
    let postgres = Postgres::start().await;
    let link = crate::projection::link(&postgres);
    let place = Place::Postgres(link.clone());
    let (one, other) = (House::new(), House::new());
    let (first, second) = (one.room("sale").await, other.room("sale").await);
    first.join_many(3).await;
    let keeper = Arc::new(Whole::new(PostgresMirror::new(link.clone(), marks())));
    let carrying = tokio::spawn(keeper.clone().carry(errand(&one, &first, "mirror")));
    judge(&one, &first, &place, NAME).await;
    carrying.abort();
    let _ = carrying.await;
    // Its batches begin at the same events; only the chain tells.
    second.join_many(3).await;
    second.join_many(50).await;
    let errand = errand(&other, &second, "mirror");
    let figures = errand.figures.clone();
    let carrying = tokio::spawn(keeper.carry(errand));
    let trouble = soon("it is said", || figures.trouble()).await;
    assert!(trouble.contains("another history of room sale"), "{trouble}");
    judge(&one, &first, &place, NAME).await;
    carrying.abort();
    one.stop().await;
    other.stop().await;
}
