//! Who comes: the people that all parts of this benchmark let join, and the room they join.
//!
//! Everybody is a function of a number, so that every run and every process sees the same ones.

use std::fmt;
use std::str::FromStr;

use waitroom_core::{
    Actor, Command, Epoch, Event, Identity, Join, JoinKey, Presented, Reply, Room, Settings,
    Ticket, Timestamp,
};

use super::super::classic::scatter;
use crate::failure::{Failure, Outcome};

/// What people bring along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crowd {
    Anonymous,
    /// A known user each: the room keeps a table of them.
    Identity,
    /// Anonymous, with an `Idempotency-Key` each: a table too, for ten minutes.
    Key,
}

/// A moment far from zero, as a real one is.
pub const BEGIN: Timestamp = Timestamp(1_767_225_600_000);

impl Crowd {
    /// Visitor `n` asks for a place.
    pub fn join(self, n: u64) -> Command {
        let mut join = Join::default();
        match self {
            Self::Anonymous => {}
            Self::Identity => join.identity = Some(Identity(hash(n))),
            Self::Key => {
                let mut key = JoinKey::default();
                key.key.copy_from_slice(&hash(n)[..12]);
                join.key = Some(key);
            }
        }
        Command::Join(join)
    }
}

impl fmt::Display for Crowd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anonymous => "anonymous",
            Self::Identity => "identity",
            Self::Key => "key",
        })
    }
}

impl FromStr for Crowd {
    type Err = Failure;

    fn from_str(word: &str) -> Outcome<Self> {
        [Self::Anonymous, Self::Identity, Self::Key]
            .into_iter()
            .find(|crowd| crowd.to_string() == word)
            .ok_or_else(|| Failure::new(format!("nobody is called {word}")))
    }
}

/// Sixteen bytes as a keyed hash would give them.
fn hash(n: u64) -> [u8; 16] {
    (u128::from(scatter(2 * n)) << 64 | u128::from(scatter(2 * n + 1))).to_be_bytes()
}

/// A room in which everybody queues and nobody is let in but by an operator, so that a crowd
/// stays as large as it was made.
pub fn settings() -> Settings {
    Settings { max_active: 10_000_000, rate: None, queue_all: true, ..Settings::default() }
}

pub fn configure(settings: Settings) -> Command {
    Command::Configure { settings: Box::new(settings), by: Actor::new("bench") }
}

pub fn admit(count: u64) -> Command {
    Command::AdmitNow { count, entropy: [0; 16], by: Actor::new("bench") }
}

/// A ticket of the one lane, given in the first epoch.
pub fn presented(number: u64) -> Presented {
    Presented::by_service(Ticket::new(0, number), Epoch(1))
}

/// Numbers below `below`, all different, scattered: a walk by a large prime.
pub fn scattered(below: u64) -> impl Iterator<Item = u64> {
    const STRIDE: u64 = 7_368_787;
    (0..below).map(move |i| (u128::from(i) * u128::from(STRIDE) % u128::from(below)) as u64)
}

/// The core by itself: what it decides is folded in at once.
#[derive(Debug)]
pub struct House {
    pub room: Room,
    events: Vec<Event>,
}

impl House {
    pub fn open(settings: Settings) -> Self {
        let mut house = Self { room: Room::new(), events: Vec::new() };
        house.must(BEGIN, &Command::Open { epoch: Epoch(1) });
        house.must(BEGIN, &configure(settings));
        house
    }

    /// A room with this many in line, everybody a tenth of a millisecond after the last.
    pub fn full(crowd: Crowd, people: u64) -> Self {
        let mut house = Self::open(settings());
        for n in 0..people {
            house.must(after(n), &crowd.join(n));
        }
        house
    }

    #[inline]
    pub fn apply(&mut self, at: Timestamp, command: &Command) -> Reply {
        let reply = self.room.decide(at, command, &mut self.events);
        for event in self.events.drain(..) {
            self.room.absorb(&event);
        }
        reply
    }

    /// The same for what cannot be refused: a benchmark of refusals would look splendid.
    #[inline]
    pub fn must(&mut self, at: Timestamp, command: &Command) {
        let reply = self.apply(at, command);
        assert!(!matches!(reply, Reply::Refused(_)), "{command:?} was refused: {reply:?}");
    }
}

/// When visitor `n` comes.
pub fn after(n: u64) -> Timestamp {
    Timestamp(BEGIN.0 + n / 10)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn scattered_numbers_are_all_there_once() {
        for below in [1, 10, 100_000] {
            assert_eq!(scattered(below).collect::<BTreeSet<_>>().len() as u64, below);
        }
    }

    #[test]
    fn every_crowd_fills_a_room_and_nobody_is_taken_for_another() {
        for crowd in [Crowd::Anonymous, Crowd::Identity, Crowd::Key] {
            let mut house = House::full(crowd, 5_000);
            assert_eq!(house.room.state().waiting(), 5_000);
            assert_eq!(crowd.to_string().parse(), Ok(crowd));
            house.must(after(5_000), &crowd.join(17));
            let repeats = u64::from(crowd != Crowd::Anonymous);
            assert_eq!(house.room.state().waiting(), 5_001 - repeats, "{crowd}");
        }
    }
}
