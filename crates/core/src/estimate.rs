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
//! Whoever answers visitors holds an [`Outlook`]: what the newest projection and calibration say,
//! immutable, without anything that is needed only to learn.
//!
//! To learn from another kind of fact, add a `note_…` here and give it to the part that uses it.
//! Start reading at [`Outlook::estimate`].

mod ageing;
mod calibration;
mod giving_up;
mod inside;
mod line;
mod outlook;
mod pace;
mod projection;
mod settings;

pub use outlook::Outlook;
pub use settings::{Departure, Doors, LanePart, Rate, Settings, Takes};

use calibration::Calibration;
use giving_up::GivingUp;
use inside::Inside;
use line::Line;
use pace::Pace;
use projection::Projection;
use std::sync::Arc;

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

/// People who wait next to each other, for [`Estimator::note_line`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The first order behind them.
    pub end: u64,
    pub waiting: u64,
    /// When they joined, about.
    pub joined_at: u64,
}

/// Learns from counts and answers how long somebody will wait. See the top of the file.
#[derive(Clone, Debug)]
pub struct Estimator {
    tick_ms: u64,
    settings: Settings,
    rows: Vec<Row>,
    giving_up: GivingUp,
    inside: Inside,
    pace: Pace,
    projection: Arc<Projection>,
    refreshed_at: Option<u64>,
}

/// A lane: its people, and how estimates for them came out. Lanes of unlike weight err unlike.
#[derive(Clone, Debug)]
struct Row {
    lane: u8,
    takes: Takes,
    line: Line,
    calibration: Calibration,
}

impl Estimator {
    /// An estimator that has seen nothing. `tick_ms` is how often the room admits: no estimate
    /// can be finer than that.
    pub fn new(tick_ms: u64, settings: Settings) -> Self {
        let mut estimator = Estimator {
            tick_ms: tick_ms.max(1),
            settings,
            rows: Vec::new(),
            giving_up: GivingUp::new(),
            inside: Inside::new(),
            pace: Pace::new(),
            projection: Arc::default(),
            refreshed_at: None,
        };
        estimator.take_parts();
        estimator
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The settings changed. What was learned about visitors stays; open probes do not, because
    /// their estimates were made for other settings and would blame the calibration for it.
    pub fn note_settings(&mut self, at: u64, settings: Settings) {
        if settings == self.settings {
            return;
        }
        self.settings = settings;
        self.take_parts();
        for row in &mut self.rows {
            row.line.forget_asks();
        }
        self.refresh(at);
    }

    /// The line of `lane` as it stands, in place of what was noted of it: `orders` were given out,
    /// and these still wait, from the front. For a room that was not watched until now.
    pub fn note_line(&mut self, lane: u8, orders: u64, row: impl IntoIterator<Item = Stretch>) {
        if let Some(known) = self.row(lane) {
            known.line = Line::found(orders, row);
        }
    }

    /// `n` tickets joined at the end of `lane`.
    pub fn note_joined(&mut self, at: u64, lane: u8, n: u64) {
        if let Some(row) = self.row(lane) {
            row.line.joined(at, n);
        }
    }

    /// `n` tickets of `lane` were admitted; everyone before `next_order` is now out of the line.
    pub fn note_admitted(&mut self, at: u64, lane: u8, n: u64, next_order: u64) {
        if let Some(Row { line, calibration, .. }) = self.row(lane) {
            line.admitted(n, next_order, |ask| calibration.resolved(at, ask));
        }
        self.pace.admitted(n);
        self.inside.entered(at, n);
    }

    /// The ticket at `order` of `lane` left or lapsed while waiting.
    pub fn note_departed(&mut self, at: u64, lane: u8, order: u64, how: Departure) {
        if let Some(row) = self.row(lane)
            && let Some(joined_at) = row.line.departed(order)
        {
            let age_ms = at.saturating_sub(joined_at);
            self.giving_up.departed(age_ms, how, self.settings.heartbeat_timeout_ms);
        }
    }

    /// `n` people hold slots since `admitted_at`; earlier ones are noted first. For those who were
    /// inside before the room was watched.
    pub fn note_inside(&mut self, admitted_at: u64, n: u64) {
        self.inside.entered(admitted_at, n);
    }

    /// A slot taken at `admitted_at` came back: a session ended, or a claim ran out.
    pub fn note_freed(&mut self, at: u64, admitted_at: u64) {
        self.inside.freed(at, admitted_at);
    }

    /// The line of `lane` was put in a new order (a draw). Ages are mixed from here on.
    pub fn note_drawn(&mut self, at: u64, lane: u8) {
        if let Some(row) = self.row(lane) {
            row.line.drawn();
        }
        self.refresh(at);
    }

    /// Makes the projection anew although it is not due.
    pub fn look_again(&mut self, at: u64) {
        self.refresh(at);
    }

    /// Time has passed; call it at least once a tick while people wait. Makes the projection anew
    /// when it is due, and says whether it did.
    pub fn advance(&mut self, at: u64) -> bool {
        let due = self.next_refresh().is_none_or(|due| at >= due);
        if due {
            self.refresh(at);
        }
        due
    }

    /// When the projection is due to be made again; none before the first.
    pub fn next_refresh(&self) -> Option<u64> {
        self.refreshed_at.map(|last| last + REFRESH_MS)
    }

    /// How many wait in `lane`, as far as was noted.
    pub fn waiting(&self, lane: u8) -> u64 {
        self.rows.iter().find(|row| row.lane == lane).map_or(0, |row| row.line.waiting())
    }

    /// The wait of somebody in `lane` with `ahead` people before them.
    pub fn estimate(&self, ahead: u64, lane: u8) -> Result<Interval, Unknown> {
        let voices = self.rows.iter().map(|row| (row.lane, row.calibration.voice()));
        outlook::estimate(self.settings.doors, &self.projection, voices, ahead, lane)
    }

    /// All that is needed to answer, without what is needed to learn.
    pub fn outlook(&self) -> Outlook {
        let voices = self.rows.iter().map(|row| (row.lane, row.calibration.voice().clone()));
        Outlook::new(self.settings.doors, self.projection.clone(), voices.collect())
    }

    fn row(&mut self, lane: u8) -> Option<&mut Row> {
        self.rows.iter_mut().find(|row| row.lane == lane)
    }

    /// Takes over what the settings say of lanes. Rows stay where they are, also those of lanes
    /// that are not mentioned any more: there may still be people in them.
    fn take_parts(&mut self) {
        for row in &mut self.rows {
            row.takes = Takes::Weight(0);
        }
        for &LanePart { lane, takes } in &self.settings.lanes {
            match self.rows.iter_mut().find(|row| row.lane == lane) {
                Some(row) => row.takes = takes,
                None => {
                    let calibration = Calibration::new(self.tick_ms);
                    self.rows.push(Row { lane, takes, line: Line::new(), calibration });
                }
            }
        }
    }

    fn refresh(&mut self, at: u64) {
        let passed_ms = self.refreshed_at.map_or(0, |last| at.saturating_sub(last));
        self.refreshed_at = Some(at);
        let open = self.settings.doors == Doors::Open;
        let waiting: u64 = self.rows.iter().map(|row| row.line.waiting()).sum();
        let lapse_after_ms = self.settings.heartbeat_timeout_ms;
        self.giving_up.decay(passed_ms);
        for row in &mut self.rows {
            row.line.pass(passed_ms);
            for cohort in row.line.cohorts() {
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
        let lines: Vec<(Takes, &Line)> =
            self.rows.iter().map(|row| (row.takes, &row.line)).collect();
        let projection = Projection::make(at, self.tick_ms, &lines, |lean| {
            (giving_up.staying(lean, lapse_after_ms), pace.ahead(at, settings, inside, lean))
        });
        for (i, Row { line, calibration, .. }) in self.rows.iter_mut().enumerate() {
            line.look(|ahead, asks| {
                if let Ok(projected) = projection.wait(ahead, i) {
                    calibration.look(at, projected, asks);
                }
            });
            calibration.refresh(passed_ms);
        }
        self.projection = Arc::new(projection);
    }
}
