//! The outbox, wired: which sinks there are, and what they need to know of rooms.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use waitroom_api::desk::{DeadAsked, OutboxDesk, RoomDesk, SinkLag, SinkPicture};
use waitroom_api::{Code, Desk, Problem};
use waitroom_core::id::TicketId;
use waitroom_core::{Actor, Command, EndHow, Epoch, Presented, Session, Ticket};
use waitroom_outbox::body::ReadyToken;
use waitroom_outbox::duty::REPLAYS_MAX;
use waitroom_outbox::kafka::{KafkaSink, KafkaSource, Topics};
use waitroom_outbox::mirror::{
    KafkaMirror, Marks, NatsMirror, Place, PostgresMirror, SealKey, Terms,
};
use waitroom_outbox::nats::{self, NatsSink, NatsSource, Streams, SystemLine};
use waitroom_outbox::postgres::{self, Projection};
use waitroom_outbox::source::{Checkout, NotEnded, Outcome, Outcomes, Reason, Said, SourceFigures};
use waitroom_outbox::{
    Carry, Duty, Figures, Filter, Nameless, Names, NotReplayed, Pace, Pending, Replay, Rooms, Sink,
    Told, Whole,
};
use waitroom_pass::PassClaims;
use waitroom_store::{Clock, Retention, RoomName, SinkName, Store};

use super::hooks::{self, Endpoint};
use super::installation::House;
use super::system::Herald;
use crate::config::kafka::Way;
use crate::config::{Config, Events, EventsMirror};

/// What runs, until it is stopped.
#[derive(Debug)]
pub struct Outbox {
    tasks: Vec<JoinHandle<()>>,
}

impl Outbox {
    /// What was not told by now is told after the next start: it is in the log.
    pub async fn stop(self) {
        for task in self.tasks {
            task.abort();
            let _ = task.await;
        }
    }
}

/// Starts every sink that is configured. None of them has to be there yet.
pub fn begin<S: Store + Clone>(
    config: &Config,
    house: &House<S>,
    desk: &Arc<Desk>,
    endpoints: Vec<Endpoint>,
    instance: &str,
) -> Outbox {
    let events = &config.events;
    let mut begun = Begun {
        keep: Retention {
            keep_bytes: events.outbox.keep_bytes,
            keep_age_ms: events.outbox.keep_age.as_millis() as u64,
        },
        store: house.engine.store().clone(),
        rooms: Arc::new(KnownRooms(desk.clone())),
        figures: Figures::default(),
        instance,
        asks: BTreeMap::new(),
        tasks: Vec::new(),
    };
    let ready = ready_token(config);
    if let Some(servers) = &events.nats.servers {
        let of = &events.nats;
        let link = nats::Link { servers: servers.clone(), credentials: of.credentials.clone() };
        let streams =
            Streams { replicas: of.replicas as usize, keep: of.keep, remember: of.remember };
        let filter = of.events.clone().in_rooms(of.rooms.clone());
        if let Some(every) = of.system_every {
            let line = SystemLine::new(link.clone(), instance, of.replicas as usize, of.keep);
            let (desk, instance) = (desk.clone(), instance.to_owned());
            let herald = Herald { line, desk, instance, every };
            begun.tasks.push(tokio::spawn(herald.run()));
        }
        begun.sink("nats", filter, NatsSink::new(link, ready, streams));
    }
    if let Some(brokers) = &events.kafka.brokers {
        let of = &events.kafka;
        let link = Way::of_events(of).link(brokers);
        let (joined, left, ready_topic) = (of.joined.clone(), of.left.clone(), of.ready.clone());
        let topics = Topics { joined, left, ready: ready_topic };
        let filter = of.events.clone().in_rooms(of.rooms.clone());
        begun.sink("kafka", filter, KafkaSink::new(link, topics, ready));
    }
    for endpoint in &endpoints {
        let (filter, sink) = (endpoint.filter.clone(), endpoint.sink.clone());
        let rooms = begun.rooms.clone();
        begun.duty(&endpoint.name, filter, endpoint.pace, Told::new(sink), rooms);
    }
    if let Some(url) = &events.postgres.url {
        let of = &events.postgres;
        let link = postgres::Link { url: url.clone(), password_file: of.password_file.clone() };
        let filter = Filter::everything().in_rooms(of.rooms.clone());
        let rooms = begun.rooms.clone();
        begun.duty("postgres", filter, Pace::default(), Whole::new(Projection::new(link)), rooms);
    }
    begun.mirror(&events.mirror, house.mirror_key());
    let sources = begun.sources(events, desk);
    let clock = desk.clock.clone();
    let seen = Seen { figures: begun.figures, sources, asks: begun.asks, endpoints, clock };
    let _ = desk.outbox.set(Arc::new(seen));
    Outbox { tasks: begun.tasks }
}

/// Whether admissions are told with the pass.
pub fn ready_token(config: &Config) -> ReadyToken {
    if config.events.outbox.ready_token { ReadyToken::On } else { ReadyToken::Off }
}

struct Begun<'a, S: Store> {
    keep: Retention,
    store: Arc<S>,
    rooms: Arc<dyn Rooms>,
    figures: Figures,
    instance: &'a str,
    asks: BTreeMap<String, mpsc::Sender<Replay>>,
    tasks: Vec<JoinHandle<()>>,
}

impl<S: Store> Begun<'_, S> {
    fn sink<K: Sink>(&mut self, name: &str, filter: Filter, sink: K) {
        self.duty(name, filter, Pace::default(), Told::new(sink), self.rooms.clone());
    }

    fn duty<K: Carry>(
        &mut self,
        name: &str,
        filter: Filter,
        pace: Pace,
        sink: K,
        rooms: Arc<dyn Rooms>,
    ) {
        let (asks, replays) = mpsc::channel(REPLAYS_MAX);
        self.asks.insert(name.to_owned(), asks);
        let duty = Duty {
            store: self.store.clone(),
            instance: self.instance.to_owned(),
            name: SinkName::parse(name).expect("sinks have plain names"),
            sink: Arc::new(sink),
            filter,
            pace,
            keep: self.keep,
            figures: self.figures.sink(name),
            replays,
        };
        self.tasks.push(tokio::spawn(duty.run(rooms)));
    }
}

impl<S: Store> Begun<'_, S> {
    fn mirror(&mut self, of: &EventsMirror, key: SealKey) {
        let Some(to) = &of.to else { return };
        let place = Place::parse(to, Way::of_mirror(of).access());
        let place = place.expect("the configuration was checked");
        let rooms: Arc<dyn Rooms> = Arc::new(AndSystem(self.rooms.clone()));
        let filter = Filter::everything();
        let terms = Terms { key, marks: Marks::every(of.digest_every) };
        match place {
            Place::Nats(link) => {
                let mirror = NatsMirror::new(link, &of.name, of.replicas as usize, terms);
                self.duty("mirror", filter, Pace::default(), Whole::new(mirror), rooms);
            }
            Place::Kafka(link) => {
                let mirror = KafkaMirror::new(link, &of.name, terms);
                self.duty("mirror", filter, Pace::default(), Whole::new(mirror), rooms);
            }
            Place::Postgres(link) => {
                let mirror = PostgresMirror::new(link, terms);
                self.duty("mirror", filter, Pace::default(), Whole::new(mirror), rooms);
            }
        }
    }

    /// Begins to hear checkouts wherever events are published, unless told otherwise.
    fn sources(&mut self, events: &Events, desk: &Arc<Desk>) -> Sources {
        let of = &events.checkouts;
        let outcomes = Outcomes {
            completed: of.completed.clone(),
            failed: of.failed.clone(),
            expired: of.expired.clone(),
        };
        let checkout: Arc<dyn Checkout> = Arc::new(Sessions(desk.clone()));
        let mut sources = Sources::new();
        if let Some(servers) = events.nats.servers.clone().filter(|_| events.nats.checkouts) {
            let figures = Arc::new(SourceFigures::default());
            sources.push(("nats", figures.clone()));
            let source = NatsSource {
                link: nats::Link { servers, credentials: events.nats.credentials.clone() },
                outcomes: outcomes.clone(),
                replicas: events.nats.replicas as usize,
                keep: events.nats.keep,
                figures,
            };
            self.tasks.push(tokio::spawn(source.run(checkout.clone())));
        }
        if let Some(brokers) = events.kafka.brokers.clone().filter(|_| events.kafka.checkouts) {
            let figures = Arc::new(SourceFigures::default());
            sources.push(("kafka", figures.clone()));
            let source = KafkaSource {
                link: Way::of_events(&events.kafka).link(&brokers),
                group: of.group.clone(),
                outcomes,
                dead_letter: of.dead_letter.clone(),
                figures,
            };
            self.tasks.push(tokio::spawn(source.run(checkout)));
        }
        sources
    }
}

/// What hears checkouts, by its bus.
type Sources = Vec<(&'static str, Arc<SourceFigures>)>;

/// Ends sessions as the API does.
struct Sessions(Arc<Desk>);

/// Who the bus is in a room's log.
const BUS: &str = "bus";

impl Checkout for Sessions {
    fn end<'a>(&'a self, said: &'a Said) -> Pending<'a, Result<(), NotEnded>> {
        Box::pin(async move {
            let never = |reason| Err(NotEnded::Never(reason));
            let Some((room, ticket)) = self.0.find(said.session) else {
                // Kept with its reason, and nobody behind it waits until that room is mended.
                return match self.0.unopened.is_empty() {
                    true => never(Reason::UnknownSession),
                    false => never(Reason::RoomUnavailable),
                };
            };
            if said.room.as_deref().is_some_and(|name| name != room.name().as_str()) {
                return never(Reason::OtherRoom);
            }
            let how = match said.outcome {
                Outcome::Completed => EndHow::Completed,
                Outcome::Failed => EndHow::CheckoutFailed,
                Outcome::Expired => EndHow::CheckoutExpired,
            };
            let end = Command::End { ticket, how, by: Actor::new(BUS) };
            match room.send(end).await {
                Ok(answer) if answer.changed => Ok(()),
                Ok(_) => never(Reason::AlreadyOver),
                Err(problem) => match problem.code {
                    Code::TicketUnknown | Code::PlaceLost => never(Reason::UnknownSession),
                    Code::TicketForgotten => never(Reason::Forgotten),
                    Code::WrongStatus => never(Reason::NotInside),
                    _ => Err(NotEnded::Later),
                },
            }
        })
    }
}

/// The rooms that are open here.
struct KnownRooms(Arc<Desk>);

impl Rooms for KnownRooms {
    fn rooms(&self) -> Vec<(RoomName, Arc<dyn Names>)> {
        let names = |room: Arc<RoomDesk>| {
            let name = room.name().clone();
            let names: Arc<dyn Names> = Arc::new(RoomNames { desk: self.0.clone(), room });
            (name, names)
        };
        self.0.rooms().into_iter().map(names).collect()
    }
}

/// The rooms, and the log of the installation: without its keys no ticket of before is known.
struct AndSystem(Arc<dyn Rooms>);

impl Rooms for AndSystem {
    fn rooms(&self) -> Vec<(RoomName, Arc<dyn Names>)> {
        let nameless: Arc<dyn Names> = Arc::new(Nameless);
        let mut rooms = self.0.rooms();
        rooms.push((RoomName::system(), nameless));
        rooms
    }
}

#[derive(Debug)]
struct RoomNames {
    desk: Arc<Desk>,
    room: Arc<RoomDesk>,
}

impl Names for RoomNames {
    fn epoch_of(&self, ticket: Ticket) -> Option<Epoch> {
        Some(self.room.handle().board_guard().state().named(ticket)?.epoch)
    }

    fn id(&self, ticket: Ticket, epoch: Epoch) -> TicketId {
        self.room.id(&Presented::by_service(ticket, epoch))
    }

    fn user(&self, sealed: &[u8]) -> Option<String> {
        self.room.open_user(sealed)
    }

    fn pass(&self, id: TicketId, user: Option<String>, session: &Session) -> String {
        self.desk.metrics.passes.one();
        let claims = PassClaims::of(id, self.room.name().as_str(), session).checkout(user);
        self.desk.signatures.passes.sign(&claims)
    }

    fn known_up_to(&self, head: u64) -> Pending<'_, ()> {
        Box::pin(async move {
            self.room.handle().next_board(head.saturating_sub(1)).await;
        })
    }

    fn digest(&self) -> Pending<'_, Option<(u64, [u8; 32])>> {
        let board = self.room.handle().board();
        // Seconds for a large room, and nobody waits for it.
        let made = tokio::task::spawn_blocking(move || (board.version(), board.state().digest()));
        Box::pin(async move { made.await.ok() })
    }
}

/// What operators see of it.
struct Seen {
    figures: Figures,
    sources: Sources,
    asks: BTreeMap<String, mpsc::Sender<Replay>>,
    endpoints: Vec<Endpoint>,
    clock: Arc<dyn Clock>,
}

impl OutboxDesk for Seen {
    fn sinks(&self) -> Vec<SinkPicture> {
        let now_ms = self.clock.wall_ms();
        let picture = |(name, of): (String, Arc<waitroom_outbox::SinkFigures>)| SinkPicture {
            dead: self
                .endpoints
                .iter()
                .find(|it| it.name == name)
                .map(|it| it.sink.dead.count() as u64),
            name,
            sent: of.delivered.get(),
            failures: of.failures.get(),
            gaps: of.gaps.get(),
            trouble: of.trouble(),
            lags: of
                .lags(now_ms)
                .into_iter()
                .map(|lag| SinkLag {
                    room: lag.room,
                    at: lag.at,
                    events: lag.events,
                    seconds: lag.ms as f64 / 1_000.0,
                })
                .collect(),
        };
        self.figures.all().into_iter().map(picture).collect()
    }

    fn replay<'a>(
        &'a self,
        sink: &'a str,
        room: &'a RoomName,
        from: u64,
    ) -> Pending<'a, Result<(), Problem>> {
        Box::pin(async move {
            let (done, answer) = oneshot::channel();
            let replay = Replay { room: room.clone(), from, done };
            let asked = match self.asks.get(sink) {
                Some(asks) => asks.send(replay).await.is_ok(),
                None => false,
            };
            let answer = if asked { answer.await.ok() } else { None };
            let refused = match answer.unwrap_or(Err(NotReplayed::NotHere)) {
                Ok(()) => return Ok(()),
                Err(refused) => refused,
            };
            let (code, detail) = match refused {
                NotReplayed::NotHere => {
                    (Code::Unavailable, "this instance does not run the sink now".to_owned())
                }
                NotReplayed::NoSuchRoom => {
                    (Code::NotFound, "the sink gets nothing of this room".to_owned())
                }
                NotReplayed::Trimmed { to } => {
                    (Code::BadRequest, format!("events up to {to} are no longer kept"))
                }
                NotReplayed::NotYet { head } => {
                    (Code::BadRequest, format!("the newest event is {head}"))
                }
                NotReplayed::Store { why } => (Code::Unavailable, why),
            };
            Err(Problem::new(code, detail).in_room(room))
        })
    }

    fn dead<'a>(&'a self, asked: DeadAsked<'a>) -> Pending<'a, Result<serde_json::Value, Problem>> {
        Box::pin(hooks::dead(&self.endpoints, asked))
    }

    fn checkouts(&self) -> Vec<(&'static str, &'static str, u64)> {
        let heard = |(bus, of): &(&'static str, Arc<SourceFigures>)| {
            let refused = of.refused().map(|(reason, count)| (*bus, reason.word(), count));
            [(*bus, "ended", of.ended.get())].into_iter().chain(refused).collect::<Vec<_>>()
        };
        self.sources.iter().flat_map(heard).collect()
    }
}
