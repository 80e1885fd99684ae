//! `waitroom room set`: turns single settings of a running room.
//!
//! Lives here: from `key=value` to a document that names only these keys.

use clap::Args;
use serde_json::{Map, Value, json};
use waitroom_api::document;
use waitroom_core::Settings;
use waitroom_store::RoomName;

use super::{name, path, told};
use crate::client::To;
use crate::failure::{Exit, Failure};
use crate::out::Out;

/// Changes single settings of a room at once; all others stay as they are.
///
/// A key of role operator may set rate, burst, max_active, max_waiting and message; everything
/// else takes one of role owner.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom room set spring-sale rate=20/s max_active=500\n  \
    waitroom room set spring-sale message=\"Card payment is slow\"\n  \
    waitroom room set spring-sale message=")]
pub struct Set {
    /// The room.
    #[arg(value_parser = name)]
    room: RoomName,
    /// What to set, as in a room document.
    #[arg(value_name = "KEY=VALUE", required = true)]
    settings: Vec<String>,
    #[command(flatten)]
    pub to: To,
}

impl Set {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let document = document(&self.settings)?;
        let keys: Vec<String> = document.keys().cloned().collect();
        let answer = self.to.client()?.patch(&path(&self.room, ""), &Value::Object(document));
        let answer = answer.map_err(|refused| told(refused, &self.room))?;
        let now = |key: &String| format!("{key} = {}", answer.body["settings"][key]);
        let now: Vec<String> = keys.iter().map(now).collect();
        out.tell(format!("room {}: {}", self.room, now.join(", ")), &answer.body)?;
        Ok(Exit::Fine)
    }
}

fn document(settings: &[String]) -> Result<Map<String, Value>, Failure> {
    let defaults = document::to_json(&Settings::default());
    let mut document = Map::new();
    for setting in settings {
        let wrong = |why: &str| {
            Failure::new(Exit::Usage, format!("{setting:?} {why}"))
                .means("nothing was sent")
                .advise("write KEY=VALUE, such as rate=20/s")
        };
        let (key, text) = setting.split_once('=').ok_or_else(|| wrong("has no ="))?;
        let value = value(&defaults[key], text);
        if document.insert(key.to_owned(), value).is_some() {
            return Err(wrong("sets what was set before"));
        }
    }
    Ok(document)
}

/// Settings that are texts are taken letter by letter; others as numbers, lists or tables, if they
/// read as such.
fn value(default: &Value, text: &str) -> Value {
    match text {
        "null" | "none" => Value::Null,
        text if default.is_string() => json!(text),
        text => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_what_its_key_takes() {
        let of = |settings: &[&str]| {
            let settings: Vec<String> = settings.iter().map(|it| (*it).to_owned()).collect();
            document(&settings).map(Value::Object).map_err(|failure| failure.to_string())
        };
        let read =
            of(&["rate=20/s", "max_active=500", "message=42", "burst=none", "queue_all=true"]);
        let meant = json!({
            "rate": "20/s", "max_active": 500, "message": "42", "burst": null, "queue_all": true,
        });
        assert_eq!(read.expect("good"), meant);
        let lanes = of(&["lanes=[\"a\",\"b\"]", "message=a=b"]).expect("good");
        assert_eq!(lanes, json!({ "lanes": ["a", "b"], "message": "a=b" }));
        assert!(of(&["rate"]).is_err_and(|said| said.contains("has no =")));
        assert!(of(&["rate=1/s", "rate=2/s"]).is_err());
    }
}
