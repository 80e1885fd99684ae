//! One run: random commands to the core and to the model, and a look at both after each.
//!
//! Lives here: what is sent, and what must agree. To replay a run that failed, set
//! `WAITROOM_SEED` to the seed it printed and run the test of its profile.

use crate::profiles::{BEACON, BEGIN, Profile};
use crate::rng::Rng;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use waitroom_core::settings::Rate;
use waitroom_core::{
    Actor, AdmitWhy, Command, EndHow, Epoch, Event, FinishCause, Fresh, Hold, Holder, Identity,
    Join, JoinKey, LaneId, Millis, Phase, Presented, Refusal, Reply, Room, Settings, Status,
    Ticket, Timestamp, View, What, draw,
};
use waitroom_sim::model::Model;

/// Commands shown before a difference.
const TAIL: usize = 30;
/// A tick that goes on for longer than this will never end.
const ROUNDS_MAX: usize = 10_000;

pub struct Driver {
    profile: Profile,
    seed: u64,
    rng: Rng,
    now: Timestamp,
    epoch: Epoch,
    core: Room,
    model: Model,
    log: Vec<Event>,
    admitted: Vec<(Timestamp, Ticket, AdmitWhy)>,
    tickets: Vec<(Ticket, Epoch)>,
    holders: BTreeMap<Ticket, Holder>,
    keys: Vec<(JoinKey, Ticket, Epoch)>,
    secret: [u8; 32],
    chain: [u8; 32],
    ended_in: Phase,
    /// The last position seen of each ticket.
    shown: BTreeMap<Ticket, u64>,
    tail: VecDeque<(Timestamp, Command, Reply)>,
    pub done: u64,
    /// How often each kind of event and each kind of refusal came up.
    pub met: BTreeMap<String, u64>,
}

impl Driver {
    pub fn new(profile: Profile, seed: u64) -> Self {
        let mut rng = Rng::new(seed.wrapping_mul(1_000) + profile as u64);
        let (secret, chain) = (rng.bytes(), rng.bytes());
        Driver {
            profile,
            seed,
            rng,
            now: BEGIN,
            epoch: Epoch(0),
            core: Room::new(),
            model: Model::new(),
            log: Vec::new(),
            admitted: Vec::new(),
            tickets: Vec::new(),
            holders: BTreeMap::new(),
            keys: Vec::new(),
            secret,
            chain,
            ended_in: Phase::Scheduled,
            shown: BTreeMap::new(),
            tail: VecDeque::new(),
            done: 0,
            met: BTreeMap::new(),
        }
    }

    pub fn run(&mut self, commands: u64) {
        if self.rng.percent(20) {
            self.send(Command::Tick { entropy: [0; 16] });
            self.join_somehow();
        }
        self.open();
        let settings = self.profile.settings(&mut self.rng);
        self.configure(settings);
        if self.rng.percent(85) {
            self.commit_draw();
        }
        while self.done < commands {
            self.let_time_pass();
            self.anything();
            if self.rng.below(200) == 0 {
                self.restore();
            }
        }
        self.replay();
        self.let_everybody_in();
        self.replay();
    }

    fn let_time_pass(&mut self) {
        if self.rng.percent(12) {
            return self.come_to_a_deadline();
        }
        let step = match self.rng.below(1_000) {
            0..300 => 0,
            300..850 => self.rng.between(1, 300),
            // Long enough that whole blocks of tickets are forgotten.
            950..980 if self.profile == Profile::LongLived => self.rng.between(200_000, 700_000),
            850..980 => self.rng.between(300, 5_000),
            980..998 => self.rng.between(5_000, 100_000),
            _ => self.rng.between(100_000, 1_000_000),
        };
        self.now = self.now.after(Millis(step));
    }

    /// Exactly on time is where off by one shows: the next deadline, or one of the room's spans
    /// after something that happened just now.
    fn come_to_a_deadline(&mut self) {
        let soon = |at: &Timestamp| at.since(self.now) < Millis::from_secs(100);
        let next = self.core.next_deadline(self.now).filter(soon);
        let Some(settings) = self.core.state().settings().cloned() else { return };
        let credit = settings.returning.map_or(Millis(0), |returning| returning.within);
        let spans = [settings.claim_within, settings.session_timeout, credit, settings.ticket_life];
        let span = self.rng.pick(&spans).min(Millis::from_secs(100));
        match (self.rng.percent(70), next) {
            (true, Some(next)) => self.now = self.now.max(next),
            _ => self.now = self.now.after(span),
        }
    }

    fn anything(&mut self) {
        let by = Actor::new("driver");
        match self.rng.below(1_000) {
            10..350 if self.profile == Profile::LongLived => {
                for _ in 0..self.rng.between(1, 200) {
                    self.join_somehow();
                }
            }
            0..10 => self.come_back_in_time(),
            10..350 => self.join_somehow(),
            350..560 => {
                let entropy = self.rng.bytes();
                self.send(Command::Tick { entropy });
            }
            560..640 => self.with_ticket(Status::Admitted, Command::Claim),
            640..690 => self.with_ticket(Status::Waiting, Command::Leave),
            690..720 => self.with_ticket(Status::Active, Command::Renew),
            720..735 => self.with_ticket(Status::Active, Command::Leave),
            735..775 => {
                let how = [
                    EndHow::Completed,
                    EndHow::Completed,
                    EndHow::CheckoutFailed,
                    EndHow::CheckoutExpired,
                    EndHow::Revoked,
                ];
                let how = self.rng.pick(&how);
                self.with_ticket(Status::Active, |ticket| Command::End { ticket, how, by });
            }
            775..805 => {
                let tickets = self.some_tickets();
                self.send(Command::Lapse { tickets });
            }
            805..835 => {
                let tickets = self.some_tickets();
                self.send(Command::Release { tickets });
            }
            835..855 => self.with_ticket(Status::Waiting, Command::HandOver),
            855..890 => {
                let to = self.some_lane();
                self.with_ticket(Status::Waiting, |ticket| Command::Move { ticket, to, by });
            }
            890..898 => self.hold(by),
            898..930 => drop(self.send(Command::Resume { by })),
            930..955 => {
                let count = self.rng.pick(&[0, 1, 2, 7, 30, 20_000]);
                self.send(Command::AdmitNow { count, entropy: [0; 16], by });
            }
            955..957 if self.profile == Profile::LongLived => {}
            955..957 => self.finish(by),
            957..972 => self.reopen(by),
            972..976 => self.commit_draw(),
            976..984 => self.draw(by),
            984..994 => self.reconfigure(),
            994..996 => self.pace(),
            _ => self.open(),
        }
    }

    fn open(&mut self) {
        let epoch = match self.rng.percent(90) {
            true => Epoch(self.epoch.0 + self.rng.between(1, 3) as u32),
            false => self.rng.pick(&[Epoch(0), self.epoch, Epoch(u32::MAX)]),
        };
        if self.send(Command::Open { epoch }) == Reply::Done {
            self.epoch = epoch;
        } else if self.epoch == Epoch(0) {
            self.open();
        }
    }

    fn configure(&mut self, settings: Settings) {
        let by = Actor::new("driver");
        self.send(Command::Configure { settings: Box::new(settings), by });
    }

    fn pace(&mut self) {
        // Nothing in no time is no pace: it has to be refused.
        let count = self.rng.below(60) as u32;
        let per = self.rng.pick(&[Millis(1_000), Millis(60_000), Millis(0)]);
        self.send(Command::Pace { rate: Rate { count, per }, by: Actor::new("gate") });
    }

    fn reconfigure(&mut self) {
        let Some(old) = self.core.state().settings().cloned() else { return };
        let new = self.profile.changed(&mut self.rng, &old);
        self.configure(new);
    }

    fn join_somehow(&mut self) {
        let lane = self.some_lane();
        let rng = &mut self.rng;
        let identity = rng.percent(25).then(|| Identity([rng.below(25) as u8; 16]));
        let holding = self.rng.percent(20).then(|| self.some_ticket());
        let key = match self.rng.below(10) {
            0..3 => Some(JoinKey { key: self.rng.bytes(), body: self.rng.bytes() }),
            3 => self.used_key(),
            _ => None,
        };
        let rng = &mut self.rng;
        let bytes = rng.pick(&[0, 10, 1_024, 1_025]);
        let metadata = rng.percent(5).then(|| Arc::from(vec![7; bytes]));
        let bytes = rng.pick(&[10, 512, 513]);
        let sealed_user = rng.percent(3).then(|| Arc::from(vec![8; bytes]));
        let join = Join { lane, identity, key, holding, metadata, sealed_user };
        let reply = self.send(Command::Join(join));
        if let Reply::Joined { ticket, epoch, fresh: Fresh::New, .. } = reply {
            self.tickets.push((ticket, epoch));
            self.keys.extend(key.map(|key| (key, ticket, epoch)));
        }
    }

    /// Leaves, and joins again when the re-entry credit just lasts or just does not.
    fn come_back_in_time(&mut self) {
        let Some(settings) = self.core.state().settings().cloned() else { return };
        let within = settings.returning.map_or(Millis(2), |returning| returning.within);
        let held = Presented { holder: None, ..self.some_ticket() };
        self.send_at(self.now, Command::Leave(held));
        self.now = self.now.after(Millis(within.0 - self.rng.below(2)));
        let join = Join { lane: self.some_lane(), holding: Some(held), ..Join::default() };
        let reply = self.send_at(self.now, Command::Join(join));
        if let Reply::Joined { ticket, epoch, fresh: Fresh::New, .. } = reply {
            self.tickets.push((ticket, epoch));
        }
    }

    /// A key that made a join before, sometimes with another body.
    fn used_key(&mut self) -> Option<JoinKey> {
        let from = self.keys.len().saturating_sub(40);
        if self.keys.is_empty() {
            return None;
        }
        let (key, _, _) = self.rng.pick(&self.keys[from..]);
        let body = if self.rng.percent(80) { key.body } else { self.rng.bytes() };
        Some(JoinKey { body, ..key })
    }

    /// Mostly a lane that exists; in a room that lives long, mostly the first.
    fn some_lane(&mut self) -> LaneId {
        let lanes: Vec<LaneId> = self.core.state().lane_ids().collect();
        match self.rng.below(20) {
            0 => LaneId(self.rng.pick(&[3, 40, 255])),
            _ if lanes.is_empty() => LaneId(0),
            1..15 if self.profile == Profile::LongLived => LaneId(0),
            _ => self.rng.pick(&lanes),
        }
    }

    /// Sends a command about a ticket, which mostly has the status that the command needs.
    fn with_ticket(&mut self, status: Status, command: impl FnOnce(Presented) -> Command) {
        let mut ticket = self.some_ticket();
        for _ in 0..12 {
            if self.model.status(self.now, &ticket) == Ok(status) {
                break;
            }
            ticket = self.some_ticket();
        }
        let reply = self.send(command(ticket));
        match reply {
            Reply::HandedOver { ticket, holder } => drop(self.holders.insert(ticket, holder)),
            Reply::Moved { to, epoch } if !self.tickets.contains(&(to, epoch)) => {
                self.tickets.push((to, epoch));
            }
            _ => {}
        }
    }

    /// Mostly a ticket that exists, mostly a recent one, mostly with a right token.
    fn some_ticket(&mut self) -> Presented {
        let rng = &mut self.rng;
        if self.tickets.is_empty() || rng.percent(2) {
            // In a room that drops blocks, one of a number that was never given.
            let from = if self.profile == Profile::LongLived { 1 << 30 } else { 0 };
            let ticket = Ticket::new(rng.pick(&[0, 1, 2, 99, 255]), from + rng.below(2_000));
            return Presented::by_service(ticket, Epoch(rng.below(4) as u32));
        }
        let from = if rng.percent(85) { self.tickets.len().saturating_sub(60) } else { 0 };
        let (ticket, mut epoch) = rng.pick(&self.tickets[from..]);
        if rng.percent(2) {
            epoch = Epoch(epoch.0 + 1);
        }
        let holder = match rng.below(20) {
            0..10 => None,
            10..19 => Some(self.holders.get(&ticket).copied().unwrap_or_default()),
            _ => Some(Holder(rng.below(3) as u8)),
        };
        Presented { ticket, epoch, holder }
    }

    fn some_tickets(&mut self) -> Vec<Ticket> {
        (0..self.rng.below(8)).map(|_| self.some_ticket().ticket).collect()
    }

    fn hold(&mut self, by: Actor) {
        let reason = self.rng.pick(&["a", "b"]).to_owned();
        let hold = match self.rng.below(10) {
            0..5 => Hold::Paused { reason },
            5..8 => Hold::Maintenance { reason },
            _ => Hold::Draining { reason },
        };
        self.send(Command::Hold { hold, by });
    }

    fn finish(&mut self, by: Actor) {
        let cause = self.rng.pick(&[FinishCause::SoldOut, FinishCause::Operator]);
        self.send(Command::Finish { cause, reason: "sold out".into(), by });
    }

    fn reopen(&mut self, by: Actor) {
        self.send(Command::Reopen { by });
    }

    fn commit_draw(&mut self) {
        let beacon = self.core.state().settings().and_then(|it| it.draw.as_ref()?.beacon.clone());
        let beacon = if self.rng.percent(90) { beacon } else { Some("another".into()) };
        let seed = if self.rng.percent(90) { self.secret } else { self.rng.bytes() };
        let commitment = draw::commitment(&seed);
        let sealed_seed = vec![1; self.rng.pick(&[0, 32, 512, 513])];
        if self.rng.percent(90) && seed != self.secret {
            return;
        }
        self.send(Command::CommitDraw { commitment, sealed_seed, beacon });
    }

    fn draw(&mut self, by: Actor) {
        let asked = self.core.state().settings().and_then(|it| it.draw.as_ref()?.beacon.clone());
        let seed = if self.rng.percent(90) { self.secret } else { self.rng.bytes() };
        let beacon = match self.rng.percent(80) {
            true => asked.map(|_| b"the beacon spoke".to_vec()),
            false => self.rng.pick(&[None, Some(BEACON.as_bytes().to_vec())]),
        };
        let waive_beacon = self.rng.percent(20);
        let chain = self.chain;
        self.send(Command::Draw { seed, chain, beacon, waive_beacon, by });
    }

    /// Sends a command now, or with a clock that has fallen behind.
    fn send(&mut self, command: Command) -> Reply {
        let behind = if self.rng.percent(3) { self.rng.below(2_000) } else { 0 };
        self.send_at(Timestamp(self.now.0 - behind), command)
    }

    /// One command to both; then they are compared.
    fn send_at(&mut self, at: Timestamp, command: Command) -> Reply {
        let phase = self.core.state().phase();
        let real = self.ask_core(at, &command);
        let told = self.model.apply(at, &command);
        if self.tail.len() == TAIL {
            self.tail.pop_front();
        }
        let ticked = matches!(command, Command::Tick { .. });
        self.tail.push_back((at, command, real.clone()));
        self.done += 1;
        self.same("reply", &real, &told);
        if let Reply::Refused(why) = &real {
            *self.met.entry(kind_of(why)).or_default() += 1;
        }
        if self.core.state().phase() == Phase::Ended && phase != Phase::Ended {
            self.ended_in = phase;
        }
        self.compare(at);
        if ticked && real == (Reply::Ticked { again: false }) {
            let at = at.max(self.core.state().last_at());
            let next = self.core.next_deadline(at);
            self.must(next.is_none_or(|next| next > at), "a tick leaves nothing due");
        }
        real
    }

    /// Decides and absorbs, a tick until it has no more to do.
    fn ask_core(&mut self, at: Timestamp, command: &Command) -> Reply {
        for _ in 0..ROUNDS_MAX {
            let mut events = Vec::new();
            let reply = self.core.decide(at, command, &mut events);
            let silent = matches!(reply, Reply::Refused(_) | Reply::Ticked { again: false });
            self.must(!silent || events.is_empty(), "a refusal writes no events");
            for event in events {
                if let What::Admitted { ticket, why, .. } = event.what {
                    self.admitted.push((event.at, ticket, why));
                }
                *self.met.entry(kind_of(&event.what)).or_default() += 1;
                self.core.absorb(&event);
                self.log.push(event);
            }
            if reply != (Reply::Ticked { again: true }) {
                return reply;
            }
        }
        self.fail("a tick never ends");
    }

    fn compare(&mut self, at: Timestamp) {
        let (real, told) = (self.core.state(), &self.model);
        self.same("newest", &real.last_at(), &told.newest());
        self.same("phase", &real.phase(), &told.phase());
        self.same("draw pending", &real.draw_pending(), &told.draw_pending());
        self.same("slots", &real.slots_taken(), &told.slots_taken());
        let lanes: Vec<LaneId> = real.lane_ids().collect();
        self.same("lanes", &lanes, &told.lane_ids().collect());
        // The counts are walked by the model; in a long run not after each command.
        if self.done.is_multiple_of(4) || self.tickets.len() < 200 {
            for lane in lanes {
                let counts = real.lane_counts(lane);
                self.same("lane counts", &(lane, counts), &(lane, told.lane_counts(lane)));
                self.must(counts.balance(), "the counts balance");
            }
        }
        let new = self.admitted.len().saturating_sub(40);
        self.same("how many admitted", &self.admitted.len(), &told.admitted_in_order().len());
        self.same("admitted", &&self.admitted[new..], &&told.admitted_in_order()[new..]);
        let looks = if self.done.is_multiple_of(16) { 20 } else { 2 };
        for _ in 0..looks {
            let presented = self.some_ticket();
            let known = self.core.state().look(at.max(self.core.state().last_at()), &presented);
            let real = known.as_ref().map(|view| view.status).map_err(Refusal::clone);
            let told = self.model.status(at, &presented);
            self.same(&format!("status of {presented:?}"), &real, &told);
            if let Ok(view) = known {
                self.compare_position(&view);
            }
        }
        if self.done.is_multiple_of(8) {
            self.compare_positions(at);
        }
    }

    /// Those whom the core would let in now, lane by lane, are those at positions 1, 2, 3 …
    fn compare_positions(&mut self, at: Timestamp) {
        let by = Actor::new("driver");
        let mut events = Vec::new();
        self.core.decide(
            at,
            &Command::AdmitNow { count: 10_000, entropy: [0; 16], by },
            &mut events,
        );
        // A window that is sealed for it gets an order that nobody was shown yet.
        let sealed: Vec<LaneId> = events
            .iter()
            .filter_map(|event| match event.what {
                What::Sealed { lane, .. } => Some(lane),
                _ => None,
            })
            .collect();
        let mut served: BTreeMap<LaneId, u64> = BTreeMap::new();
        for event in events.iter().take(60) {
            if let What::Admitted { ticket, .. } = event.what
                && !sealed.contains(&ticket.lane)
            {
                let position = served.entry(ticket.lane).or_default();
                *position += 1;
                let real = Some(*position);
                self.same(&format!("position of {ticket}"), &real, &self.model.position(ticket));
            }
        }
    }

    /// Both ways of asking the core agree with the model, and the answer never rises.
    fn compare_position(&mut self, view: &View) {
        let told = self.model.position(view.ticket);
        let what = format!("position of {}", view.ticket);
        self.same(&what, &self.core.state().position(view.ticket), &told);
        let inside = matches!(view.status, Status::Admitted | Status::Active);
        self.same(&what, &view.position, &if inside { Some(0) } else { told });
        let Some(position) = told else { return };
        let before = self.shown.insert(view.ticket, position).unwrap_or(u64::MAX);
        self.must(position <= before, &format!("{what} rose from {before}"));
    }

    /// At the end everybody who waits is let in, so that the whole order is compared.
    fn let_everybody_in(&mut self) {
        let by = Actor::new("driver");
        self.send(Command::Resume { by: by.clone() });
        let Some(old) = self.core.state().settings().cloned() else { return };
        let mut all = Settings::clone(&old);
        all.max_active = 10_000_000;
        all.rate = Some(waitroom_core::settings::Rate { count: 100, per: Millis(1) });
        self.configure(all);
        for _ in 0..4 {
            self.now = self.now.after(Millis(1_000));
            let entropy = self.rng.bytes();
            self.send(Command::Tick { entropy });
            self.send(Command::AdmitNow { count: 10_000, entropy: [0; 16], by: by.clone() });
        }
        if self.core.state().phase() == Phase::Running {
            self.same("left waiting", &self.core.state().waiting(), &0);
        }
    }

    /// The log alone makes the same room.
    fn replay(&mut self) {
        let mut again = Room::new();
        for event in &self.log {
            again.absorb(event);
        }
        self.same("replayed", &again.state().digest(), &self.core.state().digest());
    }

    /// The run goes on with a room read from its snapshot.
    fn restore(&mut self) {
        let live = self.core.state().digest();
        let parts: Vec<Vec<u8>> = self.core.state().snapshot().collect();
        self.core = Room::restore(parts).expect("a snapshot of ours can be read");
        self.same("restored", &self.core.state().digest(), &live);
    }

    fn same<T: PartialEq + std::fmt::Debug>(&self, what: &str, real: &T, told: &T) {
        if real != told {
            self.fail(&format!("{what}: the core says {real:?}, the model {told:?}"));
        }
    }

    fn must(&self, kept: bool, promise: &str) {
        if !kept {
            self.fail(promise);
        }
    }

    fn fail(&self, what: &str) -> ! {
        let tail: Vec<String> = self
            .tail
            .iter()
            .map(|(at, command, reply)| {
                format!("{:>9} {command:?}\n        => {reply:?}", at.0 - BEGIN.0)
            })
            .collect();
        panic!(
            "{}\n{:?}, WAITROOM_SEED={}, command {}: {what}",
            tail.join("\n"),
            self.profile,
            self.seed,
            self.done,
        );
    }
}

/// The name of the variant, without what it holds.
fn kind_of(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    let draws = text.strip_prefix("Draw(").map(|why| format!("Draw{}", why.trim_end_matches(')')));
    let end = text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len());
    draws.unwrap_or_else(|| text[..end].to_owned())
}
