//! Promise 10, judged by what a sink received: everything at least once, each for the first time in
//! the order of the log, gap-free by ticket `seq`, repeats equal, nothing that did not happen.
//!
//! Works on ids and sequence numbers alone, so that it can judge what a foreign client read from a
//! bus. The planted bugs below show that it finds what it looks for.

use std::collections::{BTreeMap, BTreeSet};

use waitroom_core::{Epoch, Event};
use waitroom_outbox::translate::{Place, translate};
use waitroom_outbox::{Message, Names};
use waitroom_store::RoomName;

/// One message, as far as the checker looks at it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    pub id: String,
    /// The ticket and its count.
    pub seq: Option<(String, u32)>,
    /// Whatever must be equal in a repeat.
    pub body: String,
}

impl Seen {
    pub fn of(message: &Message) -> Seen {
        let about = message.about.as_ref();
        let seq = about.and_then(|about| Some((about.id.to_string(), about.seq?)));
        let body = format!("{:?} {:?} {:?}", message.kind, message.at, message.fact);
        Seen { id: message.id.to_string(), seq, body }
    }
}

/// All messages that a log makes, in order.
pub fn expected(room: &RoomName, log: &[(u64, Epoch, Event)], names: &dyn Names) -> Vec<Message> {
    let mut all = Vec::new();
    for (head, epoch, event) in log {
        let place = Place { room, head: *head, epoch: *epoch };
        translate(place, event, names, &mut all).expect("the board knows everybody by now");
    }
    all
}

/// What is wrong with what came, if `should` is all that happened.
pub fn check(should: &[Seen], came: &[Seen]) -> Vec<String> {
    let mut wrong = Vec::new();
    let places: BTreeMap<&str, usize> =
        should.iter().enumerate().map(|(at, it)| (it.id.as_str(), at)).collect();
    let (mut next, mut told) = (0, BTreeSet::new());
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for seen in came {
        let Some(&place) = places.get(seen.id.as_str()) else {
            wrong.push(format!("{} did not happen", seen.id));
            continue;
        };
        if should[place] != *seen {
            wrong.push(format!("{} is not what happened: {seen:?}", seen.id));
        }
        if !told.insert(place) {
            continue;
        }
        if place != next {
            wrong.push(format!("{} came when {next} was next", seen.id));
        }
        next = place + 1;
        if let Some((ticket, seq)) = &seen.seq {
            let count = counts.entry(ticket).or_default();
            if seq != count {
                wrong.push(format!("{} is number {seq} of its ticket, not {count}", seen.id));
            }
            *count = seq + 1;
        }
    }
    let lost = should.len() - told.len();
    if lost > 0 {
        wrong.push(format!("{lost} of {} never came", should.len()));
    }
    wrong
}

fn a_story() -> Vec<Seen> {
    let seen = |head: u64, ticket: &str, seq| Seen {
        id: format!("r:{head}:0"),
        seq: Some((ticket.to_owned(), seq)),
        body: format!("{head}"),
    };
    vec![
        seen(3, "ana", 0),
        seen(4, "bo", 0),
        seen(5, "ana", 1),
        seen(6, "ana", 2),
        seen(7, "bo", 1),
    ]
}

#[test]
fn a_sink_that_gets_things_again_from_any_point_passes() {
    let story = a_story();
    assert_eq!(check(&story, &story), Vec::<String>::new());
    for from in 0..story.len() {
        for until in from..=story.len() {
            let again = [&story[..until], &story[from..]].concat();
            assert_eq!(check(&story, &again), Vec::<String>::new(), "{from}..{until}");
        }
    }
}

#[test]
fn a_message_that_never_came_is_found_wherever_it_was() {
    for gone in 0..a_story().len() {
        let mut came = a_story();
        came.remove(gone);
        assert!(!check(&a_story(), &came).is_empty(), "{gone}");
    }
}

/// The bug that is off by one: a cursor that moves one event too far skips just that one.
#[test]
fn a_cursor_that_is_one_too_far_is_found() {
    let story = a_story();
    for restart in 1..story.len() - 1 {
        let came = [&story[..restart], &story[restart + 1..]].concat();
        assert!(!check(&story, &came).is_empty(), "{restart}");
    }
}

#[test]
fn neighbours_in_the_wrong_order_are_found() {
    for first in 0..a_story().len() - 1 {
        let mut came = a_story();
        came.swap(first, first + 1);
        assert!(!check(&a_story(), &came).is_empty(), "{first}");
    }
}

#[test]
fn a_repeat_that_differs_and_a_message_from_nowhere_are_found() {
    let mut came = a_story();
    came.push(Seen { body: "another".into(), ..came[0].clone() });
    assert!(!check(&a_story(), &came).is_empty());
    let mut came = a_story();
    came.push(Seen { id: "r:9:0".into(), ..came[0].clone() });
    assert!(!check(&a_story(), &came).is_empty());
    let mut came = a_story();
    came[2].seq = Some(("ana".into(), 2));
    assert!(!check(&a_story(), &came).is_empty());
}
