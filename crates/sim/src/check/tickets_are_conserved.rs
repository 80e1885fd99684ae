//! Promise 13: joined = waiting + admitted + active + completed + left + expired + revoked + moved
//! + closed, at every point of the log.
//!
//! Every ticket has one status, and only the steps of the lifecycle lead from one to another, so
//! nobody is counted twice or drops out. The counts that events carry for the world (`waiting`,
//! `closed`, `granted`) are those of this fold at that point; a block is forgotten only when it is
//! full and nobody in it lives or holds a slot.

use waitroom_core::chunked::CHUNK;
use waitroom_core::{
    AdmitWhy, Block, Ending, Entry, Holder, Joined, LaneId, Number, Status, Ticket, What,
};

use super::quick::{Map, Set};
use crate::history::{History, Violation};

const PROMISE: u8 = 13;

pub fn check(history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut fold = Fold::default();
    for it in &history.log {
        let mut broken = |said: String| {
            found.push(Violation::new(PROMISE, format!("event {}: {said}", it.index)));
        };
        fold.take(&it.event.what, &mut broken);
        if fold.joined != fold.counts.sum() {
            broken(format!("{} joined, and they are {:?}", fold.joined, fold.counts));
            // Told once; what comes after is judged by itself.
            fold.joined = fold.counts.sum();
        }
    }
    if fold.owed > 0 {
        let said = format!("{} admissions that an operator was granted never came", fold.owed);
        found.push(Violation::new(PROMISE, said));
    }
    found
}

#[derive(Default)]
struct Fold {
    tickets: Map<Ticket, One>,
    /// Counted at the door, beside the counts by status.
    joined: u64,
    counts: Counts,
    waiting_in_lane: Map<LaneId, u64>,
    /// Ended tickets whose slot is not free yet.
    held: Set<Ticket>,
    /// Admissions of an operator that must come next.
    owed: u64,
}

#[derive(Clone, Copy)]
struct One {
    status: Status,
    holder: Holder,
}

/// How many have each status.
#[derive(Debug, Default)]
struct Counts([u64; 10]);

impl Counts {
    fn of(&mut self, status: Status) -> &mut u64 {
        &mut self.0[status as usize]
    }

    fn sum(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl Fold {
    fn take(&mut self, what: &What, broken: &mut impl FnMut(String)) {
        use Status::*;
        let manual = matches!(what, What::Admitted { why: AdmitWhy::Manual, .. });
        match (manual, self.owed) {
            (true, 0) => broken("an operator's admission that no operator was granted".into()),
            (true, _) => self.owed -= 1,
            (false, 0) => {}
            (false, owed) => {
                broken(format!("{owed} admissions that an operator was granted did not follow"));
                self.owed = 0;
            }
        }
        match what {
            What::Joined(joined) => self.join(joined, broken),
            What::Admitted { ticket, waiting, entry, .. } => {
                let to = match entry {
                    Entry::MustClaim { .. } => Admitted,
                    Entry::Claimed(_) => Active,
                };
                self.step(*ticket, &[Waiting], to, broken);
                self.says(*waiting, broken);
            }
            What::Claimed { ticket, .. } => self.step(*ticket, &[Admitted], Active, broken),
            What::Renewed { ticket, .. } => self.step(*ticket, &[Active], Active, broken),
            What::Ended { ticket, ending, waiting, held_until, .. } => {
                let (from, to): (&[Status], Status) = match ending {
                    Ending::Completed => (&[Admitted, Active], Completed),
                    Ending::Left => (&[Waiting], Left),
                    Ending::Silent | Ending::TooOld => (&[Waiting], Expired),
                    Ending::NoShow => (&[Admitted], Expired),
                    Ending::SessionOver | Ending::CheckoutFailed | Ending::CheckoutExpired => {
                        (&[Active], Expired)
                    }
                    Ending::Revoked => (&[Waiting, Admitted, Active], Revoked),
                };
                self.step(*ticket, from, to, broken);
                self.says(*waiting, broken);
                if held_until.is_some() {
                    self.held.insert(*ticket);
                }
            }
            What::Released { ticket } => {
                let held = self.held.remove(ticket);
                if !held {
                    broken(format!("{ticket} is released and holds no slot"));
                }
            }
            What::HandedOver { ticket, holder } => match self.tickets.get_mut(ticket) {
                Some(one) if one.status.is_live() && holder.0 == one.holder.0.wrapping_add(1) => {
                    one.holder = *holder;
                }
                _ => broken(format!("{ticket} cannot go to holder {}", holder.0)),
            },
            What::Moved { from, to, .. } => {
                let holder = self.tickets.get(from).map(|one| one.holder).unwrap_or_default();
                self.step(*from, &[Waiting], Moved, broken);
                self.enter(*to, holder, broken);
            }
            What::SaleEnded { closed, .. } => {
                let mut waited = 0;
                for one in self.tickets.values_mut().filter(|one| one.status == Waiting) {
                    one.status = Closed;
                    waited += 1;
                }
                self.waiting_in_lane.clear();
                *self.counts.of(Waiting) -= waited;
                *self.counts.of(Closed) += waited;
                if waited != *closed {
                    broken(format!("{closed} are said to be closed out, and {waited} waited"));
                }
            }
            What::AdmittedNow { granted, .. } => self.owed = *granted,
            What::ForgotTickets(block) => self.forget(*block, broken),
            _ => {}
        }
    }

    fn join(&mut self, joined: &Joined, broken: &mut impl FnMut(String)) {
        self.enter(joined.ticket, Holder(0), broken);
        self.says(joined.waiting, broken);
        let lane = self.waiting_in_lane[&joined.ticket.lane];
        if lane != joined.waiting_in_lane {
            let said = joined.waiting_in_lane;
            broken(format!("{said} are said to wait in the lane, and {lane} do"));
        }
    }

    fn enter(&mut self, ticket: Ticket, holder: Holder, broken: &mut impl FnMut(String)) {
        let one = One { status: Status::Waiting, holder };
        self.joined += 1;
        *self.counts.of(Status::Waiting) += 1;
        *self.waiting_in_lane.entry(ticket.lane).or_default() += 1;
        if let Some(before) = self.tickets.insert(ticket, one) {
            *self.counts.of(before.status) -= 1;
            broken(format!("{ticket} begins and was there before"));
        }
    }

    fn step(
        &mut self,
        ticket: Ticket,
        from: &[Status],
        to: Status,
        broken: &mut impl FnMut(String),
    ) {
        let Some(one) = self.tickets.get_mut(&ticket) else {
            broken(format!("{ticket} becomes {to:?} and never joined"));
            return;
        };
        if !from.contains(&one.status) {
            broken(format!("{ticket} becomes {to:?} and was {:?}", one.status));
        }
        *self.counts.of(one.status) -= 1;
        *self.counts.of(to) += 1;
        if one.status == Status::Waiting {
            let lane = self.waiting_in_lane.entry(ticket.lane).or_default();
            *lane = lane.saturating_sub(1);
        }
        one.status = to;
    }

    fn says(&mut self, waiting: u64, broken: &mut impl FnMut(String)) {
        let counted = *self.counts.of(Status::Waiting);
        if waiting != counted {
            broken(format!("{waiting} are said to wait, and {counted} do"));
        }
    }

    fn forget(&mut self, block: Block, broken: &mut impl FnMut(String)) {
        let first = block.index.saturating_mul(CHUNK);
        for number in first..first.saturating_add(CHUNK) {
            let ticket = Ticket { lane: block.lane, number: Number(number) };
            let said = match self.tickets.get(&ticket) {
                None => format!("{ticket} is forgotten before it was given"),
                Some(one) if one.status.is_live() || self.held.contains(&ticket) => {
                    format!("{ticket} is forgotten while it is {:?}", one.status)
                }
                Some(_) => continue,
            };
            // One of a block says enough.
            return broken(said);
        }
    }
}
