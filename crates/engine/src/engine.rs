//! The rooms of this instance: opens them, keeps house, stops them.

use crate::config::Config;
use crate::error::{OpenError, Unanswered};
use crate::handle::{RoomHandle, Shared};
use crate::peers::Peers;
use crate::task::{Task, lapse};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use waitroom_core::{Ticket, Timestamp};
use waitroom_store::{RoomName, Seams, Store};

pub struct Engine<S: Store> {
    store: Arc<S>,
    seams: Seams,
    config: Arc<Config>,
    rooms: Arc<Mutex<BTreeMap<RoomName, RoomHandle>>>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
    stop: watch::Sender<bool>,
}

/// Tickets in one proposal of the sweeper: what the writer looks at again in well under a
/// millisecond.
const LAPSE_MAX: usize = 1_000;

impl<S: Store> Engine<S> {
    /// An engine without rooms. One housekeeper serves them all, so that an idle room has no
    /// timer of its own. Must be called within a tokio runtime.
    pub fn new(store: Arc<S>, seams: Seams, config: Config) -> Engine<S> {
        let (stop, stopped) = watch::channel(false);
        let config = Arc::new(config);
        let rooms: Arc<Mutex<BTreeMap<RoomName, RoomHandle>>> = Arc::default();
        let housekeeper = tokio::spawn(keep_house(rooms.clone(), config.clone(), stopped));
        let tasks = Mutex::new(vec![housekeeper]);
        Engine { store, seams, config, rooms, tasks, stop }
    }

    pub fn store(&self) -> &Arc<S> {
        &self.store
    }

    /// Recovers a room and becomes its owner.
    pub async fn open(&self, name: &RoomName) -> Result<RoomHandle, OpenError> {
        let shared = Arc::new(Shared::new(
            name.clone(),
            self.seams.clock.clone(),
            self.config.peers.clone(),
        ));
        let (inbox, requests) = mpsc::channel(self.config.inbox);
        let handle = RoomHandle { shared: shared.clone(), inbox };
        if self.rooms().contains_key(name) {
            return Err(OpenError::AlreadyOpen);
        }
        let task = Task {
            store: self.store.clone(),
            seams: self.seams.clone(),
            config: self.config.clone(),
            shared,
            inbox: requests,
            stop: self.stop.subscribe(),
            take_after: None,
        };
        let (opened, is_open) = oneshot::channel();
        let running = tokio::spawn(task.run(opened));
        let gone = || OpenError::Broke { why: "the room's task ended while opening".into() };
        is_open.await.unwrap_or_else(|_| Err(gone()))?;
        self.tasks.lock().expect("nobody panics while holding it").push(running);
        self.rooms().insert(name.clone(), handle.clone());
        Ok(handle)
    }

    pub fn room(&self, name: &RoomName) -> Option<RoomHandle> {
        self.rooms().get(name).cloned()
    }

    /// The rooms that are open here, owned or followed.
    pub fn names(&self) -> Vec<RoomName> {
        self.rooms().keys().cloned().collect()
    }

    /// Stops taking commands, finishes what was taken, gives leases back.
    pub async fn stop(&self) {
        let _ = self.stop.send(true);
        self.rooms().clear();
        let tasks = std::mem::take(&mut *self.tasks.lock().expect("nobody panics holding it"));
        for task in tasks {
            let _ = task.await;
        }
    }

    fn rooms(&self) -> std::sync::MutexGuard<'_, BTreeMap<RoomName, RoomHandle>> {
        self.rooms.lock().expect("nobody panics while holding it")
    }
}

impl<S: Store> std::fmt::Debug for Engine<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("config", &self.config).finish_non_exhaustive()
    }
}

/// Looks for silent visitors, room by room, off the writers' path.
async fn keep_house(
    rooms: Arc<Mutex<BTreeMap<RoomName, RoomHandle>>>,
    config: Arc<Config>,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            _ = tokio::time::sleep(config.sweep_every) => {}
        }
        let handles: Vec<RoomHandle> =
            rooms.lock().expect("nobody panics while holding it").values().cloned().collect();
        for handle in handles {
            // The owner decides who is silent, and only when it knows whom the others heard.
            let hears_all = |peers: &Arc<dyn Peers>| peers.hears_all(handle.name());
            if handle.follows() || !config.peers.as_ref().is_none_or(hears_all) {
                continue;
            }
            if handle.board().state().waiting() > 0 {
                sweep(handle).await;
            }
        }
    }
}

/// Proposes the silent ones of one room. The writer looks at each again.
pub async fn sweep(handle: RoomHandle) -> u64 {
    let looking = handle.clone();
    let silent = tokio::task::spawn_blocking(move || silent(&looking)).await;
    let mut lapsed = 0;
    for tickets in silent.unwrap_or_default().chunks(LAPSE_MAX) {
        match handle.send(lapse(tickets.to_vec())).await {
            Ok(answer) => {
                if let waitroom_core::Reply::Lapsed { count } = answer.reply {
                    lapsed += count;
                }
            }
            // Busy: visitors come first, the silent can wait for the next look.
            Err(Unanswered::Overloaded) => break,
            Err(_) => break,
        }
    }
    lapsed
}

/// Who has been silent for too long, by the newest board. Takes its time in a long line.
pub fn silent(handle: &RoomHandle) -> Vec<Ticket> {
    let board = handle.board();
    let state = board.state();
    let Some(settings) = state.settings() else { return Vec::new() };
    let peers = handle.shared.peers.as_ref();
    // Whom another instance has heard of since it wrote its last report is not known here. So
    // silence counts up to then: whoever was silent for long enough was so whatever comes.
    let unheard_ms = peers.map_or(0, |peers| peers.unheard_ms(handle.name()));
    let now = Timestamp(handle.now().0.saturating_sub(unheard_ms));
    let liveness = handle.liveness();
    let timeout = settings.heartbeat_timeout;
    let lanes = state.lane_ids().collect::<Vec<_>>();
    lanes
        .into_iter()
        .flat_map(|lane| liveness.silent(state, lane, now, timeout, 100 * LAPSE_MAX))
        .collect()
}
