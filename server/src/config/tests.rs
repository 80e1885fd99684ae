//! What the configuration promises, from the inside: the default file is whole, the environment
//! wins, and mistakes say where they stand. Whole files and their messages are cases in
//! `server/tests/config`.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::Value;
use waitroom_api::document;
use waitroom_core::Settings;

use super::mistakes::Place;
use super::{Config, DEFAULT, Environment, Source};

#[track_caller]
fn read(text: &str, variables: &[(&str, &str)]) -> Config {
    Config::read("test.toml", text, &Environment::of(variables))
        .unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// Two configurations are the same when they look the same; a master key never does.
fn looks(config: &Config) -> String {
    format!("{config:?}")
}

#[track_caller]
fn mistakes(text: &str, variables: &[(&str, &str)]) -> String {
    let read = Config::read("test.toml", text, &Environment::of(variables));
    read.expect_err("has mistakes").to_string()
}

/// The default file with its room, whose keys are commented out: prose begins with a blank.
fn default_with_its_room() -> String {
    let shown = |line: &str| match line.strip_prefix('#') {
        Some(key) if key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '[') => {
            key.to_owned()
        }
        _ => line.to_owned(),
    };
    DEFAULT.lines().map(shown).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_default_file_has_every_key_and_no_other() {
    // Reading panics at a key that is missing, and complains about one that nobody knows.
    let config = read("", &[]);
    assert_eq!(
        looks(&read(DEFAULT, &[])),
        looks(&config),
        "the file laid over itself changes nothing"
    );
}

#[test]
fn every_key_of_the_default_file_says_why() {
    let mut explained = false;
    for line in default_with_its_room().lines() {
        let key = line.contains('=') && line.starts_with(|c: char| c.is_ascii_alphabetic());
        // Neighbours without a gap share their words.
        assert!(!key || explained, "no comment above: {line}");
        explained = line.starts_with("# ") || line.starts_with('[') || (key && explained);
    }
}

#[test]
fn the_room_in_the_default_file_is_a_room_at_its_defaults_with_every_key() {
    let text = default_with_its_room();
    let config = read(&text, &[]);
    let rooms: Vec<_> = config.rooms.values().collect();
    assert_eq!(rooms, [&Settings::default()]);
    let root = Source::of_toml("default.toml", &text).expect("well formed").take_root();
    let keys = |it: &Value| it.as_object().map(|it| it.keys().cloned().collect::<BTreeSet<_>>());
    let shown = keys(&root["rooms"]["spring-sale"]);
    assert_eq!(shown, keys(&document::to_json(&Settings::default())));
}

#[test]
fn a_file_changes_what_it_names_and_nothing_else() {
    let config = read("[server]\npublic = \"0.0.0.0:80\"\n[rooms.a]\nmax_active = 5", &[]);
    let mut expected = read("", &[]);
    expected.server.public = "0.0.0.0:80".parse().expect("an address");
    let room = Settings { max_active: 5, ..Settings::default() };
    expected.rooms.insert(waitroom_store::RoomName::parse("a").expect("a name"), room);
    assert_eq!(looks(&config), looks(&expected));
}

#[test]
fn the_environment_wins_over_the_file() {
    let config = read(
        "[server]\ndev = true\npublic = \"0.0.0.0:80\"\n[limits]\njoin_burst = 3",
        &[
            ("WAITROOM_SERVER_DEV", "false"),
            ("WAITROOM_LIMITS_JOIN_BURST", "7"),
            ("WAITROOM_TRUST_PROXIES", "10.0.0.0/8, ::1"),
            ("WAITROOM_TLS_ADMIN_CERT", "a.pem"),
            ("WAITROOM_TLS_ADMIN_KEY", "b.pem"),
            ("WAITROOM_SERVER_GRPC", "none"),
        ],
    );
    assert!(!config.server.dev);
    assert_eq!(config.server.public.port(), 80);
    assert_eq!(config.limits.join_burst, 7);
    assert_eq!(config.trust.proxies, ["10.0.0.0/8", "::1"]);
    assert_eq!(config.tls.admin.cert, Some("a.pem".into()));
    assert_eq!(config.server.grpc, None);
}

#[test]
fn a_mistake_in_the_environment_names_its_variable() {
    let said = mistakes(
        "[server]\npublic = 80",
        &[("WAITROOM_SERVER_DEV", "yes"), ("WAITROOM_SERVER_PUBLC", "x")],
    );
    assert_eq!(
        said,
        "test.toml: 3 problems\n\
        \x20 line 2                 server.public: 80 is not an address with a port; write \"127.0.0.1:8080\" or \"[::]:8080\"\n\
        \x20 WAITROOM_SERVER_DEV    server.dev: \"yes\" is not true or false\n\
        \x20 WAITROOM_SERVER_PUBLC  WAITROOM_SERVER_PUBLC: no such setting; did you mean WAITROOM_SERVER_PUBLIC?"
    );
}

#[test]
fn variables_of_others_with_our_prefix_are_let_be() {
    let foreign = [
        ("WAITROOM_PORT", "tcp://10.0.0.1:8080"),
        ("WAITROOM_SERVICE_HOST", "10.0.0.1"),
        ("WAITROOM_PORT_8080_TCP_ADDR", "10.0.0.1"),
        ("WAITROOM_SERVER", "http://127.0.0.1:8081"),
        ("WAITROOM_ADMIN_KEY", "wrk_x"),
    ];
    assert_eq!(looks(&read("", &foreign)), looks(&read("", &[])));
}

#[test]
fn no_two_settings_share_a_variable() {
    let mut names = BTreeSet::new();
    let defaults = Value::Object(super::defaults());
    let mut tables = vec![(String::new(), &defaults)];
    while let Some((path, value)) = tables.pop() {
        match value {
            Value::Object(table) => {
                tables.extend(table.iter().map(|(key, value)| (format!("{path}_{key}"), value)));
            }
            _ => assert!(names.insert(path.clone()), "{path}"),
        }
    }
    assert!(names.len() > 50);
}

#[test]
fn the_master_key_is_taken_and_never_shown() {
    let key = "0123456789abcdef".repeat(4);
    let variables = [("WAITROOM_MASTER_KEY", &*key)];
    let config = read("", &variables);
    assert!(config.master_key.is_some());
    assert!(!looks(&config).contains("abcdef"));
    assert!(!format!("{:?}", Environment::of(&variables)).contains("abcdef"));
    assert!(read("", &[("WAITROOM_MASTER_KEY", "")]).master_key.is_none());
    let said = mistakes("", &[("WAITROOM_MASTER_KEY", &key[1..])]);
    assert!(said.contains("WAITROOM_MASTER_KEY: a master key is 32 bytes"), "{said}");
    assert!(!said.contains("abcdef"), "{said}");
}

#[test]
fn a_field_that_is_in_no_line_is_told_at_what_it_belongs_to() {
    let source = Source::of_toml("room.toml", "a = 1\n\n[b]\nc = [\n  1,\n  2,\n]\n");
    let source = source.expect("well formed");
    let line = |field: &str| {
        let mistake = document::Mistake::new(field, "wrong");
        source.mistakes(vec![mistake]).to_string().lines().nth(1).map(str::to_owned)
    };
    for (field, place) in [
        ("a", Place::Line(1)),
        ("a.x", Place::Line(1)),
        ("b", Place::Line(3)),
        ("b.d", Place::Line(3)),
        ("b.c", Place::Line(4)),
        ("b.c[1]", Place::Line(6)),
        ("b.c[1].x", Place::Line(6)),
    ] {
        assert_eq!(line(field), Some(format!("  {place}  {field}: wrong")));
    }
    assert_eq!(line("z"), Some("  z: wrong".into()));
}

/// The default file with its room, of which a piece was lost and another came in its place.
fn spoiled() -> impl Strategy<Value = String> {
    let piece =
        prop_oneof!["\\PC{0,8}", "[\\[\\]{}=\"'#.,\n 0-9a-z]{0,12}", Just("\u{feff}\r\n".into())];
    (0.0..1.0, 0usize..200, piece).prop_map(|(at, lost, piece)| {
        let letters: Vec<char> = default_with_its_room().chars().collect();
        let begin = (letters.len() as f64 * at) as usize;
        let end = (begin + lost).min(letters.len());
        let before = letters[..begin].iter();
        before.copied().chain(piece.chars()).chain(letters[end..].iter().copied()).collect()
    })
}

proptest! {
    #[test]
    fn no_file_does_more_than_be_refused_with_lines_it_has(text in spoiled()) {
        if let Err(mistakes) = Config::read("test.toml", &text, &Environment::default()) {
            prop_assert!(!mistakes.is_empty());
            let lines = text.split('\n').count() as u64;
            for it in mistakes.json()["error"]["problems"].as_array().expect("a list") {
                if let Some(line) = it["line"].as_u64() {
                    prop_assert!((1..=lines).contains(&line), "{} of {}", line, lines);
                }
            }
        }
    }
}
