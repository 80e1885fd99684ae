//! What the operator has set, as far as it bears on waiting, and the words for what happens.
//!
//! Lives here: plain data. Stays out: the room's own settings; whoever feeds the estimator
//! translates them.

/// Whether the room admits at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Doors {
    #[default]
    Open,
    NotStarted,
    Paused,
    Closed,
}

/// What the operator has set, as far as it bears on waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub doors: Doors,
    /// Admissions per so many milliseconds, or none when no rate is set.
    pub rate: Option<Rate>,
    /// How many may be inside, or none when not bounded.
    pub max_active: Option<u64>,
    /// How long a waiting visitor may be silent before the ticket lapses.
    pub heartbeat_timeout_ms: u64,
    /// What each lane takes of the pace.
    pub lanes: Vec<LanePart>,
}

/// One lane and its part in the pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LanePart {
    pub lane: u8,
    pub takes: Takes,
}

/// What a lane takes of the pace while others wait too. Alone it takes all there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// By weight among the lanes in which somebody waits; with none only what they leave.
    Weight(u32),
    /// This many in a hundred beside whoever waits in lanes with a weight.
    Share(u32),
}

/// How a waiting ticket went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// The visitor said so.
    Left,
    /// Silent for longer than the heartbeat allows.
    Lapsed,
    /// Somebody else took it out of the line: moved or revoked. Says nothing about patience.
    TakenOut,
}

/// `admissions` every `per_ms` milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    pub admissions: u64,
    pub per_ms: u64,
}

impl Rate {
    pub(super) fn per_one_ms(self) -> f64 {
        self.admissions as f64 / self.per_ms.max(1) as f64
    }
}

impl LanePart {
    /// Lanes 0, 1, 2 … with these weights.
    pub fn weights(weights: impl IntoIterator<Item = u32>) -> Vec<LanePart> {
        let parts = (0..).zip(weights);
        parts.map(|(lane, weight)| LanePart { lane, takes: Takes::Weight(weight) }).collect()
    }
}
