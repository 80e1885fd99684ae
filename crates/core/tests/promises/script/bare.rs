//! A room that nobody watches: for crowds of which the witness's plain maps would make minutes.

use super::settings::{apply, plain};
use super::world::T0;
use waitroom_core::{
    Actor, Command, Epoch, Join, Presented, Reply, Room, Settings, Ticket, Timestamp,
};

#[derive(Debug)]
pub struct Bare {
    pub room: Room,
    pub now: Timestamp,
}

impl Bare {
    /// An opened room with these settings, in words.
    pub fn room(words: &str) -> Bare {
        let mut bare = Bare { room: Room::new(), now: T0 };
        let mut settings: Settings = plain();
        words.split_whitespace().for_each(|word| apply(&mut settings, word));
        bare.ask(&Command::Open { epoch: Epoch(1) });
        let by = Actor::new("operator");
        bare.ask(&Command::Configure { settings: Box::new(settings), by });
        bare
    }

    pub fn ask(&mut self, command: &Command) -> Reply {
        let mut events = Vec::new();
        let reply = self.room.decide(self.now, command, &mut events);
        assert!(!matches!(reply, Reply::Refused(_)), "{command:?}: {reply:?}");
        events.iter().for_each(|event| self.room.absorb(event));
        reply
    }

    pub fn join(&mut self, count: u64) {
        for _ in 0..count {
            self.ask(&Command::Join(Join::default()));
        }
    }

    /// These of lane 0 fall silent.
    pub fn lapse(&mut self, numbers: impl IntoIterator<Item = u64>) {
        let tickets: Vec<Ticket> = numbers.into_iter().map(|n| Ticket::new(0, n)).collect();
        for some in tickets.chunks(2_000) {
            self.ask(&Command::Lapse { tickets: some.to_vec() });
        }
    }

    pub fn admit(&mut self, count: u64) {
        let (entropy, by) = ([0; 16], Actor::new("operator"));
        self.ask(&Command::AdmitNow { count, entropy, by });
    }

    /// All that is due now.
    pub fn tick(&mut self) {
        while self.ask(&Command::Tick { entropy: [1; 16] }) != (Reply::Ticked { again: false }) {}
    }

    /// Those of lane 0 who wait, in order of numbers.
    pub fn waiting(&self) -> Vec<Presented> {
        let state = self.room.state();
        let mut waiting = Vec::new();
        state.each_waiting(waitroom_core::LaneId(0), |number| {
            let ticket = Ticket::new(0, number.0);
            waiting.push(state.named(ticket).expect("a ticket that waits was given"));
            std::ops::ControlFlow::Continue(())
        });
        waiting
    }
}
