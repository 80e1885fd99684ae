//! The room document: how people write down a room's settings.
//!
//! The same keys in a TOML file and as JSON over the API. Where the core counts milliseconds, the
//! document has units: `"90s"`, `"10/s"`, `"2026-05-01T10:00:00Z"`. A whole document is read on
//! top of the defaults, a change on top of what is in force.
//!
//! Lives here: reading and writing the document. Every mistake is told at once, with its field.
//! Stays out: TOML (the server turns it into the same JSON and keeps the lines), and what a
//! setting means (`waitroom_core::settings`).
//! To add a setting: a row in `document/keys.rs`. Documents with the names of another system are
//! translated before they are read: `document/cloudflare.rs`.

mod checked;
mod cloudflare;
mod keys;
mod looks;
mod nearest;
mod nested;
#[cfg(test)]
mod tests;
pub mod value;

use std::fmt;

use serde_json::{Map, Value};
use waitroom_core::Settings;

pub use nearest::{did_you_mean, nearest_within};

/// One thing that is wrong in a document: where, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Such as `rate`, `lanes[1].weight`; empty when it is the document as a whole.
    pub field: String,
    /// What is wrong with it and what would do; reads on after the field and a colon.
    pub problem: String,
}

impl Mistake {
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Mistake {
        Mistake { field: field.into(), problem: problem.into() }
    }

    /// A key that nobody knows, with the one that was probably meant.
    pub fn unknown_key<'a>(
        field: impl Into<String>,
        key: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Mistake {
        Mistake::new(field, format!("no such key{}", did_you_mean(key, known)))
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.field {
            "" => f.write_str(&self.problem),
            field => write!(f, "{field}: {}", self.problem),
        }
    }
}

/// Reads a document. What it does not mention is as in `base`: the defaults when a whole room is
/// written down, the settings in force when something is changed.
/// What comes back is possible: [`Settings::check`] has nothing to say about it.
pub fn from_json(document: &Value, base: &Settings) -> Result<Settings, Vec<Mistake>> {
    read(document, base).map(|written| written.settings)
}

/// What a document says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub settings: Settings,
    /// The settings that it names, by our names.
    pub keys: Vec<String>,
}

/// The same as [`from_json`], and which settings are named.
pub fn read(document: &Value, base: &Settings) -> Result<Written, Vec<Mistake>> {
    let Value::Object(document) = document else {
        let problem =
            format!("a room document is a table of settings, not {}", value::kind(document));
        return Err(vec![Mistake::new("", problem)]);
    };
    match cloudflare::translate(document) {
        None => read_ours(document, base),
        Some(translated) => {
            let read = read_ours(&translated.document, base);
            let wrong = read.as_ref().err().cloned().unwrap_or_default();
            let wrong = translated.in_their_names(wrong);
            let all: Vec<Mistake> = translated.mistakes.iter().cloned().chain(wrong).collect();
            if all.is_empty() { read } else { Err(all) }
        }
    }
}

fn read_ours(document: &Map<String, Value>, base: &Settings) -> Result<Written, Vec<Mistake>> {
    let mut settings = base.clone();
    let mut mistakes = Vec::new();
    for (name, given) in document {
        match keys::find(name) {
            Some(key) => {
                (key.read)(&mut Field { path: name, mistakes: &mut mistakes }, given, &mut settings)
            }
            // A key without a letter would look like no field at all.
            None if name.is_empty() => mistakes.push(Mistake::new("\"\"", "no such key")),
            None => mistakes.push(Mistake::unknown_key(name, name, keys::names())),
        }
    }
    checked::add_what_cannot_be(&settings, document, &mut mistakes);
    let keys = document.keys().cloned().collect();
    if mistakes.is_empty() { Ok(Written { settings, keys }) } else { Err(mistakes) }
}

/// The document that reads as these settings, whatever the base. Every setting is in it; what is
/// not set is null.
pub fn to_json(settings: &Settings) -> Value {
    let written = |key: &keys::Key| (key.name.to_owned(), (key.write)(settings));
    Value::Object(keys::KEYS.iter().map(written).collect::<Map<String, Value>>())
}

/// A place in the document that is being read, and where its mistakes go.
struct Field<'a> {
    path: &'a str,
    mistakes: &'a mut Vec<Mistake>,
}

impl Field<'_> {
    /// Keeps what could be read, notes what could not.
    fn take<T>(&mut self, read: Result<T, String>) -> Option<T> {
        read.map_err(|problem| self.wrong(problem)).ok()
    }

    fn wrong(&mut self, problem: impl Into<String>) {
        self.mistakes.push(Mistake::new(self.path, problem));
    }

    /// The same for a key of a table inside, or for an item of a list.
    fn at<T>(&mut self, below: &str, read: Result<T, String>) -> Option<T> {
        let path = format!("{}{below}", self.path);
        read.map_err(|problem| self.mistakes.push(Mistake::new(path, problem))).ok()
    }
}
