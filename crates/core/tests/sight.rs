//! What the estimates see of a room is what its visitors see.

use proptest::prelude::*;
use waitroom_core::settings::{LaneSettings, Rate};
use waitroom_core::{
    Actor, Command, EndHow, Epoch, Event, Join, LaneId, Millis, Presented, Reply, Room, Settings,
    Ticket, Timestamp,
};

struct House {
    room: Room,
    at: Timestamp,
    people: Vec<Presented>,
    events: Vec<Event>,
}

impl House {
    fn new(shuffle_window: u32) -> House {
        let room = Room::new();
        let mut house =
            House { room, at: Timestamp(1_000), people: Vec::new(), events: Vec::new() };
        house.ask(&Command::Open { epoch: Epoch(1) });
        let lane = |name: &str| LaneSettings { name: name.into(), weight: 1 };
        let settings = Settings {
            lanes: vec![lane("main"), lane("vip")],
            shuffle_window,
            queue_all: true,
            max_active: 60,
            rate: Some(Rate { count: 20, per: Millis(1_000) }),
            claim_within: Millis(4_000),
            ..Settings::default()
        };
        let configure = Command::Configure { settings: Box::new(settings), by: by() };
        assert_eq!(house.ask(&configure), Reply::Done);
        house
    }

    fn ask(&mut self, command: &Command) -> Reply {
        let reply = self.room.decide(self.at, command, &mut self.events);
        for event in self.events.drain(..) {
            self.room.absorb(&event);
        }
        reply
    }

    fn pass(&mut self, ms: u64) {
        self.at = Timestamp(self.at.0 + ms);
        while self.ask(&Command::Tick { entropy: [9; 16] }) == (Reply::Ticked { again: true }) {}
    }

    fn check(&self) {
        let state = self.room.state();
        for lane in [LaneId(0), LaneId(1)] {
            let waiting = state.lane_counts(lane).waiting;
            let waits = |ticket: &Ticket| ticket.lane == lane && state.position(*ticket).is_some();
            let line: Vec<Ticket> =
                self.people.iter().map(|who| who.ticket).filter(waits).collect();
            assert_eq!(line.len() as u64, waiting);
            let places: Vec<u64> =
                line.iter().map(|ticket| state.place(*ticket).expect("it was given").0).collect();
            let first = places.iter().min().copied().unwrap_or(state.issued(lane));
            assert_eq!(state.front(lane).0, first);

            for count in [1, 3, 128] {
                let stretches = state.stretches(lane, count);
                assert!(stretches.len() as u64 <= count);
                let (mut people, mut end) = (0, 0);
                for stretch in &stretches {
                    assert!(stretch.waiting > 0 && stretch.end > end, "{stretches:?}");
                    assert!(stretch.joined_at <= self.at.0 && stretch.joined_at >= 1_000);
                    (people, end) = (people + stretch.waiting, stretch.end);
                    let before = places.iter().filter(|place| **place < end).count() as u64;
                    assert_eq!(people, before, "{stretches:?}");
                }
                assert_eq!(people, waiting);
            }

            assert_eq!(state.standing(lane, waiting), None);
            for ahead in 0..waiting {
                // Places in an open window are not final, and nobody is named for them.
                if let Some(standing) = state.standing(lane, ahead) {
                    assert_eq!(state.position(standing.ticket), Some(ahead + 1));
                    assert_eq!(state.place(standing.ticket), Some(standing.order));
                    assert_eq!(standing.ahead, ahead);
                } else {
                    let window = state.settings().expect("configured").shuffle_window;
                    assert!(window > 1 && waiting - ahead < window as u64);
                }
            }
        }
        let since = self.room.inside_since(1_000);
        assert!(since.is_sorted() && since.iter().all(|(_, people)| *people == 1));
        for samples in [1, 7, 1_000] {
            let since = self.room.inside_since(samples);
            assert!(since.len() as u64 <= samples);
            let people = since.iter().map(|(_, people)| people).sum::<u64>();
            // A sample may fall on free slots only; then nothing is known of the ages.
            assert!(people == state.slots_taken() || since.is_empty());
        }
        for who in &self.people {
            let view = state.look(self.at, who).expect("nobody is forgotten yet");
            let since = self.room.slot_since(who.ticket);
            // Those whose session is over may hold their slot for a while; the view shows it no more.
            assert!(view.admitted_at.is_none() || view.admitted_at == since);
            assert!(view.position.is_none_or(|at| at == 0) || since.is_none());
        }
    }
}

fn by() -> Actor {
    Actor::new("test")
}

#[derive(Clone, Debug)]
enum Act {
    Join(u8),
    Leave(usize),
    Claim(usize),
    Complete(usize),
    Pass(u64),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0..2u8).prop_map(Act::Join),
        2 => any::<usize>().prop_map(Act::Leave),
        2 => any::<usize>().prop_map(Act::Claim),
        1 => any::<usize>().prop_map(Act::Complete),
        2 => (0..400u64).prop_map(Act::Pass),
    ]
}

proptest! {
    #[test]
    fn lines_and_slots_are_seen_as_they_are(
        windows in any::<bool>(),
        acts in prop::collection::vec(act(), 1..300),
    ) {
        let mut house = House::new(if windows { 16 } else { 1 });
        for act in acts {
            let who = |at: usize, house: &House| {
                (!house.people.is_empty()).then(|| house.people[at % house.people.len()])
            };
            let command = match act {
                Act::Pass(ms) => {
                    house.pass(ms);
                    None
                }
                Act::Join(lane) => {
                    Some(Command::Join(Join { lane: LaneId(lane), ..Join::default() }))
                }
                Act::Leave(at) => who(at, &house).map(Command::Leave),
                Act::Claim(at) => who(at, &house).map(Command::Claim),
                Act::Complete(at) => who(at, &house)
                    .map(|ticket| Command::End { ticket, how: EndHow::Completed, by: by() }),
            };
            if let Some(Reply::Joined { ticket, epoch, holder, .. }) =
                command.map(|command| house.ask(&command))
            {
                house.people.push(Presented { ticket, epoch, holder: Some(holder) });
            }
        }
        // Full windows are sealed by the tick.
        house.pass(0);
        house.check();
    }
}
