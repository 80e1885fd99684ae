//! What some people try. All of it must be refused, and none of it may hurt their own place.
//!
//! A call that presents something false says so in the history (`sent.forged`), and the judge
//! holds the server to its refusal. The rest is noise that a server must bear.
//! To add a trick: a variant of [`Trick`], its arm.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::history::{Got, Sent, Verb};
use crate::wire::{Answer, Ask, Stream};

use super::{Held, Visitor};

#[derive(Clone, Copy, Debug)]
enum Trick {
    AlteredToken,
    TruncatedToken,
    GarbageToken,
    OtherRoom,
    OthersSession,
    GarbageJson,
    HugeBody,
    WeakKey,
    DoubleJoin,
    EarlyClaim,
    ReplayedLiveTicket,
}

const TRICKS: [Trick; 11] = [
    Trick::AlteredToken,
    Trick::TruncatedToken,
    Trick::GarbageToken,
    Trick::OtherRoom,
    Trick::OthersSession,
    Trick::GarbageJson,
    Trick::HugeBody,
    Trick::WeakKey,
    Trick::DoubleJoin,
    Trick::EarlyClaim,
    Trick::ReplayedLiveTicket,
];

impl Visitor {
    pub(super) async fn misbehave(&mut self) {
        for _ in 0..1 + self.rng.below(4) {
            let trick = TRICKS[self.rng.below(TRICKS.len() as u64) as usize];
            let pause = self.rng.below(500);
            if !self.stop.sleep(pause).await {
                return;
            }
            let Some(held) = self.held.clone() else { return };
            let Some(token) = held.token.clone() else { return };
            self.try_out(trick, held, token).await;
        }
    }

    async fn try_out(&mut self, trick: Trick, held: Held, token: String) {
        match trick {
            Trick::AlteredToken => {
                let ask = Ask::get(self.path("status")).bearer(self.altered(&token));
                self.forge(Verb::Status, ask, "altered token").await;
            }
            Trick::TruncatedToken => {
                let left = self.rng.below(token.len() as u64) as usize;
                let ask = Ask::post(self.path("claim")).bearer(&token[..left]);
                self.forge(Verb::Claim, ask, "truncated token").await;
            }
            Trick::GarbageToken => {
                let garbage = format!("wt1_{:x}", self.rng.next());
                let ask = Ask::post(self.path("leave")).bearer(garbage);
                self.forge(Verb::Leave, ask, "garbage token").await;
            }
            Trick::OtherRoom => {
                let plan = &self.world.plan;
                let path = format!("{}/v1/rooms/{}/status", plan.base, plan.other_room);
                let ask = Ask::get(path).bearer(token);
                self.forge(Verb::Status, ask, "token of another room").await;
            }
            Trick::OthersSession => {
                let id = self.altered(&held.id);
                let path = format!("{}/v1/sessions/{id}/complete", self.world.plan.base);
                let ask = Ask::post(path).bearer(token);
                self.forge(Verb::Complete, ask, "session of somebody else").await;
            }
            Trick::GarbageJson => {
                let ask = self.strange_join("{\"lane\": [}".into());
                self.refused_for_sure(ask, &[400]).await;
            }
            Trick::HugeBody => {
                let body = format!("{{\"metadata\":{{\"x\":\"{}\"}}}}", "x".repeat(200_000));
                let ask = self.strange_join(body);
                self.refused_for_sure(ask, &[400, 413]).await;
            }
            Trick::WeakKey => {
                let ask = Ask { key: Some("1234".into()), ..Ask::post(self.path("join")) };
                self.refused_for_sure(ask, &[400]).await;
            }
            Trick::DoubleJoin => self.join_twice_at_once(&held).await,
            Trick::EarlyClaim => {
                let ask = self.with_token(Ask::post(self.path("claim")));
                let sent = Sent { ticket: Some(held.id.into()), ..Sent::default() };
                self.ask(&self.world.pool, Verb::Claim, ask, sent).await;
            }
            Trick::ReplayedLiveTicket => self.replay_live_ticket(&held, &token).await,
        }
    }

    fn strange_join(&mut self, body: String) -> Ask {
        let key = Some(format!("{}-strange-{:x}", self.key, self.rng.next()));
        Ask { key, ..Ask::post(self.path("join")).body(body) }
    }

    /// A call that must be refused because what it presents is false.
    async fn forge(&self, verb: Verb, ask: Ask, how: &'static str) {
        self.world.tally.forgeries.fetch_add(1, Ordering::Relaxed);
        let ticket = self.held.as_ref().map(|held| held.id.clone().into());
        let sent = Sent { ticket, forged: Some(how.into()), ..Sent::default() };
        if let Some((reply, _)) = self.ask(&self.world.pool, verb, ask, sent).await
            && (200..300).contains(&reply.http)
        {
            let said = format!("visitor {}: {how}, answered {}", self.who, reply.http);
            self.world.tally.surprise(said);
        }
    }

    /// A call that cannot be meant. The server may be too busy to look.
    async fn refused_for_sure(&self, ask: Ask, expected: &[u16]) {
        let asked = self.ask(&self.world.pool, Verb::Other, ask, Sent::default()).await;
        if let Some((reply, _)) = asked
            && !expected.contains(&reply.http)
            && !matches!(reply.http, 429 | 503)
        {
            let said = format!("visitor {}: nonsense, answered {}", self.who, reply.http);
            self.world.tally.surprise(said);
        }
    }

    async fn join_twice_at_once(&self, held: &Held) {
        let join = || {
            let ask = Ask { key: Some(self.key.clone()), ..Ask::post(self.path("join")) };
            self.ask(&self.world.pool, Verb::Join, ask, Sent::default())
        };
        let (one, other) = tokio::join!(join(), join());
        for (_, answer) in [one, other].into_iter().flatten() {
            if let Answer::Ticket(ticket) = answer
                && ticket.ticket != held.id
            {
                let said = format!("visitor {}: a second ticket by one key", self.who);
                self.world.tally.surprise(said);
            }
        }
    }

    /// A live ticket opens one channel. The second time it must not.
    async fn replay_live_ticket(&self, held: &Held, token: &str) {
        let (pool, tally) = (&self.world.pool, &self.world.tally);
        let ask = Ask::post(self.path("live-ticket")).bearer(token);
        let sent = Sent { ticket: Some(held.id.clone().into()), ..Sent::default() };
        let asked = self.ask(pool, Verb::LiveTicket, ask, sent.clone()).await;
        let Some((reply, _)) = asked.filter(|(reply, _)| reply.http == 200) else { return };
        let given: serde_json::Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let Some(live) = given["live_ticket"].as_str() else {
            tally.surprise(format!("visitor {}: no live ticket", self.who));
            return;
        };
        let path = self.path(&format!("stream?live_ticket={live}"));
        let address = self.address.as_deref();
        let Ok(Ok(mut first)) = Stream::open(pool, &path, None, address).await else { return };
        let _ = first.first(Duration::from_secs(1)).await;
        drop(first);
        tally.forgeries.fetch_add(1, Ordering::Relaxed);
        let t0 = self.world.start.ns();
        let second = Stream::open(pool, &path, None, address).await;
        let t1 = self.world.start.ns();
        let Ok(second) = second else { return };
        let http = second.map_or_else(|status| status, |_| 200);
        let sent = Sent { forged: Some("live ticket used twice".into()), ..sent };
        let got = Got { http: Some(http), ..Got::default() };
        self.note(Verb::Live, (t0, t1), None, sent, Some(got)).await;
        if http == 200 {
            tally.surprise(format!("visitor {}: a live ticket opened twice", self.who));
        }
    }

    /// The text with one letter in its middle changed.
    fn altered(&mut self, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        // Neither the prefix, which says what it is, nor the last letter, which has idle bits.
        let (from, to) = (bytes.len() / 3, bytes.len() - 2);
        let at = from + self.rng.below((to - from) as u64) as usize;
        let at = if bytes[at] == b'-' { at + 1 } else { at };
        bytes[at] = if bytes[at] == b'a' { b'b' } else { b'a' };
        String::from_utf8(bytes).expect("one letter for another")
    }
}
