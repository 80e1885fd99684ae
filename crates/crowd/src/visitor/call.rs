//! The one door for HTTP calls: timed, checked on the spot, written down.

use std::sync::atomic::Ordering;

use crate::history::{Call, Got, Sent, Verb};
use crate::spot::{Asked, Spot};
use crate::tally::End;
use crate::wire::{Answer, Ask, Pool, Problem, Reply, Ticket, Unheard};

use super::{Held, Visitor};

/// What a visitor makes of an answer.
#[derive(Debug)]
pub(super) enum Heard {
    Ticket(Box<Ticket>),
    Problem(Problem),
    /// No answer, or one that says nothing.
    Nothing,
}

impl Visitor {
    /// The path of a route of the room.
    pub(super) fn path(&self, route: &str) -> String {
        let plan = &self.world.plan;
        format!("{}/v1/rooms/{}/{route}", plan.base, plan.room)
    }

    /// A look that names the newest version seen: nothing older may come back unmarked.
    pub(super) fn status_ask(&self, more: &str) -> Ask {
        let version = self.spot.newest();
        self.with_token(Ask::get(self.path(&format!("status?version={version}{more}"))))
    }

    /// Asks with the ticket's token.
    pub(super) fn with_token(&self, ask: Ask) -> Ask {
        let token = self.held.as_ref().and_then(|held| held.token.clone());
        Ask { bearer: token.or(ask.bearer), ..ask }
    }

    /// A call about the own ticket: the answer is believed, and held against what was told before.
    pub(super) async fn call(&mut self, verb: Verb, ask: Ask) -> Heard {
        let pool = self.world.pool.clone();
        self.call_on(&pool, verb, ask).await
    }

    pub(super) async fn call_on(&mut self, pool: &Pool, verb: Verb, ask: Ask) -> Heard {
        let ticket = self.held.as_ref().map(|held| held.id.clone().into());
        let sent = Sent { ticket, ..Sent::default() };
        match self.ask(pool, verb, ask, sent).await {
            Some((_, Answer::Ticket(ticket))) => {
                self.believe(verb, &ticket);
                Heard::Ticket(ticket)
            }
            Some((_, Answer::Problem(problem))) => Heard::Problem(problem),
            Some((_, Answer::Strange(_))) | None => Heard::Nothing,
        }
    }

    /// Takes over what an answer or a frame says of the own ticket.
    pub(super) fn believe(&mut self, verb: Verb, ticket: &Ticket) {
        // Every look by status says what was seen before; other answers may be of an older picture.
        let asked = if verb == Verb::Status { Asked::Since } else { Asked::Plainly };
        if let Some(wrong) = self.spot.take(&self.world.plan.room, ticket, asked) {
            let said = format!("visitor {} {}: {wrong}", self.who, verb.name());
            self.world.tally.surprise(said);
        }
        self.next_check_ms = ticket.next_check_ms.unwrap_or(self.next_check_ms);
        let none = || Held { id: String::new(), token: None, pass: None };
        let held = self.held.get_or_insert_with(none);
        held.id = ticket.ticket.clone();
        held.token = ticket.token.clone().or(held.token.take());
        held.pass = ticket.pass.clone().or(held.pass.take());
    }

    /// Any call at all. None when no answer came; that is written down too.
    pub(super) async fn ask(
        &self,
        pool: &Pool,
        verb: Verb,
        ask: Ask,
        sent: Sent<'static>,
    ) -> Option<(Reply, Answer)> {
        let ask = Ask { forwarded_for: self.address.clone(), ..ask };
        let tally = &self.world.tally;
        let name = ask.counted_as.unwrap_or(verb.name());
        match pool.ask(&ask).await {
            Ok(reply) => {
                let answer = Answer::of(&reply);
                let fine = (200..300).contains(&reply.http);
                tally.call(name, End::of(fine), reply.t1 - reply.t0);
                if let Answer::Problem(problem) = &answer {
                    tally.problem(&problem.code);
                }
                // Other routes have other shapes when they are fine.
                let known = !fine || !matches!(verb, Verb::LiveTicket | Verb::Other);
                if let Some(wrong) = Spot::shape(&reply, &answer).filter(|_| known) {
                    tally.surprise(format!("visitor {} {}: {wrong}", self.who, verb.name()));
                }
                let got = Some(answer.got(reply.http));
                self.note(verb, (reply.t0, reply.t1), ask.key, sent, got).await;
                Some((reply, answer))
            }
            Err(Unheard::NotSent(_)) => {
                tally.unreachable.fetch_add(1, Ordering::Relaxed);
                None
            }
            Err(Unheard::Lost { t0, t1, .. }) => {
                tally.call(name, End::Lost, t1 - t0);
                self.note(verb, (t0, t1), ask.key, sent, None).await;
                None
            }
        }
    }

    /// Writes a call down; without an answer it is lost.
    pub(super) async fn note(
        &self,
        verb: Verb,
        (t0, t1): (u64, u64),
        key: Option<String>,
        sent: Sent<'static>,
        got: Option<Got<'static>>,
    ) {
        if self.world.recorder.is_recording() {
            let (lost, room) = (got.is_none(), self.world.plan.room.clone().into());
            let (who, key) = (self.who, key.map(Into::into));
            let call = Call { t0, t1, who, call: verb, room, key, sent, got, lost };
            self.world.recorder.note(call).await;
        }
    }
}
