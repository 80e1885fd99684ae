//! A text that people wrote, as JSON, with the line of every key.
//!
//! Lives here: TOML to JSON, and the way back from a field to its line. JSON texts go the same
//! way without lines. Stays out: what keys mean.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use waitroom_api::document::Mistake;

use super::mistakes::{Mistakes, Place};

/// No more letters of a broken line are quoted.
const LINE_SHOWN_MAX: usize = 60;

/// A text that was read, and where its keys stand.
#[derive(Debug)]
pub struct Source {
    name: String,
    root: Map<String, Value>,
    places: BTreeMap<String, Place>,
}

impl Source {
    /// `name` is what the text is called in messages.
    pub fn of_toml(name: &str, text: &str) -> Result<Source, Mistakes> {
        let (root, errors) = DeTable::parse_recoverable(text);
        let lines = Lines::of(text);
        let mut mistakes = Mistakes::of(name);
        for error in errors {
            let place = error.span().map_or(Place::Unknown, |span| lines.place(span.start));
            let said = error.message().replace('\n', "; ");
            let problem = match &place {
                Place::Line(line) => format!("{said}: {}", lines.shown(text, *line)),
                _ => said,
            };
            mistakes.push(place, Mistake::new("", problem));
        }
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let mut reading = Reading { lines, places: BTreeMap::new() };
        let root = reading.table("", root.get_ref());
        Ok(Source { name: name.into(), root, places: reading.places })
    }

    pub fn of_json(name: &str, text: &str) -> Result<Source, Mistakes> {
        let problem = match serde_json::from_str(text) {
            Ok(Value::Object(root)) => {
                return Ok(Source { name: name.into(), root, places: BTreeMap::new() });
            }
            Ok(_) => (Place::Unknown, "a room document is an object of settings".to_owned()),
            Err(error) => {
                // serde_json says the line at the end; it has a column of its own here.
                let said = error.to_string();
                let said = said.split(" at line ").next().unwrap_or(&said).to_owned();
                (Place::Line(error.line()), said)
            }
        };
        let mut mistakes = Mistakes::of(name);
        mistakes.push(problem.0, Mistake::new("", problem.1));
        Err(mistakes)
    }

    /// The keys and values; the places stay.
    pub fn take_root(&mut self) -> Map<String, Value> {
        std::mem::take(&mut self.root)
    }

    /// From now on this field stands there.
    pub fn now_stands(&mut self, field: &str, place: Place) {
        self.places.insert(field.to_owned(), place);
    }

    /// These mistakes, each with its place.
    pub fn mistakes(&self, wrong: Vec<Mistake>) -> Mistakes {
        let mut mistakes = Mistakes::of(&self.name);
        for mistake in wrong {
            mistakes.push(self.place(&mistake.field), mistake);
        }
        mistakes
    }

    /// Where a field stands, or what it is part of.
    fn place(&self, field: &str) -> Place {
        let mut path = field;
        loop {
            if let Some(place) = self.places.get(path) {
                return place.clone();
            }
            match path.rfind(['.', '[']) {
                Some(end) => path = &path[..end],
                None => return Place::Unknown,
            }
        }
    }
}

struct Reading {
    lines: Lines,
    places: BTreeMap<String, Place>,
}

impl Reading {
    fn table(&mut self, path: &str, table: &DeTable<'_>) -> Map<String, Value> {
        let mut read = Map::new();
        for (key, value) in table {
            let name = key.get_ref().to_string();
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            self.places.insert(path.clone(), self.lines.place(key.span().start));
            let value = self.value(&path, value);
            read.insert(name, value);
        }
        read
    }

    fn value(&mut self, path: &str, value: &Spanned<DeValue<'_>>) -> Value {
        match value.get_ref() {
            DeValue::String(text) => Value::from(&**text),
            DeValue::Boolean(yes) => Value::from(*yes),
            DeValue::Datetime(moment) => Value::from(moment.to_string()),
            DeValue::Table(table) => Value::Object(self.table(path, table)),
            DeValue::Array(items) => {
                let read = |(i, item): (usize, &Spanned<DeValue<'_>>)| {
                    let path = format!("{path}[{i}]");
                    self.places.insert(path.clone(), self.lines.place(item.span().start));
                    self.value(&path, item)
                };
                items.iter().enumerate().map(read).collect()
            }
            DeValue::Integer(digits) => {
                let (text, radix) = (digits.as_str(), digits.radix());
                let whole = u64::from_str_radix(text, radix).map(Number::from);
                let whole = whole.or_else(|_| i64::from_str_radix(text, radix).map(Number::from));
                whole.map_or_else(|_| fraction(text), Value::Number)
            }
            DeValue::Float(digits) => fraction(digits.as_str()),
        }
    }
}

/// No setting takes such a number, nor one that fits no integer; whoever reads the setting says
/// so. Endless ones are no JSON and go on as texts, which are refused likewise.
fn fraction(digits: &str) -> Value {
    let number = digits.parse().ok().and_then(Number::from_f64);
    number.map_or_else(|| Value::from(digits), Value::Number)
}

/// From bytes to lines.
struct Lines {
    /// Where each line begins.
    begins: Vec<usize>,
}

impl Lines {
    fn of(text: &str) -> Lines {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Lines { begins: std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect() }
    }

    /// A line as it is quoted in a message.
    fn shown(&self, text: &str, line: usize) -> String {
        let begin = self.begins[line - 1].min(text.len());
        let line = text[begin..].lines().next().unwrap_or("").trim();
        line.chars().take(LINE_SHOWN_MAX).collect()
    }

    fn place(&self, byte: usize) -> Place {
        Place::Line(self.begins.partition_point(|begin| *begin <= byte))
    }
}
