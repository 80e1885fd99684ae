//! Looks at each new board once and tells everyone who is connected.
//!
//! Connections sit in shards, so that subscribing never waits for a whole pass. A pass asks for
//! each connection: did the status change? then a personal frame; is a picture due? then the
//! shared bytes. How often a picture is due falls with the distance from the front, and with the
//! number of connections, so that a big crowd costs a bounded number of pushes a second; after a
//! pause everyone is due at once, so a lone admission is heard of by all at the same moment.
//! Whoever panics in a pass must not end it for everybody else, so poisoned locks are taken anyway:
//! what they guard is whole after every line.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use http::HeaderValue;
use tokio::sync::watch;
use tokio::time::Instant;
use waitroom_core::{Board, Presented, Status};

use super::frames::{Carrier, letter};
use super::mailbox::Mailbox;
use super::voice::{Occasion, Voice, Words};
use crate::desk::RoomDesk;

const SHARDS: usize = 16;
/// Nobody is told this of their ticket: whoever was moved hears of the new one.
const UNTOLD: Status = Status::Moved;
/// Pushes of boards a second that one room may cost: about half a core.
const PUSHES_A_SECOND: usize = 50_000;
/// Even without news a pass is made this often: for pings, beats and silent sockets.
const PASS_EVERY: Duration = Duration::from_secs(5);
/// A WebSocket is pinged this often, and given up when it was silent for three times as long.
const PING_EVERY_S: u32 = 25;
const SILENCE_MAX_S: u32 = 3 * PING_EVERY_S;

/// The public board in the forms in which it leaves.
#[derive(Debug)]
pub struct PublicForm {
    version: u64,
    pub tag: HeaderValue,
    pub json: Bytes,
    websocket: OnceLock<Bytes>,
    events: OnceLock<Bytes>,
}

impl PublicForm {
    fn of(board: &Board) -> Option<PublicForm> {
        let json = serde_json::to_vec(&board.public()?).expect("a board is plain data");
        let tag = format!("\"{}\"", board.version());
        Some(PublicForm {
            version: board.version(),
            tag: HeaderValue::try_from(tag).expect("digits are a header value"),
            json: Bytes::from(json),
            websocket: OnceLock::new(),
            events: OnceLock::new(),
        })
    }

    fn letter(&self, carrier: Carrier) -> Bytes {
        let made = match carrier {
            Carrier::WebSocket => &self.websocket,
            Carrier::Events => &self.events,
        };
        let make = || {
            let json = [b"{\"type\":\"board\",\"board\":", &self.json[..], b"}"].concat();
            letter(carrier, "board", &json)
        };
        made.get_or_init(make).clone()
    }
}

#[derive(Debug)]
pub struct Hub {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    shards: [Mutex<Shard>; SHARDS],
    connected: AtomicUsize,
    /// Of these, the WebSockets.
    sockets: AtomicUsize,
    next: AtomicUsize,
    running: std::sync::atomic::AtomicBool,
    public: ArcSwapOption<PublicForm>,
    pushes: AtomicU64,
    draining: watch::Receiver<bool>,
    started: Instant,
}

#[derive(Debug, Default)]
struct Shard {
    seats: Vec<Option<Seat>>,
    free: Vec<u32>,
}

/// One connection, as a pass sees it.
#[derive(Debug)]
struct Seat {
    mailbox: Arc<Mailbox>,
    presented: Presented,
    carrier: Carrier,
    voice: Voice,
    told: Status,
    room_told: &'static str,
    shown_version: u64,
    due_ms: u64,
    pinged_s: u32,
}

/// Keeps a connection in the hub; dropping it takes the connection out.
#[derive(Debug)]
pub struct Subscription {
    pub mailbox: Arc<Mailbox>,
    shared: Arc<Shared>,
    carrier: Carrier,
    shard: u16,
    seat: u32,
}

impl Hub {
    pub fn new(draining: watch::Receiver<bool>) -> Hub {
        Hub {
            shared: Arc::new(Shared {
                shards: std::array::from_fn(|_| Mutex::default()),
                connected: AtomicUsize::new(0),
                sockets: AtomicUsize::new(0),
                next: AtomicUsize::new(0),
                running: Default::default(),
                public: ArcSwapOption::empty(),
                pushes: AtomicU64::new(0),
                draining,
                started: Instant::now(),
            }),
        }
    }

    /// The public form of a board; made once for each board that somebody asks for.
    pub fn public(&self, board: &Board) -> Option<Arc<PublicForm>> {
        self.shared.public(board)
    }

    pub fn connected(&self) -> usize {
        self.shared.connected.load(Ordering::Relaxed)
    }

    /// The same for one kind of channel.
    pub fn connected_by(&self, carrier: Carrier) -> usize {
        let sockets = self.shared.sockets.load(Ordering::Relaxed);
        match carrier {
            Carrier::WebSocket => sockets,
            Carrier::Events => self.connected().saturating_sub(sockets),
        }
    }

    /// Boards and personal frames handed to connections so far.
    pub fn pushes(&self) -> u64 {
        self.shared.pushes.load(Ordering::Relaxed)
    }

    /// Adds a connection. It hears at once how its ticket stands and what the board shows.
    pub fn subscribe(
        &self,
        room: &Arc<RoomDesk>,
        presented: Presented,
        carrier: Carrier,
        voice: Voice,
    ) -> Subscription {
        let mailbox = Arc::new(Mailbox::default());
        let shared = &self.shared;
        mailbox.heard(shared.now_s());
        let mut seat = Seat {
            mailbox: mailbox.clone(),
            presented,
            carrier,
            voice,
            told: UNTOLD,
            room_told: "",
            shown_version: 0,
            due_ms: 0,
            pinged_s: shared.now_s(),
        };
        let board = room.handle().board();
        shared.serve(room, &board, &mut seat);
        if carrier == Carrier::WebSocket {
            shared.sockets.fetch_add(1, Ordering::Relaxed);
        }
        shared.connected.fetch_add(1, Ordering::Relaxed);
        let shard = shared.next.fetch_add(1, Ordering::Relaxed) % SHARDS;
        let seat = {
            let mut it = shared.shards[shard].lock().unwrap_or_else(PoisonError::into_inner);
            match it.free.pop() {
                Some(free) => {
                    it.seats[free as usize] = Some(seat);
                    free
                }
                None => {
                    it.seats.push(Some(seat));
                    (it.seats.len() - 1) as u32
                }
            }
        };
        self.start(room);
        Subscription { mailbox, shared: shared.clone(), carrier, shard: shard as u16, seat }
    }

    /// A room without live connections runs nothing; the first one starts the passes.
    fn start(&self, room: &Arc<RoomDesk>) {
        if !self.shared.running.swap(true, Ordering::AcqRel) {
            tokio::spawn(run(self.shared.clone(), Arc::downgrade(room)));
        }
    }
}

async fn run(shared: Arc<Shared>, room: Weak<RoomDesk>) {
    let mut version = 0;
    let mut draining = shared.draining.clone();
    loop {
        let Some(handle) = room.upgrade().map(|room| room.handle().clone()) else { return };
        let drains = tokio::select! {
            _ = tokio::time::timeout(PASS_EVERY, handle.next_board(version)) => false,
            _ = draining.wait_for(|draining| *draining) => true,
        };
        let Some(room) = room.upgrade() else { return };
        if drains {
            shared.say_goodbye().await;
            return;
        }
        let board = room.handle().board();
        version = board.version();
        shared.pass(&room, &board).await;
        if shared.connected.load(Ordering::Acquire) == 0 {
            shared.running.store(false, Ordering::Release);
            // Somebody may have come between the look and the store; then we go on.
            let nobody = shared.connected.load(Ordering::Acquire) == 0;
            if nobody || shared.running.swap(true, Ordering::AcqRel) {
                return;
            }
        }
    }
}

impl Shared {
    fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    fn now_s(&self) -> u32 {
        self.started.elapsed().as_secs() as u32
    }

    fn public(&self, board: &Board) -> Option<Arc<PublicForm>> {
        let made = self.public.load_full();
        if let Some(made) = made.filter(|made| made.version == board.version()) {
            return Some(made);
        }
        let made = Arc::new(PublicForm::of(board)?);
        self.public.store(Some(made.clone()));
        Some(made)
    }

    async fn pass(&self, room: &RoomDesk, board: &Board) {
        for shard in &self.shards {
            {
                let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
                for seat in shard.seats.iter_mut().flatten() {
                    self.serve(room, board, seat);
                    self.keep(room, seat);
                }
            }
            // Requests are answered in between: a pass over many connections takes milliseconds.
            tokio::task::yield_now().await;
        }
    }

    /// Tells one connection what is new for it.
    fn serve(&self, room: &RoomDesk, board: &Board, seat: &mut Seat) {
        // Not older than what was shown here, nor than what a command of theirs was answered.
        let seen = seat.shown_version.max(room.told(seat.presented.ticket).saturating_sub(1));
        if board.version() <= seen {
            return;
        }
        let state = board.state();
        let status = state.status(seat.presented.ticket);
        let (room_status, _) = crate::answer::room_status(state);
        let changed =
            status.is_none_or(|status| status != seat.told) || room_status != seat.room_told;
        // Without a public board the personal answer is all there is.
        let public = if seat.voice.shows_boards() { self.public(board) } else { None };
        let due = seat.due_ms <= self.now_ms();
        if changed || (due && public.is_none()) {
            self.tell(room, board, seat, status);
            seat.room_told = room_status;
        }
        if !due {
            return;
        }
        seat.shown_version = board.version();
        seat.due_ms = self.now_ms() + self.pause_ms(state.position(seat.presented.ticket));
        if let Some(public) = public {
            self.pushes.fetch_add(1, Ordering::Relaxed);
            if seat.mailbox.show(public.letter(seat.carrier)) {
                // The socket takes what it is given: somebody is there.
                room.handle().beat(seat.presented.ticket);
            }
        }
    }

    fn tell(&self, room: &RoomDesk, board: &Board, seat: &mut Seat, status: Option<Status>) {
        match room.look(board, &seat.presented) {
            Ok(sight) => {
                let occasion = match seat.told {
                    UNTOLD => Occasion::First,
                    told if told != sight.view.status => Occasion::Changed,
                    _ => Occasion::Due,
                };
                seat.told = status.unwrap_or(sight.view.status);
                // A moved ticket goes on where it went.
                if seat.presented.ticket != sight.presented.ticket {
                    seat.presented = sight.presented;
                    seat.told = sight.view.status;
                }
                match seat.voice.words(room, board, &sight, occasion) {
                    Words::Say(kind, json) => {
                        self.pushes.fetch_add(1, Ordering::Relaxed);
                        if seat.mailbox.tell(letter(seat.carrier, kind, &json)) {
                            // The socket takes what it is given: somebody is there.
                            room.handle().beat(seat.presented.ticket);
                        }
                    }
                    Words::Nothing => {}
                    Words::Last(kind, json) => {
                        seat.mailbox.close(Some(letter(seat.carrier, kind, &json)));
                    }
                }
            }
            // A ticket of the last few milliseconds; the next board knows it.
            Err(problem) if room.is_behind(board, &problem) => {}
            Err(problem) => {
                let (kind, json) = seat.voice.lost(problem.code.text());
                seat.mailbox.close(Some(letter(seat.carrier, kind, &json)));
            }
        }
    }

    /// How long until the next picture: near the front with every board, far back more seldom.
    fn pause_ms(&self, position: Option<u64>) -> u64 {
        let by_distance = match position {
            Some(0..=1_000) => 0,
            Some(..=10_000) => 500,
            _ => 1_000,
        };
        let connected = self.connected.load(Ordering::Relaxed);
        let by_crowd = (connected * 1_000 / PUSHES_A_SECOND) as u64;
        by_distance.max(if by_crowd > 200 { by_crowd } else { 0 })
    }

    /// Pings, and gives up on sockets that nobody answers from.
    fn keep(&self, room: &RoomDesk, seat: &mut Seat) {
        let now_s = self.now_s();
        if seat.carrier == Carrier::WebSocket {
            if now_s.saturating_sub(seat.mailbox.heard_at()) > SILENCE_MAX_S {
                seat.mailbox.close(None);
                return;
            }
            if now_s.saturating_sub(seat.pinged_s) >= PING_EVERY_S {
                seat.pinged_s = now_s;
                seat.mailbox.ping();
            }
            if now_s.saturating_sub(seat.mailbox.heard_at()) <= PING_EVERY_S {
                room.handle().beat(seat.presented.ticket);
            }
        } else if now_s.saturating_sub(seat.pinged_s) >= PING_EVERY_S {
            seat.pinged_s = now_s;
            seat.mailbox.ping();
        }
    }

    async fn say_goodbye(&self) {
        for shard in &self.shards {
            {
                let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
                for seat in shard.seats.iter().flatten() {
                    let goodbye = seat.voice.goodbye();
                    seat.mailbox.close(goodbye.map(|json| letter(seat.carrier, "bye", json)));
                }
            }
            tokio::task::yield_now().await;
        }
    }
}

impl Subscription {
    pub fn heard(&self) {
        self.mailbox.heard(self.shared.now_s());
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let shard = &self.shared.shards[usize::from(self.shard)];
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        shard.seats[self.seat as usize] = None;
        shard.free.push(self.seat);
        drop(shard);
        if self.carrier == Carrier::WebSocket {
            self.shared.sockets.fetch_sub(1, Ordering::Relaxed);
        }
        self.shared.connected.fetch_sub(1, Ordering::AcqRel);
    }
}
