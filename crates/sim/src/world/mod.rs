//! The whole system on one thread under one seed: instances, store, disk, people, trouble.
//!
//! Lives here: virtual time and the order in which things happen. The room, the writer, recovery
//! and the stores are the real ones; only waiting is simulated. A reference model decides every
//! command as well, and every answer is compared; what people saw and what the log says is kept
//! as a [`History`] and judged by the checkers.
//! Whole instances, with the messages between them and the outbox, are in `machines`.
//! To add a kind of trouble: a chance in `trouble`, a line in [`Totals`], a floor by itself.

mod bug;
mod instance;
mod machines;
mod owners;
mod people;
mod profile;
mod totals;
mod trace;
mod trouble;
mod visitors;
mod watch;

pub use bug::Bug;
pub use profile::{Profile, Weather};
pub use totals::Totals;
pub use trace::Trace;

use crate::check;
use crate::history::{
    Call, Chance, Forgery, History, How, Moment, Outcome, Reached, Seen, Violation,
};
use crate::model::Model;
use crate::rng::Rng;
use instance::{Instance, Pending, Tenure};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use visitors::Visitors;
use waitroom_core::id::IdKey;
use waitroom_core::settings::NoShow;
use waitroom_core::{
    Board, Command, Epoch, Fresh, Join, Phase, Presented, Reply, Room, Settings, Ticket, Timestamp,
    What,
};
use waitroom_engine::clock::{Reading, RoomClock};
use waitroom_engine::draw_keeper::DrawKeeper;
use waitroom_engine::recover::recover;
use waitroom_engine::writer::Writer;
use waitroom_engine::{Beacon, Vault};
use waitroom_store::file::Options;
use waitroom_store::{
    AppendError, Batch, Entropy, FileStore, Head, LeaseName, ManualClock, MemoryStore, RoomName,
    Seams, SimDisk, Store,
};
use watch::{Observer, Sink};

/// What a run left behind.
#[derive(Debug)]
pub struct Outcomes {
    pub totals: Totals,
    pub violations: Vec<Violation>,
    /// The first place where the room and the reference model disagreed.
    pub difference: Option<String>,
    pub history: History,
    /// Every letter between instances and every batch on its way to the store, and what became of
    /// them; nothing where there are none.
    pub letters: Trace,
}

impl Outcomes {
    /// The whole run as one number: two runs of one seed have the same.
    pub fn trace(&self) -> Trace {
        let mut trace = self.letters;
        trace.note((&self.totals, &self.violations, &self.difference));
        trace.note(&self.history);
        trace
    }
}

/// Runs one seed to its end and judges it.
pub fn run(seed: u64, bug: Option<Bug>) -> Outcomes {
    run_in(Weather::of(seed, bug), seed, bug)
}

/// The same with whole instances and the letters between them.
pub fn run_whole(seed: u64) -> Outcomes {
    run_in(Weather::Machines, seed, None)
}

fn run_in(weather: Weather, seed: u64, bug: Option<Bug>) -> Outcomes {
    let mut rng = Rng::new(seed);
    let profile = Profile::of(weather, START, &mut rng);
    let clock = ManualClock::at(0);
    match profile.weather {
        Weather::Machines => machines::run(seed, rng, profile, bug),
        Weather::Cluster => {
            let store = MemoryStore::new(Seams::seeded(clock.clone(), seed));
            let again = store.clone();
            let world = World::new(seed, rng, profile, clock, bug, store, move |_| again.clone());
            world.run(|| 0)
        }
        Weather::Disk => {
            let disk = SimDisk::new();
            let seams = Seams::seeded(clock.clone(), seed);
            // Small segments, so that rotation and trimming happen within a run.
            let options = Options { segment_bytes: 16 << 10, ..Options::default() };
            let open = {
                let disk = disk.clone();
                move |crash: Option<u64>| {
                    if let Some(seed) = crash {
                        disk.crash(seed);
                    }
                    let opened = FileStore::inline(disk.clone(), options.clone(), seams.clone());
                    opened.expect("a crash leaves a disk that opens").0
                }
            };
            let store = open(None);
            let mut world = World::new(seed, rng, profile, clock, bug, store, open);
            world.disk = Some(disk.clone());
            world.run(move || disk.counts().torn)
        }
    }
}

/// The wall clock when a run begins.
const START: Timestamp = Timestamp(1_750_000_000_000);

/// Leases as the design has them: 2 s, renewed every half second.
const LEASE_MS: u64 = 2_000;
const RENEW_MS: u64 = 500;

struct World<S> {
    seed: u64,
    rng: Rng,
    profile: Profile,
    bug: Option<Bug>,
    clock: Arc<ManualClock>,
    now: u64,
    room: RoomName,
    id_key: IdKey,
    foreign_key: IdKey,
    disk: Option<SimDisk>,
    /// Opens the store again after the machine went down, with the seed of what the disk lost.
    reopen: Box<dyn FnMut(Option<u64>) -> S>,
    instances: Vec<Instance<S>>,
    /// The model after each round that may be in the log, by epoch and head.
    models: BTreeMap<(u32, u64), Model>,
    digests: BTreeMap<(u32, u64), [u8; 32]>,
    visitors: Visitors,
    observer: Observer,
    observed: usize,
    sink: Sink,
    vault: Arc<dyn Vault>,
    entropy: Arc<dyn Entropy>,
    moment: u64,
    history: History,
    totals: Totals,
    difference: Option<String>,
    /// Who was last heard of when, by the naive record.
    heard: BTreeMap<Ticket, Timestamp>,
    /// When the last epoch began: nobody has been silent for longer.
    fresh_since: Timestamp,
    newest_epoch: Option<u32>,
}

impl<S: Store + Clone> World<S> {
    fn new(
        seed: u64,
        mut rng: Rng,
        profile: Profile,
        clock: Arc<ManualClock>,
        bug: Option<Bug>,
        store: S,
        reopen: impl FnMut(Option<u64>) -> S + 'static,
    ) -> Self {
        let visitors = Visitors::new(profile.clients, profile.settings.clone(), &mut rng);
        let instances = (0..profile.instances)
            .map(|i| Instance::new(format!("instance {i}"), store.clone()))
            .collect();
        let secret = |byte: u8| [byte; 32];
        World {
            seed,
            profile,
            bug,
            clock,
            now: 0,
            room: RoomName::parse("simulated").expect("a plain name"),
            id_key: IdKey::derive(&secret(1)),
            foreign_key: IdKey::derive(&secret(2)),
            disk: None,
            reopen: Box::new(reopen),
            instances,
            models: BTreeMap::new(),
            digests: BTreeMap::new(),
            visitors,
            observer: Observer::default(),
            observed: 0,
            sink: Sink::new(),
            vault: Arc::new(GlassVault),
            entropy: Arc::new(Chance16(std::sync::Mutex::new(rng.fork()))),
            moment: 0,
            history: History::default(),
            totals: Totals::default(),
            difference: None,
            heard: BTreeMap::new(),
            fresh_since: Timestamp::default(),
            newest_epoch: None,
            rng,
        }
    }

    fn run(mut self, torn: impl Fn() -> u64) -> Outcomes {
        while self.totals.commands < self.profile.commands && self.difference.is_none() {
            self.let_time_pass();
            self.trouble();
            self.lead();
            self.somebody_asks();
            self.owners_work();
            self.look_on();
        }
        self.end_well();
        self.totals.torn_writes = torn();
        self.totals.events = self.history.log.len() as u64;
        if let Some(bug) = self.bug {
            watch::falsify(&mut self.history, bug);
        }
        let violations = check::check_all(&self.history);
        Outcomes {
            totals: self.totals,
            violations,
            difference: self.difference.map(|text| format!("seed {}: {text}", self.seed)),
            history: self.history,
            letters: Trace::default(),
        }
    }

    fn let_time_pass(&mut self) {
        let step = match self.rng.below(1_000) {
            0..700 => self.rng.below(60),
            700..950 => self.rng.below(800),
            950..997 => self.rng.below(10_000),
            // Long enough to be forgotten.
            _ => self.rng.below(1_500_000),
        };
        self.pass(step);
        // People who still have their page open are heard of.
        if step > 5_000 || self.rng.chance(0.1) {
            self.beats();
        }
    }

    fn pass(&mut self, step: u64) {
        self.clock.advance(step);
        self.now += step;
    }

    fn beats(&mut self) {
        let held: Vec<Ticket> = self.visitors.held().collect();
        let Some(i) = self.owner() else { return };
        let now = self.room_time(i);
        for ticket in held {
            if self.rng.chance(0.9) {
                let tenure = self.instances[i].tenure.as_ref().expect("an owner has a tenure");
                tenure.writer.liveness().beat(ticket, now);
                // What only a former owner hears, nobody hears.
                if self.epoch(i) == self.newest_epoch {
                    self.heard.insert(ticket, now);
                }
            }
        }
    }

    // --- the end

    /// Trouble stops, everything on its way arrives, and the whole log is replayed once more.
    fn end_well(&mut self) {
        for instance in &mut self.instances {
            instance.paused_until = 0;
            instance.cut_off_until = 0;
        }
        self.profile.fault_chance = 0.0;
        for _ in 0..20 {
            self.pass(LEASE_MS);
            self.lead();
            for i in 0..self.instances.len() {
                if self.instances[i].tenure.is_some() {
                    self.cut(i);
                    while self.append(i) {}
                }
            }
        }
        self.look_on();
        let store = self.instances[0].store.clone().expect("everybody is up");
        loop {
            let before = self.history.published.len();
            self.sink.run(&store, &self.room, true, &mut self.history);
            if self.history.published.len() == before {
                break;
            }
        }
        // A log that a bug falsified does not replay; it is judged as it is.
        if self.bug.is_some() {
            return;
        }
        let mut room = Room::new();
        for it in &self.history.log {
            room.absorb(&it.event);
        }
        let head = self.history.log.len() as u64;
        self.totals.admissions = room.state().counts().admissions;
        let reached = |how, digest| Reached { head, how, digest };
        self.history.states.push(reached(How::Replay, room.state().digest()));
        let parts: Vec<Vec<u8>> = room.state().snapshot().collect();
        let restored = Room::restore(parts).expect("what was written reads back");
        self.history.states.push(reached(How::SnapshotAndTail, restored.state().digest()));
    }

    // --- the model

    /// The room and the model agree, or the run ends here.
    fn compare(&mut self, i: usize, command: &Command, replies: Option<(&Reply, &Reply)>) {
        if self.bug.is_some() || self.difference.is_some() {
            return;
        }
        let tenure = self.instances[i].tenure.as_ref().expect("only owners decide");
        let (state, model) = (tenure.writer.state(), &tenure.model);
        let mut said = None;
        if let Some((real, expected)) = replies
            && real != expected
        {
            said = Some(format!("answered {real:?}, the model {expected:?}"));
        } else if state.counts() != model.counts() {
            said = Some(format!("counts {:?}, the model {:?}", state.counts(), model.counts()));
        } else if state.slots_taken() != model.slots_taken() {
            let (real, expected) = (state.slots_taken(), model.slots_taken());
            said = Some(format!("{real} slots taken, by the model {expected}"));
        } else {
            for ticket in self.visitors.held().take(3) {
                let (real, expected) = (state.position(ticket), model.position(ticket));
                if real != expected {
                    said = Some(format!("{ticket} at {real:?}, by the model at {expected:?}"));
                }
            }
        }
        if let Some(said) = said {
            let after = self.totals.commands;
            self.difference = Some(format!("after {after} commands, at {command:?}: {said}"));
        }
    }

    // --- time

    fn reading(&self, i: usize) -> Reading {
        let wall = START.0 as i64 + self.now as i64 + self.instances[i].wall_offset_ms;
        Reading { monotonic_ms: self.now, wall_ms: wall.max(0) as u64 }
    }

    fn room_time(&mut self, i: usize) -> Timestamp {
        let reading = self.reading(i);
        match &mut self.instances[i].tenure {
            Some(tenure) => tenure.clock.now(reading),
            None => Timestamp(reading.wall_ms),
        }
    }

    fn moment(&mut self) -> Moment {
        self.moment += 1;
        Moment(self.moment)
    }
}

/// The result of a future that never waits.
fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the simulated stores answer at once"),
    }
}

/// Anybody can see through it; the simulator has no secrets.
struct GlassVault;

impl Vault for GlassVault {
    fn seal(&self, context: &str, secret: &[u8]) -> Vec<u8> {
        [context.as_bytes(), &[0], secret].concat()
    }

    fn open(&self, context: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        sealed.strip_prefix(context.as_bytes())?.strip_prefix(&[0]).map(<[u8]>::to_vec)
    }
}

/// Entropy from the run's own seed.
struct Chance16(std::sync::Mutex<Rng>);

impl Entropy for Chance16 {
    fn next_u128(&self) -> u128 {
        u128::from_be_bytes(self.0.lock().expect("one thread").bytes16())
    }
}
