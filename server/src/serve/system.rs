//! What this instance says of itself on NATS: whether visitors may be sent to it, what is wrong,
//! and what it counts.
//!
//! Health and figures every so often, health and errors also when they change. What is wrong is
//! compared with what was said, so that a bus that was away hears of what lasts, and not of what
//! came and went meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use waitroom_api::Desk;
use waitroom_api::desk::SinkPicture;
use waitroom_api::health::{Obstacle, Reader, obstacles};
use waitroom_outbox::Trouble;
use waitroom_outbox::nats::{System, SystemLine};

/// How often somebody looks whether anything changed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A client needs a moment to connect, at each start.
const LOOKS_UNTIL_TOLD: u32 = 5;

#[derive(Debug)]
pub struct Herald {
    pub line: SystemLine,
    pub desk: Arc<Desk>,
    pub instance: String,
    pub every: Duration,
}

impl Herald {
    /// Runs until it is aborted.
    pub async fn run(self) {
        let mut said = Said::default();
        let mut unheard = 0;
        loop {
            match self.look(&mut said).await {
                Ok(()) => unheard = 0,
                // Told by the sink too, which has something to lose.
                Err(trouble) => {
                    unheard += 1;
                    if unheard == LOOKS_UNTIL_TOLD {
                        tracing::warn!(%trouble, "NATS does not take what we say of ourselves");
                    }
                }
            }
            sleep(LOOK_EVERY).await;
        }
    }

    async fn look(&self, said: &mut Said) -> Result<(), Trouble> {
        let now = Now::of(&self.desk);
        for change in said.changes(&now) {
            let room = change.wrong.room().map(str::to_owned);
            self.say(System::Error, room.as_deref(), change.data()).await?;
            said.note(change);
        }
        let due = said.last.is_none_or(|last| last.elapsed() >= self.every);
        if due || said.because.as_ref() != Some(&now.because) {
            self.say(System::Health, None, now.health()).await?;
            said.because = Some(now.because);
        }
        if due {
            self.say(System::Metrics, None, figures(&self.desk, &now.sinks)).await?;
            said.last = Some(Instant::now());
        }
        Ok(())
    }

    async fn say(&self, what: System, room: Option<&str>, mut data: Value) -> Result<(), Trouble> {
        data["instance"] = self.instance.as_str().into();
        self.line.say(what, self.desk.clock.wall_ms(), room, data).await
    }
}

/// Something that somebody has to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wrong {
    Room(String),
    Sink(String),
    /// So many stretches were given up since the start. Such a thing is never over.
    Gaps(String, u64),
}

impl Wrong {
    fn room(&self) -> Option<&str> {
        match self {
            Wrong::Room(room) => Some(room),
            Wrong::Sink(_) | Wrong::Gaps(..) => None,
        }
    }

    fn sink(&self) -> Option<&str> {
        match self {
            Wrong::Room(_) => None,
            Wrong::Sink(sink) | Wrong::Gaps(sink, _) => Some(sink),
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Wrong::Room(_) => "room",
            Wrong::Sink(_) => "sink",
            Wrong::Gaps(..) => "gap",
        }
    }
}

/// How things stand.
#[derive(Debug, Default)]
struct Now {
    because: Vec<String>,
    wrong: BTreeMap<Wrong, String>,
    sinks: Vec<SinkPicture>,
}

impl Now {
    fn of(desk: &Desk) -> Now {
        let obstacles = obstacles(desk);
        let sinks = desk.outbox.get().map(|outbox| outbox.sinks()).unwrap_or_default();
        let because = obstacles.iter().map(|it| it.told(Reader::Operator)).collect();
        let mut wrong = BTreeMap::new();
        for obstacle in obstacles {
            if let Obstacle::RoomLost { room, why } = obstacle {
                wrong.insert(Wrong::Room(room), why);
            }
        }
        for (room, why) in desk.unopened.rooms().iter() {
            wrong.insert(Wrong::Room(room.to_string()), why.clone());
        }
        for sink in &sinks {
            if let Some(trouble) = &sink.trouble {
                wrong.insert(Wrong::Sink(sink.name.clone()), trouble.clone());
            }
            if sink.gaps > 0 {
                let text = format!("{} stretches of events were given up", sink.gaps);
                wrong.insert(Wrong::Gaps(sink.name.clone(), sink.gaps), text);
            }
        }
        Now { because, wrong, sinks }
    }

    fn health(&self) -> Value {
        let status = if self.because.is_empty() { "ready" } else { "not_ready" };
        json!({
            "status": status,
            "because": self.because,
            "version": env!("CARGO_PKG_VERSION"),
        })
    }
}

/// What was said, and is held by the bus.
#[derive(Debug, Default)]
struct Said {
    wrong: BTreeMap<Wrong, String>,
    because: Option<Vec<String>>,
    last: Option<Instant>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    wrong: Wrong,
    text: String,
    over: bool,
}

impl Said {
    /// A reason that is put in other words is not said again: it may be another each time.
    fn changes(&self, now: &Now) -> Vec<Change> {
        let over = self.wrong.iter().filter(|(wrong, _)| !now.wrong.contains_key(*wrong));
        let over = over.filter(|(wrong, _)| !matches!(wrong, Wrong::Gaps(..)));
        let new = now.wrong.iter().filter(|(wrong, _)| !self.wrong.contains_key(*wrong));
        let change = |over| {
            move |(wrong, text): (&Wrong, &String)| Change {
                wrong: wrong.clone(),
                text: text.clone(),
                over,
            }
        };
        over.map(change(true)).chain(new.map(change(false))).collect()
    }

    fn note(&mut self, change: Change) {
        match change.over {
            true => self.wrong.remove(&change.wrong),
            false => self.wrong.insert(change.wrong, change.text),
        };
    }
}

impl Change {
    fn data(&self) -> Value {
        json!({
            "error": self.wrong.word(),
            "room": self.wrong.room(),
            "sink": self.wrong.sink(),
            "message": self.text,
            "state": if self.over { "over" } else { "raised" },
        })
    }
}

fn figures(desk: &Desk, sinks: &[SinkPicture]) -> Value {
    let rooms = desk.rooms().into_iter().map(|room| {
        let counts = room.handle().board_guard().state().counts();
        json!({
            "room": room.name().as_str(),
            "waiting": counts.waiting,
            "admitted": counts.admitted,
            "active": counts.active,
            "joined_total": counts.joined,
            "admissions_total": counts.admissions,
            "connections": room.hub.connected(),
        })
    });
    let sinks = sinks.iter().map(|sink| {
        json!({
            "sink": sink.name,
            "sent_total": sink.sent,
            "failures_total": sink.failures,
            "gaps_total": sink.gaps,
            "lag_events": sink.lags.iter().map(|lag| lag.events).sum::<u64>(),
            "lag_seconds": sink.lags.iter().map(|lag| lag.seconds).fold(0.0, f64::max),
        })
    });
    json!({ "rooms": rooms.collect::<Vec<_>>(), "sinks": sinks.collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(wrong: &[(Wrong, &str)]) -> Now {
        let wrong = wrong.iter().map(|(wrong, text)| (wrong.clone(), (*text).to_owned()));
        Now { wrong: wrong.collect(), ..Now::default() }
    }

    /// What is said of it, when the bus takes it.
    fn hear(said: &mut Said, now: &Now) -> Vec<(Wrong, bool)> {
        let changes = said.changes(now);
        let heard = changes.iter().map(|it| (it.wrong.clone(), it.over)).collect();
        changes.into_iter().for_each(|it| said.note(it));
        heard
    }

    #[test]
    fn what_is_wrong_is_said_once_and_said_again_when_it_is_over() {
        let (sink, room) = (Wrong::Sink("kafka".into()), Wrong::Room("sale".into()));
        let mut said = Said::default();
        let first = now(&[(sink.clone(), "away")]);
        assert_eq!(hear(&mut said, &first), [(sink.clone(), false)]);
        assert_eq!(hear(&mut said, &now(&[(sink.clone(), "still away")])), []);
        let other = now(&[(room.clone(), "disk full")]);
        assert_eq!(hear(&mut said, &other), [(sink, true), (room.clone(), false)]);
        assert_eq!(hear(&mut said, &now(&[])), [(room, true)]);
    }

    #[test]
    fn what_came_and_went_while_the_bus_was_away_is_not_said() {
        let sink = Wrong::Sink("kafka".into());
        let said = Said::default();
        assert_eq!(said.changes(&now(&[(sink, "away")])).len(), 1, "and the bus takes nothing");
        assert_eq!(said.changes(&now(&[])), []);
    }

    #[test]
    fn every_gap_is_said_and_none_is_ever_over() {
        let gaps = |count| Wrong::Gaps("kafka".into(), count);
        let mut said = Said::default();
        assert_eq!(hear(&mut said, &now(&[(gaps(1), "given up")])), [(gaps(1), false)]);
        assert_eq!(hear(&mut said, &now(&[(gaps(2), "given up")])), [(gaps(2), false)]);
        assert_eq!(hear(&mut said, &now(&[(gaps(2), "given up")])), []);
    }
}
