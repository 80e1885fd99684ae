//! The values of `[events]`.

use serde_json::Value;
use waitroom_api::document::value::{shown, text};
use waitroom_outbox::mirror::Place;
use waitroom_outbox::{Filter, Kind};

use super::values::list;

/// Addresses with commas between them. What is wrong with one is told by whoever connects.
pub fn servers(given: &Value) -> Result<String, String> {
    let said = text(given)?;
    if said.split(',').any(|part| part.trim().is_empty()) {
        return Err(format!("{} names no server between two commas", shown(given)));
    }
    Ok(said)
}

/// A Kafka topic: letters, digits, dots, lines.
pub fn topic(given: &Value) -> Result<String, String> {
    let said = text(given)?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if said.is_empty() || said.len() > 249 || !said.bytes().all(fits) {
        return Err(format!("{} is no topic; use letters, digits, . _ and -", shown(given)));
    }
    Ok(said)
}

/// An address of a database, as `postgres://…` or as `host=… user=…`.
pub fn database(given: &Value) -> Result<String, String> {
    let said = text(given)?;
    // It may hold a password: it is not repeated.
    match waitroom_outbox::postgres::is_address(&said) {
        true => Ok(said),
        false => Err("no address of a database; write \"postgres://user@host/database\"".into()),
    }
}

/// Where a mirror may be.
pub fn mirror(given: &Value) -> Result<String, String> {
    let said = text(given)?;
    Place::parse(&said, None).map(|_| said)
}

/// What a sink wants to hear of.
pub fn kinds(given: &Value) -> Result<Filter, String> {
    let words = list(text)(given)?;
    Filter::of_words(words.iter().map(String::as_str)).map_err(|word| {
        let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind.word()).collect();
        format!("no event is called {word:?}; there are {}, and * for a part", known.join(", "))
    })
}
