//! Mirrors in all three places, with everybody killed now and then: what is read back is the log.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::producer::{FutureProducer, FutureRecord};
use waitroom_outbox::mirror::{
    Assembly, Broken, KafkaMirror, Mark, Marks, NatsMirror, Place, PostgresMirror, SealKey, Terms,
    piece,
};
use waitroom_outbox::{Carry, Keeper, Whole};
use waitroom_store::seal::MasterKey;
use waitroom_store::{Head, Link, RoomName, Store, Stored};

use crate::database::Postgres;
use crate::house::{House, SOON, TestRoom, kills, soon};
use crate::parts::{Kafka, Nats};
use crate::projection::errand;

const NAME: &str = "WAITROOM_MIRROR";

fn key() -> SealKey {
    SealKey::of(&MasterKey::from_bytes([9; 32]))
}

/// A digest whenever it is at rest.
pub fn terms() -> Terms {
    Terms { key: key(), marks: Marks::every(Duration::ZERO) }
}

struct Read {
    log: Vec<Stored>,
    mark: Option<Mark>,
}

async fn read(place: &Place, name: &str, room: &RoomName) -> Result<Read, Broken> {
    let mut assembly = Assembly::new(&key(), room);
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
pub async fn judge(house: &House, room: &TestRoom, place: &Place, name: &str) {
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

/// A batch that fits behind a log, chain and all, made by somebody who can write to the mirror and
/// does not know the master key.
fn forged(room: &RoomName, behind: &Stored) -> Vec<u8> {
    let number = behind.number + 1;
    let after = behind.head;
    let link = Link { epoch: behind.epoch, nonce: behind.nonce, number, after, events: 1 };
    let payload = vec![7];
    let chain = behind.chain.next(room, &link, &payload);
    let batch = Stored {
        after,
        head: link.head(),
        epoch: link.epoch,
        nonce: link.nonce,
        number,
        events: 1,
        at_ms: behind.at_ms,
        payload,
        chain,
    };
    let theirs = SealKey::of(&MasterKey::from_bytes([66; 32]));
    let pieces = piece::of_batch(&theirs, room, &batch, Some(behind.chain));
    pieces.into_iter().next().expect("one small piece")
}

/// The mirror was added to: it is refused, behind the last event that is ours.
async fn is_refused(place: &Place, name: &str, room: &RoomName, behind: Head) {
    let until = Instant::now() + SOON;
    let broken = loop {
        match read(place, name, room).await {
            Err(broken) => break broken,
            // A bus may take a moment to show it.
            Ok(_) => assert!(Instant::now() < until, "an added batch is believed"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(broken.after, behind, "{broken}");
    let next = behind.0 + 1;
    assert!(broken.why.contains(&format!("events {next} to {next}")), "{broken}");
    assert!(broken.why.contains("altered or added"), "{broken}");
}

/// Carries a busy room to a mirror and kills whoever carries at odd moments.
async fn a_day_with_kills<K: Keeper>(house: &House, room: &TestRoom, mirror: impl Fn() -> K) {
    for kill in 0..kills(15) {
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
    let mirror = || NatsMirror::new(link.clone(), NAME, 1, terms());
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

    // What somebody else publishes is told from ours.
    let context = async_nats::jetstream::new(async_nats::connect(nats.url()).await.expect("up"));
    let whole = log(&house, room.handle.name()).await;
    let last = whole.last().expect("something happened");
    let sent =
        context.publish("waitroom_mirror.spring-sale", forged(room.handle.name(), last).into());
    sent.await.expect("sent").await.expect("taken");
    is_refused(&place, NAME, room.handle.name(), last.head).await;

    // A message that somebody deletes is missed, at the event where it was.
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
    let link = waitroom_outbox::kafka::Link::plain(kafka.brokers());
    let topic = "mirror-of-one-test";
    let house = House::new();
    let room = house.room("spring-sale").await;
    let mirror = || KafkaMirror::new(link.clone(), topic, terms());
    a_day_with_kills(&house, &room, mirror).await;
    let keeper = Arc::new(Whole::new(mirror()));
    let carrying = tokio::spawn(keeper.carry(errand(&house, &room, "mirror")));
    room.join_many(30).await;
    let place = Place::Kafka(link);
    judge(&house, &room, &place, topic).await;
    carrying.abort();
    let _ = carrying.await;

    // What somebody else publishes is told from ours.
    let (name, whole) = (room.handle.name(), log(&house, room.handle.name()).await);
    let last = whole.last().expect("something happened");
    let producer: FutureProducer =
        ClientConfig::new().set("bootstrap.servers", kafka.brokers()).create().expect("a producer");
    let piece = forged(name, last);
    let record = FutureRecord::to(topic).key(name.as_str()).payload(&piece);
    producer.send(record, SOON).await.expect("taken");
    is_refused(&place, topic, name, last.head).await;
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_in_postgres_is_the_log_whoever_is_killed() {
    let mut postgres = Postgres::start().await;
    let link = crate::projection::link(&postgres);
    let place = Place::Postgres(link.clone());
    let house = House::new();
    let room = house.room("spring-sale").await;
    let mirror = || PostgresMirror::new(link.clone(), terms());
    a_day_with_kills(&house, &room, mirror).await;
    postgres.kill();
    let keeper = Arc::new(Whole::new(mirror()));
    let carrying = tokio::spawn(keeper.carry(errand(&house, &room, "mirror")));
    room.join_many(30).await;
    postgres.start_again().await;
    judge(&house, &room, &place, NAME).await;
    carrying.abort();
    let _ = carrying.await;

    // What somebody else inserts is told from ours.
    let client = postgres.client().await;
    let log = log(&house, room.handle.name()).await;
    let last = log.last().expect("something happened");
    let add = "INSERT INTO waitroom.mirror (room, number, head, piece)
               SELECT room, max(number) + 1, max(head) + 1, $1 FROM waitroom.mirror GROUP BY room";
    client.execute(add, &[&forged(room.handle.name(), last)]).await.expect("added");
    is_refused(&place, NAME, room.handle.name(), last.head).await;

    // An altered piece is refused where it is.
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
    let keeper = Arc::new(Whole::new(PostgresMirror::new(link.clone(), terms())));
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
