//! Promise 11: no forged, altered, expired or foreign token is accepted.
//!
//! The run says which ids it altered or took from elsewhere, and whether the room took them for
//! its own. Beyond that, every command that was carried out for a ticket is looked at again: the
//! log must have given that number in that epoch, by the time of the answer, and the holder count
//! must have been the current one somewhere between sending and answering.

use waitroom_core::{Command, Fresh, Holder, Join, Presented, Reply, Ticket, What};

use super::horizon::Horizon;
use super::quick::Map;
use super::told::{Tickets, presented};
use crate::history::{History, Outcome, Violation};

const PROMISE: u8 = 11;

pub fn check(history: &History) -> Vec<Violation> {
    let accepted = history.forgeries.iter().filter(|forgery| forgery.accepted);
    let mut found: Vec<Violation> = accepted
        .map(|forgery| Violation::new(PROMISE, format!("accepted: {}", forgery.what)))
        .collect();
    // After a loss, genuine ids of the lost part look as if the log never gave them.
    if history.store_lost_data {
        return found;
    }
    let tickets = Tickets::of(history);
    let holders = holders(history, &tickets);
    let horizon = Horizon::of(history);
    for call in &history.calls {
        let Outcome::Answered { reply, version, .. } = &call.outcome else { continue };
        let shown = match &call.command {
            _ if matches!(reply, Reply::Refused(_)) => None,
            Command::Join(join) => join.holding.as_ref().filter(|_| by_hand(&tickets, join, reply)),
            command => presented(command),
        };
        let Some(shown) = shown else { continue };
        if let Err(why) = genuine(&tickets, &holders, shown, horizon.before(call.sent), *version) {
            found.push(Violation::new(
                PROMISE,
                format!("client {} was served with {}, {why}", call.client, shown.ticket),
            ));
        }
    }
    found
}

/// Whether a join was answered with a ticket only because the visitor holds it.
fn by_hand(tickets: &Tickets<'_>, join: &Join, reply: &Reply) -> bool {
    let Reply::Joined { ticket, fresh: Fresh::Repeat, .. } = *reply else { return false };
    let known = join.identity.is_some() && join.identity == tickets.identity(ticket);
    let keyed = join.key.is_some() && join.key == tickets.key(ticket);
    !known && !keyed
}

/// The holder counts of each person's place, with the event that began them, by the first ticket.
fn holders(history: &History, tickets: &Tickets<'_>) -> Map<Ticket, Vec<(u64, Holder)>> {
    let mut holders: Map<Ticket, Vec<(u64, Holder)>> = Map::default();
    for it in &history.log {
        if let What::HandedOver { ticket, holder } = &it.event.what {
            holders.entry(tickets.root(*ticket)).or_default().push((it.index, *holder));
        }
    }
    holders
}

fn genuine(
    tickets: &Tickets<'_>,
    holders: &Map<Ticket, Vec<(u64, Holder)>>,
    shown: &Presented,
    from: u64,
    to: u64,
) -> Result<(), String> {
    let Some(told) = tickets.given_in(shown.ticket, shown.epoch) else {
        return Err(format!("which epoch {} never gave", shown.epoch.0));
    };
    if told.born > to {
        return Err(format!("which was given by event {}, after version {to}", told.born));
    }
    let Some(holder) = shown.holder else { return Ok(()) };
    let changes = holders.get(&tickets.root(shown.ticket)).map_or(&[][..], |all| all);
    let first = [(0, Holder(0))];
    let all = || first.iter().chain(changes);
    let ends = changes.iter().map(|(index, _)| *index).chain([u64::MAX]);
    let current = all()
        .zip(ends)
        .any(|((begins, current), ends)| *begins <= to && ends > from && *current == holder);
    if current { Ok(()) } else { Err(format!("as holder {}, who is not the one", holder.0)) }
}
