//! Promise 10: every event is published at least once, in order, gap-free by ticket `seq`; none
//! for what did not happen.
//!
//! A sink may be sent things again after a restart, from any point it had not confirmed. So the
//! first sight of each event comes in the order of the log without a gap, a repeat is the same
//! event with the same `seq`, and by the end of the run everything has come.

use waitroom_core::{Ticket, What};

use super::quick::Map;
use crate::history::{History, Logged, Published, Violation, messages_of};

const PROMISE: u8 = 10;

type Seq = Option<(Ticket, u32)>;

pub fn check(history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    // All messages that the log makes, in order, and where those of each event begin.
    let mut messages: Vec<(u64, Seq)> = Vec::new();
    let mut begins = Vec::with_capacity(history.log.len());
    for it in &history.log {
        begins.push(messages.len());
        messages.extend(messages_of(&it.event).into_iter().map(|seq| (it.index, seq)));
    }
    let mut came = 0;
    let mut next_seq: Map<Ticket, u32> = Map::default();
    for published in &history.published {
        let Published { index, event, seq } = published;
        let mut broken = |said: &str| {
            found.push(Violation::new(PROMISE, format!("published event {index} {said}")));
        };
        let Some(place) = place_of(&history.log, *index) else {
            broken("is not in the log");
            continue;
        };
        if history.log[place].event != *event {
            broken("is not what the log says");
        }
        let end = begins.get(place + 1).copied().unwrap_or(messages.len());
        let own = &messages[begins[place]..end];
        let Some(which) = own.iter().position(|(_, it)| it == seq) else {
            broken("has another seq than its place in the ticket's life");
            continue;
        };
        let message = begins[place] + which;
        // What came before may come again; what is new comes in order.
        if message < came {
            continue;
        }
        if message > came {
            broken("came before earlier ones");
        }
        came = message + 1;
        if let Some((ticket, number)) = seq {
            if !is_about(&event.what, *ticket) {
                broken("has the seq of a ticket that it is not about");
            }
            let next = next_seq.entry(*ticket).or_insert(0);
            if number != next {
                broken(&format!("is number {number} of {ticket}, not {next}"));
            }
            *next = number.saturating_add(1);
        }
    }
    if let Some((index, _)) = messages.get(came) {
        let lost = messages.len() - came;
        let said = format!("{lost} messages never came, the first of them is of event {index}");
        found.push(Violation::new(PROMISE, said));
    }
    found
}

fn place_of(log: &[Logged], index: u64) -> Option<usize> {
    // In a whole log the event with index 1 comes first; promise 14 sees to that.
    let place = usize::try_from(index.checked_sub(1)?).ok()?;
    (log.get(place)?.index == index).then_some(place)
}

fn is_about(what: &What, ticket: Ticket) -> bool {
    match what {
        What::Moved { from, to, .. } => ticket == *from || ticket == *to,
        what => what.ticket() == Some(ticket),
    }
}
