//! A room in fifty lines, honest unless told to lie.

use std::collections::HashMap;
use std::time::Instant;

use serde_json::{Value, json};

/// What is wrong with the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    None,
    /// Every seventh place is gone when one looks again.
    Forgets,
    /// A repeated join gets another place.
    IgnoresKeys,
    /// A second claim gets another pass.
    NewPassEachTime,
    /// One more inside than may be.
    OneTooMany,
    /// Twice as fast as it should.
    Hurries,
    /// The last comes first.
    LastFirst,
    /// Every third look shows a higher position.
    Rises,
    /// People enter while it is paused.
    IgnoresPause,
    /// Any token will do.
    AcceptsAnything,
    /// Two people get one number.
    SameNumber,
}

#[derive(Debug)]
pub struct Room {
    lie: Lie,
    head: u64,
    tickets: Vec<Ticket>,
    keys: HashMap<String, usize>,
    paused: bool,
    looks: u64,
    claims: u64,
    tokens: f64,
    at: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Ticket {
    status: &'static str,
}

/// Admissions per second, one at once.
const RATE: f64 = 40.0;

pub type Answer = (u16, Value);

impl Room {
    pub fn new(lie: Lie) -> Room {
        Room {
            lie,
            head: 4,
            tickets: Vec::new(),
            keys: HashMap::new(),
            paused: false,
            looks: 0,
            claims: 0,
            tokens: 0.0,
            at: Instant::now(),
        }
    }

    /// Few slots, so that they are all taken; many where only the pace shall matter.
    fn max_active(&self) -> usize {
        if self.lie == Lie::Hurries { 1_000 } else { 5 }
    }

    pub fn settings(&self) -> Value {
        let rate = format!("{RATE}/s");
        json!({ "settings": {
            "max_active": self.max_active(), "rate": rate, "burst": 1, "tick": "20ms", "memory": "1h",
            "shuffle_window": 1, "no_show": "keep",
        }})
    }

    /// Lets in who may enter by now.
    pub fn tick(&mut self) {
        let rate = if self.lie == Lie::Hurries { 3.0 * RATE } else { RATE };
        self.tokens = (self.tokens + rate * self.at.elapsed().as_secs_f64()).min(1.0);
        self.at = Instant::now();
        if self.paused && self.lie != Lie::IgnoresPause {
            self.tokens = 0.0;
            return;
        }
        let inside = self.tickets.iter().filter(|it| it.status == "active").count();
        let max = self.max_active() + usize::from(self.lie == Lie::OneTooMany);
        let mut waiting = self.tickets.iter().enumerate().filter(|(_, it)| it.status == "waiting");
        let next = if self.lie == Lie::LastFirst { waiting.next_back() } else { waiting.next() };
        if let Some(next) = next.map(|(at, _)| at)
            && self.tokens >= 1.0
            && inside < max
        {
            self.tokens -= 1.0;
            self.tickets[next].status = "active";
            self.head += 1;
        }
    }

    pub fn pause(&mut self, paused: bool) -> Answer {
        self.paused = paused;
        self.head += 1;
        (200, json!({ "version": self.head }))
    }

    pub fn join(&mut self, key: &str) -> Answer {
        if key.len() < 22 {
            return problem(400, "idempotency_key_weak");
        }
        if let Some(at) = self.keys.get(key).copied()
            && self.lie != Lie::IgnoresKeys
        {
            return (200, self.answer(at));
        }
        self.head += 1;
        let at = self.tickets.len();
        self.tickets.push(Ticket { status: "waiting" });
        self.keys.insert(key.to_owned(), at);
        (201, self.answer(at))
    }

    pub fn status(&mut self, token: Option<&str>) -> Answer {
        match self.holder(token) {
            Some(at) if self.lie == Lie::Forgets && at % 7 == 6 => problem(404, "ticket_unknown"),
            Some(at) => {
                self.looks += 1;
                let mut answer = self.answer(at);
                if self.lie == Lie::Rises && self.looks.is_multiple_of(3) {
                    let ahead = answer["position"].as_u64().unwrap_or(0) + 3;
                    (answer["position"], answer["ahead"]) = ((ahead + 1).into(), ahead.into());
                }
                (200, answer)
            }
            None => problem(401, "token_invalid"),
        }
    }

    pub fn claim(&mut self, token: Option<&str>) -> Answer {
        let Some(at) = self.holder(token) else { return problem(401, "token_invalid") };
        if self.tickets[at].status != "active" {
            return problem(409, "wrong_status");
        }
        self.claims += 1;
        let later = if self.lie == Lie::NewPassEachTime { self.claims } else { 0 };
        let mut answer = self.answer(at);
        let claims = json!({ "iat": 1_000 + later, "exp": 2_000 + later }).to_string();
        let claims = base64::Engine::encode(&base64::prelude::BASE64_URL_SAFE_NO_PAD, claims);
        answer["pass"] = format!("eyJ.{claims}.{at}").into();
        (200, answer)
    }

    pub fn end(&mut self, token: Option<&str>, session: Option<&str>) -> Answer {
        let Some(at) = self.holder(token) else { return problem(401, "token_invalid") };
        if session.is_some_and(|session| session != id(at)) && self.lie != Lie::AcceptsAnything {
            return problem(404, "ticket_unknown");
        }
        let status = match self.tickets[at].status {
            "waiting" => "left",
            _ => "completed",
        };
        if self.tickets[at].status != status {
            self.tickets[at].status = status;
            self.head += 1;
        }
        (200, self.answer(at))
    }

    fn holder(&self, token: Option<&str>) -> Option<usize> {
        let token = token.unwrap_or_default();
        // A pass names its ticket at the end.
        if let Some((_, at)) = token.strip_prefix("eyJ.").and_then(|rest| rest.split_once('.')) {
            return at.parse().ok().filter(|at| *at < self.tickets.len());
        }
        let found = (0..self.tickets.len()).find(|at| self.token(*at) == token);
        found.or((self.lie == Lie::AcceptsAnything && !self.tickets.is_empty()).then_some(0))
    }

    fn token(&self, at: usize) -> String {
        format!("wt1_{:032x}", (at as u128 + 1).wrapping_mul(0x9e3779b97f4a7c15f39cc0605cedc835))
    }

    fn answer(&self, at: usize) -> Value {
        let status = self.tickets[at].status;
        let waiting = status == "waiting";
        let ahead = self.tickets[..at].iter().filter(|it| it.status == "waiting").count();
        let position = match status {
            "waiting" => json!(ahead + 1),
            "active" => json!(0),
            _ => Value::Null,
        };
        let order = if self.lie == Lie::SameNumber { at / 2 } else { at };
        json!({
            "ticket": id(at),
            "token": self.token(at),
            "room": "r",
            "version": self.head,
            "status": status,
            "place": { "lane": 0, "order": order },
            "position": position,
            "ahead": waiting.then_some(ahead),
            "wait": null,
            "wait_unknown_because": "no_data",
            "next_check_ms": 40,
            "room_status": if self.paused { "paused" } else { "running" },
        })
    }
}

fn id(at: usize) -> String {
    format!("{at:08x}-0000-4000-8000-{:012x}", at * 7_919)
}

pub fn problem(status: u16, code: &str) -> Answer {
    (status, json!({ "code": code, "status": status, "title": code }))
}
