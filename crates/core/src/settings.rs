//! What an operator decides about a room, and which of it is impossible.
//!
//! Lives here: the settings document, its defaults, and `check`, which names every mistake at
//! once with its field and its bound. Stays out: parsing of files and units; the server turns
//! "90s" into milliseconds before it comes here.
//! To add a setting: give it a default here, a bound in `check`, a line in the server's
//! `default.toml`. Old logs lack the field and get the default, so a default is for good.

use crate::units::{LaneId, Millis, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Everything that can be set about a room. `Configured` events carry it whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// What visitors and operators call the room.
    pub title: String,
    /// Where an admitted visitor goes.
    pub target_url: String,
    /// Priority classes. The index is the lane's id; a lane is never removed once it gave a number.
    pub lanes: Vec<LaneSettings>,
    /// People who come back soon after they lost or left their place, if they get a lane at all.
    pub returning: Option<Returning>,
    /// How many may be inside at once. Lowering it evicts nobody.
    pub max_active: u64,
    /// How many may wait; 0 means no limit but the number space.
    pub max_waiting: u64,
    /// Paced admissions; none means that only operators let people in.
    pub rate: Option<Rate>,
    /// How many admissions the bucket can save up; none means one tick's worth, at least one.
    pub burst: Option<u32>,
    /// How often the owner looks whether somebody may enter.
    pub tick: Millis,
    /// Whether everyone gets a place in line even when there is none; otherwise an idle room lets
    /// people straight through.
    pub queue_all: bool,
    pub claim: ClaimMode,
    /// How long an admitted visitor may take to arrive before the place goes to the next.
    pub claim_within: Millis,
    /// How long a session lasts without activity.
    pub session_timeout: Millis,
    /// Whether activity renews a session.
    pub session_renewal: bool,
    /// How long one pass lives; 0 means as long as the session. Short passes are renewed by the
    /// gate and keep the time small in which an ended session still holds its slot.
    pub pass_life: Millis,
    /// How much later than `exp` a gate with a slow clock may still accept a pass.
    pub pass_leeway: Millis,
    /// How long a waiting visitor may be silent.
    pub heartbeat_timeout: Millis,
    /// How old a waiting ticket may grow; 0 means no limit.
    pub ticket_life: Millis,
    /// How long a finished ticket is remembered before it answers "forgotten".
    pub memory: Millis,
    /// What happens to the bucket token of an admission that nobody claimed.
    pub no_show: NoShow,
    pub opens_at: Option<Timestamp>,
    pub starts_at: Option<Timestamp>,
    pub ends_at: Option<Timestamp>,
    /// Whether those who joined before the start take part in a draw.
    pub draw: Option<DrawSettings>,
    /// Tickets are shuffled within windows of this many; 1 is strict first come, first served.
    pub shuffle_window: u32,
    pub public_board: PublicBoardMode,
    /// Whether people inside stay inside during maintenance.
    pub keep_inside: bool,
    /// Whether the shop's name for a user is stored (sealed) and published with events.
    pub keep_user_id: bool,
    /// Other sites whose pages may talk to this room, as `scheme://host[:port]`, or "*" for all;
    /// none means pages of the room's own host only. The core does not look at it.
    pub allowed_origins: Vec<String>,
    /// How often a waiting client is asked to show that it is there; 0 leaves it to the server,
    /// which knows the crowd. The core does not look at it.
    pub heartbeat_interval: Millis,
    /// What every visitor is told, without stopping anything; empty tells nothing. The core does
    /// not look at it.
    pub message: String,
    /// The looks of the room's waiting page: colours, logo, texts, as a JSON document; empty is
    /// the usual ones. The core does not look at it.
    pub theme: String,
    /// What stands around the waiting page, Mustache-like; empty is nothing. The core does not
    /// look at it.
    pub template: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaneSettings {
    pub name: String,
    /// Share of admissions among the lanes in which somebody waits. A lane of weight 0 is served
    /// when no other lane has anybody.
    pub weight: u32,
}

/// The lane `returning`: a capped share of admissions for people who lost their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Returning {
    /// Percent of admissions while others wait too.
    pub share: u32,
    /// How long after the end of the old ticket its credit lasts. A ticket gives one credit, and a
    /// returned ticket gives none, so nobody can go round for ever.
    pub within: Millis,
}

/// So many admissions per so much time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    pub count: u32,
    pub per: Millis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimMode {
    /// The visitor exchanges the admitted ticket for a pass.
    Explicit,
    /// One event admits and claims.
    OnAdmission,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoShow {
    /// The admission counts; the pace stays what it was.
    Keep,
    /// The bucket gets its token back, never above the burst.
    Return,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrawSettings {
    /// The public beacon round that enters the draw, such as `drand:quicknet:1234567`.
    pub beacon: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PublicBoardMode {
    /// Positions can be worked out, the queue's length is public.
    Full,
    /// Positions can be worked out, lengths beyond the front are rounded.
    Coarse,
    /// No public board; the server answers each visitor itself.
    Off,
}

/// One thing that cannot be: which field, what was found, and what would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invalid {
    pub field: String,
    pub found: String,
    pub bound: String,
}

/// No lane needs more: a priority nobody can explain is none.
pub const LANES_MAX: usize = 16;
pub const WEIGHT_MAX: u32 = 1_000;
/// A million a second is above what a room's writer admits; a larger figure is a mistyped unit.
pub const RATE_PER_SECOND_MAX: u64 = 1_000_000;
pub const ACTIVE_MAX: u64 = 10_000_000;
pub const WAITING_MAX: u64 = 1 << 40;
/// Seeds are kept per window, so tiny windows would cost more than the tickets in them.
pub const SHUFFLE_WINDOW_MIN: u32 = 16;
pub const SHUFFLE_WINDOW_MAX: u32 = 65_536;
pub const TEXT_MAX: usize = 2_048;
/// Read on a phone, above the place in line: longer is not read.
pub const MESSAGE_MAX: usize = 500;
/// A theme's logo may be inside it; every waiting page carries both, so neither may grow large.
const LOOKS_BYTES_MAX: usize = 32 << 10;
pub const METADATA_MAX: usize = 1_024;
pub const SEALED_USER_MAX: usize = 512;
pub const TICK_MIN: Millis = Millis(20);
pub const TICK_MAX: Millis = Millis::from_secs(10);
pub const HEARTBEAT_MIN: Millis = Millis::from_secs(3);
/// Asking more often than once a second is a load test, not a sign of life.
pub const HEARTBEAT_INTERVAL_MIN: Millis = Millis(1_000);
/// Looked through for every request of another site's page; a longer list is one for a proxy.
pub const ORIGINS_MAX: usize = 32;
/// A year: longer spans are mistyped units, and record times hold 34 years.
pub const SPAN_MAX: Millis = Millis::from_secs(366 * 24 * 3600);

impl Default for Settings {
    fn default() -> Self {
        Settings {
            title: String::new(),
            target_url: "/".into(),
            lanes: vec![LaneSettings { name: "main".into(), weight: 1 }],
            returning: None,
            max_active: 1_000,
            max_waiting: 0,
            rate: Some(Rate { count: 10, per: Millis(1_000) }),
            burst: None,
            tick: Millis(200),
            queue_all: false,
            claim: ClaimMode::Explicit,
            claim_within: Millis::from_secs(90),
            session_timeout: Millis::from_secs(600),
            session_renewal: true,
            pass_life: Millis(0),
            pass_leeway: Millis::from_secs(5),
            heartbeat_timeout: Millis::from_secs(120),
            ticket_life: Millis(0),
            memory: Millis::from_secs(3600),
            no_show: NoShow::Keep,
            opens_at: None,
            starts_at: None,
            ends_at: None,
            draw: None,
            shuffle_window: 1,
            public_board: PublicBoardMode::Full,
            keep_inside: true,
            keep_user_id: false,
            allowed_origins: Vec::new(),
            heartbeat_interval: Millis(0),
            message: String::new(),
            theme: String::new(),
            template: String::new(),
        }
    }
}

impl Settings {
    /// Every mistake at once, so that nobody fixes a file one error at a time.
    pub fn check(&self) -> Result<(), Vec<Invalid>> {
        let mut wrong = Vec::new();
        self.check_lanes(&mut wrong);
        self.check_admission(&mut wrong);
        self.check_spans(&mut wrong);
        self.check_schedule(&mut wrong);
        self.check_origins(&mut wrong);
        for (field, text) in [("title", &self.title), ("target_url", &self.target_url)] {
            if text.len() > TEXT_MAX {
                bad(&mut wrong, field, text.len(), format!("at most {TEXT_MAX} bytes"));
            }
        }
        for (name, text) in [("theme", &self.theme), ("template", &self.template)] {
            if text.len() > LOOKS_BYTES_MAX {
                bad(&mut wrong, name, text.len(), format!("at most {LOOKS_BYTES_MAX} bytes"));
            }
        }
        let letters = self.message.chars().count();
        if letters > MESSAGE_MAX {
            bad(&mut wrong, "message", letters, format!("at most {MESSAGE_MAX} letters"));
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    pub fn lane(&self, lane: LaneId) -> bool {
        (lane.0 as usize) < self.lanes.len()
            || (lane == LaneId::RETURNING && self.returning.is_some())
    }

    fn check_lanes(&self, wrong: &mut Vec<Invalid>) {
        if self.lanes.is_empty() || self.lanes.len() > LANES_MAX {
            bad(wrong, "lanes", self.lanes.len(), format!("1 to {LANES_MAX} lanes"));
        }
        if !self.lanes.is_empty() && self.lanes.iter().all(|lane| lane.weight == 0) {
            bad(wrong, "lanes.weight", "all 0", "at least one lane with a weight above 0");
        }
        for (i, lane) in self.lanes.iter().enumerate() {
            if lane.weight > WEIGHT_MAX {
                let field = format!("lanes[{i}].weight");
                bad(wrong, &field, lane.weight, format!("0 to {WEIGHT_MAX}"));
            }
            if lane.name.is_empty() || lane.name.len() > 64 || lane.name == "returning" {
                let field = format!("lanes[{i}].name");
                bad(wrong, &field, format!("{:?}", lane.name), "1 to 64 bytes, not \"returning\"");
            }
            if self.lanes[..i].iter().any(|other| other.name == lane.name) {
                let field = format!("lanes[{i}].name");
                bad(wrong, &field, format!("{:?}", lane.name), "a name no other lane has");
            }
        }
        if let Some(returning) = self.returning {
            if !(1..=90).contains(&returning.share) {
                bad(wrong, "returning.share", returning.share, "1 to 90 percent");
            }
            span(wrong, "returning.within", returning.within, Millis(1_000), self.memory);
        }
    }

    fn check_admission(&self, wrong: &mut Vec<Invalid>) {
        if self.max_active == 0 || self.max_active > ACTIVE_MAX {
            bad(wrong, "max_active", self.max_active, format!("1 to {ACTIVE_MAX}"));
        }
        if self.max_waiting > WAITING_MAX {
            bad(wrong, "max_waiting", self.max_waiting, format!("0 to {WAITING_MAX}"));
        }
        if let Some(rate) = self.rate {
            if rate.count == 0 {
                bad(wrong, "rate.count", 0, "1 or more; leave the rate out for manual admits only");
            }
            if !(1..=3_600_000).contains(&rate.per.0) {
                bad(wrong, "rate.per", ms(rate.per), "1ms to 1h");
            } else if rate.count as u64 * 1_000 / rate.per.0 > RATE_PER_SECOND_MAX {
                let bound = format!("at most {RATE_PER_SECOND_MAX} a second");
                bad(wrong, "rate", format!("{} per {}", rate.count, ms(rate.per)), bound);
            }
        }
        if let Some(burst) = self.burst
            && !(1..=1_000_000).contains(&burst)
        {
            bad(wrong, "burst", burst, "1 to 1000000");
        }
        span(wrong, "tick", self.tick, TICK_MIN, TICK_MAX);
        let window = self.shuffle_window;
        if window != 1 && !(SHUFFLE_WINDOW_MIN..=SHUFFLE_WINDOW_MAX).contains(&window) {
            let bound = format!("1, or {SHUFFLE_WINDOW_MIN} to {SHUFFLE_WINDOW_MAX}");
            bad(wrong, "shuffle_window", window, bound);
        }
    }

    fn check_spans(&self, wrong: &mut Vec<Invalid>) {
        let second = Millis(1_000);
        span(wrong, "claim_within", self.claim_within, second, SPAN_MAX);
        span(wrong, "session_timeout", self.session_timeout, second, SPAN_MAX);
        span(wrong, "heartbeat_timeout", self.heartbeat_timeout, HEARTBEAT_MIN, SPAN_MAX);
        span(wrong, "memory", self.memory, crate::forget::KEY_MEMORY, SPAN_MAX);
        span(wrong, "pass_leeway", self.pass_leeway, Millis(0), Millis::from_secs(300));
        if self.pass_life != Millis(0) {
            span(wrong, "pass_life", self.pass_life, second, self.session_timeout);
        }
        if self.ticket_life != Millis(0) {
            span(wrong, "ticket_life", self.ticket_life, self.heartbeat_timeout, SPAN_MAX);
        }
        // Whoever shows up exactly as often as asked must never be taken for gone.
        let interval = self.heartbeat_interval;
        if interval != Millis(0)
            && !(HEARTBEAT_INTERVAL_MIN..self.heartbeat_timeout).contains(&interval)
        {
            let (min, timeout) = (ms(HEARTBEAT_INTERVAL_MIN), ms(self.heartbeat_timeout));
            let bound = format!("0, or {min} to less than heartbeat_timeout ({timeout})");
            bad(wrong, "heartbeat_interval", ms(interval), bound);
        }
    }

    fn check_schedule(&self, wrong: &mut Vec<Invalid>) {
        if let (Some(opens), Some(starts)) = (self.opens_at, self.starts_at)
            && starts < opens
        {
            bad(wrong, "starts_at", starts.0, format!("not before opens_at ({})", opens.0));
        }
        let begins = self.starts_at.or(self.opens_at);
        if let (Some(begins), Some(ends)) = (begins, self.ends_at)
            && ends <= begins
        {
            bad(wrong, "ends_at", ends.0, format!("after the start ({})", begins.0));
        }
        if let Some(draw) = &self.draw {
            if self.starts_at.is_none() {
                bad(wrong, "draw", "no starts_at", "a draw needs starts_at, the moment it closes");
            }
            if draw.beacon.as_ref().is_some_and(|beacon| beacon.is_empty() || beacon.len() > 256) {
                bad(wrong, "draw.beacon", "empty or too long", "1 to 256 bytes");
            }
        }
    }

    fn check_origins(&self, wrong: &mut Vec<Invalid>) {
        let origins = &self.allowed_origins;
        if origins.len() > ORIGINS_MAX {
            bad(wrong, "allowed_origins", origins.len(), format!("at most {ORIGINS_MAX}"));
        }
        for (i, origin) in origins.iter().enumerate() {
            if !is_origin(origin) {
                let field = format!("allowed_origins[{i}]");
                let shown: String = origin.chars().take(80).collect();
                let bound =
                    "\"https://shop.example\", with a port if it has one, without a path; or \"*\"";
                bad(wrong, &field, format!("{shown:?}"), bound);
            }
        }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} does not fit; allowed: {}", self.field, self.found, self.bound)
    }
}

pub(crate) fn bad(
    wrong: &mut Vec<Invalid>,
    field: &str,
    found: impl fmt::Display,
    bound: impl Into<String>,
) {
    wrong.push(Invalid { field: field.into(), found: found.to_string(), bound: bound.into() });
}

fn span(wrong: &mut Vec<Invalid>, field: &str, value: Millis, min: Millis, max: Millis) {
    if value < min || value > max {
        bad(wrong, field, ms(value), format!("{} to {}", ms(min), ms(max)));
    }
}

fn ms(span: Millis) -> String {
    match span.0 {
        0 => "0".into(),
        n if n % 1_000 == 0 => format!("{}s", n / 1_000),
        n => format!("{n}ms"),
    }
}

/// Whether a browser could ever send this as `Origin`, letter for letter: lower case, no path, no
/// user, no default port written out. What no browser sends would silently allow nobody.
fn is_origin(text: &str) -> bool {
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let default_port = match scheme {
        "https" => "443",
        "http" => "80",
        _ => return false,
    };
    // The colons of an IPv6 address stand in brackets.
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (rest, None),
    };
    let port_fits = port.is_none_or(|port| {
        port != default_port
            && !port.starts_with('0')
            && port.bytes().all(|byte| byte.is_ascii_digit())
            && port.parse::<u16>().is_ok()
    });
    port_fits && is_host(host)
}

fn is_host(host: &str) -> bool {
    if let Some(address) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address.parse::<std::net::Ipv6Addr>().is_ok_and(|it| it.to_string() == address);
    }
    let is_label = |label: &str| {
        let fits = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
        (1..=63).contains(&label.len()) && label.bytes().all(fits)
    };
    host.len() <= 253 && host.split('.').all(is_label)
}
