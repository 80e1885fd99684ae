//! Whole instances: the product's engine on runtimes of their own, with letters between them.
//!
//! Where `owners.rs` drives the writer step by step beside a reference model, here nothing of the
//! engine is taken apart: leases and their certainty, following, takeover and handover run as they
//! do in the product, and so does the cluster's view of who should own what. Each instance has a
//! clock that drifts against the store's; it may be frozen, cut off from the store or from the
//! others, killed, or told to give its rooms away. Letters between instances come late, twice,
//! never, and out of order.
//! Lives here: the order in which all this happens. The record of a run is judged by the same
//! checkers as any other.

mod bus;
mod machine;
mod neighbours;
mod network;
mod panics;
mod people;
mod spoil;
mod tray;
mod wire;

use super::bug::Bug;
use super::visitors::Visitors;
use super::watch::{Observer, falsify};
use super::{Outcomes, Profile, Totals};
use crate::check;
use crate::history::{Call, HeardOf, History, How, Logged, Outcome, Reached};
use crate::rng::Rng;
use bus::Bus;
use machine::{LocalClock, Machine};
use neighbours::Neighbours;
pub(super) use network::Delivered;
use network::{Fate, Network};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::oneshot;
use tray::Tray;
use waitroom_core::{Ending, Millis, Room, Settings, What};
use waitroom_outbox::{NotReplayed, Replay};
use waitroom_store::{ManualClock, MemoryStore, RoomName, Seams, Store};
use wire::{Line, Wire};

/// The clock of an instance runs by so much faster or slower than the store's at most. An owner
/// gives a twentieth of its lease away for this.
const DRIFT_PPM_MAX: i64 = 40_000;

/// A run in which two thousand commands take so long has nobody left to ask.
const STARVED_MS: u64 = 1_000_000;

/// Within this, whoever is well tells the owner whom they heard of: a report a second, and the
/// longest way of a letter.
const WORD_MS: u64 = 8_000;

/// Nobody who took part in the run.
const NOBODY: u32 = u32::MAX;

struct Machines {
    seed: u64,
    rng: Rng,
    profile: Profile,
    bug: Option<Bug>,
    now: u64,
    store: MemoryStore,
    store_clock: Arc<ManualClock>,
    room: RoomName,
    tray: Tray,
    network: Network,
    machines: Vec<Machine>,
    visitors: Visitors,
    configured: bool,
    /// Most people only ask again for what they have: few answers wait for an append, and an owner
    /// of yesterday could give them.
    quiet: bool,
    bus: Arc<Bus>,
    /// The bus must be told again from this event on, and what was asked about that.
    forgot: Option<u64>,
    asked_again: Vec<oneshot::Receiver<Result<(), NotReplayed>>>,
    /// Who was heard of, where, and when.
    beats: Vec<(usize, HeardOf)>,
    /// When an instance was not well, so that it may not have told whom it heard of.
    unwell: Vec<(usize, u64, u64)>,
    observer: Observer,
    /// Pictures that instances showed, by version.
    shown: Vec<(u64, [u8; 32])>,
    history: History,
    totals: Totals,
}

pub(super) fn run(seed: u64, mut rng: Rng, mut profile: Profile, bug: Option<Bug>) -> Outcomes {
    let panics = panics::Watch::begin(bug.is_some());
    if let Some(bug) = bug {
        // Trouble brings bugs out; but with every new owner everybody is heard of anew.
        profile.fault_chance = if bug.is_of_reports() { 0.0 } else { 0.02 };
    }
    quicken(&mut profile.settings, &mut rng);
    if bug.is_some_and(Bug::is_of_reports) {
        // People wait, and are heard of now and then.
        let settings = &mut profile.settings;
        settings.heartbeat_timeout = Millis::from_secs(16);
        settings.queue_all = true;
        settings.max_waiting = 0;
        (settings.max_active, settings.session_timeout) = (1, Millis::from_secs(30));
    }
    let store_clock = ManualClock::at(0);
    let seams = Seams::seeded(store_clock.clone(), seed);
    let trouble = match [0.004, 0.01, 0.03][rng.below(3) as usize] {
        _ if bug.is_some_and(Bug::is_of_reports) => 0.04,
        trouble => trouble,
    };
    let mut world = Machines {
        seed,
        visitors: Visitors::new(profile.clients, profile.settings.clone(), &mut rng),
        bug,
        now: 0,
        store: MemoryStore::new(seams),
        store_clock,
        room: RoomName::parse("simulated").expect("a plain name"),
        tray: Tray::default(),
        network: Network::new(rng.fork(), trouble, bug),
        machines: Vec::new(),
        configured: false,
        quiet: rng.chance(0.35) && !bug.is_some_and(Bug::is_of_reports)
            || matches!(bug, Some(Bug::LeaseOneTickTooLong | Bug::RenewalsUnheard)),
        bus: Bus::new(rng.fork(), bug),
        forgot: None,
        asked_again: Vec::new(),
        beats: Vec::new(),
        unwell: Vec::new(),
        observer: Observer::default(),
        shown: Vec::new(),
        history: History::default(),
        totals: Totals::default(),
        profile,
        rng,
    };
    if world.quiet {
        let settings = &mut world.profile.settings;
        settings.session_timeout = Millis::from_secs(300);
        settings.claim_within = Millis::from_secs(100);
        settings.max_active += 10;
    }
    for at in 0..world.profile.instances {
        world.build(at, trouble);
    }
    let mut outcomes = world.run();
    let panicked = panics.end().filter(|_| bug.is_none());
    outcomes.difference = panicked.map(|text| format!("seed {seed}: {text}"));
    outcomes
}

/// A run of these lasts minutes, not hours: whatever has a deadline has a short one.
fn quicken(settings: &mut Settings, rng: &mut Rng) {
    let mut seconds = |low: u64, high: u64| Millis(1_000 * (low + rng.below(high - low)));
    settings.heartbeat_timeout = seconds(16, 30);
    settings.claim_within = seconds(2, 12);
    settings.session_timeout = seconds(3, 15);
    settings.pass_life = Millis(0);
    settings.ticket_life = Millis(0);
    settings.pass_leeway = seconds(0, 2);
    // A draw is worked out on another thread; the other world has them.
    settings.draw = None;
    settings.opens_at = None;
    settings.starts_at = None;
    settings.ends_at = None;
    settings.max_active = 1 + settings.max_active % 10;
}

impl Machines {
    fn build(&mut self, at: usize, late: f64) {
        let clock = Arc::<LocalClock>::default();
        let line = Line::new(self.rng.fork(), late, self.bug, self.tray.clone());
        let peers = self.neighbours(at, clock.clone(), 0);
        let mut machine = Machine::new(peers, clock, line);
        let drift = self.rng.below(2 * DRIFT_PPM_MAX as u64 + 1) as i64 - DRIFT_PPM_MAX;
        machine.drift_ppm = if self.rng.chance(0.7) { drift } else { 0 };
        self.totals.drifting_clocks += u64::from(machine.drift_ppm != 0);
        // Not all at once.
        machine.down_until = self.rng.below(300);
        self.machines.push(machine);
    }

    fn neighbours(&self, at: usize, clock: Arc<LocalClock>, life: u64) -> Arc<Neighbours> {
        let (tray, all) = (self.tray.clone(), self.profile.instances);
        Neighbours::new(at, all, &self.room, clock, tray, life, self.bug)
    }

    fn start(&mut self, at: usize) {
        let (clock, life) = (self.machines[at].clock.clone(), self.machines[at].lives);
        self.machines[at].peers = self.neighbours(at, clock.clone(), life);
        let wire = Wire::new(self.store.clone(), self.machines[at].line.clone());
        let seams = Seams::seeded(clock, self.rng.next_u64());
        self.machines[at].start(wire, &self.room, seams, self.bus.clone());
    }

    fn run(mut self) -> Outcomes {
        while self.totals.commands < self.profile.commands && !self.is_spoiled() {
            if self.now > STARVED_MS {
                assert!(self.bug.is_some(), "seed {}: nobody can ask anything", self.seed);
                break;
            }
            self.trouble();
            self.trouble_of_the_bus();
            if self.rng.chance(0.75) {
                self.somebody_asks();
            }
            // Who is shown one version too few sees it seldom.
            let often = if self.bug == Some(Bug::FollowersShowOneOlder) { 8 } else { 1 };
            for _ in 0..often {
                if self.rng.chance(0.3) {
                    self.somebody_looks();
                }
            }
            self.somebody_is_heard_of();
            let step = 1 + self.rng.below(60);
            self.pass(step);
        }
        self.end_well();
        self.totals.events = self.history.log.len() as u64;
        let lapses =
            |it: &&Logged| matches!(it.event.what, What::Ended { ending: Ending::Silent, .. });
        self.totals.lapses = self.history.log.iter().filter(lapses).count() as u64;
        self.totals.note(&self.network.delivered);
        if let Some(bug) = self.bug {
            falsify(&mut self.history, bug);
        }
        let violations = check::check_all(&self.history);
        let (totals, history, letters) = (self.totals, self.history, self.tray.pile().trace);
        Outcomes { totals, violations, difference: None, history, letters }
    }

    /// Whether a planted bug has written what nobody can read: a moment later that is enough.
    fn is_spoiled(&self) -> bool {
        self.tray.pile().spoiled_at.is_some_and(|at| self.now > at + 10_000)
    }

    /// Time passes for everybody who is up and awake.
    fn pass(&mut self, step: u64) {
        self.store_clock.advance(step);
        self.now += step;
        self.tray.pile().now = self.now;
        self.bus.at(self.now);
        self.tell_again();
        for posted in self.network.arrived(self.now) {
            let machine = &self.machines[posted.to];
            machine.within(|peers| peers.receive(posted.from, posted.letter));
        }
        for at in 0..self.machines.len() {
            if !self.machines[at].is_up() && self.machines[at].down_until <= self.now {
                self.start(at);
            }
            let machine = &mut self.machines[at];
            machine.line.cut(machine.cut_off_until > self.now);
            if machine.drains_until.is_some_and(|until| until <= self.now) {
                machine.drains_until = None;
                machine.within(|peers| peers.drain(false));
            }
            let awake = machine.frozen_until <= self.now;
            machine.pass(step, awake);
            self.collect();
        }
        self.observer.look(&self.store, &self.room, &mut self.history);
        let (now, mut pile) = (self.now, self.tray.pile());
        for it in &self.history.log[self.history.decided.len()..] {
            let sent = pile.sent.get(&(it.epoch.0, it.batch));
            self.history.decided.push(sent.copied().unwrap_or(now));
        }
        if pile.spoiled {
            pile.spoiled_at.get_or_insert(now);
        }
    }

    /// Picks up what instances left.
    fn collect(&mut self) {
        let letters = std::mem::take(&mut self.tray.pile().letters);
        for posted in letters {
            let alone = |at: usize| self.machines[at].alone_until > self.now;
            let (from, to) = (posted.from, posted.to);
            let cut = alone(from) || alone(to) || !self.machines[to].is_up();
            let command = posted.letter.command().cloned();
            self.tray.pile().note(&posted);
            let fate = self.network.take(self.now, posted, cut);
            // To the room it is what a repeat is whose answer nobody waits for.
            if let (Fate::Twice, Some(command)) = (fate, command) {
                let (client, sent) = (NOBODY, self.tray.moment());
                let outcome = Outcome::Unknown;
                self.history.calls.push(Call { client, sent, command, outcome });
            }
        }
        self.collect_answers();
    }

    // --- trouble

    fn trouble(&mut self) {
        if !self.rng.chance(self.profile.fault_chance) {
            return;
        }
        let any = self.rng.below(self.machines.len() as u64) as usize;
        let owner = (0..self.machines.len()).find(|at| self.machines[*at].peers.owns());
        let at = if self.rng.chance(0.6) { owner.unwrap_or(any) } else { any };
        let until = match self.rng.chance(0.5) {
            // About as long as a lease: who comes back then meets whoever takes over.
            true => self.now + 1_200 + self.rng.below(1_400),
            false => self.now + 200 + self.rng.below(7_000),
        };
        let kind = match self.bug {
            // Only who was away from the store has something to tell it late, or does not hear
            // that the room is another's.
            Some(Bug::FencingForgotten | Bug::LeaseOneTickTooLong | Bug::RenewalsUnheard) => 40,
            _ => self.rng.below(100),
        };
        if kind < 70 {
            self.unwell.push((at, self.now.saturating_sub(2 * WORD_MS), until + WORD_MS));
        }
        let machine = &mut self.machines[at];
        match kind {
            0..15 => {
                machine.stop();
                machine.down_until = until;
                machine.drains_until = None;
                self.totals.crashes += 1;
            }
            15..38 => {
                machine.frozen_until = until;
                self.totals.pauses += 1;
            }
            38..58 => {
                machine.cut_off_until = until;
                self.totals.partitions += 1;
            }
            58..70 => {
                machine.alone_until = until;
                self.totals.partitions += 1;
            }
            70..80 => {
                let jump = self.rng.below(200_000) as i64 - 100_000;
                machine.clock.wall_offset_ms.fetch_add(jump, Ordering::Relaxed);
                self.totals.clock_jumps += 1;
            }
            _ => {
                machine.drains_until = Some(until);
                machine.within(|peers| peers.drain(true));
            }
        }
    }

    /// The bus goes down for a while, or comes back without the newest that it had.
    fn trouble_of_the_bus(&mut self) {
        if self.forgot.is_some() || !self.rng.chance(self.profile.fault_chance) {
            return;
        }
        let well = |it: &Machine| it.is_up() && it.frozen_until.max(it.cut_off_until) <= self.now;
        // A relay that is frozen in the middle of a delivery would go on there.
        if self.rng.chance(0.6) || !self.machines.iter().all(well) {
            self.bus.goes_down(self.now + 200 + self.rng.below(6_000));
            return;
        }
        let trimmed = super::ready(self.store.trimmed_to(&self.room)).unwrap_or_default();
        let most = 1 + self.rng.below(40) as usize;
        self.forgot = self.bus.forgets(most, trimmed.0);
        self.totals.bus_lapses += u64::from(self.forgot.is_some());
    }

    /// An operator asks every instance to tell the bus again, until one says that it will.
    fn tell_again(&mut self) {
        let Some(from) = self.forgot else { return };
        let done = |it: &mut oneshot::Receiver<_>| matches!(it.try_recv(), Ok(Ok(())));
        if self.asked_again.iter_mut().any(done) {
            self.forgot = None;
            self.asked_again.clear();
            self.bus.goes_down(0);
            return;
        }
        let waits = |it: &oneshot::Receiver<_>| !it.is_terminated() && it.is_empty();
        if self.asked_again.iter().any(waits) {
            return;
        }
        self.asked_again.clear();
        for machine in &self.machines {
            let (done, heard) = oneshot::channel();
            let replay = Replay { room: self.room.clone(), from, done };
            if machine.replays.as_ref().is_some_and(|it| it.try_send(replay).is_ok()) {
                self.asked_again.push(heard);
            }
        }
    }

    // --- the end

    /// Trouble stops, everything on its way arrives, and the whole log is replayed once more.
    fn end_well(&mut self) {
        self.network.calm = true;
        for machine in &mut self.machines {
            machine.line.calm();
            machine.down_until = 0;
            machine.frozen_until = 0;
            machine.cut_off_until = 0;
            machine.alone_until = 0;
        }
        // A lease of the outbox lasts longest, and then everything is told.
        let rest = if self.is_spoiled() { 20 } else { 300 };
        for _ in 0..rest {
            self.pass(50);
            if self.forgot.is_none() {
                self.bus.calms_down();
            }
        }
        self.history.published = bus::published(&self.bus, &self.room, &self.history);
        self.totals.sink_troubles = self.bus.troubles();
        let again = self.history.published.len().saturating_sub(self.history.log.len());
        self.totals.told_again = again as u64;
        let well = |(at, heard): &(usize, HeardOf)| {
            let time = heard.at_ms;
            !self.unwell.iter().any(|(who, from, to)| who == at && (*from..*to).contains(&time))
        };
        self.history.heard = self.beats.iter().filter(|it| well(it)).map(|it| it.1).collect();
        let pile = self.tray.pile();
        self.totals.takeovers = pile.took;
        self.totals.handovers = pile.gave;
        self.totals.fencings = pile.fenced;
        self.totals.unknown_appends = pile.unknown;
        self.totals.leases_expired = pile.expired;
        self.history.grants = pile.grants.clone();
        drop(pile);
        // A log that a bug falsified does not replay; it is judged as it is.
        if self.bug.is_some() {
            return;
        }
        self.replay();
    }

    /// Whatever instances showed is what the log tells of, and all of them have come to its end.
    fn replay(&mut self) {
        let head = self.history.log.len() as u64;
        for machine in &self.machines {
            let handle = machine.peers.handle().expect("everybody is up again");
            let board = handle.board();
            let behind = head - board.version();
            assert!(behind < 20, "seed {}: an instance is {behind} events behind", self.seed);
            self.shown.push((board.version(), board.state().digest()));
        }
        self.shown.sort_unstable();
        self.shown.dedup();
        let mut room = Room::new();
        let mut shown = self.shown.iter().peekable();
        for it in &self.history.log {
            room.absorb(&it.event);
            while let Some((version, digest)) = shown.next_if(|(version, _)| *version == it.index) {
                let reached = |how, digest| Reached { head: *version, how, digest };
                self.history.states.push(reached(How::Live, *digest));
                self.history.states.push(reached(How::Replay, room.state().digest()));
            }
        }
        self.totals.admissions = room.state().counts().admissions;
    }
}
