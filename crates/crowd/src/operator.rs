//! The crowd's operator: lets people in by hand, pauses, resumes. Its calls are in the history
//! too, because the judge must know of them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::facts::facts;
use crate::history::{Call, Got, RoomFacts, Sent, Verb};
use crate::tally::End;
use crate::wire::{Ask, Pool, Unheard};
use crate::world::{Shared, Stop};

/// Operators have their own number, behind all visitors.
pub const WHO: u64 = u64::MAX >> 1;

/// How often somebody is let in by hand.
const STEP_MS: u64 = 200;

#[derive(Debug)]
pub struct Desk {
    world: Shared,
    pool: Pool,
    stop: Stop,
}

impl Desk {
    /// None if the plan has no operator.
    pub fn new(world: &Shared, stop: Stop) -> Option<Desk> {
        let pool = world.admin.clone()?;
        Some(Desk { world: world.clone(), pool, stop })
    }

    /// Acts until the run ends, and leaves no pause behind.
    pub async fn run(mut self) {
        let plan = self.world.plan.operator;
        let mut owed = 0.0;
        let mut last = Instant::now();
        let mut next_pause = plan.pause_every_ms.map(|ms| last + Duration::from_millis(ms));
        while self.stop.sleep(STEP_MS).await {
            if next_pause.is_some_and(|at| Instant::now() >= at) {
                self.act(Verb::Pause, "pause", json!({ "reason": "the crowd's operator" })).await;
                self.stop.sleep(plan.pause_for_ms).await;
                self.resume().await;
                let every = Duration::from_millis(plan.pause_every_ms.unwrap_or(u64::MAX / 2));
                next_pause = Some(Instant::now() + every);
                last = Instant::now();
                continue;
            }
            owed += plan.admit_per_s * last.elapsed().as_secs_f64();
            last = Instant::now();
            let count = (owed as u64).min(10_000);
            if count > 0 {
                owed -= count as f64;
                self.act(Verb::Admit, "admit", json!({ "count": count })).await;
            }
        }
    }

    /// A room that stays paused would look like a server that sticks.
    async fn resume(&mut self) {
        for attempt in 0..50 {
            if self.act(Verb::Resume, "resume", json!({})).await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50 << attempt.min(5))).await;
        }
    }

    async fn act(&self, verb: Verb, what: &str, body: Value) -> bool {
        let path = format!("/admin/v1/rooms/{}/{what}", self.world.plan.room);
        let count = body["count"].as_u64();
        let ask = keyed(&self.world, Ask::post(path).body(body.to_string()));
        let sent = Sent { count, ..Sent::default() };
        let (t0, t1, got) = match self.pool.ask(&ask).await {
            Ok(reply) => {
                let said: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
                let fine = (200..300).contains(&reply.http);
                self.world.tally.call(verb.name(), End::of(fine), reply.t1 - reply.t0);
                let version = said["version"].as_u64().or(said["room"]["version"].as_u64());
                let code = said["code"].as_str().map(|code| code.to_owned().into());
                let got = Got {
                    http: Some(reply.http),
                    code,
                    version,
                    granted: said["admitted"].as_u64().filter(|_| verb == Verb::Admit),
                    ..Got::default()
                };
                (reply.t0, reply.t1, Some(got))
            }
            Err(Unheard::NotSent(_)) => return false,
            Err(Unheard::Lost { t0, t1, .. }) => (t0, t1, None),
        };
        let (fine, lost) = (got.as_ref().is_some_and(Got::is_fine), got.is_none());
        let room = self.world.plan.room.clone().into();
        let call = Call { t0, t1, who: WHO, call: verb, room, key: None, sent, got, lost };
        self.world.recorder.note(call).await;
        fine
    }
}

fn keyed(world: &Shared, ask: Ask) -> Ask {
    Ask { bearer: world.plan.key.as_ref().map(|key| key.0.clone()), ..ask }
}

/// What the admin API says of a room, for the history's header.
pub async fn look_up(pool: &Pool, key: &str, room: &str) -> Result<RoomFacts, String> {
    let ask = Ask::get(format!("/admin/v1/rooms/{room}")).bearer(key);
    match pool.ask(&ask).await {
        Ok(reply) if reply.http == 200 => {
            let said: Value = serde_json::from_slice(&reply.body).map_err(|it| it.to_string())?;
            Ok(facts(&said["settings"]))
        }
        Ok(reply) => Err(format!("the admin API answers {}", reply.http)),
        Err(Unheard::NotSent(why) | Unheard::Lost { why, .. }) => Err(why),
    }
}
