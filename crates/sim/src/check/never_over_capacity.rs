//! Promise 4: no admission is made while slots held ≥ `max_active`.
//!
//! A slot is taken by the admission and held until no gate can accept the pass: until its end plus
//! leeway, or until every gate confirmed the end, which is a `Release` that somebody asked for.
//! This file works out that time itself. An end that frees the slot earlier is reported as such,
//! for then the count in the room is too low whether or not the next admission shows it. No pass is
//! handed out for a slot that somebody already knows to be free.

use waitroom_core::{Command, Entry, Millis, Reply, Ticket, Timestamp, What};

use super::horizon::Horizon;
use super::quick::{Map, Set};
use crate::history::{History, Outcome, Violation};

const PROMISE: u8 = 4;

pub fn check(history: &History) -> Vec<Violation> {
    let confirmed = confirmed_by_gates(history);
    let mut found = Vec::new();
    let mut freed: Map<Ticket, u64> = Map::default();
    let mut slots: Map<Ticket, Slot> = Map::default();
    let (mut max_active, mut leeway) = (0, Millis(0));
    for it in &history.log {
        let (index, at) = (it.index, it.event.at);
        let mut broken = |said: String| {
            found.push(Violation::new(PROMISE, format!("event {index}: {said}")));
        };
        match &it.event.what {
            What::Configured { settings, .. } => {
                (max_active, leeway) = (settings.max_active, settings.pass_leeway);
            }
            What::Admitted { ticket, entry, .. } => {
                let held = slots.len() as u64;
                if held >= max_active {
                    broken(format!(
                        "{ticket} is admitted while {held} slots of {max_active} are held"
                    ));
                }
                let pass_ends = match entry {
                    Entry::MustClaim { .. } => None,
                    Entry::Claimed(session) => Some(session.pass_expires_at),
                };
                slots.insert(*ticket, Slot::Inside { pass_ends });
            }
            What::Claimed { ticket, session } | What::Renewed { ticket, session } => {
                if let Some(Slot::Inside { pass_ends }) = slots.get_mut(ticket) {
                    // Every pass that was ever signed counts, not only the newest.
                    *pass_ends = (*pass_ends).max(Some(session.pass_expires_at));
                }
            }
            What::Ended { ticket, held_until, .. } => {
                let Some(Slot::Inside { pass_ends }) = slots.get(ticket) else { continue };
                let accepted_until =
                    pass_ends.map(|ends| ends.after(leeway)).filter(|until| *until > at);
                if *held_until < accepted_until {
                    broken(format!(
                        "the slot of {ticket} is held until {held_until:?}, its pass is good until \
                         {accepted_until:?}"
                    ));
                }
                match held_until.max(&accepted_until) {
                    Some(until) if held_until.is_some() => {
                        slots.insert(*ticket, Slot::Held { until: *until });
                    }
                    _ => {
                        slots.remove(ticket);
                        freed.insert(*ticket, index);
                    }
                }
            }
            What::Released { ticket } => {
                freed.insert(*ticket, index);
                if let Some(Slot::Held { until }) = slots.remove(ticket)
                    && at < until
                    && !confirmed.contains(ticket)
                {
                    broken(format!(
                        "the slot of {ticket} is released at {}, before {} and without the gates' \
                         word",
                        at.0, until.0
                    ));
                }
            }
            _ => {}
        }
    }
    passes_have_slots(history, &freed, &mut found);
    found
}

/// A pass is handed out for a slot. Once anybody has heard of a version in which the slot is free,
/// whoever asks from then on gets no pass for it, at whichever instance they ask.
fn passes_have_slots(history: &History, freed: &Map<Ticket, u64>, found: &mut Vec<Violation>) {
    let horizon = Horizon::of(history);
    for call in &history.calls {
        let Outcome::Answered { reply, .. } = &call.outcome else { continue };
        let (Reply::Claimed { ticket, .. } | Reply::Renewed { ticket, .. }) = reply else {
            continue;
        };
        if let Some(index) = freed.get(ticket).filter(|index| **index <= horizon.before(call.sent))
        {
            found.push(Violation::new(
                PROMISE,
                format!(
                    "client {} was handed a pass of {ticket}, whose slot is free since event {index}",
                    call.client
                ),
            ));
        }
    }
}

enum Slot {
    Inside { pass_ends: Option<Timestamp> },
    Held { until: Timestamp },
}

/// Tickets that every gate confirmed as ended, or may have: a release whose outcome is unknown
/// may have happened.
fn confirmed_by_gates(history: &History) -> Set<Ticket> {
    let mut confirmed = Set::default();
    for call in &history.calls {
        let Command::Release { tickets } = &call.command else { continue };
        let done = match &call.outcome {
            Outcome::Answered { reply, .. } => !matches!(reply, Reply::Refused(_)),
            Outcome::NotDone { .. } => false,
            Outcome::Unknown => true,
        };
        if done {
            confirmed.extend(tickets.iter().copied());
        }
    }
    confirmed
}
