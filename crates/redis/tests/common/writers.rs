//! Writers of several rooms, and a judge of what they were told.
//!
//! Each room has one writer that appends as an owner does: under a lease, one batch after the
//! other; after anything but `Ok` it takes a new lease and looks where the log stands. What was
//! acknowledged is remembered by head and chain, so that the log can be held against it: a chain
//! covers all that came before it.

#![allow(dead_code, reason = "each test file uses its own part of this")]

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{runtime::Runtime, task::JoinHandle};
use waitroom_redis::{Level, Options, RedisStore, Where};
use waitroom_store::{Appended, Batch, Head, LeaseName, RoomName, Seams, Store};

/// Sentinels that were slowed down by a busy machine stand aside for half a minute.
const PATIENCE: Duration = Duration::from_secs(150);

pub struct Writers {
    store: RedisStore,
    rooms: Vec<Arc<Room>>,
    tasks: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    runtime: Runtime,
}

struct Room {
    name: RoomName,
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    /// What was acknowledged, oldest first.
    kept: Vec<Appended>,
    /// Batches that were acknowledged and are not in the log.
    lost: usize,
    opened: usize,
    /// How often it was told `Ok`, whatever became of it.
    times: usize,
    last: Option<Instant>,
    longest: Duration,
}

/// What became of it.
#[derive(Debug, Default)]
pub struct Verdict {
    pub acknowledged: usize,
    pub lost: usize,
    /// How often a room had to be opened.
    pub opened: usize,
    /// The longest that a room was not told `Ok`.
    pub longest: Duration,
}

impl Writers {
    pub fn start(servers: Where, level: Level, rooms: usize) -> Writers {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("threads");
        let options = Options::new(servers, level);
        let opened = runtime.block_on(RedisStore::open(options, Seams::real()));
        let store = opened.unwrap_or_else(|error| panic!("{error}")).0;
        let stop = Arc::new(AtomicBool::new(false));
        let room = |number: usize| {
            let name = RoomName::parse(&format!("room-{number}")).expect("a name");
            Arc::new(Room { name, told: Mutex::default() })
        };
        let rooms: Vec<Arc<Room>> = (0..rooms).map(room).collect();
        let write =
            |room: &Arc<Room>| runtime.spawn(write(store.clone(), room.clone(), stop.clone()));
        let tasks = rooms.iter().map(write).collect();
        Writers { store, rooms, tasks, stop, runtime }
    }

    /// Waits until every room was told `Ok` so often from now on.
    pub fn more(&self, times: usize) {
        let count = |room: &Arc<Room>| room.told().times;
        let before: Vec<usize> = self.rooms.iter().map(count).collect();
        let deadline = Instant::now() + PATIENCE;
        for (room, before) in self.rooms.iter().zip(before) {
            while count(room) < before + times {
                let why = format!("{} was not told Ok {times} times in {PATIENCE:?}", room.name);
                assert!(Instant::now() < deadline, "{why}");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    /// How often somebody was told `Ok` so far.
    pub fn acknowledged(&self) -> usize {
        self.rooms.iter().map(|room| room.told().times).sum()
    }

    /// Lets the writers go on until each was told what became of its last batch, then holds the
    /// whole log of every room against what was acknowledged.
    pub fn judge(self) -> Verdict {
        self.judge_by(None)
    }

    /// The same, in the eyes of whoever reads from `other` servers; the writers' own may never
    /// answer again.
    pub fn judge_by(mut self, other: Option<(Where, Level)>) -> Verdict {
        self.stop.store(true, Ordering::SeqCst);
        let store = match other {
            None => self.store.clone(),
            Some((servers, level)) => {
                self.tasks.iter().for_each(JoinHandle::abort);
                let options = Options::new(servers, level);
                let opened = self.runtime.block_on(RedisStore::open(options, Seams::real()));
                opened.unwrap_or_else(|error| panic!("{error}")).0
            }
        };
        let mut verdict = Verdict::default();
        for (room, task) in self.rooms.iter().zip(self.tasks.drain(..)) {
            self.runtime.block_on(async {
                let ended = tokio::time::timeout(PATIENCE, task).await;
                match ended.expect("the writer was told in time") {
                    Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
                    _ => {}
                }
                // Whoever opens it next sees what counts.
                settle(&store, room, "judge").await;
            });
            let told = room.told();
            verdict.acknowledged += told.times;
            verdict.lost += told.lost;
            verdict.opened += told.opened;
            verdict.longest = verdict.longest.max(told.longest);
        }
        verdict
    }
}

impl Room {
    fn told(&self) -> std::sync::MutexGuard<'_, Told> {
        self.told.lock().expect("nobody panics while holding it")
    }

    fn acknowledged(&self, tip: Appended) {
        let mut told = self.told();
        let now = Instant::now();
        if let Some(last) = told.last.replace(now) {
            told.longest = told.longest.max(now - last);
        }
        told.times += 1;
        told.kept.push(tip);
    }
}

async fn write(store: RedisStore, room: Arc<Room>, stop: Arc<AtomicBool>) {
    let mut payload = 0u64;
    while !stop.load(Ordering::SeqCst) {
        let lease = settle(&store, &room, "writer").await;
        let Ok(tip) = store.tip(&room.name).await else { continue };
        let mut head = tip.head;
        for number in 0.. {
            payload += 1;
            // One to three events, so that heads do not meet by chance.
            let events = (payload % 3 + 1) as u32;
            let batch = Batch { number, events, payload: payload.to_le_bytes().to_vec() };
            match store.append(&room.name, &lease, head, batch).await {
                Ok(tip) => {
                    room.acknowledged(tip);
                    head = tip.head;
                }
                Err(_) => break,
            }
            if stop.load(Ordering::SeqCst) {
                return;
            }
        }
    }
}

/// Takes the room under a new epoch, however long it takes, and counts what is not there.
async fn settle(store: &RedisStore, room: &Room, who: &str) -> waitroom_store::Lease {
    let deadline = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < deadline, "{} could not be opened in {PATIENCE:?}", room.name);
        let lease = store.lease(&LeaseName::room(&room.name), who, 2_000).await;
        let Ok(lease) = lease else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let newest = room.told().kept.last().copied();
        let missing = match newest {
            None => Ok(0),
            Some(newest) => missing(store, room, newest).await,
        };
        if let Ok(missing) = missing {
            let mut told = room.told();
            told.opened += 1;
            told.lost += missing;
            let left = told.kept.len() - missing;
            told.kept.truncate(left);
            return lease;
        }
    }
}

/// How much of what was acknowledged is not in the log.
async fn missing(
    store: &RedisStore,
    room: &Room,
    newest: Appended,
) -> Result<usize, waitroom_store::Error> {
    // The newest is there with its chain: then all before it are.
    let before = Head(newest.head.0 - 1);
    let found = store.read(&room.name, before, 1).await?;
    let is_it = |stored: &waitroom_store::Stored| {
        (stored.head, stored.chain) == (newest.head, newest.chain)
    };
    if found.first().is_some_and(is_it) {
        return Ok(0);
    }
    let all = store.read(&room.name, Head::EMPTY, usize::MAX).await?;
    let told = room.told();
    let there = |tip: &&Appended| {
        all.binary_search_by_key(&tip.head, |stored| stored.head)
            .is_ok_and(|at| all[at].chain == tip.chain)
    };
    Ok(told.kept.iter().rev().take_while(|tip| !there(tip)).count())
}
