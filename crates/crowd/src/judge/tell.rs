//! Histories in words, for tests: one line per call.
//!
//! ```text
//! room max_active=2 pace=10/1000+1 memory=60000
//! ana 0..10 join key=k -> 201 t=A v=5 waiting 0:0 pos=1
//! op 20..30 pause -> 200
//! ana 40..50 status A -> lost
//! ```
//! Times are milliseconds. Behind the arrow stand a number (HTTP), a status of the ticket or the
//! room, a place, `t= v= pos= iat= exp= granted=`, or the code of a problem.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::history::{Call, Got, Header, Pace, RoomFacts, Sent, Verb};

use super::{Bench, Clocks, Verdict};

/// A story that breaks nothing.
pub(super) const KEPT: [u8; 0] = [];

/// The promises that a story breaks, each once.
pub(super) fn broken(story: &str) -> Vec<u8> {
    let verdict = judged(&[story]);
    for violation in verdict.found.first() {
        println!("{violation}");
    }
    verdict.found.counts().map(|(promise, _)| promise).collect()
}

/// Several files, one story each.
pub(super) fn judged(stories: &[&str]) -> Verdict {
    judged_by(Clocks::Each, stories.iter().map(|story| (0, *story)))
}

/// The same by these clocks; each began at a moment of its own, in milliseconds.
pub(super) fn judged_by<'a>(
    clocks: Clocks,
    stories: impl IntoIterator<Item = (u64, &'a str)>,
) -> Verdict {
    let mut bench = Bench::new(clocks);
    for (started_ms, story) in stories {
        let text =
            history(story).replacen("\"started_ms\":0", &format!("\"started_ms\":{started_ms}"), 1);
        bench.hear("story", text.as_bytes()).expect("stories are well formed");
    }
    bench.close()
}

/// The story as a file.
pub(super) fn history(story: &str) -> String {
    let mut header = Header { history: 1, by: "a story".into(), ..Header::default() };
    let mut people: BTreeMap<&str, u64> = BTreeMap::new();
    let mut calls = String::new();
    for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(facts) = line.strip_prefix("room") {
            header.rooms.insert("r".into(), facts_of(facts));
            continue;
        }
        let (asked, answer) = line.split_once("->").expect("a call has an arrow");
        let mut words = asked.split_whitespace();
        let mut next = || words.next().expect("who, when and what");
        let (who, when, verb) = (next(), next(), next());
        let count = people.len() as u64;
        let who = *people.entry(who).or_insert(count);
        let (t0, t1) = when.split_once("..").expect("from..to");
        let mut call = Call {
            t0: ms(t0),
            t1: ms(t1),
            who,
            call: serde_json::from_value::<Verb>(verb.into()).expect("a verb"),
            room: "r".into(),
            ..Call::default()
        };
        assert_ne!(call.call, Verb::Other, "{verb} is no verb");
        for word in words {
            send(&mut call, word);
        }
        if answer.trim() == "lost" {
            call.lost = true;
        } else {
            call.got = Some(got(answer, &call.sent));
        }
        calls += &serde_json::to_string(&call).expect("plain data");
        calls.push('\n');
    }
    format!("{}\n{calls}", serde_json::to_string(&header).expect("plain data"))
}

fn ms(text: &str) -> u64 {
    text.parse::<u64>().expect("milliseconds") * 1_000_000
}

fn facts_of(text: &str) -> RoomFacts {
    let mut facts = RoomFacts { shuffled: Some(false), ..RoomFacts::default() };
    for word in text.split_whitespace() {
        match word.split_once('=').unwrap_or((word, "")) {
            ("max_active", it) => facts.max_active = Some(it.parse().expect("a number")),
            ("memory", it) => facts.memory_ms = Some(it.parse().expect("a number")),
            ("pace", it) => {
                let parts: Vec<u64> =
                    it.split(['/', '+']).map(|part| part.parse().expect("a number")).collect();
                facts.pace = Some(Pace { count: parts[0], per_ms: parts[1], burst: parts[2] });
            }
            ("shuffled", _) => facts.shuffled = Some(true),
            _ => panic!("{word} is no fact"),
        }
    }
    facts
}

fn send<'a>(call: &mut Call<'a>, word: &'a str) {
    match word.split_once('=') {
        Some(("key", key)) => call.key = Some(key.into()),
        Some(("user", user)) => call.sent.user = Some(user.into()),
        Some(("forged", how)) => call.sent.forged = Some(how.into()),
        Some(("count", count)) => call.sent.count = Some(count.parse().expect("a number")),
        Some(("facts", facts)) => call.sent.facts = Some(facts_of(&facts.replace(',', " "))),
        Some((other, _)) => panic!("{other} is nothing to send"),
        None => call.sent.ticket = Some(word.into()),
    }
}

fn got<'a>(text: &'a str, sent: &Sent<'a>) -> Got<'a> {
    let mut got = Got::default();
    let number = |text: &str| text.parse::<u64>().ok();
    for word in text.split_whitespace() {
        let cow = Some(Cow::from(word));
        match word.split_once(['=', ':']) {
            Some(("t", ticket)) => got.ticket = Some(ticket.into()),
            Some(("v", it)) => got.version = number(it),
            Some(("pos", it)) => got.position = number(it),
            Some(("iat", it)) => got.iat = number(it),
            Some(("exp", it)) => got.exp = number(it),
            Some(("granted", it)) => got.granted = number(it),
            Some((lane, order)) => {
                (got.lane, got.order) = (lane.parse().ok(), number(order));
            }
            None => match (word, word.parse::<u16>()) {
                (_, Ok(http)) => got.http = Some(http),
                ("draw", _) => got.draw_pending = true,
                ("paused" | "running", _) => got.room_status = cow,
                _ if super::seen::Standing::of(word).is_some() => got.status = cow,
                _ => got.code = cow,
            },
        }
    }
    if got.status.is_some() && got.ticket.is_none() {
        got.ticket = sent.ticket.clone();
    }
    got
}
