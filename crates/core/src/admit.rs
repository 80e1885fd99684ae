//! Whose turn it is: the next in each lane, lanes by weight, as many as slots and pace allow.
//!
//! Lanes share by virtual time: each admission moves its lane's clock on by a step that is
//! smaller the heavier the lane, and the lane with the earliest clock is served next. So every
//! lane with a weight gets its share and none starves.

use crate::command::Actor;
use crate::event::{AdmitWhy, Entry, Event, Session, What};
use crate::lane::{Lane, Window};
use crate::record::Status;
use crate::reply::Reply;
use crate::room::{Decided, Room};
use crate::settings::{ClaimMode, Settings};
use crate::slots::{Inside, Stage};
use crate::units::{LaneId, Number, Ticket, Timestamp};
use crate::window::window_seed;

/// One decision admits at most this many, so that the writer is never busy for long; the tick
/// says `again` and goes on after the commands that came meanwhile.
pub(crate) const ADMIT_MAX: u64 = 2_000;

/// One admission of weight 1 on a lane's clock. A billion admissions still fit 64 bits.
const STEP: u64 = 1 << 24;

/// What one `admit n` grants at most; whoever asks for more asks again.
pub const ADMIT_NOW_MAX: u64 = 10_000;

impl Room {
    /// Paced admissions that are due.
    pub(crate) fn decide_turns(&self, at: Timestamp, settings: &Settings, out: &mut Vec<Event>) {
        if self.state.admits().is_err() {
            return;
        }
        let may = self.state.bucket.tokens(at, settings).min(self.state.slots_free(settings));
        self.admit_next(at, settings, may.min(ADMIT_MAX), AdmitWhy::Paced, None, out);
    }

    pub(crate) fn decide_admit_now(
        &self,
        at: Timestamp,
        count: u64,
        entropy: &[u8; 16],
        by: &Actor,
        out: &mut Vec<Event>,
    ) -> Decided {
        let settings = self.state.ready()?;
        self.state.admits()?;
        let may = count.min(self.state.slots_free(settings)).min(ADMIT_NOW_MAX);
        let place = out.len();
        let granted = self.admit_next(at, settings, may, AdmitWhy::Manual, Some(entropy), out);
        let sealed = out[place..].iter().take_while(|it| matches!(it.what, What::Sealed { .. }));
        let place = place + sealed.count();
        out.insert(place, What::AdmittedNow { asked: count, granted, by: by.clone() }.at(at));
        Ok(Reply::Admitted { count: granted })
    }

    /// Admits up to `may` people and says how many there were.
    fn admit_next(
        &self,
        at: Timestamp,
        settings: &Settings,
        may: u64,
        why: AdmitWhy,
        entropy: Option<&[u8; 16]>,
        out: &mut Vec<Event>,
    ) -> u64 {
        let mut lanes: Vec<Turn<'_>> =
            self.state.lanes.iter().filter_map(|lane| Turn::of(lane, settings, may)).collect();
        // The tick seals windows as it comes to them; an operator does not wait for a tick.
        if let Some(entropy) = entropy {
            for turn in lanes.iter_mut().filter(|turn| turn.tickets.is_empty()) {
                turn.seal_now(at, may, settings.shuffle_window, entropy, out);
            }
        }
        let mut waiting = self.state.waiting();
        let entry = self.entry(at, settings);
        let mut admitted = 0;
        while admitted < may
            && let Some(next) = (0..lanes.len())
                .filter(|i| lanes[*i].next < lanes[*i].tickets.len())
                .min_by_key(|i| (lanes[*i].weightless, lanes[*i].clock))
        {
            let lane = lanes[next].lane.id;
            let waits = lanes.iter().filter(|turn| turn.left > 0).map(|turn| turn.lane.id);
            let step = step(settings, lane, waits);
            let turn = &mut lanes[next];
            let ticket = turn.tickets[turn.next];
            turn.next += 1;
            turn.left -= 1;
            turn.clock += step.unwrap_or(0);
            waiting -= 1;
            admitted += 1;
            let joined_at = self.state.time_of(turn.lane.record(ticket.number).word());
            let sealed_user = turn.lane.sealed_user(ticket.number);
            out.push(What::Admitted { ticket, joined_at, waiting, why, entry, sealed_user }.at(at));
        }
        admitted
    }

    pub(crate) fn entry(&self, at: Timestamp, settings: &Settings) -> Entry {
        match settings.claim {
            ClaimMode::Explicit => Entry::MustClaim { by: at.after(settings.claim_within) },
            ClaimMode::OnAdmission => Entry::Claimed(new_session(at, settings)),
        }
    }

    pub(crate) fn absorb_admitted(
        &mut self,
        at: Timestamp,
        ticket: Ticket,
        why: AdmitWhy,
        entry: Entry,
    ) {
        let settings = self.state.settings.clone().expect("a room that admits has settings");
        let paced = why != AdmitWhy::Manual;
        if paced {
            self.state.bucket.take_one(at, &settings);
        }
        let place = self.state.lane_at(ticket.lane);
        let joined_at = self.state.time_of(self.state.lanes[place].record(ticket.number).word());
        let (stage, status) = match entry {
            Entry::MustClaim { by } => (Stage::Admitted { claim_by: by }, Status::Admitted),
            Entry::Claimed(session) => (Stage::Active(session), Status::Active),
        };
        let inside = Inside { ticket, joined_at, admitted_at: at, paced, stage };
        let slot = self.state.slots.put(&mut self.index.slots, inside);

        let waits = self.state.lanes.iter().filter(|lane| lane.counts.waiting > 0);
        let step = step(&settings, ticket.lane, waits.map(|lane| lane.id));
        let lane = &mut self.state.lanes[place];
        self.index.lanes[place].take_from_line(lane, ticket.number, settings.shuffle_window);
        let record = lane.record(ticket.number).with_status(status).with_word(slot);
        lane.records.set(ticket.number.0, record);
        lane.counts.waiting -= 1;
        lane.counts.admissions += 1;
        match status {
            Status::Active => lane.counts.active += 1,
            _ => lane.counts.admitted += 1,
        }
        self.state.virtual_time = self.state.virtual_time.max(lane.virtual_time);
        lane.virtual_time += step.unwrap_or(0);
        self.index.lanes[place].entered(lane, ticket.number);
    }
}

/// A session that begins now.
pub(crate) fn new_session(at: Timestamp, settings: &Settings) -> Session {
    let expires_at = at.after(settings.session_timeout);
    Session { issued_at: at, expires_at, pass_expires_at: pass_end(at, expires_at, settings) }
}

pub(crate) fn pass_end(at: Timestamp, session_end: Timestamp, settings: &Settings) -> Timestamp {
    match settings.pass_life.0 {
        0 => session_end,
        _ => at.after(settings.pass_life).min(session_end),
    }
}

/// A lane's next people, in order, and its clock.
struct Turn<'a> {
    lane: &'a Lane,
    tickets: Vec<Ticket>,
    next: usize,
    /// How many wait in the lane, beyond `tickets` too.
    left: u64,
    clock: u64,
    /// Whether the lane only gets what the others leave.
    weightless: bool,
}

impl<'a> Turn<'a> {
    fn of(lane: &'a Lane, settings: &Settings, may: u64) -> Option<Turn<'a>> {
        if lane.counts.waiting == 0 || may == 0 {
            return None;
        }
        let mut orders = Vec::new();
        lane.line.first(may as usize, lane.ordered_to(settings.shuffle_window), &mut orders);
        let tickets = lane.tickets_at(&orders);
        let weightless = weightless(settings, lane.id);
        let (left, clock) = (lane.counts.waiting, lane.virtual_time);
        Some(Turn { lane, tickets, next: 0, left, clock, weightless })
    }
}

impl Turn<'_> {
    /// Gives the first open window its order, because nobody waits before it.
    fn seal_now(
        &mut self,
        at: Timestamp,
        may: u64,
        window_max: u32,
        entropy: &[u8; 16],
        out: &mut Vec<Event>,
    ) {
        let mut start = self.lane.sealed_to.0;
        while self.tickets.is_empty() && start < self.lane.next().0 {
            // No more than a window: those behind it were shown that they stand behind it. A
            // window in which nobody waits any more is passed by.
            let len = (self.lane.next().0 - start).min(window_max as u64) as u32;
            let seed = window_seed(entropy, self.lane.id, start);
            let permutation = Window { start, len, seed }.permutation(self.lane.id);
            let mut orders: Vec<(u64, Ticket)> = (start..start + len as u64)
                .filter(|number| self.lane.line.waits(*number))
                .map(|number| {
                    let ticket = Ticket { lane: self.lane.id, number: Number(number) };
                    (permutation.forward(number - start), ticket)
                })
                .collect();
            orders.sort_unstable();
            self.tickets.extend(orders.into_iter().map(|(_, ticket)| ticket).take(may as usize));
            out.push(What::Sealed { lane: self.lane.id, start: Number(start), len, seed }.at(at));
            start += len as u64;
        }
    }
}

/// Whether a lane only gets what the others leave.
pub(crate) fn weightless(settings: &Settings, lane: LaneId) -> bool {
    step(settings, lane, []).is_none()
}

/// How far an admission moves the lane's clock; none for a lane that only gets what is left.
/// `waits` are the lanes in which somebody waits before it.
fn step(settings: &Settings, lane: LaneId, waits: impl IntoIterator<Item = LaneId>) -> Option<u64> {
    let weight_of = |lane: LaneId| settings.lanes.get(lane.0 as usize).map(|it| it.weight as u64);
    if lane != LaneId::RETURNING {
        return weight_of(lane).filter(|weight| *weight > 0).map(|weight| STEP / weight);
    }
    // A share of, say, 20 % is a share beside those who wait, not beside every lane there is:
    // an empty lane must not leave its turns to those who come back.
    let share = settings.returning.map_or(0, |returning| returning.share as u64);
    let ordinary: u64 = waits.into_iter().filter_map(weight_of).sum();
    (share > 0).then(|| STEP * (100 - share) / (share * ordinary.max(1)))
}
