//! Single values as people write them: spans, paces, moments, counts, words.
//!
//! Lives here: reading one JSON value, and writing it so that it reads back the same. A problem
//! quotes what was found and shows what would do; it reads on after the field's name.
//! Stays out: bounds (the core's), and values made of parts (`nested.rs`). The server's own
//! configuration is read with these too.

use serde_json::{Value, json};
use waitroom_core::settings::Rate;
use waitroom_core::{Millis, Timestamp, when};

use super::nearest::did_you_mean;

/// What stands for "not set" where there is no null: in TOML and in the environment.
pub const NONE: &str = "none";

/// From long to short, as they must follow each other.
const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// No more of a wrong value is quoted: it comes from strangers and lands in logs and terminals.
const SHOWN_MAX: usize = 60;

/// A value in a message.
pub fn shown(given: &Value) -> String {
    let text = given.to_string();
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// What kind of value it is, in words.
pub fn kind(given: &Value) -> &'static str {
    match given {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}

/// Null and `"none"` are nothing; all else is read.
pub fn or_none<T>(
    given: &Value,
    read: impl FnOnce(&Value) -> Result<T, String>,
) -> Result<Option<T>, String> {
    match given {
        Value::Null => Ok(None),
        Value::String(word) if word == NONE => Ok(None),
        given => read(given).map(Some),
    }
}

pub fn text(given: &Value) -> Result<String, String> {
    let text = given.as_str().ok_or_else(|| format!("{} is not a text", shown(given)))?;
    Ok(text.to_owned())
}

pub fn flag(given: &Value) -> Result<bool, String> {
    given.as_bool().ok_or_else(|| format!("{} is not true or false", shown(given)))
}

pub fn count(given: &Value) -> Result<u64, String> {
    given.as_u64().ok_or_else(|| format!("{} is not a whole number of 0 or more", shown(given)))
}

pub fn small_count(given: &Value) -> Result<u32, String> {
    count(given)?.try_into().map_err(|_| format!("{given} is too much; at most {}", u32::MAX))
}

/// `"90s"`, `"1h30m"`, `"200ms"`; a bare 0 needs no unit.
pub fn span(given: &Value) -> Result<Millis, String> {
    match given {
        Value::String(text) => parse_span(text).map_err(|why| format!("{} {why}", shown(given))),
        Value::Number(number) if number.as_u64() == Some(0) => Ok(Millis(0)),
        Value::Number(number) if number.as_u64().is_some() => {
            Err(format!("{number} has no unit; write \"{number}s\" or \"{number}m\""))
        }
        _ => Err(format!("{} is not a span of time; write \"90s\" or \"2m\"", shown(given))),
    }
}

fn parse_span(text: &str) -> Result<Millis, String> {
    const SHAPE: &str = "is not a span of time; write \"90s\", \"2m\", \"1h30m\" or \"200ms\"";
    if text == "0" {
        return Ok(Millis(0));
    }
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("has no unit; write \"{text}s\" or \"{text}m\""));
    }
    let mut total = 0u64;
    let mut units = UNITS.iter();
    let mut rest = text;
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit()).ok_or(SHAPE)?;
        let (digits, tail) = rest.split_at(unit_at);
        let unit_end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let unit = if unit == "min" { "m" } else { unit };
        // Units are looked for behind the last one: each at most once, the longest first.
        let (_, ms) = units.find(|(name, _)| *name == unit).ok_or(SHAPE)?;
        let number: u64 = digits.parse().map_err(|_| SHAPE)?;
        total = number
            .checked_mul(*ms)
            .and_then(|part| total.checked_add(part))
            .ok_or("is longer than anything lasts")?;
        rest = tail;
    }
    if text.is_empty() { Err(SHAPE.into()) } else { Ok(Millis(total)) }
}

/// The shortest way to write it: `1h30m`.
pub fn span_text(Millis(span): Millis) -> String {
    if span == 0 {
        return "0s".into();
    }
    let mut rest = span;
    let mut text = String::new();
    for (unit, ms) in UNITS {
        if rest >= ms {
            text += &format!("{}{unit}", rest / ms);
            rest %= ms;
        }
    }
    text
}

pub fn span_json(span: &Millis) -> Value {
    json!(span_text(*span))
}

/// `"10/s"`, `"500/min"`, `"20/200ms"`.
pub fn rate(given: &Value) -> Result<Rate, String> {
    const SHAPE: &str = "is not a pace; write \"10/s\" or \"500/min\"";
    match given {
        Value::String(text) => {
            let wrong = || format!("{} {SHAPE}", shown(given));
            let (count, per) = text.split_once('/').ok_or_else(wrong)?;
            let count: u32 = digits(count.trim()).ok_or_else(wrong)?;
            let per = match per.trim() {
                "s" | "second" => Millis(1_000),
                "m" | "min" | "minute" => Millis(60_000),
                "h" | "hour" => Millis(3_600_000),
                span => parse_span(span).map_err(|_| wrong())?,
            };
            Ok(Rate { count, per })
        }
        Value::Number(number) if number.as_u64().is_some() => {
            Err(format!("{number} has no unit; write \"{number}/s\" or \"{number}/min\""))
        }
        _ => Err(format!("{} {SHAPE}", shown(given))),
    }
}

/// The standard library would take a plus sign too.
fn digits<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

pub fn rate_text(rate: Rate) -> String {
    match rate.per.0 {
        1_000 => format!("{}/s", rate.count),
        60_000 => format!("{}/min", rate.count),
        3_600_000 => format!("{}/h", rate.count),
        _ => format!("{}/{}", rate.count, span_text(rate.per)),
    }
}

/// RFC 3339, with its distance from UTC.
pub fn moment(given: &Value) -> Result<Timestamp, String> {
    let Value::String(text) = given else {
        return Err(format!(
            "{} is not a moment; write it as \"2026-05-01T10:00:00Z\"",
            shown(given)
        ));
    };
    when::parse(text).map(Timestamp).map_err(|why| format!("{} {why}", shown(given)))
}

pub fn moment_json(moment: &Option<Timestamp>) -> Value {
    json!(moment.map(|Timestamp(ms)| when::utc(ms)))
}

/// One of a few words, each with its meaning.
#[derive(Debug)]
pub struct Words<T: 'static>(pub &'static [(&'static str, T)]);

impl<T: Copy + PartialEq> Words<T> {
    pub fn read(&self, given: &Value) -> Result<T, String> {
        let found = self.0.iter().find(|(word, _)| given.as_str() == Some(word));
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let words: Vec<String> = self.0.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            let hint =
                did_you_mean(given.as_str().unwrap_or(""), self.0.iter().map(|(word, _)| *word));
            let hint =
                if hint.is_empty() { format!("; write {}", words.join(" or ")) } else { hint };
            format!("{} is not one of the words{hint}", shown(given))
        })
    }

    pub fn write(&self, meaning: &T) -> Value {
        let (word, _) =
            self.0.iter().find(|(_, it)| it == meaning).expect("every meaning has its word");
        json!(word)
    }
}
