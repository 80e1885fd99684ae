//! A room's theme and template: checked by the pages that will show them.
//!
//! Lives here: from the document to the texts that the settings keep, and back. Every mistake is
//! named by its own path (`theme.accent`, `template` with its line). Stays out: what a theme may
//! do (`crates/pages`).

use serde_json::{Value, json};
use waitroom_pages::{Template, Theme};

use super::value::{NONE, shown};
use super::{Field, Mistake};

/// A table such as `{accent = "#5b2a86"}`; null or `"none"` for the usual looks.
pub fn read_theme(field: &mut Field<'_>, given: &Value) -> Option<String> {
    if is_none(given) {
        return Some(String::new());
    }
    let Some(table) = given.as_object() else {
        field.wrong(format!("{} is no theme; write {{accent = \"#5b2a86\"}}", shown(given)));
        return None;
    };
    if table.is_empty() {
        return Some(String::new());
    }
    let text = given.to_string();
    match Theme::read(&text) {
        Ok(_) => Some(text),
        Err(mistakes) => {
            for mistake in mistakes {
                // What is wrong with the whole is told at the whole.
                let path = match mistake.place.as_str() {
                    "theme" => field.path.to_owned(),
                    place => format!("{}.{place}", field.path),
                };
                field.mistakes.push(Mistake::new(&path, mistake.problem));
            }
            None
        }
    }
}

pub fn write_theme(theme: &str) -> Value {
    serde_json::from_str(theme).unwrap_or(Value::Null)
}

/// A text with `{{> waiting}}` in it; null, `"none"` or nothing for none.
pub fn read_template(field: &mut Field<'_>, given: &Value) -> Option<String> {
    if is_none(given) {
        return Some(String::new());
    }
    let Some(text) = given.as_str() else {
        field.wrong(format!("{} is not a text", shown(given)));
        return None;
    };
    if text.trim().is_empty() {
        return Some(String::new());
    }
    match Template::read(text) {
        Ok(_) => Some(text.to_owned()),
        Err(mistakes) => {
            for mistake in mistakes {
                field.wrong(format!("{}: {}", mistake.place, mistake.problem));
            }
            None
        }
    }
}

pub fn write_template(template: &str) -> Value {
    if template.is_empty() { Value::Null } else { json!(template) }
}

fn is_none(given: &Value) -> bool {
    given.is_null() || given.as_str() == Some(NONE)
}
