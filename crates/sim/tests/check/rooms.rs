//! Long histories of the real core: whatever a correct room does, no checker complains.
//!
//! A room is driven by a seeded crowd through owners that come and go, appends that are lost or
//! end unknown, holds, moves, draws, shuffle windows and changes of settings. A false alarm here
//! is a mistake of a checker or of the core; either way somebody has to look.
//! Stays out: the store, the engine, real concurrency, and whether a room sticks; the simulator
//! has those.

use std::time::{Duration, Instant};

use crate::clean;
use waitroom_core::command::FinishCause;
use waitroom_core::settings::{ClaimMode, DrawSettings, LaneSettings, NoShow, Rate, Returning};
use waitroom_core::{
    Actor, Block, Command, EndHow, Epoch, Event, Hold, Holder, Identity, Join, JoinKey, LaneId,
    Millis, Number, Phase, Presented, Refusal, Reply, Room, Settings, Ticket, Timestamp, What,
    draw,
};
use waitroom_sim::check::{PROMISES, check_all};
use waitroom_sim::history::{Call, History, How, Logged, Moment, Outcome, Reached, Seen};

const DRAW_SEED: [u8; 32] = [11; 32];

#[test]
fn a_hundred_rooms_of_the_real_core_break_no_promise() {
    let mut admitted = 0;
    for seed in 0..100 {
        let history = Crowd::new(seed).run(600);
        admitted += history.log.iter().filter(|it| is_admission(&it.event)).count();
        let found = check_all(&history);
        assert!(found.is_empty(), "seed {seed}: {found:#?}");
    }
    assert!(admitted > 5_000, "{admitted} admissions in all: the crowd does too little");
}

/// Judging all pairs of five thousand events takes a quarter of a second and more; one pass takes
/// a few milliseconds. The bound lies between, so that a busy machine does not fail it.
#[test]
fn five_thousand_events_are_judged_in_milliseconds_and_not_by_looking_at_all_pairs() {
    let mut crowd = Crowd::new(3);
    while crowd.history.log.len() < 5_000 {
        crowd.step();
    }
    let history = crowd.end();
    clean(&history);
    let timed = |check: &dyn Fn()| {
        let began = Instant::now();
        check();
        began.elapsed()
    };
    let best = (0..5).map(|_| timed(&|| clean(&history))).min().expect("five runs");
    println!("{} events, {} calls: {best:?}", history.log.len(), history.calls.len());
    for promise in PROMISES {
        let took = timed(&|| assert!((promise.check)(&history).is_empty()));
        println!("  {took:>8.1?}  {}", promise.name);
    }
    assert!(best < Duration::from_millis(100), "took {best:?}");
}

/// A history may come from a broken run or a broken recording; its judge must live to tell.
#[test]
fn no_history_makes_a_checker_panic_however_spoiled_it_is() {
    let mut dice = Dice(77);
    let mut noticed = 0;
    for seed in 0..20 {
        let history = Crowd::new(seed).run(60);
        for _ in 0..40 {
            let mut spoiled = history.clone();
            for _ in 0..=dice.below(4) {
                spoil(&mut spoiled, &mut dice);
            }
            noticed += usize::from(!check_all(&spoiled).is_empty());
        }
    }
    assert!(noticed > 600, "of 800 spoiled histories only {noticed} were noticed");
}

fn spoil(history: &mut History, dice: &mut Dice) {
    let log = &mut history.log;
    let (one, other) = (dice.below(log.len() as u64), dice.below(log.len() as u64));
    let (one, other) = (one as usize, other as usize);
    let odd = [0, 1, u64::from(u32::MAX), u64::MAX - 1, u64::MAX][dice.below(5) as usize];
    match dice.below(10) {
        0 => log.swap(one, other),
        1 => {
            let event = log[other].event.clone();
            log[one].event = event;
        }
        2 => {
            let again = log[one].clone();
            log.insert(other, again);
        }
        3 => {
            log.remove(one);
        }
        4 => log[one].event.at = Timestamp(odd),
        5 => (log[one].index, log[other].batch) = (odd, odd),
        6 => match &mut log[one].event.what {
            What::Joined(joined) => joined.ticket.number.0 = odd,
            What::Admitted { ticket, .. } | What::Ended { ticket, .. } => ticket.number.0 = odd,
            What::Moved { to, .. } => to.number.0 = odd,
            what => *what = What::DrawClosed { counts: vec![(LaneId(1), odd), (LaneId(0), odd)] },
        },
        7 => {
            let (lane, start) = (LaneId(0), Number(odd));
            log[one].event.what = What::Sealed { lane, start, len: odd as u32, seed: [0; 16] };
        }
        8 => {
            let call = dice.below(history.calls.len() as u64) as usize;
            if let Outcome::Answered { version, .. } = &mut history.calls[call].outcome {
                *version = odd;
            }
        }
        _ => {
            let block = Block { lane: LaneId(0), index: odd };
            log[one].event.what = What::ForgotTickets(block);
        }
    }
}

fn is_admission(event: &Event) -> bool {
    matches!(event.what, What::Admitted { .. })
}

/// A room, those who want something of it, and what they will remember.
struct Crowd {
    dice: Dice,
    room: Room,
    history: History,
    now: Timestamp,
    epoch: Epoch,
    batch: u64,
    moment: u64,
    /// What visitors hold, and who they are.
    tickets: Vec<(u32, Presented)>,
    next_client: u32,
    people: u8,
    /// Decided and not durable yet.
    round: Vec<Event>,
    asked: Vec<(u32, Moment, Command, Reply)>,
}

impl Crowd {
    fn new(seed: u64) -> Crowd {
        let mut crowd = Crowd {
            dice: Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            room: Room::new(),
            history: History::default(),
            now: Timestamp(1_700_000_000_000),
            epoch: Epoch(0),
            batch: 0,
            moment: 0,
            tickets: Vec::new(),
            next_client: 0,
            people: 40,
            round: Vec::new(),
            asked: Vec::new(),
        };
        crowd.take_over();
        let settings = crowd.settings();
        crowd.ask(0, configure(settings));
        crowd.commit(End::Durable);
        crowd
    }

    fn settings(&mut self) -> Settings {
        let dice = &mut self.dice;
        let lane = |name: &str, weight| LaneSettings { name: name.into(), weight };
        let starts_at = dice.one_in(2).then(|| self.now.after(Millis(20_000)));
        Settings {
            lanes: vec![lane("main", 3), lane("fast", 5), lane("last", 0)],
            returning: dice.one_in(2).then_some(Returning { share: 20, within: Millis(60_000) }),
            max_active: 3 + dice.below(30),
            max_waiting: if dice.one_in(3) { 40 } else { 0 },
            rate: Some(Rate { count: 1 + dice.below(40) as u32, per: Millis(1_000) }),
            burst: dice.one_in(2).then_some(1 + dice.below(5) as u32),
            queue_all: dice.one_in(2),
            claim: if dice.one_in(3) { ClaimMode::OnAdmission } else { ClaimMode::Explicit },
            claim_within: Millis(5_000),
            session_timeout: Millis(20_000),
            pass_life: Millis(if dice.one_in(2) { 5_000 } else { 0 }),
            pass_leeway: Millis(1_000),
            ticket_life: Millis(if dice.one_in(3) { 120_000 } else { 0 }),
            no_show: if dice.one_in(2) { NoShow::Return } else { NoShow::Keep },
            starts_at,
            draw: starts_at.filter(|_| dice.one_in(2)).map(|_| DrawSettings { beacon: None }),
            shuffle_window: if dice.one_in(4) { 16 } else { 1 },
            ..Settings::default()
        }
    }

    fn run(mut self, steps: usize) -> History {
        for _ in 0..steps {
            self.step();
        }
        self.end()
    }

    /// A few commands, one batch; now and then an owner dies over it.
    fn step(&mut self) {
        self.now = self.now.after(Millis(self.dice.below(400)));
        for _ in 0..self.dice.below(6) {
            let (client, command) = self.wish();
            self.ask(client, command);
        }
        self.see_to_the_draw();
        self.tick();
        let end = match self.dice.below(60) {
            0 => End::Lost,
            1 => End::UnknownAndThere,
            2 => End::UnknownAndLost,
            _ => End::Durable,
        };
        self.commit(end);
        if end != End::Durable || self.dice.one_in(80) {
            self.now = self.now.after(Millis(self.dice.below(30_000)));
            self.take_over();
            self.commit(End::Durable);
        }
        self.look();
    }

    fn wish(&mut self) -> (u32, Command) {
        let by = || Actor::new("operator");
        match self.dice.below(100) {
            0..40 => self.join(),
            40..60 => self.with_ticket(Command::Claim),
            60..66 => self.with_ticket(Command::Renew),
            66..74 => self.with_ticket(Command::Leave),
            74..77 => self.with_ticket(Command::HandOver),
            77..80 => {
                let to = LaneId(self.dice.below(3) as u8);
                self.with_ticket(|ticket| Command::Move { ticket, to, by: by() })
            }
            80..84 => {
                let how = [
                    EndHow::Completed,
                    EndHow::CheckoutFailed,
                    EndHow::CheckoutExpired,
                    EndHow::Revoked,
                ][self.dice.below(4) as usize];
                self.with_ticket(|ticket| Command::End { ticket, how, by: by() })
            }
            84..88 => {
                let tickets = (0..3).map(|_| self.any_ticket().1.ticket).collect();
                (0, Command::Lapse { tickets })
            }
            88..90 => {
                let tickets = (0..3).map(|_| self.any_ticket().1.ticket).collect();
                (0, Command::Release { tickets })
            }
            90 => {
                let reason = "a moment".to_owned();
                let hold = match self.dice.below(3) {
                    0 => Hold::Paused { reason },
                    1 => Hold::Draining { reason },
                    _ => Hold::Maintenance { reason },
                };
                (0, Command::Hold { hold, by: by() })
            }
            91..95 => (0, Command::Resume { by: by() }),
            95 => (0, Command::AdmitNow { count: self.dice.below(4), entropy: [0; 16], by: by() }),
            96 if self.dice.one_in(8) => {
                let reason = "sold out".into();
                (0, Command::Finish { cause: FinishCause::SoldOut, reason, by: by() })
            }
            97 => (0, Command::Reopen { by: by() }),
            98 => {
                let Some(settings) = self.room.state().settings() else { return self.join() };
                let mut settings = Settings::clone(settings);
                let dice = &mut self.dice;
                settings.max_active = 1 + dice.below(30);
                let (count, per) = (1 + dice.below(50) as u32, 1_000 + dice.below(7));
                settings.rate = (!dice.one_in(8)).then_some(Rate { count, per: Millis(per) });
                settings.burst = dice.one_in(2).then_some(1 + dice.below(5) as u32);
                (0, configure(settings))
            }
            _ => self.join(),
        }
    }

    fn join(&mut self) -> (u32, Command) {
        let person = self.dice.below(self.people.into()) as u8 + 1;
        self.next_client += 1;
        let identity = self.dice.one_in(3).then_some(Identity([person; 16]));
        let key = self.dice.one_in(3).then(|| {
            let number = self.next_client - self.dice.below(5).min(self.next_client.into()) as u32;
            let mut key = [1; 12];
            key[..4].copy_from_slice(&number.to_be_bytes());
            JoinKey { key, body: [0; 4] }
        });
        let holding = self.dice.one_in(8).then(|| self.any_ticket().1);
        let lane = LaneId(self.dice.below(4).saturating_sub(1) as u8);
        (self.next_client, Command::Join(Join { lane, identity, key, holding, ..Join::default() }))
    }

    fn with_ticket(&mut self, make: impl FnOnce(Presented) -> Command) -> (u32, Command) {
        let (client, mut ticket) = self.any_ticket();
        match self.dice.below(20) {
            0 => ticket.epoch.0 += 1,
            1 => ticket.ticket.number.0 += 1,
            2 => ticket.holder = Some(Holder(self.dice.below(3) as u8)),
            3 => ticket.holder = None,
            _ => {}
        }
        (client, make(ticket))
    }

    /// One of the newer tickets: those of long ago are over.
    fn any_ticket(&mut self) -> (u32, Presented) {
        let newest = self.tickets.len().min(60) as u64;
        match newest {
            0 => (0, Presented::by_service(Ticket::new(0, 0), Epoch(1))),
            _ => self.tickets[self.tickets.len() - 1 - self.dice.below(newest) as usize],
        }
    }

    fn ask(&mut self, client: u32, command: Command) {
        self.moment += 1;
        let sent = Moment(self.moment);
        let reply = self.apply(&command);
        self.asked.push((client, sent, command, reply));
    }

    fn apply(&mut self, command: &Command) -> Reply {
        let mut events = Vec::new();
        let reply = self.room.decide(self.now, command, &mut events);
        for event in &events {
            self.room.absorb(event);
        }
        self.round.extend(events);
        reply
    }

    fn tick(&mut self) {
        let entropy = [self.dice.below(256) as u8; 16];
        while self.apply(&Command::Tick { entropy }) == (Reply::Ticked { again: true }) {}
    }

    fn see_to_the_draw(&mut self) {
        let state = self.room.state();
        let by = Actor::new("engine");
        if state.settings().is_none_or(|settings| settings.draw.is_none()) {
            return;
        }
        if state.draw().commitment.is_none() && state.phase() <= Phase::Doors {
            let (commitment, sealed_seed) = (draw::commitment(&DRAW_SEED), Vec::new());
            self.apply(&Command::CommitDraw { commitment, sealed_seed, beacon: None });
        } else if state.draw().closed && state.draw().revealed.is_none() {
            // Only a close that is durable has a chain.
            let closed =
                self.history.log.iter().find(|it| matches!(it.event.what, What::DrawClosed { .. }));
            let Some(chain) = closed.map(|it| it.chain) else { return };
            let (seed, beacon) = (DRAW_SEED, None);
            self.apply(&Command::Draw { seed, chain, beacon, waive_beacon: false, by });
        }
    }

    fn take_over(&mut self) {
        self.room = Room::new();
        for it in &self.history.log {
            self.room.absorb(&it.event);
        }
        let digest = self.room.state().digest();
        let head = self.history.log.len() as u64;
        self.history.states.push(Reached { head, how: How::Replay, digest });
        self.epoch.0 += 1;
        self.batch = 0;
        let epoch = self.epoch;
        assert_eq!(self.apply(&Command::Open { epoch }), Reply::Done);
    }

    fn commit(&mut self, end: End) {
        let there = matches!(end, End::Durable | End::UnknownAndThere);
        let round = std::mem::take(&mut self.round);
        if there && !round.is_empty() {
            let first = self.history.log.len() as u64 + 1;
            let mut chain = [3; 32];
            chain[..8].copy_from_slice(&first.to_be_bytes());
            for (event, index) in round.into_iter().zip(first..) {
                let (epoch, batch) = (self.epoch, self.batch);
                let nonce = u128::from(epoch.0) << 64 | 5;
                self.history.log.push(Logged { index, epoch, nonce, batch, chain, event });
            }
            self.batch += 1;
        }
        let version = self.history.log.len() as u64;
        for (client, sent, command, reply) in std::mem::take(&mut self.asked) {
            self.moment += 1;
            let at = Moment(self.moment);
            let outcome = match end {
                End::Durable => {
                    self.hear(client, &reply);
                    Outcome::Answered { at, reply, version }
                }
                End::Lost => Outcome::NotDone { at },
                End::UnknownAndThere | End::UnknownAndLost => Outcome::Unknown,
            };
            self.history.calls.push(Call { client, sent, command, outcome });
        }
        if end == End::Durable && self.dice.one_in(10) {
            let digest = self.room.state().digest();
            self.history.states.push(Reached { head: version, how: How::Live, digest });
        }
    }

    fn hear(&mut self, client: u32, reply: &Reply) {
        match *reply {
            Reply::Joined { ticket, epoch, holder, .. } => {
                self.tickets.push((client, Presented { ticket, epoch, holder: Some(holder) }));
            }
            Reply::HandedOver { ticket, holder } => {
                for (_, shown) in self.tickets.iter_mut().filter(|it| it.1.ticket == ticket) {
                    shown.holder = Some(holder);
                }
            }
            _ => {}
        }
    }

    /// People look where they stand.
    fn look(&mut self) {
        let state = self.room.state();
        let version = self.history.log.len() as u64;
        let newest = self.tickets.len().saturating_sub(60);
        let every = self.tickets[newest..].iter().skip(self.moment as usize % 6).step_by(6);
        for (client, shown) in every {
            match state.look(self.now, &Presented { holder: None, ..*shown }) {
                Ok(view) => {
                    self.moment += 1;
                    let (at, ticket) = (Moment(self.moment), shown.ticket);
                    let (client, position) = (*client, view.position);
                    self.history.seen.push(Seen { client, at, ticket, version, position });
                }
                Err(refusal) => assert_eq!(refusal, Refusal::Forgotten),
            }
        }
    }

    fn end(mut self) -> History {
        for Logged { index, event, .. } in self.history.log.clone() {
            self.history.publish(index, &event);
        }
        self.history
    }
}

/// How an append went.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Durable,
    Lost,
    UnknownAndThere,
    UnknownAndLost,
}

fn configure(settings: Settings) -> Command {
    Command::Configure { settings: Box::new(settings), by: Actor::new("operator") }
}

/// Xorshift: all that a test's crowd needs.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound.max(1)
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}
