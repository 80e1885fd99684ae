//! Gate and origin agree where each request begins and ends.
//!
//! Every case goes over a connection of its own, with the canary behind it, and is followed by a
//! victim on another connection, who must get the answer to their own request whatever is left on
//! the connections between gate and origin. Then the origin's log is held against what came back:
//! each request it saw was answered to somebody, and it never heard of what was hidden in a body.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::corpus::{self, Case, Then};
use crate::house::House;
use crate::instance::soon;
use crate::node::{Kind, Seen, Site};
use crate::wire::{Talk, talk};

/// How long a case may take when the gate rightly waits for more.
const WAITS: Duration = Duration::from_secs(2);
/// For what is answered: a machine that does ten other things.
const ANSWERED: Duration = Duration::from_secs(20);

pub struct Sent {
    pub bytes: Vec<u8>,
    hidden: String,
}

pub fn compose(case: &Case, at: usize, address: &str, pass: &str) -> Sent {
    let hidden = format!("GET /smuggled HTTP/1.1\r\nHost: {address}\r\nX-Case: s{at}\r\n\r\n");
    let named = format!("X-Case: c{at}\r\n{pass}\r\n");
    let text = case
        .template
        .replace("{H}", &format!("Host: {address}\r\n{named}"))
        .replace("{N}", &named)
        .replace("{A}", address)
        .replace("{L}", &(hidden.len() + 5).to_string())
        .replace("{X}", &format!("{:x}", hidden.len()))
        .replace("{S}", &hidden);
    let canary = format!(
        "GET /canary HTTP/1.1\r\nHost: {address}\r\nX-Case: k{at}\r\n{pass}\r\nConnection: close\r\n\r\n"
    );
    // A letter of Latin-1 is one byte on the wire, not the two of UTF-8.
    let mut bytes: Vec<u8> = text.chars().map(|letter| letter as u32 as u8).collect();
    bytes.extend(canary.bytes());
    Sent { bytes, hidden }
}

/// What the origin says that it saw, in its answer.
pub fn saw(talk: &Talk) -> Vec<(String, Option<String>)> {
    let origin_s = talk.answers.iter().filter(|answer| answer.is_origin_s());
    let read = |body: &str| -> Value { serde_json::from_str(body).expect("the origin's JSON") };
    origin_s
        .map(|answer| read(&answer.body))
        .map(|seen| {
            let case = seen["case"].as_str().unwrap_or_default().to_owned();
            (case, seen["body"].as_str().map(str::to_owned))
        })
        .collect()
}

/// `None` when all is as it should be.
fn wrong(case: &Case, at: usize, sent: &Sent, talk: &Talk) -> Option<String> {
    let statuses: Vec<u16> = talk.answers.iter().map(|answer| answer.status).collect();
    let saw = saw(talk);
    let cases: Vec<&str> = saw.iter().map(|(case, _)| &**case).collect();
    let (own, canary) = (format!("c{at}"), format!("k{at}"));
    let body_is = |wanted: &str| {
        let wanted = wanted.replace("{S}", &sent.hidden);
        // nginx does not say; the boundaries show by what follows.
        saw.first().is_some_and(|(_, body)| body.as_ref().is_none_or(|body| *body == wanted))
    };
    let fits = match case.then {
        Then::Refused => {
            let refusal = |status: &u16| matches!(status, 400 | 414 | 431 | 501 | 505);
            talk.closed && cases.is_empty() && statuses.len() <= 1 && statuses.iter().all(refusal)
        }
        Then::Passed(body) => cases == [&*own, &*canary] && statuses == [200, 200] && body_is(body),
        Then::PassedAndClosed(body) => cases == [&*own] && talk.closed && body_is(body),
        Then::Broken => cases.is_empty() && statuses.iter().all(|status| *status >= 400),
        Then::Split(body) => {
            cases == [&*own, &*canary] && statuses == [200, 503, 200] && body_is(body)
        }
    };
    (!fits).then(|| {
        let begin: String = case.template.chars().take(200).collect();
        format!(
            "{} ({begin:?}): wanted {:?}, got {statuses:?}, the origin saw {saw:?}, closed: {}",
            case.name, case.then, talk.closed
        )
    })
}

fn agree(kind: Kind) {
    let site = Site::start(kind);
    let house = House::protect(&site.part.url(), &[]);
    let pass = house.visitor();
    let address = house.address();
    let cases = corpus::all();
    let mut wrongs = Vec::new();
    let mut answered: BTreeMap<String, usize> = BTreeMap::new();
    for (at, case) in cases.iter().enumerate() {
        let sent = compose(case, at, address, &pass);
        let within = if case.then == Then::Broken { WAITS } else { ANSWERED };
        let spoken = talk(address, &sent.bytes, within, |_| false);
        wrongs.extend(wrong(case, at, &sent, &spoken));
        for (case, _) in saw(&spoken) {
            *answered.entry(case).or_default() += 1;
        }
        let victim = format!(
            "GET /victim HTTP/1.1\r\nHost: {address}\r\nX-Case: v{at}\r\n{pass}\r\nConnection: close\r\n\r\n"
        );
        let spoken = talk(address, victim.as_bytes(), ANSWERED, |_| false);
        let got = saw(&spoken);
        let own = format!("v{at}");
        if got.len() != 1 || got[0].0 != own || spoken.answers.len() != 1 {
            wrongs.push(format!("after {}: the victim got {got:?}", case.name));
        }
        *answered.entry(own).or_default() += 1;
    }
    let shown = wrongs.iter().take(20).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(wrongs.is_empty(), "{} of {} went wrong:\n{shown}", wrongs.len(), cases.len());

    // What the origin saw is what was answered, request by request. nginx writes a line of its
    // log after the answer, so the last may be on its way.
    let total: usize = answered.values().sum();
    let seen = soon("the origin's log is whole", || {
        let seen = site.seen();
        (seen.len() >= total).then_some(seen)
    });
    let mut counted: BTreeMap<String, usize> = BTreeMap::new();
    for Seen { method, url, case } in seen {
        let known = matches!(&*url, "/case" | "/canary" | "/victim");
        assert!(known && !case.starts_with('s'), "the origin saw {method} {url} of {case:?}");
        *counted.entry(case).or_default() += 1;
    }
    let unlike = counted.iter().find(|(case, count)| answered.get(*case) != Some(count));
    assert_eq!((unlike, counted.len()), (None, answered.len()));
}

#[test]
fn gate_and_nginx_agree_where_each_request_ends() {
    agree(Kind::Nginx);
}

#[test]
fn gate_and_node_agree_where_each_request_ends() {
    agree(Kind::Node);
}
