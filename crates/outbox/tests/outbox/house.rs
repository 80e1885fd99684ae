//! A store with a room, its people, and a sink that can be told to misbehave.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use waitroom_core::id::{IdKey, TicketId};
use waitroom_core::settings::ClaimMode;
use waitroom_core::{
    Actor, Command, EndHow, Epoch, Event, Join, Presented, Reply, Session, Settings, Ticket, codec,
};
use waitroom_engine::{Config, Engine, RoomHandle};
use waitroom_outbox::relay::{Pace, Relay};
use waitroom_outbox::{Filter, Message, Names, Pending, Sink, SinkFigures, Trouble};
use waitroom_store::seal::MasterKey;
use waitroom_store::{FileStore, Head, RoomName, Seams, SinkName, Store};

use crate::parts::scratch;

pub fn room_name(name: &str) -> RoomName {
    RoomName::parse(name).expect("a plain name")
}

pub fn sink_name(name: &str) -> SinkName {
    SinkName::parse(name).expect("a plain name")
}

/// A moment is enough for what should happen; this is for machines that do ten other things.
pub const SOON: Duration = Duration::from_secs(60);

/// Waits until `found` finds something.
pub async fn soon<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + SOON;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < until, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub struct House {
    pub store: Arc<FileStore>,
    engine: Engine<FileStore>,
    folder: PathBuf,
}

impl House {
    pub fn new() -> House {
        House::on(scratch("house"))
    }

    fn on(folder: PathBuf) -> House {
        let seams = Seams::real();
        let opened = FileStore::open(&folder, Default::default(), seams.clone());
        let (store, _) = opened.expect("a store");
        let store = Arc::new(store);
        let config = Config {
            // The housekeeper stays out of the way.
            sweep_every: Duration::from_secs(3_600),
            ..Config::new("test", Arc::new(MasterKey::from_bytes([7; 32])))
        };
        let engine = Engine::new(store.clone(), seams, config);
        House { store, engine, folder }
    }

    /// A room in which people enter by hand and have their pass at once.
    pub async fn room(&self, name: &str) -> TestRoom {
        let handle = self.engine.open(&room_name(name)).await.expect("the room opens");
        let settings = Settings {
            queue_all: true,
            rate: None,
            max_active: 100_000,
            claim: ClaimMode::OnAdmission,
            ..Settings::default()
        };
        let by = Actor::new("test");
        let configure = Command::Configure { settings: Box::new(settings), by };
        handle.send(configure).await.expect("the store takes it");
        TestRoom { names: Arc::new(TestNames(Some(handle.clone()))), handle }
    }

    pub fn relay<K: Sink>(&self, room: &TestRoom, name: &str, sink: K) -> Relay<FileStore, K> {
        Relay {
            store: self.store.clone(),
            room: room.handle.name().clone(),
            name: sink_name(name),
            sink,
            names: room.names.clone(),
            filter: Filter::everything(),
            pace: Pace { retry_most: Duration::from_millis(500), ..Pace::default() },
            figures: Arc::new(SinkFigures::default()),
        }
    }

    /// Every event of a room's log, with its index and its epoch.
    pub async fn log(&self, room: &RoomName) -> Vec<(u64, Epoch, Event)> {
        let mut all = Vec::new();
        let mut at = Head::EMPTY;
        loop {
            let stored = self.store.read(room, at, 1 << 20).await.expect("the log can be read");
            let Some(last) = stored.last() else { return all };
            at = last.head;
            for batch in &stored {
                let mut index = batch.after.0;
                codec::decode(&batch.payload, |event| {
                    index += 1;
                    all.push((index, Epoch(batch.epoch), event));
                })
                .expect("the log is whole");
            }
        }
    }

    pub async fn cursor(&self, room: &RoomName, sink: &str) -> u64 {
        let cursor = self.store.cursor(room, &sink_name(sink)).await.expect("readable");
        cursor.map_or(0, |cursor| cursor.at.0)
    }

    pub async fn stop(self) {
        self.engine.stop().await;
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub struct TestRoom {
    pub handle: RoomHandle,
    pub names: Arc<TestNames>,
}

impl TestRoom {
    pub async fn join(&self) -> Presented {
        match self.handle.send(Command::Join(Join::default())).await.expect("a join").reply {
            Reply::Joined { ticket, epoch, .. } => Presented::by_service(ticket, epoch),
            other => panic!("not joined: {other:?}"),
        }
    }

    pub async fn join_many(&self, count: usize) {
        let joins = vec![Command::Join(Join::default()); count];
        self.handle.send_many(joins).await.expect("they join");
    }

    pub async fn admit(&self, count: u64) {
        let (entropy, by) = ([1; 16], Actor::new("test"));
        self.handle.send(Command::AdmitNow { count, entropy, by }).await.expect("let in");
    }

    pub async fn leave(&self, who: Presented) {
        self.handle.send(Command::Leave(who)).await.expect("gone");
    }

    pub async fn complete(&self, who: Presented) {
        let by = Actor::new("test");
        let end = Command::End { ticket: who, how: EndHow::Completed, by };
        self.handle.send(end).await.expect("done");
    }
}

/// How often somebody is killed in a story: as often as CI has time for, or as `cargo xtask long
/// events` says.
pub fn kills(usual: u64) -> u64 {
    let said = std::env::var("WAITROOM_EVENTS_KILLS").ok();
    said.map_or(usual, |it| it.parse().expect("WAITROOM_EVENTS_KILLS is a number"))
}

/// Names as the server makes them, but for passes, which are words.
#[derive(Debug)]
pub struct TestNames(pub Option<RoomHandle>);

impl TestNames {
    pub fn key() -> IdKey {
        IdKey::derive(&[3; 32])
    }
}

impl Names for TestNames {
    fn epoch_of(&self, ticket: Ticket) -> Option<Epoch> {
        match &self.0 {
            Some(handle) => Some(handle.board_guard().state().named(ticket)?.epoch),
            None => Some(Epoch(1)),
        }
    }

    fn id(&self, ticket: Ticket, epoch: Epoch) -> TicketId {
        TestNames::key().name(ticket.lane.0, epoch.0, ticket.number.0).expect("in range")
    }

    fn user(&self, sealed: &[u8]) -> Option<String> {
        String::from_utf8(sealed.to_vec()).ok()
    }

    fn pass(&self, id: TicketId, user: Option<String>, session: &Session) -> String {
        format!("pass of {id} for {user:?} until {}", session.pass_expires_at.0)
    }

    fn known_up_to(&self, head: u64) -> Pending<'_, ()> {
        Box::pin(async move {
            if let Some(handle) = &self.0 {
                handle.next_board(head - 1).await;
            }
        })
    }

    fn digest(&self) -> Pending<'_, Option<(u64, [u8; 32])>> {
        let board = self.0.as_ref().map(RoomHandle::board);
        let told = board.map(|board| (board.version(), board.state().digest()));
        Box::pin(std::future::ready(told))
    }
}

/// A sink that remembers what it took, and fails when it is told to.
#[derive(Clone, Debug, Default)]
pub struct Recorder(Arc<Recorded>);

#[derive(Debug, Default)]
struct Recorded {
    taken: Mutex<Vec<Message>>,
    /// Deliveries to fail from now on.
    failing: AtomicU64,
    tried: AtomicU64,
    /// Deliveries begin and do not end.
    held: std::sync::atomic::AtomicBool,
}

impl Recorder {
    pub fn taken(&self) -> Vec<Message> {
        self.0.taken.lock().expect("nobody panics holding it").clone()
    }

    pub fn fail(&self, deliveries: u64) {
        self.0.failing.store(deliveries, Ordering::SeqCst);
    }

    /// From now on a delivery that begins takes nothing and does not end.
    pub fn hold(&self, held: bool) {
        self.0.held.store(held, Ordering::SeqCst);
    }

    pub fn tried(&self) -> u64 {
        self.0.tried.load(Ordering::SeqCst)
    }
}

impl Sink for Recorder {
    async fn deliver(&self, batch: &[Message]) -> Result<(), Trouble> {
        self.0.tried.fetch_add(1, Ordering::SeqCst);
        if self.0.held.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        let left = self.0.failing.load(Ordering::SeqCst);
        // A delivery that fails may have got some of it across.
        let taken = if left > 0 { batch.len() / 2 } else { batch.len() };
        self.0.taken.lock().expect("nobody panics holding it").extend_from_slice(&batch[..taken]);
        if left > 0 {
            self.0.failing.store(left - 1, Ordering::SeqCst);
            return Err(Trouble::new("told to fail"));
        }
        Ok(())
    }
}
