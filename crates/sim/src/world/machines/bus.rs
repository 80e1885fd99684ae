//! A bus that events go to, and the real outbox that tells it of them.
//!
//! Lives here: a sink that is down, slow, takes a part of what it is given, loses its answers, and
//! forgets what it had acknowledged; and what an operator does about that. The duty, the relay and
//! its cursor are the product's; each instance runs them, and the lease says whose turn it is.

use super::super::bug::Bug;
use super::neighbours::Neighbours;
use super::wire::Wire;
use crate::history::{History, Published};
use crate::rng::Rng;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::mpsc;
use waitroom_core::id::{IdKey, TicketId};
use waitroom_core::{Epoch, Event, Session, Ticket, Timestamp, What};
use waitroom_outbox::{
    Duty, Filter, Message, Names, Pace, Pending, Replay, Rooms, Sink, SinkFigures, Told, Trouble,
    translate,
};
use waitroom_store::{Retention, RoomName, SinkName};

/// Messages in one delivery: few, so that a run has many of them.
const BATCH: usize = 20;

#[derive(Debug)]
pub(super) struct Bus {
    /// The store's time, so that everybody agrees when it is down.
    now: AtomicU64,
    inside: Mutex<Inside>,
    bug: Option<Bug>,
}

#[derive(Debug)]
struct Inside {
    /// What it holds, in the order of receiving.
    received: Vec<Message>,
    down_until: u64,
    rng: Rng,
    calm: bool,
    troubles: u64,
}

impl Bus {
    pub(super) fn new(rng: Rng, bug: Option<Bug>) -> Arc<Bus> {
        let inside = Inside { received: Vec::new(), down_until: 0, rng, calm: false, troubles: 0 };
        Arc::new(Bus { now: AtomicU64::new(0), inside: Mutex::new(inside), bug })
    }

    pub(super) fn at(&self, now: u64) {
        self.now.store(now, Ordering::Relaxed);
    }

    pub(super) fn goes_down(&self, until: u64) {
        self.inside().down_until = until;
    }

    pub(super) fn calms_down(&self) {
        let mut inside = self.inside();
        inside.calm = true;
        inside.down_until = 0;
    }

    pub(super) fn troubles(&self) -> u64 {
        self.inside().troubles
    }

    /// Forgets up to so many of its newest messages, none of events up to `kept`. Says from which
    /// event on it must be told again; it takes nothing until it comes up.
    pub(super) fn forgets(&self, most: usize, kept: u64) -> Option<u64> {
        let mut inside = self.inside();
        let newest = inside.received.iter().rev().take(most);
        let lost = newest.take_while(|message| message.id.head > kept).count();
        let left = inside.received.len() - lost;
        let from = inside.received.drain(left..).map(|message| message.id.head).min()?;
        inside.down_until = u64::MAX;
        Some(from)
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().expect("one thread, and nobody panics while holding it")
    }

    fn draw<T>(&self, draw: impl FnOnce(&mut Rng) -> T, calm: T) -> T {
        let mut inside = self.inside();
        if inside.calm { calm } else { draw(&mut inside.rng) }
    }

    /// Takes this many of a batch for good, if it is up.
    fn hold(&self, batch: &[Message]) -> Result<(), Trouble> {
        let mut inside = self.inside();
        if inside.down_until > self.now.load(Ordering::Relaxed) {
            inside.troubles += 1;
            return Err(Trouble::new("nobody is there"));
        }
        inside.received.extend_from_slice(batch);
        Ok(())
    }
}

impl Sink for Bus {
    async fn deliver(&self, batch: &[Message]) -> Result<(), Trouble> {
        let takes = self.draw(|rng| rng.below(40) * u64::from(rng.chance(0.3)), 0);
        if takes > 0 {
            tokio::time::sleep(Duration::from_millis(takes)).await;
        }
        match self.draw(|rng| rng.below(100), 99) {
            // A part is held, and it says so.
            0..4 => {
                let part = self.draw(|rng| rng.below(batch.len() as u64) as usize, 0);
                self.hold(&batch[..part])?;
                self.inside().troubles += 1;
                let done = match self.bug {
                    Some(Bug::PartOffByOne) => part + 1,
                    _ => part,
                };
                Err(Trouble::new("it took a part").after(done))
            }
            // A part or all of it is held, and nobody hears of that.
            4..8 => {
                let part = self.draw(|rng| rng.below(batch.len() as u64 + 1) as usize, 0);
                self.hold(&batch[..part])?;
                self.inside().troubles += 1;
                Err(Trouble::new("no answer"))
            }
            _ => self.hold(batch),
        }
    }
}

/// Tells the bus of the room, whenever it is this instance's turn.
pub(super) async fn tell(
    peers: Arc<Neighbours>,
    wire: Wire,
    bus: Arc<Bus>,
    replays: mpsc::Receiver<Replay>,
) {
    let instance = peers.name.clone();
    let second = Duration::from_secs(1);
    let pace = Pace { batch: BATCH, read_bytes: 2_048, retry_most: second, ..Pace::default() };
    let duty = Duty {
        store: Arc::new(wire),
        instance,
        name: sink_name(),
        sink: Arc::new(Told::new(bus)),
        filter: Filter::everything(),
        pace,
        keep: Retention { keep_bytes: u64::MAX, keep_age_ms: u64::MAX },
        figures: Arc::<SinkFigures>::default(),
        replays,
    };
    duty.run(Arc::new(OneRoom(peers))).await;
}

pub(super) fn sink_name() -> SinkName {
    SinkName::parse("bus").expect("a plain name")
}

fn id_key() -> IdKey {
    IdKey::derive(&[1; 32])
}

struct OneRoom(Arc<Neighbours>);

impl Rooms for OneRoom {
    fn rooms(&self) -> Vec<(RoomName, Arc<dyn Names>)> {
        let names = || Arc::new(Plates { peers: self.0.clone(), key: id_key() });
        let handle = self.0.handle();
        handle
            .map(|handle| (handle.name().clone(), names() as Arc<dyn Names>))
            .into_iter()
            .collect()
    }
}

/// The names of the room, by what this instance shows of it.
struct Plates {
    peers: Arc<Neighbours>,
    key: IdKey,
}

impl fmt::Debug for Plates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "names at {}", self.peers.name)
    }
}

impl Names for Plates {
    fn epoch_of(&self, ticket: Ticket) -> Option<Epoch> {
        let board = self.peers.handle()?.board();
        board.state().named(ticket).map(|named| named.epoch)
    }

    fn id(&self, ticket: Ticket, epoch: Epoch) -> TicketId {
        id_of(&self.key, ticket, epoch)
    }

    fn user(&self, sealed: &[u8]) -> Option<String> {
        user_of(sealed)
    }

    fn pass(&self, id: TicketId, _: Option<String>, session: &Session) -> String {
        pass_of(id, session)
    }

    fn known_up_to(&self, head: u64) -> Pending<'_, ()> {
        Box::pin(async move {
            let Some(handle) = self.peers.handle() else { return };
            let mut version = handle.board_guard().version();
            while version < head {
                version = handle.next_board(version).await.version();
            }
        })
    }
}

/// The names of an onlooker who has read the whole log.
#[derive(Debug)]
struct Remembered {
    epochs: BTreeMap<Ticket, Epoch>,
    key: IdKey,
}

impl Remembered {
    fn of(history: &History) -> Remembered {
        let mut epochs = BTreeMap::new();
        for it in &history.log {
            match &it.event.what {
                What::Joined(joined) => epochs.insert(joined.ticket, it.epoch),
                What::Moved { to, .. } => epochs.insert(*to, it.epoch),
                _ => None,
            };
        }
        Remembered { epochs, key: id_key() }
    }
}

impl Names for Remembered {
    fn epoch_of(&self, ticket: Ticket) -> Option<Epoch> {
        self.epochs.get(&ticket).copied()
    }

    fn id(&self, ticket: Ticket, epoch: Epoch) -> TicketId {
        id_of(&self.key, ticket, epoch)
    }

    fn user(&self, sealed: &[u8]) -> Option<String> {
        user_of(sealed)
    }

    fn pass(&self, id: TicketId, _: Option<String>, session: &Session) -> String {
        pass_of(id, session)
    }

    fn known_up_to(&self, _: u64) -> Pending<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

fn id_of(key: &IdKey, ticket: Ticket, epoch: Epoch) -> TicketId {
    key.name(ticket.lane.0, epoch.0, ticket.number.0).expect("a ticket of ours fits")
}

fn user_of(sealed: &[u8]) -> Option<String> {
    Some(format!("user of {} bytes", sealed.len()))
}

fn pass_of(id: TicketId, session: &Session) -> String {
    format!("{:?} until {}", id.to_bytes(), session.pass_expires_at.0)
}

/// Turns what the bus received into the record that checkers know. A message that is not, word for
/// word, what its event means is recorded as one of another event, which no log holds.
pub(super) fn published(bus: &Bus, room: &RoomName, history: &History) -> Vec<Published> {
    let plates = Remembered::of(history);
    let expected: Vec<Vec<Message>> = history
        .log
        .iter()
        .map(|it| {
            let place = waitroom_outbox::translate::Place { room, head: it.index, epoch: it.epoch };
            let mut messages = Vec::new();
            // A log that a bug has spoiled may speak of tickets that it never gave.
            let _ = translate(place, &it.event, &plates, &mut messages);
            messages
        })
        .collect();
    let mut published = Vec::new();
    let mut next = 0;
    // Events that outsiders are not told of count as told when their turn has come.
    let mut quiet_up_to = |to: usize, published: &mut Vec<Published>| {
        while next < to.min(expected.len()) {
            if expected[next].is_empty() {
                let (index, event) = (next as u64 + 1, history.log[next].event.clone());
                published.push(Published { index, event, seq: None });
            }
            next += 1;
        }
    };
    let inside = bus.inside();
    for message in &inside.received {
        let place = (message.id.head as usize).wrapping_sub(1);
        quiet_up_to(place, &mut published);
        let same = expected.get(place).and_then(|all| all.get(message.id.index as usize));
        let mut event = match history.log.get(place) {
            Some(it) => it.event.clone(),
            None => Event { at: Timestamp(0), what: What::DoorsOpened },
        };
        if same != Some(message) {
            event.at = Timestamp(u64::MAX);
        }
        let seq = message.about.as_ref().and_then(|about| {
            let named = plates.key.read(&about.id)?;
            Some((Ticket::new(named.lane, named.number), about.seq?))
        });
        published.push(Published { index: message.id.head, event, seq });
    }
    quiet_up_to(usize::MAX, &mut published);
    published
}
