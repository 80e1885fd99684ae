//! Whatever is asked, in whatever order: what must hold at every event does.
//!
//! The witness looks at each event and compares the room with its own plain picture: promises 2, 3,
//! 4, 6, 8, 9, 13 and 14, and the counts that events carry. `World::decide` looks that refusals and
//! repeats come without events and that an answer depends on nothing but the room and the command.
//! Here the commands are drawn at random, with names that meet each other often.

use crate::script::{T0, World};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use waitroom_core::{
    Actor, Command, EndHow, Epoch, FinishCause, Hold, Holder, Identity, Join, JoinKey, LaneId,
    Millis, Number, Presented, Reply, Status, Ticket,
};

/// What somebody does next; tickets are meant by their index among all that were given.
#[derive(Clone, Debug)]
enum Step {
    Join { lane: u8, person: Option<u8>, key: Option<u8>, holding: Option<u16> },
    Claim(u16),
    Leave(u16),
    Renew(u16),
    End(u16, u8),
    Lapse(Vec<u16>),
    Release(Vec<u16>),
    HandOver(u16),
    Move(u16, u8),
    Pause,
    Drain,
    Maintain,
    Resume,
    Admit(u64),
    Finish,
    Reopen,
    Open,
    MaxActive(u64),
    Rate(u32),
    KeepInside(bool),
    Commit,
    Draw,
    Tick,
    Wait(u64),
    Garbage(u8, u64, u32, u8),
}

fn step() -> impl Strategy<Value = Step> {
    let some = || any::<u16>();
    prop_oneof![
        12 => (0u8..3, prop::option::of(1u8..6), prop::option::of(1u8..9), prop::option::of(some()))
            .prop_map(|(lane, person, key, holding)| Step::Join { lane, person, key, holding }),
        6 => some().prop_map(Step::Claim),
        3 => some().prop_map(Step::Leave),
        2 => some().prop_map(Step::Renew),
        4 => (some(), 0u8..4).prop_map(|(who, how)| Step::End(who, how)),
        1 => prop::collection::vec(some(), 0..4).prop_map(Step::Lapse),
        1 => prop::collection::vec(some(), 0..4).prop_map(Step::Release),
        1 => some().prop_map(Step::HandOver),
        2 => (some(), 0u8..4).prop_map(|(who, lane)| Step::Move(who, lane)),
        1 => Just(Step::Pause),
        1 => Just(Step::Drain),
        1 => Just(Step::Maintain),
        2 => Just(Step::Resume),
        2 => (0u64..4).prop_map(Step::Admit),
        1 => Just(Step::Finish),
        2 => Just(Step::Reopen),
        1 => Just(Step::Open),
        1 => (1u64..6).prop_map(Step::MaxActive),
        1 => (1u32..8).prop_map(Step::Rate),
        1 => any::<bool>().prop_map(Step::KeepInside),
        1 => Just(Step::Commit),
        1 => Just(Step::Draw),
        10 => Just(Step::Tick),
        8 => prop_oneof![0u64..2_000, 0u64..700_000].prop_map(Step::Wait),
        1 => (any::<u8>(), any::<u64>(), any::<u32>(), any::<u8>())
            .prop_map(|(lane, number, epoch, holder)| Step::Garbage(lane, number, epoch, holder)),
    ]
}

/// Rooms that differ in what matters to the order and to the pace.
fn settings() -> impl Strategy<Value = String> {
    let order = prop::sample::select(vec!["window=1", "window=16", "starts_at=5s draw=committed"]);
    let claim = prop::sample::select(vec!["explicit", "on_admission"]);
    let queue_all = prop::sample::select(vec!["yes", "no"]);
    let no_show = prop::sample::select(vec!["keep", "return"]);
    let returning = prop::sample::select(vec!["none", "20%/300s"]);
    let life = prop::sample::select(vec!["0s", "400s"]);
    let max_waiting = prop::sample::select(vec![0, 5]);
    (order, claim, queue_all, no_show, returning, life, max_waiting, 1u64..6).prop_map(
        |(order, claim, queue_all, no_show, returning, life, max_waiting, max_active)| {
            format!(
                "lanes=3:1:0 rate=2/1s burst=3 {order} claim={claim} queue_all={queue_all} \
                 no_show={no_show} returning={returning} ticket_life={life} \
                 max_waiting={max_waiting} max_active={max_active} claim_within=20s \
                 session_timeout=60s pass_life=10s pass_leeway=2s memory=600s"
            )
        },
    )
}

struct Crowd {
    world: World,
    given: Vec<Presented>,
    epoch: u32,
    pace_changed: bool,
}

impl Crowd {
    fn of(&self, index: u16) -> Presented {
        match self.given.as_slice() {
            [] => Presented::by_service(Ticket::new(0, 0), Epoch(1)),
            given => given[index as usize % given.len()],
        }
    }

    fn tickets(&self, indexes: &[u16]) -> Vec<Ticket> {
        indexes.iter().map(|index| self.of(*index).ticket).collect()
    }

    fn take(&mut self, step: &Step) {
        let by = || Actor::new("op");
        let command = match step {
            Step::Join { lane, person, key, holding } => Command::Join(Join {
                lane: LaneId(*lane),
                identity: person.map(|person| Identity([person; 16])),
                key: key.map(|key| JoinKey { key: [key; 12], body: [key % 2; 4] }),
                holding: holding.map(|index| self.of(index)),
                ..Join::default()
            }),
            Step::Claim(who) => Command::Claim(self.of(*who)),
            Step::Leave(who) => Command::Leave(self.of(*who)),
            Step::Renew(who) => Command::Renew(self.of(*who)),
            Step::End(who, how) => {
                let all = [
                    EndHow::Completed,
                    EndHow::CheckoutFailed,
                    EndHow::CheckoutExpired,
                    EndHow::Revoked,
                ];
                Command::End { ticket: self.of(*who), how: all[*how as usize], by: by() }
            }
            Step::Lapse(who) => Command::Lapse { tickets: self.tickets(who) },
            Step::Release(who) => Command::Release { tickets: self.tickets(who) },
            Step::HandOver(who) => Command::HandOver(self.of(*who)),
            Step::Move(who, lane) => {
                let to = if *lane == 3 { LaneId::RETURNING } else { LaneId(*lane) };
                Command::Move { ticket: self.of(*who), to, by: by() }
            }
            Step::Pause => Command::Hold { hold: Hold::Paused { reason: "p".into() }, by: by() },
            Step::Drain => Command::Hold { hold: Hold::Draining { reason: "d".into() }, by: by() },
            Step::Maintain => {
                Command::Hold { hold: Hold::Maintenance { reason: "m".into() }, by: by() }
            }
            Step::Resume => Command::Resume { by: by() },
            Step::Admit(count) => Command::AdmitNow { count: *count, entropy: [0; 16], by: by() },
            Step::Finish => {
                Command::Finish { cause: FinishCause::SoldOut, reason: "gone".into(), by: by() }
            }
            Step::Reopen => Command::Reopen { by: by() },
            Step::Open => {
                self.epoch += 1;
                Command::Open { epoch: Epoch(self.epoch) }
            }
            Step::MaxActive(_) | Step::Rate(_) | Step::KeepInside(_) => {
                let state = self.world.room.state();
                let mut settings = state.settings().expect("the room is set").as_ref().clone();
                match step {
                    Step::MaxActive(max) => settings.max_active = *max,
                    Step::Rate(count) => {
                        settings.rate.as_mut().expect("it has a rate").count = *count;
                        self.pace_changed = true;
                    }
                    Step::KeepInside(keep) => settings.keep_inside = *keep,
                    _ => unreachable!("the arm above names these three"),
                }
                Command::Configure { settings: Box::new(settings), by: by() }
            }
            Step::Commit => {
                self.world.run(&["commit"]);
                return;
            }
            Step::Draw => {
                self.world.run(&["draw"]);
                return;
            }
            Step::Tick => {
                self.world.run(&["tick"]);
                return;
            }
            Step::Wait(ms) => {
                self.world.now = self.world.now.after(Millis(*ms));
                return;
            }
            Step::Garbage(lane, number, epoch, holder) => Command::Leave(Presented {
                ticket: Ticket { lane: LaneId(*lane), number: Number(*number) },
                epoch: Epoch(*epoch),
                holder: Some(Holder(*holder)),
            }),
        };
        let mut events = Vec::new();
        match self.world.decide(&command, &mut events) {
            Reply::Joined { ticket, epoch, holder, .. } => {
                self.given.push(Presented { ticket, epoch, holder: Some(holder) });
            }
            Reply::HandedOver { ticket, holder } => {
                let old = self.given.iter().find(|it| it.ticket == ticket).copied();
                self.given.extend(old.map(|old| Presented { holder: Some(holder), ..old }));
            }
            Reply::Moved { to, epoch } => {
                self.given.push(Presented { ticket: to, epoch, holder: None });
            }
            _ => {}
        }
    }
}

fn run(settings: &str, steps: &[Step]) -> Crowd {
    let world = World::room(settings);
    let mut crowd = Crowd { world, given: Vec::new(), epoch: 1, pace_changed: false };
    if settings.contains("draw=") {
        // Nobody gets into a room whose draw is not committed to; `draw_room.rs` tells of those.
        crowd.take(&Step::Commit);
    }
    for step in steps {
        crowd.take(step);
    }
    crowd
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_promise_holds_at_every_event(
        settings in settings(),
        steps in prop::collection::vec(step(), 1..150),
    ) {
        let crowd = run(&settings, &steps);
        if !crowd.pace_changed {
            crowd.world.witness.pace_is_kept();
        }
        crowd.world.replays_to_the_same();
    }

    /// Promise 15: a snapshot of any moment, and what came after it, is the room.
    #[test]
    fn a_restored_room_goes_on_as_if_nothing_had_happened(
        settings in settings(),
        before in prop::collection::vec(step(), 0..150),
        after in prop::collection::vec(step(), 1..100),
    ) {
        let mut crowd = run(&settings, &before);
        crowd.world.go_on_beside_a_restored_room();
        for step in &after {
            crowd.take(step);
        }
        crowd.world.the_restored_room_is_the_same();
    }

    /// Promise 12: with people waiting, a slot free and nothing in the way, the room asks to be
    /// looked at, and when it is, somebody enters.
    #[test]
    fn a_room_never_sticks(
        settings in settings(),
        steps in prop::collection::vec(step(), 1..100),
    ) {
        let mut crowd = run(&settings, &steps);
        let world = &mut crowd.world;
        for line in [["resume"], ["reopen"], ["commit"], ["tick"], ["draw"], ["tick"]] {
            world.now = world.now.after(Millis(10_000));
            world.run(&line);
        }
        let admissions = world.room.state().counts().admissions;
        if world.room.state().waiting() == 0 {
            return Ok(());
        }
        // Sessions run out and passes die, so within that time a slot is free for the next.
        for _ in 0..200 {
            let Some(next) = world.room.next_deadline(world.now) else {
                panic!("people wait and the room sleeps: {:?}", world.room.state().counts());
            };
            world.now = next.max(world.now);
            world.run(&["tick"]);
            let state = world.room.state();
            if state.counts().admissions > admissions || state.waiting() == 0 {
                return Ok(());
            }
        }
        prop_assert!(false, "{} s went by and nobody entered", world.now.since(T0).0 / 1_000);
    }
}

#[test]
fn the_witness_sees_people_come_and_go() {
    // Guards the tests above against a generator that no longer gets anywhere.
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = (settings(), prop::collection::vec(step(), 150));
    let mut seen = [0usize; 10];
    for _ in 0..200 {
        let (settings, steps) = strategy.new_tree(&mut runner).expect("a value").current();
        for life in run(&settings, &steps).world.witness.lives.values() {
            seen[life.status as usize] += 1;
        }
    }
    for status in Status::ALL {
        assert!(seen[status as usize] >= 20, "only {} are {status:?}", seen[status as usize]);
    }
}
