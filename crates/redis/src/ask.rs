//! Asking: requests that wait for no replica, each on a connection shared by all of them.
//!
//! Lives here: sending calls of one slot to whoever has it, following a failover or a moved slot.
//! Stays out: appends and everything else that must be durable; they go through `line.rs`.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use redis::Value;
use tokio::time::Instant;

use crate::{
    keys::slot,
    options::Options,
    place::Place,
    script::Call,
    trouble::Trouble,
    wire::{Server, Turn, Wire, words},
};

/// How long a request follows a failover or looks for a server before it is told off: short
/// enough that a visitor is answered, long enough for a slot that moves.
pub const PATIENCE: Duration = Duration::from_secs(1);
/// Between two looks.
pub const PAUSE: Duration = Duration::from_millis(25);

#[derive(Debug)]
pub struct Asker {
    pub place: Place,
    pub options: Options,
    wires: Mutex<HashMap<Arc<str>, Slot>>,
}

/// A connection that is made when it is needed, by one while the others wait for it.
type Slot = Arc<tokio::sync::Mutex<Option<Wire>>>;

/// Whether a request may be sent again when nobody knows whether it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// It only looks, or doing it twice is doing it once.
    Harmless,
    Never,
}

impl Asker {
    pub fn new(place: Place, options: Options) -> Asker {
        Asker { place, options, wires: Mutex::default() }
    }

    pub async fn look(&self, call: Call) -> Result<Value, Trouble> {
        self.ask(vec![call], Repeat::Harmless).await.map(only)
    }

    /// Sends calls about one slot in one piece; what a server refuses is an error of all.
    pub async fn ask(&self, calls: Vec<Call>, repeat: Repeat) -> Result<Vec<Value>, Trouble> {
        let slot = slot(calls[0].key());
        let deadline = Instant::now() + PATIENCE;
        let mut asking: Option<Server> = None;
        let mut broke = false;
        loop {
            let trouble = match self.try_once(slot, asking.take(), &calls).await {
                Ok(Tried::Done(values)) => return Ok(values),
                Ok(Tried::Turn(Turn::Ask(host, port), server)) => {
                    asking = Some(server.at(&host, port));
                    Trouble::Away("a slot moves".into())
                }
                Ok(Tried::Turn(turn, server)) => {
                    if turn == Turn::Teach {
                        self.drop_wire(&server);
                    } else {
                        self.place.forget();
                    }
                    Trouble::Away("a failover or a start is under way".into())
                }
                Err(trouble) => {
                    self.place.forget();
                    // A connection that was idle may have died long ago: one more try, at once.
                    let again = match &trouble {
                        Trouble::Unknown(_) if repeat == Repeat::Harmless && !broke => true,
                        Trouble::Away(_) => true,
                        _ => false,
                    };
                    broke |= matches!(trouble, Trouble::Unknown(_));
                    if !again {
                        return Err(trouble);
                    }
                    trouble
                }
            };
            if Instant::now() + PAUSE >= deadline {
                return Err(trouble);
            }
            if asking.is_none() {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    async fn try_once(
        &self,
        slot: u16,
        asking: Option<Server>,
        calls: &[Call],
    ) -> Result<Tried, Trouble> {
        let asked = asking.is_some();
        let server = match asking {
            Some(server) => server,
            None => self.place.server_of(slot, &self.options).await?,
        };
        let mut wire = self.wire(&server).await?;
        let mut commands = Vec::with_capacity(calls.len() * 2);
        for call in calls {
            if asked {
                commands.push(redis::cmd("ASKING"));
            }
            commands.push(call.command(wire.hashes()));
        }
        let sent = tokio::time::timeout(self.options.answer_timeout, wire.send(commands)).await;
        let answers = match sent {
            Ok(Ok(answers)) => answers,
            Ok(Err(broken)) => {
                self.drop_wire(&server);
                return Err(Trouble::Unknown(format!("{}: {}", server.name, broken.0)));
            }
            Err(_) => {
                self.drop_wire(&server);
                return Err(Trouble::Unknown(format!("{}: no answer in time", server.name)));
            }
        };
        let step = if asked { 2 } else { 1 };
        let mut values = Vec::with_capacity(calls.len());
        for value in answers.into_iter().skip(step - 1).step_by(step) {
            match value {
                Value::ServerError(error) => {
                    return match Turn::of(&error) {
                        Some(turn) => Ok(Tried::Turn(turn, server)),
                        None => Err(Trouble::Refused(words(&error))),
                    };
                }
                value => values.push(value),
            }
        }
        Ok(Tried::Done(values))
    }

    async fn wire(&self, server: &Server) -> Result<Wire, Trouble> {
        let slot = self.wires().entry(server.name.clone()).or_default().clone();
        let mut wire = slot.lock().await;
        match &*wire {
            Some(wire) => Ok(wire.clone()),
            None => Ok(wire.insert(Wire::open(server, &self.options).await?).clone()),
        }
    }

    fn drop_wire(&self, server: &Server) {
        self.wires().remove(&server.name);
    }

    fn wires(&self) -> std::sync::MutexGuard<'_, HashMap<Arc<str>, Slot>> {
        self.wires.lock().expect("nobody panics while holding it")
    }
}

enum Tried {
    Done(Vec<Value>),
    Turn(Turn, Server),
}

fn only(mut values: Vec<Value>) -> Value {
    values.pop().expect("one answer for one call")
}
