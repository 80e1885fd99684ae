//! Values made of parts: lanes, the returning lane, the pace as a table, the draw, lists of texts.
//!
//! Lives here: reading them so that every wrong part is named by its own path, and writing them.
//! Stays out: single values (`value.rs`) and bounds (the core's).

use serde_json::{Map, Value, json};
use waitroom_core::settings::{DrawSettings, LaneSettings, Rate, Returning};

use super::value::{self, NONE, shown};
use super::{Field, Mistake};

/// A list of names, or of `{name, weight}`, or of both.
pub fn read_lanes(field: &mut Field<'_>, given: &Value) -> Option<Vec<LaneSettings>> {
    let items =
        list(field, given, "write [\"main\", \"members\"] or [{name = \"main\", weight = 1}]")?;
    let mut lanes = Vec::new();
    for (i, item) in items.iter().enumerate() {
        let path = format!("{}[{i}]", field.path);
        let mut field = Field { path: &path, mistakes: field.mistakes };
        lanes.push(read_lane(&mut field, item));
    }
    // A lane that was left out would rename those behind it; all or none.
    lanes.into_iter().collect()
}

fn read_lane(field: &mut Field<'_>, given: &Value) -> Option<LaneSettings> {
    if let Value::String(name) = given {
        return Some(LaneSettings { name: name.clone(), weight: 1 });
    }
    let lane = table(field, given, &["name", "weight"], "write a name, or {name, weight}")?;
    let name = required(field, lane, "name", value::text);
    let weight = match lane.get("weight") {
        Some(weight) => field.at(".weight", value::small_count(weight)),
        None => Some(1),
    };
    Some(LaneSettings { name: name?, weight: weight? })
}

pub fn write_lanes(lanes: &[LaneSettings]) -> Value {
    lanes.iter().map(|lane| json!({ "name": lane.name, "weight": lane.weight })).collect()
}

pub fn read_returning(field: &mut Field<'_>, given: &Value) -> Option<Option<Returning>> {
    if is_none(given) {
        return Some(None);
    }
    let parts = table(field, given, &["share", "within"], "write {share = 20, within = \"10m\"}")?;
    let share = required(field, parts, "share", percent);
    let within = required(field, parts, "within", value::span);
    Some(Some(Returning { share: share?, within: within? }))
}

/// `20` or `"20%"`.
fn percent(given: &Value) -> Result<u32, String> {
    let written = given.as_str().and_then(|text| text.strip_suffix('%')?.trim_end().parse().ok());
    match written {
        Some(percent) => Ok(percent),
        None if given.is_string() => {
            Err(format!("{} is not a share; write 20 or \"20%\"", shown(given)))
        }
        None => value::small_count(given),
    }
}

pub fn write_returning(returning: &Option<Returning>) -> Value {
    let write = |it: Returning| json!({ "share": it.share, "within": value::span_text(it.within) });
    returning.map_or(Value::Null, write)
}

/// `"10/s"`, or `{count, per}`; null or `"none"` when only operators let people in.
pub fn read_rate(field: &mut Field<'_>, given: &Value) -> Option<Option<Rate>> {
    if is_none(given) {
        return Some(None);
    }
    if !given.is_object() {
        return field.take(value::rate(given)).map(Some);
    }
    let parts = table(field, given, &["count", "per"], "write \"10/s\"")?;
    let count = required(field, parts, "count", value::small_count);
    let per = required(field, parts, "per", value::span);
    Some(Some(Rate { count: count?, per: per? }))
}

pub fn write_rate(rate: &Option<Rate>) -> Value {
    rate.map_or(Value::Null, |rate| json!(value::rate_text(rate)))
}

/// `true` for a draw without a beacon, `{beacon}` for one with.
pub fn read_draw(field: &mut Field<'_>, given: &Value) -> Option<Option<DrawSettings>> {
    match given {
        given if is_none(given) => return Some(None),
        Value::Bool(false) => return Some(None),
        Value::Bool(true) => return Some(Some(DrawSettings { beacon: None })),
        _ => {}
    }
    let hint = "write true, false or {beacon = \"drand:quicknet:1234567\"}";
    let parts = table(field, given, &["beacon"], hint)?;
    let beacon = match parts.get("beacon") {
        None | Some(Value::Null) => Some(None),
        Some(beacon) => field.at(".beacon", value::text(beacon)).map(Some),
    };
    Some(Some(DrawSettings { beacon: beacon? }))
}

pub fn write_draw(draw: &Option<DrawSettings>) -> Value {
    match draw {
        None => Value::Null,
        Some(DrawSettings { beacon: None }) => json!(true),
        Some(DrawSettings { beacon }) => json!({ "beacon": beacon }),
    }
}

pub fn read_texts(field: &mut Field<'_>, given: &Value) -> Option<Vec<String>> {
    let items = list(field, given, "write [\"https://shop.example\"]")?;
    let mut texts = Vec::new();
    for (i, item) in items.iter().enumerate() {
        texts.push(field.at(&format!("[{i}]"), value::text(item)));
    }
    texts.into_iter().collect()
}

pub fn write_texts(texts: &[String]) -> Value {
    json!(texts)
}

fn is_none(given: &Value) -> bool {
    given.is_null() || given.as_str() == Some(NONE)
}

fn list<'v>(field: &mut Field<'_>, given: &'v Value, hint: &str) -> Option<&'v Vec<Value>> {
    let list = given.as_array();
    if list.is_none() {
        field.wrong(format!("{} is not a list; {hint}", shown(given)));
    }
    list
}

/// A table that has no other keys than these.
fn table<'v>(
    field: &mut Field<'_>,
    given: &'v Value,
    known: &[&str],
    hint: &str,
) -> Option<&'v Map<String, Value>> {
    let Some(table) = given.as_object() else {
        field.wrong(format!("{} does not fit; {hint}", shown(given)));
        return None;
    };
    for key in table.keys().filter(|key| !known.contains(&&***key)) {
        let path = format!("{}.{key}", field.path);
        field.mistakes.push(Mistake::unknown_key(path, key, known.iter().copied()));
    }
    Some(table)
}

fn required<T>(
    field: &mut Field<'_>,
    table: &Map<String, Value>,
    key: &str,
    read: impl FnOnce(&Value) -> Result<T, String>,
) -> Option<T> {
    match table.get(key) {
        Some(given) => field.at(&format!(".{key}"), read(given)),
        None => {
            field.wrong(format!("\"{key}\" is missing"));
            None
        }
    }
}
