//! Settings from the environment: `WAITROOM_SERVER_PUBLIC` for `server.public`.
//!
//! Lives here: which variables are settings, and how their texts become values. Stays out: what
//! the values mean.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};
use waitroom_api::document::{Mistake, nearest_within};
use waitroom_store::seal::MasterKey;

use super::mistakes::Place;
use super::source::Source;

const PREFIX: &str = "WAITROOM_";
const MASTER_KEY: &str = "WAITROOM_MASTER_KEY";
/// Variables of ours that are no settings of a server.
const OTHERS: [&str; 3] = [MASTER_KEY, "WAITROOM_ADMIN_KEY", "WAITROOM_SERVER"];
/// Slips until a variable is taken for a mistyped one. Orchestrators put variables of the same
/// prefix there (a Kubernetes service called waitroom makes WAITROOM_PORT), so only what is very
/// near is a mistake, and everything else is somebody else's.
const SLIPS_MAX: usize = 2;

/// The variables that begin with `WAITROOM_`.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    pub fn of_this_process() -> Environment {
        let ours = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.to_str().filter(|name| name.starts_with(PREFIX))?.to_owned();
            Some((name, value.to_string_lossy().into_owned()))
        });
        Environment(ours.collect())
    }

    #[cfg(test)]
    pub fn of(variables: &[(&str, &str)]) -> Environment {
        Environment(variables.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect())
    }

    /// The master key, if it is given here. A text that is none is a mistake, and is not shown.
    pub fn master_key(&self, wrong: &mut Vec<Mistake>) -> Option<MasterKey> {
        let text = self.0.get(MASTER_KEY).filter(|text| !text.is_empty())?;
        let key = MasterKey::from_text(text);
        key.map_err(|error| wrong.push(Mistake::new(MASTER_KEY, error.to_string()))).ok()
    }

    /// Lays what is set here over `all`, and notes in `source` where it stands from now on.
    pub fn lay_over(&self, all: &mut Map<String, Value>, source: &mut Source) -> Vec<Mistake> {
        let settings = settings();
        let mut wrong = Vec::new();
        for (name, text) in &self.0 {
            if OTHERS.contains(&&**name) {
                continue;
            }
            let Some(setting) = settings.get(name) else {
                let known = settings.keys().map(String::as_str).chain(OTHERS);
                if let Some(near) = nearest_within(name, known, SLIPS_MAX) {
                    source.now_stands(name, Place::Variable(name.clone()));
                    let problem = format!("no such setting; did you mean {near}?");
                    wrong.push(Mistake::new(name, problem));
                }
                continue;
            };
            source.now_stands(&setting.path, Place::Variable(name.clone()));
            match setting.read(text) {
                Ok(value) => put(all, &setting.path, value),
                Err(problem) => wrong.push(Mistake::new(&setting.path, problem)),
            }
        }
        wrong
    }
}

/// A key of `default.toml`; its default shows what kind of value it takes.
struct Setting {
    path: String,
    default: Value,
}

impl Setting {
    fn read(&self, text: &str) -> Result<Value, String> {
        match &self.default {
            Value::Bool(_) => match text {
                "true" => Ok(Value::from(true)),
                "false" => Ok(Value::from(false)),
                _ => Err(format!("{text:?} is not true or false")),
            },
            Value::Number(_) => {
                let number = text.parse::<u64>();
                number.map(Value::from).map_err(|_| format!("{text:?} is not a whole number"))
            }
            Value::Array(_) => {
                let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
                Ok(items.map(Value::from).collect())
            }
            _ => Ok(Value::from(text)),
        }
    }
}

/// Every key of `default.toml` by the name of its variable.
fn settings() -> BTreeMap<String, Setting> {
    let mut found = BTreeMap::new();
    collect(&mut found, "", super::defaults());
    found
}

fn collect(found: &mut BTreeMap<String, Setting>, above: &str, table: Map<String, Value>) {
    for (key, value) in table {
        let path = if above.is_empty() { key } else { format!("{above}.{key}") };
        match value {
            Value::Object(table) => collect(found, &path, table),
            default => {
                let variable = format!("{PREFIX}{}", path.to_uppercase().replace('.', "_"));
                found.insert(variable, Setting { path, default });
            }
        }
    }
}

/// Puts a value where its path says. Where a table should be and is none, the file's mistake is
/// told, and this value is not needed.
fn put(all: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            all.insert(path.to_owned(), value);
        }
        Some((table, rest)) => {
            if let Some(Value::Object(table)) = all.get_mut(table) {
                put(table, rest, value);
            }
        }
    }
}

/// Names only: values may be secrets.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
