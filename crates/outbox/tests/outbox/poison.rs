//! Checkouts from both buses: good ones end sessions, whatever lies between them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream;
use futures_util::future::join_all;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Headers, Message as _};
use rdkafka::producer::{FutureProducer, FutureRecord};
use waitroom_core::{Actor, Command, EndHow, Epoch, LaneId, Number, Presented, Reply, Ticket};
use waitroom_outbox::Pending;
use waitroom_outbox::kafka::{self, KafkaSource};
use waitroom_outbox::nats::{self, NatsSource};
use waitroom_outbox::source::{
    Checkout, NotEnded, Outcome, Outcomes, Reason, Said, SourceFigures, read,
};

use crate::house::{House, TestNames, TestRoom, soon};
use crate::parts::{Kafka, Nats};

/// Messages that nobody should send, and good ones between them.
const POISON: usize = 10_000;
const GOOD: usize = 20;

/// Ends sessions of one room, as the server does.
struct OneRoom(waitroom_engine::RoomHandle);

impl Checkout for OneRoom {
    fn end<'a>(&'a self, said: &'a Said) -> Pending<'a, Result<(), NotEnded>> {
        Box::pin(async move {
            let never = |reason| Err(NotEnded::Never(reason));
            let Some(named) = TestNames::key().read(&said.session) else {
                return never(Reason::UnknownSession);
            };
            if said.room.as_deref().is_some_and(|room| room != self.0.name().as_str()) {
                return never(Reason::OtherRoom);
            }
            let ticket = Ticket { lane: LaneId(named.lane), number: Number(named.number) };
            let how = match said.outcome {
                Outcome::Completed => EndHow::Completed,
                Outcome::Failed => EndHow::CheckoutFailed,
                Outcome::Expired => EndHow::CheckoutExpired,
            };
            let ticket = Presented::by_service(ticket, Epoch(named.epoch));
            let end = Command::End { ticket, how, by: Actor::new("bus") };
            match self.0.send(end).await {
                Ok(answer) if answer.changed => Ok(()),
                Ok(answer) => match answer.reply {
                    Reply::Over { .. } => never(Reason::AlreadyOver),
                    _ => never(Reason::NotInside),
                },
                Err(_) => Err(NotEnded::Later),
            }
        })
    }
}

fn outcomes(prefix: &str) -> Outcomes {
    let named = |it: &str| format!("{prefix}{it}");
    Outcomes {
        completed: named("CHECKOUT_COMPLETED"),
        failed: named("CHECKOUT_FAILED"),
        expired: named("CHECKOUT_EXPIRED"),
    }
}

/// People inside, by their session ids.
async fn sessions(room: &TestRoom) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..GOOD {
        let Presented { ticket, epoch, .. } = room.join().await;
        let id = TestNames::key().name(ticket.lane.0, epoch.0, ticket.number.0).expect("in range");
        ids.push(id.to_string());
    }
    room.admit(GOOD as u64).await;
    ids
}

fn good(session: &str) -> Vec<u8> {
    format!(r#"{{"session_id":"{session}","user_id":"u","event_id":"spring-sale"}}"#).into_bytes()
}

/// Anything at all: bytes, JSON of the wrong shape, ids of nobody, good bodies with a bite out.
fn poison() -> Vec<Vec<u8>> {
    let id = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
    let any = proptest::prop_oneof![
        proptest::collection::vec(proptest::num::u8::ANY, 0..200),
        r#"\{"session_id":"[ -~]{0,40}"\}"#.prop_map(String::into_bytes),
        id.prop_map(|id| good(&id)),
        (id, 0..90usize).prop_map(|(id, cut)| {
            let mut body = good(&id);
            body.truncate(cut);
            body
        }),
        proptest::num::u16::ANY.prop_map(|n| format!("[{n},null]").into_bytes()),
    ];
    let mut runner = TestRunner::deterministic();
    let mut next = || any.new_tree(&mut runner).expect("a tree").current();
    let mut all: Vec<_> = (0..POISON - 1).map(|_| next()).collect();
    all.push(vec![b'x'; 20_000]);
    all
}

/// The poison with the good ones spread over it, and what each should come to.
fn mixed(sessions: &[String]) -> (Vec<Vec<u8>>, BTreeMap<&'static str, u64>) {
    let mut all = poison();
    let mut should: BTreeMap<&'static str, u64> = BTreeMap::new();
    for body in &all {
        let word = match read(Outcome::Completed, body) {
            // Whatever looks like a session is nobody's: ids cannot be guessed.
            Ok(_) => Reason::UnknownSession.word(),
            Err(reason) => reason.word(),
        };
        *should.entry(word).or_default() += 1;
    }
    let every = all.len() / sessions.len();
    for (at, session) in sessions.iter().enumerate() {
        all.insert(at * every, good(session));
    }
    // And each of them once more at the end: a bus delivers at least once.
    all.extend(sessions.iter().map(|session| good(session)));
    should.insert("already_over", sessions.len() as u64);
    (all, should)
}

async fn judge(figures: &SourceFigures, should: &BTreeMap<&'static str, u64>) {
    let refused = || -> BTreeMap<&'static str, u64> {
        let all = figures.refused().map(|(reason, count)| (reason.word(), count));
        all.filter(|(_, count)| *count > 0).collect()
    };
    let total: u64 = should.values().sum();
    soon("all messages to be heard", || {
        let heard = figures.ended.get() + refused().values().sum::<u64>();
        (heard >= total + GOOD as u64).then_some(())
    })
    .await;
    assert_eq!(figures.ended.get(), GOOD as u64);
    assert_eq!(&refused(), should);
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_poisoned_messages_on_nats_block_and_break_nothing() {
    let nats = Nats::start();
    let house = House::new();
    let room = house.room("spring-sale").await;
    let sessions = sessions(&room).await;
    let (messages, should) = mixed(&sessions);
    let figures = Arc::new(SourceFigures::default());
    let source = NatsSource {
        link: nats::Link { servers: nats.url(), credentials: None },
        outcomes: outcomes(""),
        replicas: 1,
        keep: Duration::from_secs(3_600),
        figures: figures.clone(),
    };
    let running = tokio::spawn(source.run(Arc::new(OneRoom(room.handle.clone()))));
    let client = async_nats::connect(nats.url()).await.expect("the server is up");
    let context = jetstream::new(client);
    // The source makes its stream when it comes up.
    let until = std::time::Instant::now() + crate::house::SOON;
    while context.get_stream("CHECKOUT_EVENTS").await.is_err() {
        assert!(std::time::Instant::now() < until, "the stream was not made");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for chunk in messages.chunks(500) {
        let mut acks = Vec::new();
        for body in chunk {
            let sent = context.publish("CHECKOUT_COMPLETED", body.clone().into()).await;
            acks.push(sent.expect("it goes out").into_future());
        }
        join_all(acks).await.into_iter().for_each(|ack| drop(ack.expect("it is kept")));
    }
    judge(&figures, &should).await;
    let total: u64 = should.values().sum();
    let until = std::time::Instant::now() + crate::house::SOON;
    loop {
        let dead = context.get_stream("DEAD_LETTER_QUEUE").await.expect("dead letters");
        if dead.cached_info().state.messages == total {
            break;
        }
        assert!(std::time::Instant::now() < until, "{:?}", dead.cached_info().state);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    running.abort();
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_poisoned_messages_on_kafka_block_and_break_nothing() {
    let broker = tokio::task::spawn_blocking(Kafka::shared).await.expect("a broker");
    let house = House::new();
    let room = house.room("spring-sale").await;
    let sessions = sessions(&room).await;
    let (messages, should) = mixed(&sessions);
    let outcomes = outcomes("poison.");
    let producer: FutureProducer = ClientConfig::new()
        .set("bootstrap.servers", broker.brokers())
        .create()
        .expect("a producer");
    let topic = outcomes.completed.clone();
    let mut acks = Vec::new();
    for body in &messages {
        let record = FutureRecord::to(&topic).key("spring-sale").payload(body);
        let Ok(sent) = producer.send_result(record) else { panic!("its queue holds 100,000") };
        acks.push(sent);
    }
    for ack in acks {
        ack.await.expect("it is not given up").expect("it is kept");
    }
    let figures = Arc::new(SourceFigures::default());
    let source = KafkaSource {
        link: kafka::Link::plain(broker.brokers()),
        group: "poison".into(),
        outcomes,
        dead_letter: "poison.DEAD_LETTER".into(),
        figures: figures.clone(),
    };
    let running = tokio::spawn(source.run(Arc::new(OneRoom(room.handle.clone()))));
    judge(&figures, &should).await;
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", broker.brokers())
        .set("group.id", "undertaker")
        .set("auto.offset.reset", "earliest")
        .create()
        .expect("a consumer");
    consumer.subscribe(&["poison.DEAD_LETTER"]).expect("subscribed");
    let total: u64 = should.values().sum();
    let read = tokio::task::spawn_blocking(move || {
        let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
        let until = std::time::Instant::now() + crate::house::SOON;
        while reasons.values().sum::<u64>() < total {
            assert!(std::time::Instant::now() < until, "{reasons:?}");
            let Some(Ok(message)) = consumer.poll(Duration::from_millis(100)) else { continue };
            let headers = message.headers().expect("a reason");
            let reason = headers.iter().find(|it| it.key == "waitroom-reason").expect("a reason");
            let word = String::from_utf8_lossy(reason.value.expect("a word")).into_owned();
            *reasons.entry(word).or_default() += 1;
        }
        reasons
    });
    let read = read.await.expect("all letters");
    let should: BTreeMap<String, u64> =
        should.iter().map(|(word, count)| ((*word).to_owned(), *count)).collect();
    assert_eq!(read, should);
    running.abort();
    house.stop().await;
}
