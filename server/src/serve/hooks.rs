//! Webhooks, wired: their endpoints, and what operators do with dead letters.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use waitroom_api::desk::DeadAsked;
use waitroom_api::{Code, Problem};
use waitroom_core::when::utc;
use waitroom_outbox::webhook::{
    DeadLetter, DeadLetters, LetterName, Line, Manners, NotSentAgain, Reach, Secrets,
    SystemResolver, Wall, Webhook,
};
use waitroom_outbox::{Filter, Pace};
use waitroom_store::seal::MasterKey;
use waitroom_store::{RoomName, Shelf, Store};

use super::installation::House;
use super::outbox::ready_token;
use crate::config::{Config, Hook, StoreKind};
use crate::failure::{Exit, Failure};

/// One webhook of the configuration.
#[derive(Debug)]
pub struct Endpoint {
    pub name: String,
    pub filter: Filter,
    pub pace: Pace,
    pub sink: Arc<Webhook<Line>>,
}

/// Under which name the key lies that seals dead letters.
const LETTERS_KEY: &str = "events/dead-letters";
/// Messages between two moves of the cursor: so many may come twice after a crash.
const TOGETHER: usize = 64;
/// Others' servers are not woken up faster than this.
const RETRY_FIRST: Duration = Duration::from_secs(1);

/// Every endpoint that is configured. None of them has to answer yet, but what can be known to be
/// wrong is told now.
pub async fn open<S: Store + Clone>(
    config: &Config,
    house: &House<S>,
) -> Result<Vec<Endpoint>, Failure> {
    if config.hooks.is_empty() {
        return Ok(Vec::new());
    }
    let key = house.secret(LETTERS_KEY).await.map_err(|error| {
        Failure::new(Exit::Io, format!("the key of dead letters cannot be kept: {error}"))
            .means("the server does not start")
    })?;
    let key = MasterKey::from_bytes(key);
    config.hooks.iter().map(|hook| endpoint(config, house, &key, hook)).collect()
}

fn endpoint<S: Store + Clone>(
    config: &Config,
    house: &House<S>,
    key: &MasterKey,
    hook: &Hook,
) -> Result<Endpoint, Failure> {
    let Hook { name, of } = hook;
    let wrong = |why: &dyn std::fmt::Display| {
        Failure::new(Exit::Wrong, format!("{name}: {why}")).means("the server does not start")
    };
    let shelf = match config.store.kind {
        StoreKind::Memory => Ok(Shelf::in_memory(key.clone())),
        _ => Shelf::open(&config.server.data.join("letters").join(name), key.clone()),
    };
    let (Some(url), Some(secrets)) = (&of.url, &of.secret_file) else {
        return Err(wrong(&"an address and a secret are needed"));
    };
    let reach = if of.allow_private { Reach::Anywhere } else { Reach::Public };
    let manners = Manners { reach, within: of.timeout, ca: of.ca.clone() };
    let sink = Webhook {
        post: Line::to(url, manners, Arc::new(SystemResolver)).map_err(|it| wrong(&it))?,
        secrets: Secrets::load(secrets).map_err(|it| wrong(&it))?,
        ready: ready_token(config),
        patience: of.patience,
        dead: Arc::new(DeadLetters::on(shelf.map_err(|it| wrong(&it))?)),
        clock: Wall(house.clock.clone()),
        stuck: Mutex::default(),
    };
    let pace = Pace {
        batch: TOGETHER,
        retry_first: RETRY_FIRST,
        retry_most: of.retry_most,
        ..Pace::default()
    };
    let filter = of.events.clone().in_rooms(of.rooms.clone());
    Ok(Endpoint { name: name.clone(), filter, pace, sink: Arc::new(sink) })
}

/// What operators ask of dead letters.
pub async fn dead(endpoints: &[Endpoint], asked: DeadAsked<'_>) -> Result<Value, Problem> {
    match asked {
        DeadAsked::List => {
            let mut all = Vec::new();
            for endpoint in endpoints {
                for name in endpoint.sink.dead.names() {
                    let letter = endpoint.sink.dead.get(&name).await.map_err(unread)?;
                    all.extend(letter.map(|it| picture(&endpoint.name, &it)));
                }
            }
            Ok(json!({ "letters": all }))
        }
        DeadAsked::Show { room, id } => {
            let (endpoint, name) = find(endpoints, room, id)?;
            let letter = endpoint.sink.dead.get(&name).await.map_err(unread)?;
            let letter = letter.ok_or_else(|| no_such_letter(room))?;
            let mut shown = picture(&endpoint.name, &letter);
            let body = serde_json::from_str(&letter.body);
            shown["body"] = body.unwrap_or(Value::String(letter.body));
            Ok(shown)
        }
        DeadAsked::Replay { room, id } => {
            let (endpoint, name) = find(endpoints, room, id)?;
            match endpoint.sink.send_again(&name).await {
                Ok(()) => Ok(json!({ "room": room.as_str(), "letter": id, "taken": true })),
                Err(NotSentAgain::NoSuchLetter) => Err(no_such_letter(room)),
                Err(NotSentAgain::NotTaken(why)) => {
                    let detail = format!("it is still a dead letter: {why}");
                    Err(Problem::new(Code::Unavailable, detail).in_room(room))
                }
                Err(NotSentAgain::Shelf(why)) => Err(unread(why)),
            }
        }
        DeadAsked::Drop { room, id } => {
            let (endpoint, name) = find(endpoints, room, id)?;
            if !endpoint.sink.dead.take_away(&name).await.map_err(unread)? {
                return Err(no_such_letter(room));
            }
            Ok(json!({ "room": room.as_str(), "letter": id, "dropped": true }))
        }
    }
}

fn picture(sink: &str, letter: &DeadLetter) -> Value {
    json!({
        "room": letter.room,
        "letter": format!("{sink}.{}.{}", letter.head, letter.index),
        "sink": sink,
        "event": letter.head,
        "type": letter.kind,
        "why": letter.why,
        "tries": letter.tries,
        "first_tried_at": utc(letter.first_tried_at_ms),
        "dead_at": utc(letter.dead_at_ms),
    })
}

/// `webhook.42.0` in a room.
fn find<'a>(
    endpoints: &'a [Endpoint],
    room: &RoomName,
    id: &str,
) -> Result<(&'a Endpoint, LetterName), Problem> {
    let parts: Vec<&str> = id.split('.').collect();
    let found = match parts[..] {
        [sink, head, index] => {
            let name = head.parse().ok().zip(index.parse().ok());
            endpoints.iter().find(|it| it.name == sink).zip(name)
        }
        _ => None,
    };
    let (endpoint, (head, index)) = found.ok_or_else(|| no_such_letter(room))?;
    Ok((endpoint, LetterName { room: room.clone(), head, index }))
}

fn no_such_letter(room: &RoomName) -> Problem {
    Problem::new(Code::NotFound, "there is no such dead letter").in_room(room)
}

fn unread(why: String) -> Problem {
    Problem::new(Code::Unavailable, why)
}
