//! A sale on a writer without I/O and without a clock: people come, wait, give up and enter while
//! the test turns the hands.

use waitroom_core::{
    Actor, Command, Epoch, Join, LaneId, Presented, Reply, Room, Settings, Timestamp,
};
use waitroom_engine::Outlook;
use waitroom_engine::writer::{Round, Writer};

pub const BEGIN: Timestamp = Timestamp(1_700_000_000_000);

pub struct Sale {
    pub writer: Writer,
    pub at: Timestamp,
    pub outlook: Option<Outlook>,
    pub rounds: Vec<Round>,
    luck: u64,
}

pub fn by() -> Actor {
    Actor::new("test")
}

impl Sale {
    pub fn new(settings: Settings) -> Sale {
        let writer = Writer::open(Room::new(), 0, Epoch(1), BEGIN);
        Sale::on(writer, settings)
    }

    pub fn watched(settings: Settings) -> Sale {
        let mut writer = Writer::open(Room::new(), 0, Epoch(1), BEGIN);
        writer.watch_waits();
        Sale::on(writer, settings)
    }

    fn on(writer: Writer, settings: Settings) -> Sale {
        let mut sale = Sale { writer, at: BEGIN, outlook: None, rounds: Vec::new(), luck: 7 };
        let settings = Box::new(settings);
        sale.must(Command::Configure { settings, by: by() });
        sale.round();
        sale
    }

    pub fn must(&mut self, command: Command) -> Reply {
        let reply = self.writer.apply(self.at, &command);
        assert!(!matches!(reply, Reply::Refused(_)), "{command:?}: {reply:?}");
        reply
    }

    pub fn join(&mut self, lane: u8) -> Presented {
        let join = Join { lane: LaneId(lane), ..Join::default() };
        crate::help::presented(&self.must(Command::Join(join)))
    }

    pub fn join_many(&mut self, people: usize) -> Vec<Presented> {
        (0..people).map(|_| self.join(0)).collect()
    }

    /// What the task does at the end of a round.
    pub fn round(&mut self) {
        self.writer.tick(self.at, || [0; 16]);
        if let Some(outlook) = self.writer.outlook(self.at) {
            self.outlook = Some(outlook);
        }
        self.rounds.extend(self.writer.cut());
    }

    pub fn pass(&mut self, ms: u64) {
        self.at = Timestamp(self.at.0 + ms);
        self.round();
    }

    /// Ticks of 200 ms.
    pub fn run(&mut self, seconds: u64) {
        (0..seconds * 5).for_each(|_| self.pass(200));
    }

    pub fn outlook(&self) -> &Outlook {
        self.outlook.as_ref().expect("a room that is watched has an outlook")
    }

    pub fn position(&self, who: Presented) -> Option<u64> {
        self.writer.state().position(who.ticket)
    }

    /// Runs until somebody is in; returns how long that took.
    pub fn wait_of(&mut self, who: Presented) -> u64 {
        let from = self.at;
        while self.position(who).is_some() {
            self.pass(200);
        }
        self.at.since(from).0
    }

    /// Evenly in 0..1, always the same sequence.
    pub fn luck(&mut self) -> f64 {
        self.luck = self.luck.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        (self.luck >> 11) as f64 / (1u64 << 53) as f64
    }
}
