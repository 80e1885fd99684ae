//! Everything that is wrong with a text that people wrote, told at once.
//!
//! Lives here: how it is told, to people and as JSON. Stays out: what can be wrong.

use std::fmt;
use std::io;

use serde_json::{Value, json};
use waitroom_api::document::Mistake;

use crate::failure::Exit;

/// Where a mistake stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Counted from 1.
    Line(usize),
    /// A variable of the environment.
    Variable(String),
    /// In no line: it is missing, or the text is JSON.
    Unknown,
}

/// A text's name and what is wrong with it, in the order of its lines.
#[derive(Debug)]
pub struct Mistakes {
    name: String,
    exit: Exit,
    wrong: Vec<(Place, Mistake)>,
}

impl Mistakes {
    pub fn of(name: &str) -> Mistakes {
        Mistakes { name: name.into(), exit: Exit::Usage, wrong: Vec::new() }
    }

    /// The text could not even be read.
    pub fn unread(name: &str, error: &io::Error, exit: Exit) -> Mistakes {
        let mut mistakes = Mistakes { exit, ..Mistakes::of(name) };
        mistakes.push(Place::Unknown, Mistake::new("", format!("cannot be read: {error}")));
        mistakes
    }

    pub fn push(&mut self, place: Place, mistake: Mistake) {
        let at = self.wrong.partition_point(|(before, _)| *before <= place);
        self.wrong.insert(at, (place, mistake));
    }

    pub fn is_empty(&self) -> bool {
        self.wrong.is_empty()
    }

    /// How a process ends that was given this text.
    pub fn exit(&self) -> Exit {
        self.exit
    }

    pub fn json(&self) -> Value {
        let one = |(place, it): &(Place, Mistake)| {
            let (line, variable) = match place {
                Place::Line(line) => (Some(line), None),
                Place::Variable(name) => (None, Some(name)),
                Place::Unknown => (None, None),
            };
            json!({ "line": line, "variable": variable, "field": it.field, "problem": it.problem })
        };
        let wrong: Vec<Value> = self.wrong.iter().map(one).collect();
        json!({ "error": { "exit": self.exit as u8, "file": self.name, "problems": wrong } })
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.wrong.len();
        write!(f, "{}: {count} problem{}", self.name, if count == 1 { "" } else { "s" })?;
        let shown: Vec<String> = self.wrong.iter().map(|(place, _)| place.to_string()).collect();
        let width = shown.iter().map(String::len).max().unwrap_or(0);
        // Without a single place there is no column for them.
        let gap = if width == 0 { "" } else { "  " };
        for (place, (_, mistake)) in shown.iter().zip(&self.wrong) {
            write!(f, "\n  {place:width$}{gap}{mistake}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(f, "line {line}"),
            Place::Variable(name) => f.write_str(name),
            Place::Unknown => Ok(()),
        }
    }
}
