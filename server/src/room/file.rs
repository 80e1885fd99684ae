//! A room document as a file: from what somebody wrote, and back to what they can edit.
//!
//! Lives here: TOML or JSON, the room's name, looking for mistakes before anything is sent.
//! Stays out: talking to the server.

use std::io::Read;
use std::path::Path;

use serde_json::{Map, Value};
use waitroom_api::document::{self, Mistake, value};
use waitroom_core::Settings;
use waitroom_store::RoomName;

use crate::config::{Mistakes, Source};
use crate::failure::Exit;

const STDIN: &str = "-";

/// A room that somebody wrote down, without mistakes as far as can be told from here.
#[derive(Debug)]
pub struct Written {
    pub room: RoomName,
    pub document: Value,
    /// Knows the lines, should the server find more.
    pub source: Source,
}

impl Written {
    pub fn read(path: &Path, room: Option<RoomName>) -> Result<Written, Mistakes> {
        let stdin = path == Path::new(STDIN);
        let shown = if stdin { "stdin".to_owned() } else { path.display().to_string() };
        let text = if stdin { read_stdin() } else { std::fs::read_to_string(path) };
        let text = text.map_err(|error| {
            let missing = error.kind() == std::io::ErrorKind::NotFound;
            Mistakes::unread(&shown, &error, if missing { Exit::NotThere } else { Exit::Io })
        })?;
        let is = |extension: &str| path.extension().is_some_and(|it| it == extension);
        // Only JSON begins like this; a TOML document begins with a key.
        let json = is("json") || (!is("toml") && text.trim_start().starts_with('{'));
        let source =
            if json { Source::of_json(&shown, &text)? } else { Source::of_toml(&shown, &text)? };
        let stem = path.file_stem().filter(|_| !stdin).and_then(|stem| stem.to_str());
        Written::of(source, room, stem)
    }

    fn of(
        mut source: Source,
        given: Option<RoomName>,
        stem: Option<&str>,
    ) -> Result<Written, Mistakes> {
        let mut document = source.take_root();
        let mut wrong = Vec::new();
        let room = name(&mut document, given, stem).map_err(|mistake| wrong.push(mistake)).ok();
        let document = Value::Object(document);
        if let Err(mistakes) = document::from_json(&document, &Settings::default()) {
            wrong.extend(mistakes);
        }
        match room {
            Some(room) if wrong.is_empty() => Ok(Written { room, document, source }),
            _ => Err(source.mistakes(wrong)),
        }
    }
}

fn read_stdin() -> std::io::Result<String> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    Ok(text)
}

/// What was given wins over the document's `name`, and that over how the file is called.
fn name(
    document: &mut Map<String, Value>,
    given: Option<RoomName>,
    stem: Option<&str>,
) -> Result<RoomName, Mistake> {
    let parse =
        |text: &str| RoomName::parse(text).map_err(|error| Mistake::new("name", error.to_string()));
    let written = match document.remove("name") {
        Some(Value::String(name)) => Some(parse(&name)?),
        Some(other) => {
            let problem = format!("{} is not a name", value::shown(&other));
            return Err(Mistake::new("name", problem));
        }
        None => None,
    };
    match (given.or(written), stem) {
        (Some(name), _) => Ok(name),
        (None, Some(stem)) => parse(stem).map_err(|mistake| {
            let problem = format!("{}; give --room NAME", mistake.problem);
            Mistake::new("name", problem)
        }),
        (None, None) => Err(Mistake::new("name", "is missing; write it, or give --room NAME")),
    }
}

/// The document in an answer: all of it, or a part among other facts about the room.
pub fn settings_in(answer: &Value) -> &Value {
    answer.get("settings").filter(|it| it.is_object()).unwrap_or(answer)
}

/// As a file that `put` takes: the name, then every setting on its own line.
pub fn as_toml(room: &RoomName, document: &Value) -> String {
    let mut text = format!("name = \"{room}\"\n");
    let known = document::to_json(&Settings::default());
    for key in known.as_object().into_iter().flat_map(Map::keys) {
        if let Some(given) = document.get(key) {
            text += &format!("{key} = {}\n", toml_value(given));
        }
    }
    text
}

fn toml_value(given: &Value) -> toml::Value {
    match given {
        Value::Null => toml::Value::String(value::NONE.into()),
        Value::Bool(yes) => toml::Value::Boolean(*yes),
        Value::String(text) => toml::Value::String(text.clone()),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => toml::Value::Integer(whole),
            None => toml::Value::Float(number.as_f64().unwrap_or(0.0)),
        },
        Value::Array(items) => toml::Value::Array(items.iter().map(toml_value).collect()),
        Value::Object(table) => {
            let entries = table.iter().map(|(key, value)| (key.clone(), toml_value(value)));
            toml::Value::Table(entries.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn room(text: &str) -> RoomName {
        RoomName::parse(text).expect("a name")
    }

    #[test]
    fn what_is_shown_can_be_put_again() {
        let settings = document::from_json(
            &json!({
                "title": "A \"sale\"\nwith two lines, ünïcode and a \\",
                "lanes": ["main", { "name": "members", "weight": 3 }],
                "returning": { "share": 20, "within": "10m" },
                "rate": "none",
                "starts_at": "2026-05-01T10:00:00Z",
                "draw": { "beacon": "drand:quicknet:1" },
                "allowed_origins": ["https://shop.example"],
            }),
            &Settings::default(),
        );
        for settings in [Settings::default(), settings.expect("possible")] {
            let shown = as_toml(&room("spring"), &document::to_json(&settings));
            let source = Source::of_toml("shown", &shown).unwrap_or_else(|why| panic!("{why}"));
            let written = Written::of(source, None, None).unwrap_or_else(|why| panic!("{why}"));
            assert_eq!(written.room, room("spring"));
            let read = document::from_json(&written.document, &Settings::default());
            assert_eq!(read, Ok(settings), "{shown}");
        }
    }

    #[test]
    fn the_name_is_given_or_written_or_the_files() {
        let of = |text: &str, given: Option<&str>, stem: Option<&str>| {
            let source = Source::of_toml("file", text).expect("well formed");
            let written = Written::of(source, given.map(room), stem);
            written.map(|it| it.room.to_string()).map_err(|it| it.to_string())
        };
        assert_eq!(of("name = \"b\"", Some("a"), Some("c")), Ok("a".into()));
        assert_eq!(of("name = \"b\"", None, Some("c")), Ok("b".into()));
        assert_eq!(of("", None, Some("c")), Ok("c".into()));
        let nameless = of("", None, None).expect_err("no name");
        assert!(nameless.contains("--room NAME"), "{nameless}");
        let odd = of("rate = 5", None, Some("My Room")).expect_err("no name");
        assert!(odd.contains("2 problems") && odd.contains("--room NAME"), "{odd}");
        let wrong = of("\nname = 5", Some("a"), None).expect_err("no text");
        assert!(wrong.contains("line 2  name: 5 is not a name"), "{wrong}");
    }
}
