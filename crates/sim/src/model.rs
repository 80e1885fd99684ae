//! The naive room: what the real one must answer, written so that it is plainly right.
//!
//! Lives here: the reference model, one file per group of verbs. People stand in one ordered map,
//! every question is a walk over it, every count is counted.
//! Stays out: all that makes the core fast (bitmaps, packed records, tables, deadlines in order)
//! and every line of its logic. Shared are the words (commands, replies, settings, statuses) and
//! the published mathematics of the draw, which has a second implementation of its own.
//! Where the model and the core disagree, one of them is wrong against the design; that is what
//! the model is for. Start reading at [`Model::apply`].

mod admission;
mod bucket;
mod draw;
mod inside;
mod join;
mod person;
mod schedule;
mod settings;
mod windows;

use bucket::Bucket;
use draw::Draw;
use person::{Lane, Person, Stage};
use std::collections::BTreeMap;
use std::sync::Arc;
use waitroom_core::{
    AdmitWhy, Command, Counts, Epoch, Finish, Hold, LaneId, Phase, Presented, Refusal, Reply,
    Settings, Status, Ticket, Timestamp,
};

/// A whole room. Cloning it is how the simulator goes back to the last commit.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// When the newest thing happened; room time never runs behind it.
    newest: Timestamp,
    epoch: Epoch,
    settings: Option<Arc<Settings>>,
    phase: Phase,
    /// The phase in which the sale ended; a sale that goes on again goes on from there.
    ended_in: Phase,
    hold: Option<Hold>,
    finish: Option<Finish>,
    draw: Draw,
    lanes: BTreeMap<LaneId, Lane>,
    /// Everybody who ever got a ticket.
    people: BTreeMap<Ticket, Person>,
    bucket: Bucket,
    /// How far the lanes' clocks have come; see `admission.rs`.
    clock: u64,
    admitted: Vec<(Timestamp, Ticket, AdmitWhy)>,
}

/// What a verb says: an answer, or why not.
type Answer = Result<Reply, Refusal>;

impl Model {
    pub fn new() -> Self {
        Self::default()
    }

    /// Does what the command asks, all of it, and answers what the real room must answer. A tick
    /// goes on until nothing more is due, so it always says that there is no more.
    pub fn apply(&mut self, at: Timestamp, command: &Command) -> Reply {
        let at = at.max(self.newest);
        let answer = match command {
            Command::Open { epoch } => self.open(at, *epoch),
            Command::Configure { settings, .. } => self.configure(at, settings),
            Command::Pace { rate, .. } => self.pace(at, *rate),
            Command::Join(join) => self.join(at, join),
            Command::Claim(presented) => self.claim(at, presented),
            Command::Leave(presented) => self.leave(at, presented),
            Command::Renew(presented) => self.renew(at, presented),
            Command::End { ticket, how, .. } => self.end_by_word(at, ticket, *how),
            Command::Lapse { tickets } => self.lapse(at, tickets),
            Command::Release { tickets } => self.release(at, tickets),
            Command::HandOver(presented) => self.hand_over(at, presented),
            Command::Move { ticket, to, .. } => self.move_to(at, ticket, *to),
            Command::Hold { hold, .. } => self.put_on_hold(at, hold),
            Command::Resume { .. } => self.resume(at),
            Command::AdmitNow { count, entropy, .. } => self.admit_now(at, *count, entropy),
            Command::Finish { cause, reason, .. } => self.finish_sale(at, *cause, reason),
            Command::Reopen { .. } => self.reopen(at),
            Command::CommitDraw { commitment, sealed_seed, beacon } => {
                self.commit_draw(at, commitment, sealed_seed, beacon)
            }
            Command::Draw { seed, chain, beacon, waive_beacon, .. } => {
                self.reveal_draw(at, seed, chain, beacon.as_deref(), *waive_beacon)
            }
            Command::Tick { entropy } => self.tick(at, entropy),
        };
        answer.unwrap_or_else(Reply::Refused)
    }

    /// The place in line: 1 is next. None for who does not wait, and before the draw.
    pub fn position(&self, ticket: Ticket) -> Option<u64> {
        let person = self.people.get(&ticket)?;
        if person.status() != Status::Waiting {
            return None;
        }
        // Who came after the draw closed stands behind all who take part, whatever it brings.
        let takes_part = |it: Ticket| self.draw.took_part(it);
        if self.draw_pending() && (!self.draw.is_closed() || takes_part(ticket)) {
            return None;
        }
        let Some(order) = person.order else { return Some(self.end_of_open_window(ticket)) };
        let before = self.waiting_in(ticket.lane).filter(|(it, other)| {
            other.order.map_or(takes_part(*it), |their_order| their_order < order)
        });
        Some(before.count() as u64 + 1)
    }

    /// Where a ticket stands, as the one who presents it may know.
    pub fn status(&self, at: Timestamp, presented: &Presented) -> Result<Status, Refusal> {
        let ticket = self.find(at.max(self.newest), presented)?;
        Ok(self.people[&ticket].status())
    }

    pub fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        for lane in self.lanes.keys() {
            sum.add(&self.lane_counts(*lane));
        }
        sum
    }

    pub fn lane_counts(&self, lane: LaneId) -> Counts {
        let Some(tally) = self.lanes.get(&lane) else { return Counts::default() };
        let mut counts =
            Counts { admissions: tally.admissions, no_shows: tally.no_shows, ..Counts::default() };
        for (_, person) in self.people_in(lane) {
            counts.joined += 1;
            *match person.status() {
                Status::Waiting => &mut counts.waiting,
                Status::Admitted => &mut counts.admitted,
                Status::Active => &mut counts.active,
                Status::Completed => &mut counts.completed,
                Status::Expired => &mut counts.expired,
                Status::Left => &mut counts.left,
                Status::Moved => &mut counts.moved,
                Status::Closed => &mut counts.closed,
                Status::Revoked => &mut counts.revoked,
            } += 1;
        }
        counts
    }

    pub fn lane_ids(&self) -> impl Iterator<Item = LaneId> + '_ {
        self.lanes.keys().copied()
    }

    pub fn waiting(&self) -> u64 {
        self.people.values().filter(|person| person.status() == Status::Waiting).count() as u64
    }

    /// Admitted, active, and ended ones whose pass a gate may still accept.
    pub fn slots_taken(&self) -> u64 {
        self.people.values().filter(|person| person.takes_slot()).count() as u64
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether positions are unknown because the draw is still to come.
    pub fn draw_pending(&self) -> bool {
        let announced = self.settings.as_ref().is_some_and(|settings| settings.draw.is_some());
        let to_come = announced && self.phase <= Phase::Doors;
        !self.draw.is_revealed() && (to_come || self.draw.is_closed())
    }

    /// Room time of the newest thing that happened.
    pub fn newest(&self) -> Timestamp {
        self.newest
    }

    /// Every admission there ever was, in order.
    pub fn admitted_in_order(&self) -> &[(Timestamp, Ticket, AdmitWhy)] {
        &self.admitted
    }

    /// Every ticket that was ever given, with the epoch in which it was.
    pub fn tickets(&self) -> impl Iterator<Item = (Ticket, Epoch)> + '_ {
        self.people.iter().map(|(ticket, person)| (*ticket, person.epoch))
    }

    fn people_in(&self, lane: LaneId) -> impl Iterator<Item = (Ticket, &Person)> + '_ {
        let (first, last) = (Ticket::new(lane.0, 0), Ticket::new(lane.0, u64::MAX));
        self.people.range(first..=last).map(|(ticket, person)| (*ticket, person))
    }

    fn waiting_in(&self, lane: LaneId) -> impl Iterator<Item = (Ticket, &Person)> + '_ {
        self.people_in(lane).filter(|(_, person)| person.status() == Status::Waiting)
    }

    fn person(&mut self, ticket: Ticket) -> &mut Person {
        self.people.get_mut(&ticket).expect("tickets are never taken out of the map")
    }

    /// Remembers that something happened, which pins room time.
    fn happened(&mut self, at: Timestamp) {
        self.newest = self.newest.max(at);
    }

    fn ready(&self) -> Result<Arc<Settings>, Refusal> {
        let settings = self.settings.as_ref().filter(|_| self.epoch > Epoch(0));
        settings.cloned().ok_or(Refusal::NotReady)
    }

    /// The ticket behind what somebody presents, followed to where it was moved.
    fn find(&self, at: Timestamp, presented: &Presented) -> Result<Ticket, Refusal> {
        let mut ticket = presented.ticket;
        if !self.lanes.contains_key(&ticket.lane) {
            return Err(Refusal::UnknownTicket);
        }
        let mut person = self.people.get(&ticket).ok_or(Refusal::PlaceLost)?;
        if person.epoch != presented.epoch {
            // Of a forgotten ticket nobody can tell whose it was.
            let forgotten = self.is_forgotten(at, person);
            return Err(if forgotten { Refusal::Forgotten } else { Refusal::PlaceLost });
        }
        while let Some(to) = person.moved_to {
            ticket = to;
            person = &self.people[&ticket];
        }
        if self.is_forgotten(at, person) {
            return Err(Refusal::Forgotten);
        }
        if presented.holder.is_some_and(|holder| holder != person.holder) {
            return Err(Refusal::MovedElsewhere);
        }
        Ok(ticket)
    }

    fn is_forgotten(&self, at: Timestamp, person: &Person) -> bool {
        match (person.stage, &self.settings) {
            (Stage::Over { at: ended_at, .. }, Some(settings)) => {
                ended_at.after(settings.memory) <= at
            }
            _ => false,
        }
    }

    /// Whether anybody may be admitted now, slots and pace aside.
    fn admits(&self) -> Result<(), Refusal> {
        if self.phase == Phase::Ended {
            return Err(self.finished());
        }
        match &self.hold {
            Some(Hold::Paused { reason }) => Err(Refusal::Paused { reason: reason.clone() }),
            Some(Hold::Maintenance { reason }) => {
                Err(Refusal::Maintenance { reason: reason.clone() })
            }
            _ if self.phase < Phase::Drawing => Err(Refusal::NotStarted),
            _ if self.phase == Phase::Drawing => Err(Refusal::DrawPending),
            Some(Hold::Draining { .. }) | None => Ok(()),
        }
    }

    fn finished(&self) -> Refusal {
        let reason = self.finish.as_ref().map_or(String::new(), |finish| finish.reason.clone());
        Refusal::Finished { reason }
    }
}
