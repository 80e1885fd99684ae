//! Promise 6: if join A was answered before join B was sent (same lane, no draw, window 1), A is
//! served before B.
//!
//! Two steps that together give it. Clients: whoever joins after an answer gets a higher number
//! than the answer told of. Log: whoever is admitted has the lowest number of all who wait in the
//! lane. People who left, were moved or closed out wait no more. Those who took part in a draw
//! are promise 7's business; who came after it follows in order of arrival again.

use std::collections::BTreeSet;

use waitroom_core::{Fresh, LaneId, Number, Reply, Ticket, What};

use super::quick::Map;
use super::told::Tickets;
use crate::history::{History, Moment, Outcome, Violation};

const PROMISE: u8 = 6;

pub fn check(history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    numbers_follow_arrival(history, &mut found);
    service_follows_numbers(history, &mut found);
    found
}

fn numbers_follow_arrival(history: &History, found: &mut Vec<Violation>) {
    let tickets = Tickets::of(history);
    let mut told: Vec<(Moment, Ticket)> = Vec::new();
    let mut sent: Vec<(Moment, Ticket)> = Vec::new();
    for call in &history.calls {
        let Outcome::Answered { at, reply, .. } = &call.outcome else { continue };
        let Reply::Joined { ticket, epoch, fresh, .. } = *reply else { continue };
        // A number that the store lost and gave again has no place in this comparison.
        if tickets.given_in(ticket, epoch).is_none() {
            continue;
        }
        told.push((*at, ticket));
        if fresh == Fresh::New {
            sent.push((call.sent, ticket));
        }
    }
    told.sort_unstable();
    sent.sort_unstable();
    let mut highest: Map<LaneId, Number> = Map::default();
    let mut next = 0;
    for (moment, ticket) in sent {
        while let Some((_, earlier)) = told.get(next).filter(|(at, _)| *at < moment) {
            next += 1;
            let highest = highest.entry(earlier.lane).or_default();
            *highest = (*highest).max(earlier.number);
        }
        if let Some(highest) = highest.get(&ticket.lane).filter(|it| **it >= ticket.number) {
            found.push(Violation::new(
                PROMISE,
                format!("{ticket} joined after number {} of its lane was answered", highest.0),
            ));
        }
    }
}

fn service_follows_numbers(history: &History, found: &mut Vec<Violation>) {
    let mut waiting: Map<LaneId, BTreeSet<Number>> = Map::default();
    let mut first_come = true;
    for it in &history.log {
        match &it.event.what {
            What::Configured { settings, .. } => first_come = settings.shuffle_window == 1,
            What::Joined(joined) => {
                waiting.entry(joined.ticket.lane).or_default().insert(joined.ticket.number);
            }
            What::Moved { from, to, .. } => {
                waiting.entry(from.lane).or_default().remove(&from.number);
                waiting.entry(to.lane).or_default().insert(to.number);
            }
            What::Ended { ticket, .. } => {
                waiting.entry(ticket.lane).or_default().remove(&ticket.number);
            }
            What::SaleEnded { .. } => waiting.clear(),
            // From here on the draw rules those who were there; see promise 7.
            What::DrawClosed { .. } => waiting.clear(),
            What::Admitted { ticket, .. } => {
                let lane = waiting.entry(ticket.lane).or_default();
                if let Some(first) = lane.first().filter(|first| **first < ticket.number)
                    && lane.contains(&ticket.number)
                    && first_come
                {
                    found.push(Violation::new(
                        PROMISE,
                        format!(
                            "event {}: {ticket} is admitted while number {} of its lane waits",
                            it.index, first.0
                        ),
                    ));
                }
                lane.remove(&ticket.number);
            }
            _ => {}
        }
    }
}
