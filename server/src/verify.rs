//! `waitroom verify`: was this draw the one that was promised?
//!
//! Lives here: flags, and the verdict in words that claim no more than was proven.
//! Stays out: the mathematics (`waitroom_core::draw`), and what a log says (`testimony.rs`).
//! Needs no server and no data folder: anyone with the proof can run it.

mod testimony;

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use serde_json::{Value, json};
use waitroom_core::draw::{Assurance, Proof, Verified};
use waitroom_core::{LaneId, Number, Ticket};
use waitroom_sim::rehearsal::human::number;

use crate::failure::{Exit, Failure};
use crate::out::Out;
use testimony::Testimony;

/// Checks the proof of a draw, alone or against the room's exported log.
///
/// The proof alone shows that its parts belong together. With the log it is also shown that the
/// commitment came before the first join, that exactly those who joined took part, and that the
/// chain hash is that of the log at the close.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom verify proof.json --ticket 0:17\n  \
    waitroom verify proof.json --log spring-sale.wrroom --json")]
pub struct Verify {
    /// The proof that the room published.
    #[arg(value_name = "PROOF.json")]
    proof: PathBuf,
    /// A ticket whose place to work out. Give it once per ticket.
    #[arg(long = "ticket", value_name = "LANE:NUMBER")]
    tickets: Vec<Asked>,
    /// The room's log, as `waitroom export` wrote it.
    #[arg(long, value_name = "EXPORT-FILE")]
    log: Option<PathBuf>,
    /// Prints JSON.
    #[arg(long)]
    pub json: bool,
}

/// Something that does not fit, with a stable word for scripts.
#[derive(Debug)]
pub struct Wrong {
    pub code: &'static str,
    pub why: String,
}

impl Verify {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let text = std::fs::read_to_string(&self.proof).map_err(|error| {
            Failure::new(Exit::Io, format!("cannot read {}: {error}", self.proof.display()))
        })?;
        let proof = match Proof::from_json(&text) {
            Ok(proof) => proof,
            Err(error) => {
                let wrong = vec![Wrong { code: error.code(), why: error.to_string() }];
                return not_proven(out, &self.proof.display().to_string(), &wrong);
            }
        };
        let testimony = self.log.as_deref().map(Testimony::read).transpose()?;
        let checked = proof.check();
        let mut wrong = Vec::new();
        if let Err(error) = &checked {
            wrong.push(Wrong { code: error.code(), why: error.to_string() });
        }
        wrong.extend(testimony.iter().flat_map(|testimony| testimony.contradictions(&proof)));
        match checked {
            Ok(verified) if wrong.is_empty() => {
                let verdict = Verdict { proof: &proof, verified, testimony };
                if out.json {
                    out.line(verdict.json(&self.tickets))?;
                } else {
                    verdict.tell(&self.tickets, out)?;
                }
                Ok(Exit::Fine)
            }
            _ => not_proven(out, &format!("room {:?}", proof.room), &wrong),
        }
    }
}

fn not_proven(out: &mut Out, what: &str, wrong: &[Wrong]) -> Result<Exit, Failure> {
    if out.json {
        let found = |it: &Wrong| json!({ "code": it.code, "why": it.why });
        let found: Vec<Value> = wrong.iter().map(found).collect();
        out.line(json!({ "verdict": "wrong", "of": what, "wrong": found }))?;
        return Ok(Exit::Wrong);
    }
    out.line(format!("{what}: the draw is not proven"))?;
    for it in wrong {
        out.line(format!("  wrong   {}: {}", it.code, it.why))?;
    }
    out.line("  means   with this proof nobody can tell that the places were drawn as promised")?;
    out.line("  do      compare it with what the room published; ask its operator for both")?;
    Ok(Exit::Wrong)
}

/// A draw that was computed again and found as published.
struct Verdict<'a> {
    proof: &'a Proof,
    verified: Verified,
    testimony: Option<Testimony>,
}

impl Verdict<'_> {
    fn json(&self, tickets: &[Asked]) -> Value {
        let place = |asked: &Asked| {
            let Ticket { lane, number } = asked.0;
            let order = self.verified.order_of(lane.0, number.0);
            json!({ "lane": lane.0, "number": number.0, "order": order })
        };
        json!({
            "verdict": self.verified.assurance().word(),
            "room": self.proof.room,
            "counts": self.proof.counts,
            "beacon_round": self.proof.beacon_round,
            "tickets": tickets.iter().map(place).collect::<Vec<_>>(),
            "log": self.testimony.as_ref().map(Testimony::json),
        })
    }

    fn tell(&self, tickets: &[Asked], out: &mut Out) -> Result<(), Failure> {
        let proof = self.proof;
        let (word, means) = claim(self.verified.assurance());
        out.line(format!("room {:?}: {word}", proof.room))?;
        out.line(format!("  means    {means}"))?;
        for it in self.verified.counts() {
            out.line(format!("  lane     {}: {} took part", LaneId(it.lane), number(it.count)))?;
        }
        match &self.testimony {
            Some(testimony) => out.line(format!("  log      {}", testimony.words()))?,
            None => out.line("  log      not compared; give --log EXPORT-FILE")?,
        }
        for asked in tickets {
            let Ticket { lane, number: n } = asked.0;
            let said = match self.verified.order_of(lane.0, n.0) {
                Some(order) => format!("order {order} (0 is served first)"),
                None => "took no part in the draw".into(),
            };
            out.line(format!("  ticket   {}: {said}", asked.0))?;
        }
        let mut compare = "the commitment with what the room showed at its opening".to_string();
        if let Some(round) = &proof.beacon_round {
            compare += &format!(", the beacon value with round {round:?} at the beacon itself");
        }
        out.line(format!("  compare  {compare}"))
    }
}

/// The word for an assurance, and what it does and does not say.
fn claim(assurance: Assurance) -> (&'static str, &'static str) {
    match assurance {
        Assurance::Verifiable => (
            "verifiable",
            "a public beacon that was named in advance went in: nobody could know or steer the order",
        ),
        Assurance::Committed => (
            "committed",
            "the seed was fixed in advance, but the room knew it and could have tried out last \
             joins until it liked the order",
        ),
        Assurance::BeaconWaived => (
            "beacon waived",
            "a beacon was promised, and an operator went on without it: this proves no more than \
             a seed that was fixed in advance and that the room knew",
        ),
    }
}

/// A ticket as it is typed: `0:17`, or `returning:3`.
#[derive(Clone, Copy, Debug)]
struct Asked(Ticket);

impl FromStr for Asked {
    type Err = String;

    fn from_str(text: &str) -> Result<Asked, String> {
        let parsed = text.split_once(':').and_then(|(lane, number)| {
            let lane = match lane {
                "returning" => LaneId::RETURNING,
                lane => LaneId(lane.parse().ok()?),
            };
            Some(Ticket { lane, number: Number(number.parse().ok()?) })
        });
        parsed.map(Asked).ok_or_else(|| {
            format!("\"{text}\" is not LANE:NUMBER; write for example 0:17 or returning:3")
        })
    }
}
