//! How long a visitor will wait, said as an interval that holds four times out of five.
//!
//! Lives here: what the room has learned from counts (how fast people enter, how long sessions
//! last, how readily people give up at which age of their wait), the projection made from it, and
//! the calibration that turns the projection into an interval.
//! Stays out: the room's decisions. Nothing here is in the digest, the log or a snapshot; a new
//! owner starts without it and says so (`Unknown`) until it has learned enough. Floats are fine
//! for that reason. Clocks and randomness stay out as everywhere in `core`.
//!
//! # How it works
//!
//! 1. [`line`]: each lane is cut into at most [`line::COHORTS_MAX`] cohorts of neighbours, each
//!    with its age and how many of it still wait. The last ticket of a cohort is a probe.
//! 2. [`giving_up`] and [`inside`]: departures over time waited, and slots returned over time held,
//!    each by age ([`ageing`]). The first is most of what makes a long line move faster than the
//!    rate alone, the second sets the pace where slots are short.
//! 3. [`pace`]: how many enter per second: the limit, or slots coming back, corrected by what was
//!    really seen while people were waiting.
//! 4. [`projection`]: walks all lanes forward together and notes when the front reaches whom;
//!    three times, to see how much hangs on what is not known yet.
//! 5. [`calibration`]: estimates recorded for the probes are held against the moment the front
//!    passed them. The quantiles of that error are the interval. So its width is what the error
//!    has been, whatever the visitors do.
//!
//! A probe needs no living ticket: the moment the front passes a place is the moment whoever
//! stands there enters, also if that one visitor has left. So nobody is followed, and those who
//! stay and those who leave do not bias each other.
//!
//! Noting costs O(1), a departure or a returned slot O(log cohorts); once a second of room time
//! the projection is made again, a fraction of a millisecond; asking costs O(log). A busy lane
//! keeps about 100 KB, an idle one next to nothing.
//!
//! The numbers in this folder were chosen by rehearsing sales of many sizes and behaviours
//! (docs/rehearsal.md tells how well they do); `crates/sim/tests/rehearsal_estimates.rs` holds
//! them to it.
//!
//! To learn from another kind of fact, add a `note_…` here and give it to the part that uses it.
//! Start reading at [`Estimator::estimate`].

mod ageing;
mod calibration;
mod giving_up;
mod inside;
mod line;
mod pace;
mod projection;

use calibration::Calibration;
use giving_up::GivingUp;
use inside::Inside;
use line::Line;
use pace::Pace;
use projection::Projection;

/// How often the projection is made again. Positions move every tick, but what was learned
/// changes over seconds; a second keeps the work far below a thousandth of a core per room.
const REFRESH_MS: u64 = 1_000;

/// No interval is said wider than this many times its likely value.
const WIDTH_MAX: f64 = 2.0;

/// One that would have to be wider than this tells a visitor nothing and is not said at all.
const WIDTH_GIVEN_UP: f64 = 4.0;

/// The answer: four of five visitors with this answer wait between `low_ms` and `high_ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    pub low_ms: u64,
    pub likely_ms: u64,
    pub high_ms: u64,
}

/// Why there is no interval. The visitor is shown the reason, not an invented number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// The sale has not started; nobody is let in yet.
    NotStarted,
    /// An operator has paused the room or holds it.
    Paused,
    /// The sale has ended or is sold out: nobody will be let in any more.
    Closed,
    /// Nothing limits the room and nothing was measured yet, or the lane is not known.
    NoData,
    /// At the present pace the place is not reached within [`projection::HORIZON_MS`].
    TooFar,
    /// The outcomes of like estimates were spread too widely for an interval to help.
    TooWide,
}

impl Unknown {
    /// The stable word for `wait_unknown_because`.
    pub fn code(self) -> &'static str {
        match self {
            Unknown::NotStarted => "not_started",
            Unknown::Paused => "paused",
            Unknown::Closed => "closed",
            Unknown::NoData => "no_data",
            Unknown::TooFar => "too_far",
            Unknown::TooWide => "too_wide",
        }
    }
}

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
    /// The weight of each lane, by lane number.
    pub weights: Vec<u32>,
}

/// How a waiting ticket went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// The visitor said so.
    Left,
    /// Silent for longer than the heartbeat allows.
    Lapsed,
}

/// `admissions` every `per_ms` milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    pub admissions: u64,
    pub per_ms: u64,
}

impl Rate {
    fn per_one_ms(self) -> f64 {
        self.admissions as f64 / self.per_ms.max(1) as f64
    }
}

/// Learns from counts and answers how long somebody will wait. See the top of the file.
#[derive(Clone, Debug)]
pub struct Estimator {
    tick_ms: u64,
    settings: Settings,
    lines: Vec<Line>,
    giving_up: GivingUp,
    inside: Inside,
    pace: Pace,
    projection: Projection,
    /// By lane: lanes of unlike weight err unlike.
    calibrations: Vec<Calibration>,
    refreshed_at: Option<u64>,
}

impl Estimator {
    /// An estimator that has seen nothing. `tick_ms` is how often the room admits: no estimate
    /// can be finer than that.
    pub fn new(tick_ms: u64, settings: Settings) -> Self {
        let lanes = settings.weights.len();
        Estimator {
            tick_ms: tick_ms.max(1),
            settings,
            lines: (0..lanes).map(|_| Line::new()).collect(),
            giving_up: GivingUp::new(),
            inside: Inside::new(),
            pace: Pace::new(),
            projection: Projection::default(),
            calibrations: vec![Calibration::new(tick_ms.max(1)); lanes],
            refreshed_at: None,
        }
    }

    /// The settings changed. What was learned about visitors stays; open probes do not, because
    /// their estimates were made for other settings and would blame the calibration for it.
    pub fn note_settings(&mut self, at: u64, settings: Settings) {
        if settings == self.settings {
            return;
        }
        self.settings = settings;
        while self.lines.len() < self.settings.weights.len() {
            self.lines.push(Line::new());
            self.calibrations.push(Calibration::new(self.tick_ms));
        }
        for line in &mut self.lines {
            line.forget_asks();
        }
        self.refresh(at);
    }

    /// `n` tickets joined at the end of `lane`.
    pub fn note_joined(&mut self, at: u64, lane: u8, n: u64) {
        if let Some(line) = self.lines.get_mut(usize::from(lane)) {
            line.joined(at, n);
        }
    }

    /// `n` tickets of `lane` were admitted; everyone before `next_order` is now out of the line.
    pub fn note_admitted(&mut self, at: u64, lane: u8, n: u64, next_order: u64) {
        let lane = usize::from(lane);
        if let (Some(line), Some(calibration)) =
            (self.lines.get_mut(lane), self.calibrations.get_mut(lane))
        {
            line.admitted(n, next_order, |ask| calibration.resolved(at, ask));
        }
        self.pace.admitted(n);
        self.inside.entered(at, n);
    }

    /// The ticket at `order` of `lane` left or lapsed while waiting.
    pub fn note_departed(&mut self, at: u64, lane: u8, order: u64, how: Departure) {
        if let Some(line) = self.lines.get_mut(usize::from(lane))
            && let Some(joined_at) = line.departed(order)
        {
            let age_ms = at.saturating_sub(joined_at);
            self.giving_up.departed(age_ms, how, self.settings.heartbeat_timeout_ms);
        }
    }

    /// A slot taken at `admitted_at` came back: a session ended, or a claim ran out.
    pub fn note_freed(&mut self, at: u64, admitted_at: u64) {
        self.inside.freed(at, admitted_at);
    }

    /// The line of `lane` was put in a new order (a draw). Ages are mixed from here on.
    pub fn note_drawn(&mut self, at: u64, lane: u8) {
        if let Some(line) = self.lines.get_mut(usize::from(lane)) {
            line.drawn();
        }
        self.refresh(at);
    }

    /// Time has passed; call it at least once a tick. Makes the projection anew when it is due.
    pub fn advance(&mut self, at: u64) {
        if self.refreshed_at.is_none_or(|last| at >= last + REFRESH_MS) {
            self.refresh(at);
        }
    }

    /// The wait of somebody in `lane` with `ahead` people before them.
    pub fn estimate(&self, ahead: u64, lane: u8) -> Result<Interval, Unknown> {
        match self.settings.doors {
            Doors::Open => {}
            Doors::NotStarted => return Err(Unknown::NotStarted),
            Doors::Paused => return Err(Unknown::Paused),
            Doors::Closed => return Err(Unknown::Closed),
        }
        let calibration = self.calibrations.get(usize::from(lane)).ok_or(Unknown::NoData)?;
        calibration.interval(self.projection.wait(ahead, lane)?)
    }

    fn refresh(&mut self, at: u64) {
        let passed_ms = self.refreshed_at.map_or(0, |last| at.saturating_sub(last));
        self.refreshed_at = Some(at);
        let open = self.settings.doors == Doors::Open;
        let waiting: u64 = self.lines.iter().map(Line::waiting).sum();
        let lapse_after_ms = self.settings.heartbeat_timeout_ms;
        self.giving_up.decay(passed_ms);
        for line in &mut self.lines {
            line.pass(passed_ms);
            for cohort in line.cohorts() {
                let age_ms = at.saturating_sub(cohort.joined_at);
                self.giving_up.exposed(age_ms, cohort.waiting, passed_ms, lapse_after_ms);
            }
        }
        self.inside.pass(at, passed_ms);
        let free = self.settings.max_active.is_none_or(|max| self.inside.active() < max);
        self.pace.pass(passed_ms, open && free, waiting, &self.settings);
        if !open {
            return;
        }
        let (giving_up, pace, inside) = (&self.giving_up, &self.pace, &self.inside);
        let settings = &self.settings;
        self.projection = Projection::make(at, self.tick_ms, settings, &self.lines, |lean| {
            (giving_up.staying(lean, lapse_after_ms), pace.ahead(at, settings, inside, lean))
        });
        let projection = &self.projection;
        for (lane, (line, calibration)) in
            self.lines.iter_mut().zip(&mut self.calibrations).enumerate()
        {
            line.look(|ahead, asks| {
                if let Ok(projected) = projection.wait(ahead, lane as u8) {
                    calibration.look(at, projected, asks);
                }
            });
            calibration.refresh(passed_ms);
        }
    }
}
