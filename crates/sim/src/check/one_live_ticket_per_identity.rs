//! Promise 2: at most one live ticket per identity; repeats of a join return the same ticket.
//!
//! In the log: nobody known joins while an earlier ticket of theirs lives, and an
//! `Idempotency-Key` makes one ticket within the time it is remembered.
//! To clients: a repeat is about a ticket of the same key, the same identity, or the one that the
//! visitor holds; and while a known person's ticket lives, every further join returns it.

use waitroom_core::{Command, Fresh, Identity, Join, JoinKey, Reply, Ticket, Timestamp, What};

use super::quick::{Map, Set};
use super::told::Tickets;
use crate::history::{History, Moment, Outcome, Violation};

const PROMISE: u8 = 2;

/// The design's "remembered 10 minutes", written down again: the core may not shorten it.
const KEY_REMEMBERED_MS: u64 = 600_000;

pub fn check(history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    in_the_log(history, &mut found);
    to_clients(history, &mut found);
    found
}

fn in_the_log(history: &History, found: &mut Vec<Violation>) {
    let mut lives: Map<Identity, Ticket> = Map::default();
    let mut owner: Map<Ticket, Identity> = Map::default();
    let mut inside: Set<Ticket> = Set::default();
    let mut keys: Map<[u8; 12], (Timestamp, Ticket)> = Map::default();
    for it in &history.log {
        match &it.event.what {
            What::Joined(joined) => {
                let ticket = joined.ticket;
                if let Some(identity) = joined.identity {
                    if let Some(before) = lives.insert(identity, ticket) {
                        found.push(Violation::new(
                            PROMISE,
                            format!(
                                "event {}: {ticket} joins while {before} of the same person lives",
                                it.index
                            ),
                        ));
                    }
                    owner.insert(ticket, identity);
                }
                if let Some(key) = joined.key
                    && let Some((at, before)) = keys.insert(key.key, (it.event.at, ticket))
                    && it.event.at.since(at).0 < KEY_REMEMBERED_MS
                {
                    found.push(Violation::new(
                        PROMISE,
                        format!("event {}: {ticket} joins by the key that made {before}", it.index),
                    ));
                }
            }
            What::Bound { ticket, identity } => {
                if let Some(before) = lives.insert(*identity, *ticket) {
                    found.push(Violation::new(
                        PROMISE,
                        format!(
                            "event {}: {ticket} becomes that of a person whose {before} lives",
                            it.index
                        ),
                    ));
                }
                owner.insert(*ticket, *identity);
            }
            What::Admitted { ticket, .. } => {
                inside.insert(*ticket);
            }
            What::Ended { ticket, .. } => {
                inside.remove(ticket);
                if let Some(identity) = owner.remove(ticket)
                    && lives.get(&identity) == Some(ticket)
                {
                    lives.remove(&identity);
                }
            }
            What::Moved { from, to, .. } => {
                if let Some(identity) = owner.remove(from) {
                    owner.insert(*to, identity);
                    lives.insert(identity, *to);
                }
            }
            What::SaleEnded { .. } => {
                owner.retain(|ticket, _| inside.contains(ticket));
                lives.retain(|_, ticket| inside.contains(ticket));
            }
            _ => {}
        }
    }
}

/// A join that was answered with a ticket.
struct Answer<'a> {
    sent: Moment,
    at: Moment,
    version: u64,
    join: &'a Join,
    ticket: Ticket,
}

fn to_clients(history: &History, found: &mut Vec<Violation>) {
    let tickets = Tickets::of(history);
    let mut known: Map<Identity, Vec<Answer<'_>>> = Map::default();
    for call in &history.calls {
        let (Command::Join(join), Outcome::Answered { at, reply, version }) =
            (&call.command, &call.outcome)
        else {
            continue;
        };
        let Reply::Joined { ticket, epoch, fresh, .. } = *reply else { continue };
        // A ticket that the log lacks is promise 1's business.
        if tickets.given_in(ticket, epoch).is_none() {
            continue;
        }
        if fresh == Fresh::Repeat && !is_theirs(&tickets, join, ticket) {
            found.push(Violation::new(
                PROMISE,
                format!("client {} joined again and got {ticket} of somebody else", call.client),
            ));
        }
        if let Some(identity) = join.identity {
            let (sent, at, version) = (call.sent, *at, *version);
            known.entry(identity).or_default().push(Answer { sent, at, version, join, ticket });
        }
    }
    if history.store_lost_data {
        return;
    }
    for (identity, mut answers) in known {
        answers.sort_unstable_by_key(|answer| answer.sent);
        while_it_lives_it_is_returned(&tickets, identity, &answers, found);
    }
}

fn while_it_lives_it_is_returned(
    tickets: &Tickets<'_>,
    identity: Identity,
    answers: &[Answer<'_>],
    found: &mut Vec<Violation>,
) {
    let mut earlier: Vec<&Answer<'_>> = answers.iter().collect();
    earlier.sort_unstable_by_key(|answer| answer.at);
    let mut next = 0;
    // The newest ticket that this person had been told of, by the order of the log.
    let mut told: Option<Ticket> = None;
    for answer in answers {
        while let Some(before) = earlier.get(next).filter(|before| before.at < answer.sent) {
            next += 1;
            let root = tickets.root(before.ticket);
            let born = |ticket: Ticket| tickets.get(ticket).map_or(0, |told| told.born);
            if tickets.identity(root) == Some(identity)
                && told.is_none_or(|told| born(root) > born(told))
            {
                told = Some(root);
            }
        }
        let Some(told) = told else { continue };
        let now = tickets.resolved(told, u64::MAX);
        let lives =
            tickets.get(now).is_some_and(|it| it.over.is_none_or(|over| over > answer.version));
        let by_key = same_key(tickets.key(answer.ticket), answer.join.key);
        if lives && !by_key && tickets.root(answer.ticket) != told {
            found.push(Violation::new(
                PROMISE,
                format!(
                    "a known person was told of {told}, joined again while it lived, and got {}",
                    answer.ticket
                ),
            ));
        }
    }
}

fn is_theirs(tickets: &Tickets<'_>, join: &Join, ticket: Ticket) -> bool {
    let held = join.holding.is_some_and(|held| tickets.root(held.ticket) == tickets.root(ticket));
    let known = join.identity.is_some() && join.identity == tickets.identity(ticket);
    held || known || same_key(tickets.key(ticket), join.key)
}

fn same_key(one: Option<JoinKey>, other: Option<JoinKey>) -> bool {
    one.is_some() && one == other
}
