//! Sites: `[sites.NAME]`, each laid over `[gate]`, and the values that only they have.
//!
//! Lives here: reading a site. Stays out: what a gate does with it (`waitroom_gate`).

use hyper::header::HeaderName;
use hyper::{Method, StatusCode, Uri};
use serde_json::{Map, Value};
use waitroom_api::document::Mistake;
use waitroom_api::document::value::shown;
use waitroom_core::settings::Rate;
use waitroom_gate::Site;
use waitroom_gate::adaptive;
use waitroom_gate::gate::HERE;
use waitroom_gate::remote::RoomAt;
use waitroom_gate::site::{Fail, OriginManners, Rule, When};
use waitroom_store::RoomName;

use super::sections::{self, FailMode, Gate};

/// The sites that could be read, by name; the first whose host fits has a request.
pub fn read_sites(
    given: Option<Value>,
    all: &Map<String, Value>,
    wrong: &mut Vec<Mistake>,
) -> Vec<Site> {
    let sites = match given {
        None => return Vec::new(),
        Some(Value::Object(sites)) => sites,
        Some(_) => {
            wrong.push(Mistake::new("sites", "sites are tables [sites.NAME]"));
            return Vec::new();
        }
    };
    // What is wrong in [gate] itself is told once, where it stands.
    let gate = all.get("gate").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut read = Vec::new();
    for (name, site) in sites {
        let path = format!("sites.{name}");
        let Value::Object(site) = site else {
            wrong.push(Mistake::new(&path, format!("write [{path}]")));
            continue;
        };
        let read_from = sections::read_site(&path, site, &usable(&gate), wrong);
        // What could not be read was told already, and is not missing. A site without an origin
        // is one that another proxy forwards to.
        let told = |wrong: &[Mistake], key: &str| {
            wrong.iter().any(|it| it.field == format!("{path}.{key}"))
        };
        let room_at = room_at(&path, &read_from, wrong);
        let protects = read_from.room.is_some() || !read_from.rules.is_empty();
        if !protects && !told(wrong, "room") && !told(wrong, "rules") {
            let problem = "nothing is protected: name a room, or rules with rooms";
            wrong.push(Mistake::new(format!("{path}.room"), problem));
        }
        read.push(Site { room_at, ..site_of(name, read_from) });
    }
    read
}

/// Where the rooms of a site are, when they are elsewhere: all four keys, or none.
fn room_at(path: &str, gate: &Gate, wrong: &mut Vec<Mistake>) -> Option<RoomAt> {
    let keys = ["room_at", "room_admin_at", "room_key_file", "gate_name"];
    let given = [
        gate.room_at.is_some(),
        gate.room_admin_at.is_some(),
        gate.room_key_file.is_some(),
        gate.gate_name.is_some(),
    ];
    if given == [false; 4] {
        return None;
    }
    let missing = keys.iter().zip(given).filter(|(_, given)| !given);
    for (key, _) in missing {
        let problem = format!("a gate whose room is elsewhere needs {}", keys.join(", "));
        wrong.push(Mistake::new(format!("{path}.{key}"), problem));
    }
    let file = gate.room_key_file.as_ref()?;
    let key = std::fs::read_to_string(file).map_err(|error| {
        let problem = format!("{} cannot be read: {error}", file.display());
        wrong.push(Mistake::new(format!("{path}.room_key_file"), problem));
    });
    Some(RoomAt {
        public: gate.room_at.clone()?,
        admin: gate.room_admin_at.clone()?,
        key: key.ok()?.trim().to_owned(),
        gate: gate.gate_name.clone()?,
    })
}

/// [gate] with the defaults in place of what cannot be read there.
fn usable(gate: &Map<String, Value>) -> Map<String, Value> {
    let defaults = super::defaults()["gate"].as_object().cloned().unwrap_or_default();
    let mut wrong = Vec::new();
    sections::read_site("gate", gate.clone(), &defaults, &mut wrong);
    let mut usable = defaults;
    let broken = |key: &str| wrong.iter().any(|it| it.field == format!("gate.{key}"));
    usable.extend(gate.iter().filter(|(key, _)| !broken(key)).map(|(k, v)| (k.clone(), v.clone())));
    usable
}

/// The site that this section describes.
pub fn site_of(name: String, gate: Gate) -> Site {
    let per_min = |rate: Option<Rate>| {
        rate.map_or(0, |rate| (u64::from(rate.count) * 60_000 / rate.per.0.max(1)) as u32)
    };
    let adaptive = gate.adaptive.then(|| adaptive::Settings {
        floor_per_min: per_min(gate.adaptive_floor),
        ceiling_per_min: per_min(gate.adaptive_ceiling),
        fallback_per_min: per_min(gate.adaptive_fallback),
        slow: gate.adaptive_slow,
        bad_percent_max: gate.adaptive_bad_percent as u32,
        in_flight_max: gate.adaptive_in_flight as u32,
        window: gate.adaptive_window,
        step_percent: gate.adaptive_step_percent as u32,
        cut_to_percent: gate.adaptive_cut_percent as u32,
    });
    Site {
        name,
        hosts: gate.hosts,
        room: gate.room,
        rules: gate.rules,
        bypass: gate.bypass,
        crawlers: gate.crawlers,
        waiting: gate.waiting,
        waiting_status: gate.waiting_status,
        fail: match gate.fail {
            FailMode::Closed => Fail::Closed,
            FailMode::Open => Fail::Open { per_s: gate.fail_open_per_second as u32 },
        },
        checked_for: gate.checked_for,
        only_way_in: gate.only_way_in,
        gates: gate.gates,
        room_at: None,
        origins: gate.origins,
        manners: OriginManners {
            keep_host: gate.keep_host,
            connect_timeout: gate.connect_timeout,
            answer_timeout: gate.answer_timeout,
            idle_timeout: gate.idle_timeout,
            in_flight_max: gate.in_flight_max as usize,
            idle_connections_max: gate.idle_connections_max as usize,
            health_path: gate.health_path,
            health_every: gate.health_every,
            ca: gate.origin_ca,
        },
        adaptive,
    }
}

/// `http://host:port` or `https://host:port`, nothing after it.
pub fn origin(given: &Value) -> Result<Uri, String> {
    let wrong = |why: &str| format!("{} {why}", shown(given));
    let shape = "is not an origin; write \"http://127.0.0.1:3000\"";
    let text = given.as_str().ok_or_else(|| wrong(shape))?;
    let uri: Uri = text.parse().map_err(|_| wrong(shape))?;
    let bare = matches!(uri.path(), "/" | "") && uri.query().is_none();
    let host = uri.host().is_some_and(|host| !host.is_empty()) && !text.contains('@');
    let fits = matches!(uri.scheme_str(), Some("http" | "https")) && host && bare;
    if fits { Ok(uri) } else { Err(wrong(shape)) }
}

pub fn room_name(given: &Value) -> Result<RoomName, String> {
    let text = given.as_str().unwrap_or_default();
    RoomName::parse(text).map_err(|error| format!("{}: {error}", shown(given)))
}

/// What a gate is called among others; it stands in an address.
pub fn gate_name(given: &Value) -> Result<String, String> {
    let fits = |it: u8| it.is_ascii_alphanumeric() || b"-_.".contains(&it);
    let good = |it: &&str| (1..=64).contains(&it.len()) && it.bytes().all(fits) && *it != HERE;
    let text = given.as_str().filter(good);
    let hint = "write a name of letters, digits, -, _ and ., such as \"edge-1\"";
    text.map(str::to_owned).ok_or_else(|| format!("{} names no gate; {hint}", shown(given)))
}

pub fn host_pattern(given: &Value) -> Result<String, String> {
    let fits = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || b".-_*[]:".contains(&it);
    let text = given.as_str().filter(|it| !it.is_empty() && it.bytes().all(fits));
    let hint = "write \"shop.example\" or \"*.shop.example\", small and without a port";
    text.map(str::to_owned).ok_or_else(|| format!("{} is not a host; {hint}", shown(given)))
}

pub fn local_path(given: &Value) -> Result<String, String> {
    let text = given.as_str().filter(|it| it.starts_with('/') && it.parse::<Uri>().is_ok());
    text.map(str::to_owned)
        .ok_or_else(|| format!("{} is not a path; write \"/health\"", shown(given)))
}

pub fn waiting_status(given: &Value) -> Result<StatusCode, String> {
    let status = given.as_u64().filter(|it| [200, 202, 429, 503].contains(it));
    let status = status.and_then(|it| StatusCode::from_u16(it as u16).ok());
    status.ok_or_else(|| format!("{} does not fit; write 200, 202, 429 or 503", shown(given)))
}

/// `{path = "/checkout/*", room = "checkout"}`, with host, method and header besides.
pub fn rule(given: &Value) -> Result<Rule, String> {
    let Value::Object(parts) = given else {
        let hint = "write {path = \"/checkout/*\", room = \"checkout\"}";
        return Err(format!("{} is not a rule; {hint}", shown(given)));
    };
    let room = parts.get("room").ok_or("a rule needs a room")?;
    let mut rest = parts.clone();
    rest.remove("room");
    Ok(Rule { when: described(&rest)?, room: room_name(room)? })
}

/// A path by itself, or a table.
pub fn when(given: &Value) -> Result<When, String> {
    match given {
        Value::String(_) => Ok(When { path: Some(path_pattern(given)?), ..When::default() }),
        Value::Object(parts) if !parts.is_empty() => described(parts),
        _ => {
            let hint = "write \"/assets/*\" or {path = \"/hooks/*\", method = \"POST\"}";
            Err(format!("{} describes no requests; {hint}", shown(given)))
        }
    }
}

fn described(parts: &Map<String, Value>) -> Result<When, String> {
    let mut when = When::default();
    for (key, value) in parts {
        match &**key {
            "path" => when.path = Some(path_pattern(value)?),
            "host" => when.host = Some(host_pattern(value)?),
            "header" => when.header = Some(header(value)?),
            "method" => {
                let one = std::slice::from_ref(value);
                let methods = value.as_array().map_or(one, Vec::as_slice);
                when.methods = methods.iter().map(method).collect::<Result<_, _>>()?;
            }
            other => {
                return Err(format!(
                    "{other:?}: no such part; there are path, host, method, header"
                ));
            }
        }
    }
    Ok(when)
}

fn path_pattern(given: &Value) -> Result<String, String> {
    let text = given.as_str().filter(|it| it.starts_with('/') || it.starts_with('*'));
    text.map(str::to_owned).ok_or_else(|| {
        format!("{} is not a path; write \"/checkout/*\" or \"*.css\"", shown(given))
    })
}

fn method(given: &Value) -> Result<Method, String> {
    let text = given.as_str().filter(|it| it.bytes().all(|it| it.is_ascii_uppercase()));
    let method = text.and_then(|it| Method::from_bytes(it.as_bytes()).ok());
    method.ok_or_else(|| format!("{} is not a method; write \"POST\"", shown(given)))
}

/// `"X-Probe"` or `"X-Probe: yes"`.
fn header(given: &Value) -> Result<(HeaderName, Option<String>), String> {
    let text = given.as_str().unwrap_or_default();
    let (name, value) = match text.split_once(':') {
        Some((name, value)) => (name, Some(value.trim().to_owned())),
        None => (text, None),
    };
    let name = HeaderName::from_bytes(name.trim().as_bytes());
    let name =
        name.map_err(|_| format!("{} is not a header; write \"X-Probe: yes\"", shown(given)))?;
    Ok((name, value))
}
