//! The story that the demo tells: how many come, how fast they are let in, when the shop is slow.
//!
//! Every number of the demo is here. There are two of them: one for a person who wants to look
//! around, and one that is over within a minute.

use std::time::Duration;

use waitroom_core::Millis;
use waitroom_core::settings::Rate;
use waitroom_crowd::Shape;

/// The room before the shop.
pub const ROOM: &str = "default";
pub const TITLE: &str = "Autumn Lights";

#[derive(Clone, Debug)]
pub struct Story {
    pub visitors: u64,
    pub seats: u32,
    /// People arrive within this.
    pub over: Duration,
    pub shape: Shape,
    /// When it ends at the latest. None: when somebody ends it.
    pub ends_after: Option<Duration>,
    pub capacity: u64,
    /// Admissions a second while the shop is well.
    pub rate_per_s: u32,
    /// How long people think between two pages, in the middle.
    pub thinking: Duration,
    /// How long seats are held for somebody who does not pay.
    pub hold: Duration,
    /// How long somebody inside may do nothing.
    pub session: Duration,
    pub slow: Slow,
    /// How often each bot tries.
    pub bot_every: Duration,
}

/// A shop that is slow on purpose: from when, until when, and by how much.
#[derive(Clone, Copy, Debug)]
pub struct Slow {
    pub from: Duration,
    pub to: Duration,
    pub by: Duration,
}

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

impl Story {
    /// The whole story within a minute.
    pub fn fast(visitors: Option<u64>, seats: Option<u32>) -> Story {
        Story {
            visitors: visitors.unwrap_or(450),
            seats: seats.unwrap_or(240),
            over: s(12),
            shape: Shape::Spike,
            ends_after: Some(s(50)),
            capacity: 60,
            rate_per_s: 10,
            thinking: Duration::from_millis(500),
            hold: s(6),
            session: s(15),
            slow: Slow { from: s(9), to: s(16), by: Duration::from_millis(1_200) },
            bot_every: Duration::from_millis(700),
        }
    }

    /// Long enough to join the line oneself and to try the console.
    pub fn leisurely(visitors: Option<u64>, seats: Option<u32>) -> Story {
        Story {
            visitors: visitors.unwrap_or(3_000),
            seats: seats.unwrap_or(2_000),
            over: s(240),
            shape: Shape::Spike,
            ends_after: None,
            capacity: 150,
            rate_per_s: 6,
            thinking: Duration::from_millis(3_500),
            hold: s(90),
            session: s(300),
            slow: Slow { from: s(60), to: s(85), by: Duration::from_millis(1_500) },
            bot_every: s(3),
        }
    }

    pub fn rate(&self) -> (Rate, String) {
        let rate = Rate { count: self.rate_per_s, per: Millis(1_000) };
        (rate, format!("{}/s", self.rate_per_s))
    }

    /// What is configured besides what `waitroom protect` sets.
    pub fn configuration(&self) -> String {
        let (per_min, session_s) = (self.rate_per_s * 60, self.session.as_secs());
        format!(
            "# The demo's own: quick to notice, so that there is something to see.\n\
             [server]\ndrain = \"3s\"\n\n\
             [log]\nlevel = \"error\"\n\n\
             [rooms.{ROOM}]\n\
             title = \"{TITLE}\"\n\
             claim_within = \"8s\"\n\
             heartbeat_timeout = \"30s\"\n\
             session_timeout = \"{session_s}s\"\n\n\
             # The pace follows the shop: when it is slow, fewer are let in.\n\
             [gate]\n\
             adaptive = true\n\
             adaptive_window = \"1s\"\n\
             adaptive_slow = \"700ms\"\n\
             adaptive_floor = \"60/min\"\n\
             adaptive_ceiling = \"{per_min}/min\"\n\
             adaptive_fallback = \"{per_min}/min\"\n\
             adaptive_step_percent = 15\n\
             adaptive_cut_percent = 60\n\
             adaptive_bad_percent = 30\n"
        )
    }
}
