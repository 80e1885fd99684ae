//! The values of `[events]`, and webhooks: `[webhooks.NAME]`, each laid over the defaults of
//! `[events.webhook]`, which is the first of them.

use hyper::Uri;
use serde_json::{Map, Value};
use waitroom_api::document::Mistake;
use waitroom_api::document::value::{shown, text};
use waitroom_outbox::mirror::{Access, Place};
use waitroom_outbox::{Filter, Kind};
use waitroom_store::RoomName;

use super::kafka::Way;
use super::sections::{self, EventsKafka, EventsWebhook, Notify};
use super::values::list;

/// A webhook that is used, and the name of its sink.
#[derive(Clone, Debug, PartialEq)]
pub struct Hook {
    pub name: String,
    pub of: EventsWebhook,
}

/// The webhooks besides the first, by name.
pub fn read_hooks(given: Option<Value>, wrong: &mut Vec<Mistake>) -> Vec<Hook> {
    let hooks = match given {
        None => return Vec::new(),
        Some(Value::Object(hooks)) => hooks,
        Some(_) => {
            wrong.push(Mistake::new("webhooks", "webhooks are tables [webhooks.NAME]"));
            return Vec::new();
        }
    };
    let defaults: Map<String, Value> =
        super::defaults()["events"]["webhook"].as_object().cloned().unwrap_or_default();
    let mut read = Vec::new();
    for (name, hook) in hooks {
        let path = format!("webhooks.{name}");
        // The name becomes a sink's; a room's letters fit well.
        if let Err(error) = RoomName::parse(&name) {
            wrong.push(Mistake::new(&path, error.to_string()));
        }
        let Value::Object(hook) = hook else {
            wrong.push(Mistake::new(&path, format!("write [{path}]")));
            continue;
        };
        let of = sections::read_hook(&path, hook, &defaults, wrong);
        if of.url.is_none() && !wrong.iter().any(|it| it.field == format!("{path}.url")) {
            wrong.push(Mistake::new(format!("{path}.url"), "no address; write \"https://…\""));
        }
        check(&path, &of, wrong);
        read.push(Hook { name: format!("webhook-{name}"), of });
    }
    read
}

/// The first webhook, where it has an address.
pub fn first_hook(of: &EventsWebhook, wrong: &mut Vec<Mistake>) -> Option<Hook> {
    of.url.as_ref()?;
    check("events.webhook", of, wrong);
    Some(Hook { name: "webhook".to_owned(), of: of.clone() })
}

fn check(path: &str, of: &EventsWebhook, wrong: &mut Vec<Mistake>) {
    let told =
        |wrong: &[Mistake], key: &str| wrong.iter().any(|it| it.field == format!("{path}.{key}"));
    if of.url.is_some() && of.secret_file.is_none() && !told(wrong, "secret_file") {
        let problem = "a webhook is signed: name a file with its secret (whsec_…)";
        wrong.push(Mistake::new(format!("{path}.secret_file"), problem));
    }
    let plain = of.url.as_ref().is_some_and(|url| url.scheme_str() == Some("http"));
    if plain && !of.allow_private && !told(wrong, "allow_private") {
        let problem = "http:// carries passes in plain text; write https://, or set allow_private \
                       for an endpoint of your own network";
        wrong.push(Mistake::new(format!("{path}.url"), problem));
    }
}

/// A mail server: "mail.example:587".
pub fn mail_server(given: &Value) -> Result<(String, u16), String> {
    let wrong = || format!("{} is not a mail server; write \"mail.example:587\"", shown(given));
    let said = text(given)?;
    let (host, port) = said.rsplit_once(':').ok_or_else(wrong)?;
    let port = port.parse().map_err(|_| wrong())?;
    let fits = !host.is_empty() && host.chars().all(|c| c.is_ascii_graphic() && c != '/');
    if fits { Ok((host.to_owned(), port)) } else { Err(wrong()) }
}

/// Whom a push service writes to when something is wrong.
pub fn contact(given: &Value) -> Result<String, String> {
    let said = text(given)?;
    let known = ["mailto:", "https://"].iter().any(|it| said.starts_with(it));
    let wrong = || format!("{} is nobody; write \"mailto:ops@shop.example\"", shown(given));
    if known { Ok(said) } else { Err(wrong()) }
}

/// Keys of `[notify]` that need each other.
pub fn check_notices(of: &Notify, wrong: &mut Vec<Mistake>) {
    let unread: Vec<String> = wrong.iter().map(|it| it.field.clone()).collect();
    let mut needs = |broken: bool, key: &str, problem: &str| {
        let key = format!("notify.{key}");
        if broken && !unread.iter().any(|it| it.starts_with("notify.")) {
            wrong.push(Mistake::new(key, problem));
        }
    };
    let channels = [of.smtp.is_some(), of.sms_url.is_some(), of.push_subject.is_some()];
    let none = !channels.contains(&true);
    needs(none && !of.rooms.is_empty(), "rooms", "no channel: set smtp, sms_url or push_subject");
    needs(of.smtp.is_some() && of.from.is_none(), "from", "an e-mail needs somebody who writes it");
    needs(
        of.sms_url.is_some() && of.sms_secret_file.is_none(),
        "sms_secret_file",
        "what is sent there is signed: name a file with a secret (whsec_…)",
    );
    needs(
        of.smtp_user.is_some() != of.smtp_password_file.is_some(),
        "smtp_user",
        "a user and a password file are given together",
    );
    let plain = of.sms_url.as_ref().is_some_and(|url| url.scheme_str() == Some("http"));
    needs(
        plain && !of.allow_private,
        "sms_url",
        "http:// carries numbers in plain text; write https://, or set allow_private",
    );
}

/// Keys of `[events.kafka]` that need each other.
pub fn check_kafka(of: &EventsKafka, wrong: &mut Vec<Mistake>) {
    if wrong.iter().any(|it| it.field.starts_with("events.kafka.")) {
        return;
    }
    for (key, problem) in Way::of_events(of).mistakes("password_file") {
        wrong.push(Mistake::new(format!("events.kafka.{key}"), problem));
    }
}

/// Where a webhook listens.
pub fn hook_url(given: &Value) -> Result<Uri, String> {
    let shape = "write \"https://shop.example/hooks/waitroom\"";
    let wrong = || format!("{} is not the address of a webhook; {shape}", shown(given));
    let url: Uri = text(given)?.parse().map_err(|_| wrong())?;
    let known = matches!(url.scheme_str(), Some("http" | "https"));
    let host = url.authority().filter(|it| known && !it.host().is_empty()).ok_or_else(wrong)?;
    if host.as_str().contains('@') {
        return Err("an address with a password in it; the signature says who we are".to_owned());
    }
    Ok(url)
}

/// Addresses with commas between them. What is wrong with one is told by whoever connects.
pub fn servers(given: &Value) -> Result<String, String> {
    let said = text(given)?;
    if said.split(',').any(|part| part.trim().is_empty()) {
        return Err(format!("{} names no server between two commas", shown(given)));
    }
    Ok(said)
}

/// A Kafka topic: letters, digits, dots, lines.
pub fn topic(given: &Value) -> Result<String, String> {
    let said = text(given)?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if said.is_empty() || said.len() > 249 || !said.bytes().all(fits) {
        return Err(format!("{} is no topic; use letters, digits, . _ and -", shown(given)));
    }
    Ok(said)
}

/// An address of a database, as `postgres://…` or as `host=… user=…`.
pub fn database(given: &Value) -> Result<String, String> {
    let said = text(given)?;
    waitroom_outbox::postgres::is_address(&said).map(|()| said)
}

/// Where a mirror may be.
pub fn mirror(given: &Value) -> Result<String, String> {
    let said = text(given)?;
    Place::parse(&said, Access::default()).map(|_| said)
}

/// What a sink wants to hear of.
pub fn kinds(given: &Value) -> Result<Filter, String> {
    let words = list(text)(given)?;
    Filter::of_words(words.iter().map(String::as_str)).map_err(|word| {
        let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind.word()).collect();
        format!("no event is called {word:?}; there are {}, and * for a part", known.join(", "))
    })
}
