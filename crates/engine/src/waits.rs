//! How long people will wait, learned from the events as they are made.
//!
//! Lives here: the feed of the estimator (`waitroom_core::estimate`) of one room, and the
//! [`Outlook`] that comes of it. Whether intervals hold is measured in `told.rs`.
//! Stays out: decisions. Nothing here is in the log, the digest or a snapshot, and nothing here is
//! looked at when a command is decided; a room without it decides the same. A new owner begins
//! with the line as it stands and says "unknown" until it has learned enough.
//!
//! The writer shows every event before it absorbs it ([`Waits::note`]), which costs a join a
//! comparison and an addition; runs are counted and told to the estimator together. Once per round
//! [`Waits::advance`] does the rest. A room is watched only while somebody waits or slots are
//! getting short, and until it is empty again: an idle room has no estimator and no timer.
//! To learn from another event, add an arm to [`Watch::note`].

mod told;

use std::sync::Arc;
pub use told::Judged;
use told::Told;
use waitroom_core::estimate::{
    self, Departure, Doors, Estimator, Interval, LanePart, Takes, Unknown,
};
use waitroom_core::{
    Ending, Event, Hold, LaneId, Phase, Room, State, Status, Ticket, Timestamp, What,
};

/// Stretches in which a line is taken over that was there before. As many as the estimator makes
/// of a line that it saw grow.
const STRETCHES: u64 = 128;

/// Slots that are looked at when the watch begins: enough for a sense of their ages, and well
/// under a millisecond of the writer's time.
const SLOTS_SAMPLED: u64 = 16_384;

/// What a room can tell its visitors of their waits. Made at most once a second, and when the
/// doors open or close; immutable, so that any thread may ask.
#[derive(Clone, Debug)]
pub struct Outlook {
    waits: estimate::Outlook,
    judged: Judged,
}

impl Outlook {
    pub(crate) fn unknown(doors: Doors) -> Outlook {
        Outlook { waits: estimate::Outlook::unknown(doors), judged: Judged::default() }
    }

    /// The wait of somebody in `lane` with `ahead` people before them; or why nothing is said.
    pub fn estimate(&self, ahead: u64, lane: u8) -> Result<Interval, Unknown> {
        self.waits.estimate(ahead, lane)
    }

    /// Of a sample of those admitted in this tenure: for how many the interval held that they
    /// could have read at some moment of their wait, and of how many. None before the first.
    pub fn coverage(&self) -> Option<(u64, u64)> {
        let Judged { held, told, .. } = self.judged;
        (told > 0).then_some((held, told))
    }

    /// The same, and how far likely waits were from real ones.
    pub fn judged(&self) -> &Judged {
        &self.judged
    }
}

/// The same watch beside a room that has no writer: the rehearsal shows it every event, and so
/// learns what a live room would have measured.
#[derive(Debug, Default)]
pub struct Onlooker(Waits);

impl Onlooker {
    /// An event that is about to be absorbed.
    pub fn note(&mut self, event: &Event, room: &Room) {
        self.0.note(event, room);
    }

    /// A round is over.
    pub fn advance(&mut self, at: Timestamp, room: &Room) -> Option<Outlook> {
        self.0.advance(at, room)
    }
}

/// The watch over one room, if there is anything to watch.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    watch: Option<Box<Watch>>,
    told: Told,
    /// Whether settings or doors may have changed since the last round. What the room tells before
    /// the first round is [`Outlook::unknown`].
    changed: bool,
}

#[derive(Debug)]
struct Watch {
    estimator: Estimator,
    tick_ms: u64,
    /// Joins of one lane in a row that the estimator does not know of yet.
    joined: Run,
    /// Admissions of this round by lane.
    admitted: Vec<(LaneId, u64)>,
    /// The lines are not what they were: a draw, the end of the sale.
    redrawn: bool,
    /// Whether somebody waited at the end of the last round.
    waiting: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Run {
    at: Timestamp,
    lane: LaneId,
    count: u64,
}

impl Waits {
    /// An event that is about to be absorbed.
    #[inline]
    pub(crate) fn note(&mut self, event: &Event, room: &Room) {
        match &event.what {
            What::Joined(joined) => {
                if let Some(watch) = &mut self.watch {
                    watch.joined(event.at, joined.ticket.lane);
                }
            }
            _ => self.note_rare(event, room),
        }
    }

    fn note_rare(&mut self, event: &Event, room: &Room) {
        self.changed |= matches!(
            event.what,
            What::Opened { .. }
                | What::Configured { .. }
                | What::Held { .. }
                | What::Resumed { .. }
                | What::DoorsOpened
                | What::SaleStarted
                | What::SaleEnded { .. }
                | What::Reopened { .. }
                | What::DrawClosed { .. }
                | What::Drawn { .. }
        );
        if let Some(watch) = &mut self.watch {
            watch.note(event, room);
        }
    }

    /// A round is over: what was noted is taken up, and what is due is projected again. Returns
    /// an outlook when there is a new one.
    pub(crate) fn advance(&mut self, at: Timestamp, room: &Room) -> Option<Outlook> {
        let state = room.state();
        let changed = std::mem::take(&mut self.changed);
        if self.watch.is_none() && worth_watching(state) {
            self.watch = Watch::begin(room).map(Box::new);
            self.told.forget();
        } else if self.watch.is_none() {
            return changed.then(|| self.outlook(state));
        }
        let fresh = match &mut self.watch {
            Some(watch) => watch.advance(at, room, changed, &mut self.told),
            None => false,
        };
        if state.waiting() == 0 && state.slots_taken() == 0 {
            self.watch = None;
            return Some(self.outlook(state));
        }
        fresh.then(|| self.outlook(state))
    }

    /// When to advance if nothing happens; none while nobody waits.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        let watch = self.watch.as_ref().filter(|watch| watch.waiting)?;
        watch.estimator.next_refresh().map(Timestamp)
    }

    fn outlook(&self, state: &State) -> Outlook {
        let waits = match &self.watch {
            Some(watch) => watch.estimator.outlook(),
            None => estimate::Outlook::unknown(doors(state)),
        };
        Outlook { waits, judged: self.told.judged() }
    }
}

impl Watch {
    /// Begins with the room as it stands. None before it has settings.
    fn begin(room: &Room) -> Option<Watch> {
        let state = room.state();
        let tick_ms = state.settings()?.tick.0;
        let mut watch = Watch {
            estimator: Estimator::new(tick_ms, settings(state)?),
            tick_ms,
            joined: Run::default(),
            admitted: Vec::new(),
            redrawn: false,
            waiting: false,
        };
        watch.take_over_lines(state);
        for (since, people) in room.inside_since(SLOTS_SAMPLED) {
            watch.estimator.note_inside(since.0, people);
        }
        Some(watch)
    }

    fn take_over_lines(&mut self, state: &State) {
        for lane in state.lane_ids() {
            let stretches = state.stretches(lane, STRETCHES);
            self.estimator.note_line(lane.0, state.issued(lane), stretches);
        }
    }

    #[inline]
    fn joined(&mut self, at: Timestamp, lane: LaneId) {
        if self.joined.at != at || self.joined.lane != lane {
            self.flush();
            self.joined = Run { at, lane, count: 0 };
        }
        self.joined.count += 1;
    }

    fn flush(&mut self) {
        let Run { at, lane, count } = std::mem::take(&mut self.joined);
        if count > 0 {
            self.estimator.note_joined(at.0, lane.0, count);
        }
    }

    fn note(&mut self, event: &Event, room: &Room) {
        let at = event.at;
        match &event.what {
            What::Admitted { ticket, .. } => {
                match self.admitted.iter_mut().find(|(lane, _)| *lane == ticket.lane) {
                    Some((_, count)) => *count += 1,
                    None => self.admitted.push((ticket.lane, 1)),
                }
            }
            What::Ended { ticket, was: Status::Waiting, ending, .. } => {
                let how = match ending {
                    Ending::Silent => Departure::Lapsed,
                    Ending::Revoked => Departure::TakenOut,
                    _ => Departure::Left,
                };
                self.departed(at, *ticket, how, room.state());
            }
            What::Ended { ticket, held_until: None, .. } | What::Released { ticket } => {
                if let Some(since) = room.slot_since(*ticket) {
                    self.estimator.note_freed(at.0, since.0);
                }
            }
            What::Moved { from, to, .. } => {
                self.departed(at, *from, Departure::TakenOut, room.state());
                self.joined(at, to.lane);
            }
            // With new settings may come new lanes, and people in them in this same round. A sealed
            // window mixes the orders of its people across stretches that were counted apart.
            What::SaleEnded { .. }
            | What::Drawn { .. }
            | What::Sealed { .. }
            | What::Configured { .. } => {
                self.redrawn = true;
            }
            _ => {}
        }
    }

    fn departed(&mut self, at: Timestamp, ticket: Ticket, how: Departure, state: &State) {
        // They may have joined a moment ago.
        self.flush();
        if let Some(order) = state.place(ticket) {
            self.estimator.note_departed(at.0, ticket.lane.0, order.0, how);
        }
    }

    fn advance(&mut self, at: Timestamp, room: &Room, changed: bool, told: &mut Told) -> bool {
        let state = room.state();
        self.flush();
        for (lane, count) in self.admitted.drain(..) {
            let front = state.front(lane);
            self.estimator.note_admitted(at.0, lane.0, count, front.0);
            told.admitted(at, lane, front, state);
        }
        if changed {
            self.change(at, room, told);
        }
        if std::mem::take(&mut self.redrawn) {
            self.take_over_lines(state);
            self.estimator.look_again(at.0);
            told.forget();
        }
        self.mend(state);
        self.waiting = state.waiting() > 0;
        let due = self.estimator.advance(at.0);
        if due {
            told.ask(at, self.tick_ms, state, &self.estimator);
        }
        due || changed
    }

    /// Settings or doors may have changed.
    fn change(&mut self, at: Timestamp, room: &Room, told: &mut Told) {
        let Some(settings) = settings(room.state()) else { return };
        if settings == *self.estimator.settings() {
            return;
        }
        // What was told before was told for other settings.
        told.forget();
        let tick = room.state().settings().map(|settings| settings.tick.0);
        match Watch::begin(room) {
            // All that was learned counts in ticks.
            Some(again) if tick != Some(self.tick_ms) => *self = again,
            _ => self.estimator.note_settings(at.0, settings),
        }
    }

    /// The feed counts as the room counts. Should it ever not, the line is taken over anew: a
    /// mistake here must not be told to visitors for the rest of a sale. The simulator is told.
    fn mend(&mut self, state: &State) {
        let noted = |lane: &LaneId| self.estimator.waiting(lane.0);
        let known = |lane: &LaneId| state.lane_counts(*lane).waiting;
        let strayed = state.lane_ids().any(|lane| noted(&lane) != known(&lane));
        debug_assert!(!strayed, "every event that changes a line is noted");
        if strayed {
            self.take_over_lines(state);
        }
    }
}

/// Whether somebody waits, or soon will: when a quarter of the slots are taken it is time to learn
/// how long people stay.
fn worth_watching(state: &State) -> bool {
    let many = |settings: &Arc<waitroom_core::Settings>| {
        state.slots_taken().saturating_mul(4) > settings.max_active
    };
    state.waiting() > 0 || state.settings().is_some_and(many)
}

fn doors(state: &State) -> Doors {
    match (state.phase(), state.hold()) {
        (Phase::Ended, _) => Doors::Closed,
        (_, Some(Hold::Paused { .. } | Hold::Maintenance { .. })) => Doors::Paused,
        (Phase::Scheduled | Phase::Doors | Phase::Drawing, Some(Hold::Draining { .. }) | None) => {
            Doors::NotStarted
        }
        (Phase::Running, Some(Hold::Draining { .. }) | None) => Doors::Open,
    }
}

/// The room's settings in the estimator's words.
fn settings(state: &State) -> Option<estimate::Settings> {
    let settings = state.settings()?;
    let rate = settings
        .rate
        .map(|rate| estimate::Rate { admissions: rate.count.into(), per_ms: rate.per.0 });
    let mut lanes = LanePart::weights(settings.lanes.iter().map(|lane| lane.weight));
    let share = settings.returning.map_or(0, |returning| returning.share);
    lanes.push(LanePart { lane: LaneId::RETURNING.0, takes: Takes::Share(share) });
    Some(estimate::Settings {
        doors: doors(state),
        rate,
        // Without a rate only operators let people in, and free slots say nothing about when.
        max_active: rate.map(|_| settings.max_active),
        heartbeat_timeout_ms: settings.heartbeat_timeout.0,
        lanes,
    })
}
