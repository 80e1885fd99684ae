//! Room documents with the names of Cloudflare's waiting rooms, read as ours.
//!
//! A document is in one language or the other: as soon as a name stands in it that only theirs
//! has, it is theirs, and names that only ours has are mistakes. Both have `queue_all`, and mean
//! different things by it; the language decides.
//! Lives here: which name stands for what. A mistake names the field as it was written.
//! Stays out: what a setting means and may be (`keys.rs`, the core). `docs/configuration.md` has
//! the table for people.

use serde_json::{Map, Value, json};

use super::{Mistake, keys, value};

/// A document in our names, and what each name was called where it came from.
pub struct Translated {
    pub document: Map<String, Value>,
    pub names: Vec<(&'static str, String)>,
    pub mistakes: Vec<Mistake>,
}

/// Names that stand for a setting of a room.
const ROOM: &[&str] = &[
    "new_users_per_minute",
    "total_active_users",
    "session_duration",
    "queueing_method",
    "disable_session_renewal",
    "suspended",
    "description",
    "host",
    "path",
    "event_start_time",
    "event_end_time",
    "prequeue_start_time",
    "shuffle_at_event_start",
];

/// Names that an export holds and nobody sets.
const READ_ONLY: &[&str] = &[
    "id",
    "zone_id",
    "created_on",
    "modified_on",
    "next_event_prequeue_start_time",
    "next_event_start_time",
];

/// Names for what is no setting of a room here, with where it belongs. As an export writes them
/// when nobody has set them, they are passed over.
const ELSEWHERE: &[(&str, &str)] = &[
    ("additional_routes", "which addresses a room protects is the gate's to know"),
    ("cookie_attributes", "cookies are set by the server, always Secure and SameSite=Lax"),
    ("cookie_suffix", "cookies carry the room's name"),
    ("custom_page_html", "what stands around our page is \"template\""),
    ("default_template_language", "the page speaks the visitor's language"),
    ("enabled_origin_commands", "an origin needs no leave here"),
    ("json_response_enabled", "clients that ask for JSON get it"),
    ("queueing_status_code", "the status of the waiting page is the gate's to set"),
    ("turnstile_action", "challenges are not verified by the room"),
    ("turnstile_mode", "challenges are not verified by the room"),
];

/// A queue at random: theirs draws among all who wait, ours among so many neighbours.
const RANDOM_WINDOW: u32 = 1_024;

fn is_theirs(name: &str) -> bool {
    let known = ROOM.contains(&name)
        || READ_ONLY.contains(&name)
        || ELSEWHERE.iter().any(|(it, _)| *it == name);
    // A setting that we get one day under a name of theirs is ours.
    known && keys::find(name).is_none()
}

/// The document in our names; none if it is in ours already.
pub fn translate(document: &Map<String, Value>) -> Option<Translated> {
    let theirs = document.keys().find(|name| is_theirs(name))?;
    let mut it = Translated { document: Map::new(), names: Vec::new(), mistakes: Vec::new() };
    for (name, given) in document {
        if name == "queue_all" || is_theirs(name) {
            it.take(name, given);
        } else if keys::find(name).is_some() {
            let problem = format!(
                "a name of ours, and \"{theirs}\" is one of Cloudflare's; write all of it in one or the other"
            );
            it.mistakes.push(Mistake::new(name, problem));
        } else {
            let known = ROOM.iter().copied().chain(["queue_all"]);
            it.mistakes.push(Mistake::unknown_key(name, name, known));
        }
    }
    it.take_together(document);
    Some(it)
}

impl Translated {
    /// Writes down a setting of ours, and the name that it came from.
    fn set(&mut self, ours: &'static str, theirs: &str, value: Value) {
        self.document.insert(ours.into(), value);
        self.names.push((ours, theirs.to_owned()));
    }

    fn read<T>(&mut self, name: &str, read: Result<T, String>) -> Option<T> {
        read.map_err(|problem| self.mistakes.push(Mistake::new(name, problem))).ok()
    }

    fn take(&mut self, name: &str, given: &Value) {
        match name {
            "new_users_per_minute" => {
                let count = plain_number(given, "people a minute");
                if let Some(count) = self.read(name, count) {
                    self.set("rate", name, json!({ "count": count, "per": "1m" }));
                }
            }
            "total_active_users" => self.set("max_active", name, given.clone()),
            "session_duration" => {
                let minutes = plain_number(given, "minutes");
                if let Some(minutes) = self.read(name, minutes) {
                    self.set("session_timeout", name, json!(format!("{minutes}m")));
                }
            }
            "disable_session_renewal" => {
                if let Some(off) = self.read(name, value::flag(given)) {
                    self.set("session_renewal", name, json!(!off));
                }
            }
            "description" => self.set("title", name, given.clone()),
            "event_start_time" => self.set("starts_at", name, given.clone()),
            "event_end_time" => self.set("ends_at", name, given.clone()),
            "prequeue_start_time" => self.set("opens_at", name, given.clone()),
            "shuffle_at_event_start" => self.set("draw", name, given.clone()),
            "queueing_method" => match given.as_str() {
                Some("fifo" | "passthrough") => self.set("shuffle_window", name, json!(1)),
                Some("random") => self.set("shuffle_window", name, json!(RANDOM_WINDOW)),
                Some("reject") => {
                    let problem = "\"reject\" is no setting here but something that is done to a \
                        room: write \"fifo\", and run `waitroom room maintenance`";
                    self.mistakes.push(Mistake::new(name, problem));
                }
                _ => {
                    let problem = format!(
                        "{} is not one of the words; write \"fifo\", \"random\" or \"passthrough\"",
                        value::shown(given)
                    );
                    self.mistakes.push(Mistake::new(name, problem));
                }
            },
            _ => {
                let elsewhere = ELSEWHERE.iter().find(|(it, _)| *it == name);
                if let Some((_, why)) = elsewhere
                    && !is_unset(name, given)
                {
                    let problem = format!("no setting of a room: {why}; leave it out");
                    self.mistakes.push(Mistake::new(name, problem));
                }
            }
        }
    }

    /// What takes two names to say, and names that overrule others.
    fn take_together(&mut self, document: &Map<String, Value>) {
        let text = |name: &str| document.get(name).map(|it| it.as_str().unwrap_or_default());
        match (text("host"), text("path")) {
            (Some(host), path) if !host.is_empty() => {
                let path = path.filter(|path| !path.is_empty()).unwrap_or("/");
                self.set("target_url", "host", json!(format!("https://{host}{path}")));
            }
            (Some(_), _) => self.mistakes.push(Mistake::new("host", "not the name of a host")),
            (None, Some(path)) => self.set("target_url", "path", json!(path)),
            (None, None) => {}
        }
        let flag = |name: &str| document.get(name).map(value::flag);
        let mut asked = |name: &str| match flag(name) {
            Some(Err(problem)) => {
                self.mistakes.push(Mistake::new(name, problem));
                None
            }
            flag => flag.and_then(Result::ok),
        };
        let (suspended, queue_all) = (asked("suspended"), asked("queue_all"));
        let passthrough = text("queueing_method") == Some("passthrough");
        if suspended == Some(true) && queue_all == Some(true) {
            let problem = "nobody waits, and by queue_all everybody does; set one of them to false";
            self.mistakes.push(Mistake::new("suspended", problem));
        } else if queue_all == Some(true) {
            // Theirs lets nobody in while it is set, whatever the pace says.
            self.set("queue_all", "queue_all", json!(true));
            self.set("rate", "queue_all", Value::Null);
        } else if suspended == Some(true) || passthrough {
            let name = if passthrough { "queueing_method" } else { "suspended" };
            let rate = waitroom_core::settings::RATE_PER_SECOND_MAX;
            self.set("rate", name, json!({ "count": rate, "per": "1s" }));
            self.set("max_active", name, json!(waitroom_core::settings::ACTIVE_MAX));
            self.set("queue_all", name, json!(false));
        } else if queue_all.is_some() {
            self.set("queue_all", "queue_all", json!(false));
        }
    }

    /// Mistakes of the document in our names, in the names in which it was written.
    pub fn in_their_names(&self, mistakes: Vec<Mistake>) -> Vec<Mistake> {
        let theirs = |ours: &str| {
            let found = self.names.iter().rev().find(|(it, _)| *it == ours);
            found.map(|(_, theirs)| theirs.clone())
        };
        let rename = |mistake: Mistake| {
            let top = mistake.field.split(['.', '[']).next().unwrap_or_default();
            let Some(field) = theirs(top) else { return mistake };
            let words = mistake.problem.split(' ').map(|word| theirs(word).unwrap_or(word.into()));
            Mistake::new(field, words.collect::<Vec<String>>().join(" "))
        };
        mistakes.into_iter().map(rename).collect()
    }
}

fn plain_number(given: &Value, unit: &str) -> Result<u32, String> {
    if given.is_string() {
        return Err(format!("{} is not a number; it counts {unit}", value::shown(given)));
    }
    value::small_count(given)
}

/// As an export writes it when nobody has set it.
fn is_unset(name: &str, given: &Value) -> bool {
    let unset = match name {
        "cookie_attributes" => given["samesite"] == "auto" && given["secure"] == "auto",
        "default_template_language" => *given == "en-US",
        "queueing_status_code" => *given == 200,
        "turnstile_action" => *given == "log",
        "turnstile_mode" => *given == "off",
        _ => false,
    };
    unset
        || matches!(given, Value::Null | Value::Bool(false))
        || *given == ""
        || *given == json!([])
}
