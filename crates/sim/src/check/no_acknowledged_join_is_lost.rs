//! Promise 1: no acknowledged join is lost; its number never changes; a refused join never appears.
//!
//! Clients decide. Whoever was told "you have joined" is in the log, by the version of the answer,
//! with the number and the epoch of the answer, as the person that asked; no two of them on one
//! number. What is asked of a ticket later is answered about the same one, or where it was moved.
//! A join in the log that no answer told of must be one whose outcome is unknown: there are never
//! more of those, per person (identity, key, metadata), than calls that ended unknown. A call
//! makes at most one ticket; a retry is a call of its own.
//! A place that lapses was silent; see `heard.rs`.
//! When the store lost data on purpose, a missing place is not a violation as such; then nobody
//! who presents it may be answered as if it were still theirs, once the log has gone on without it.

use waitroom_core::{
    Command, Epoch, Fresh, Identity, Join, JoinKey, Joined, Refusal, Reply, Ticket,
};

use super::quick::{Map, Set};
use super::told::{Tickets, answered, presented};
use crate::history::{Call, History, Moment, Outcome, Violation};

const PROMISE: u8 = 1;

pub fn check(history: &History) -> Vec<Violation> {
    let tickets = Tickets::of(history);
    let mut found = Vec::new();
    let mut told_of = Set::default();
    let mut people: Map<Person<'_>, Tally> = Map::default();
    let mut lost = Set::default();
    for call in &history.calls {
        let Command::Join(join) = &call.command else { continue };
        match &call.outcome {
            Outcome::Answered { reply, version, .. } => {
                let Reply::Joined { ticket, epoch, fresh, .. } = *reply else { continue };
                match tickets.given_in(ticket, epoch) {
                    None if history.store_lost_data => {
                        lost.insert((ticket, epoch));
                    }
                    None => found.push(lost_join(call, ticket, epoch)),
                    Some(told) if told.born > *version && !history.store_lost_data => {
                        found.push(Violation::new(
                            PROMISE,
                            format!(
                                "client {} was told of {ticket} at version {version}, but it is \
                                 event {} of the log",
                                call.client, told.born
                            ),
                        ));
                    }
                    Some(told) if fresh == Fresh::New => {
                        let same =
                            told.joined.is_some_and(|it| Person::of(it) == Person::asks(join));
                        if !same {
                            found.push(Violation::new(
                                PROMISE,
                                format!(
                                    "client {} was told of {ticket}, but the log gave it to \
                                     somebody else",
                                    call.client
                                ),
                            ));
                        }
                        if !told_of.insert(ticket) {
                            found.push(Violation::new(
                                PROMISE,
                                format!("two joins were both told that {ticket} is new and theirs"),
                            ));
                        }
                    }
                    Some(_) => {}
                }
            }
            Outcome::Unknown => people.entry(Person::asks(join)).or_default().unknown += 1,
            Outcome::NotDone { .. } => {}
        }
    }
    for (ticket, told) in tickets.iter() {
        if let Some(joined) = told.joined
            && !told_of.contains(&ticket)
        {
            let tally = people.entry(Person::of(joined)).or_default();
            tally.untold += 1;
            tally.last = tally.last.max(Some(ticket));
        }
    }
    for tally in people.values().filter(|tally| tally.untold > tally.unknown) {
        let last = tally.last.expect("an untold join has a ticket");
        found.push(Violation::new(
            PROMISE,
            format!(
                "the log holds {} joins of one person that no answer told of, the last is {last}, \
                 but only {} calls ended unknown: a refused join appeared",
                tally.untold, tally.unknown
            ),
        ));
    }
    if history.store_lost_data {
        lost_places_stay_lost(history, &lost, &mut found);
    } else {
        numbers_never_change(history, &tickets, &mut found);
    }
    found.extend(super::heard::check(history));
    found
}

/// What a join tells of its sender. Joins that agree in it cannot be told apart, and are counted.
#[derive(PartialEq, Eq, Hash)]
struct Person<'a> {
    identity: Option<Identity>,
    key: Option<JoinKey>,
    metadata: Option<&'a [u8]>,
}

#[derive(Default)]
struct Tally {
    unknown: u64,
    untold: u64,
    last: Option<Ticket>,
}

impl<'a> Person<'a> {
    fn of(joined: &'a Joined) -> Person<'a> {
        let Joined { identity, key, metadata, .. } = joined;
        Person { identity: *identity, key: *key, metadata: metadata.as_deref() }
    }

    fn asks(join: &'a Join) -> Person<'a> {
        let Join { identity, key, metadata, .. } = join;
        Person { identity: *identity, key: *key, metadata: metadata.as_deref() }
    }
}

fn lost_join(call: &Call, ticket: Ticket, epoch: Epoch) -> Violation {
    let client = call.client;
    let said = format!(
        "client {client} was told of {ticket} in epoch {}, and the log has no such ticket",
        epoch.0
    );
    Violation::new(PROMISE, said)
}

fn numbers_never_change(history: &History, tickets: &Tickets<'_>, found: &mut Vec<Violation>) {
    for call in &history.calls {
        let Outcome::Answered { reply, .. } = &call.outcome else { continue };
        let (Some(asked), Some(answer)) = (presented(&call.command), answered(reply)) else {
            continue;
        };
        if tickets.root(asked.ticket) != tickets.root(answer) {
            found.push(Violation::new(
                PROMISE,
                format!(
                    "client {} asked about {} and was answered about {answer}",
                    call.client, asked.ticket
                ),
            ));
        }
    }
}

/// An epoch that is in the log began before or after the loss. If it is newer than the epoch of a
/// place that the log lacks, it began after: everything of its past is still there. So whoever
/// presents such a place after somebody heard of that epoch is refused, and not by a word about
/// the ticket that may have got the number since.
fn lost_places_stay_lost(
    history: &History,
    lost: &Set<(Ticket, Epoch)>,
    found: &mut Vec<Violation>,
) {
    let kept: Set<Epoch> = history.log.iter().map(|it| it.epoch).collect();
    let mut began: Vec<(Moment, Epoch)> = Vec::new();
    for call in &history.calls {
        if let Outcome::Answered {
            at, reply: Reply::Joined { epoch, fresh: Fresh::New, .. }, ..
        } = &call.outcome
            && kept.contains(epoch)
        {
            began.push((*at, *epoch));
        }
    }
    began.sort_unstable();
    let mut newest = Epoch(0);
    for (_, epoch) in &mut began {
        newest = newest.max(*epoch);
        *epoch = newest;
    }
    for call in &history.calls {
        let Some(asked) = presented(&call.command) else { continue };
        if !lost.contains(&(asked.ticket, asked.epoch)) {
            continue;
        }
        let earlier = began.partition_point(|(at, _)| *at < call.sent);
        let known = earlier.checked_sub(1).map(|last| began[last].1);
        let Outcome::Answered { reply, .. } = &call.outcome else { continue };
        if known.is_some_and(|epoch| epoch > asked.epoch) && speaks_of_the_ticket(reply) {
            found.push(Violation::new(
                PROMISE,
                format!(
                    "{} of epoch {} was lost, and client {} was not told so: {reply:?}",
                    asked.ticket, asked.epoch.0, call.client
                ),
            ));
        }
    }
}

fn speaks_of_the_ticket(reply: &Reply) -> bool {
    match reply {
        Reply::Refused(refusal) => matches!(
            refusal,
            Refusal::WrongStatus { .. } | Refusal::MovedElsewhere | Refusal::ClaimTooLate { .. }
        ),
        _ => true,
    }
}
