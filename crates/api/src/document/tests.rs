//! What a room document promises: nothing is lost on the way there and back, every mistake is
//! told at once with its field, and no input, however strange, does more than be refused.

mod any;
mod cloudflare;

use proptest::prelude::*;
use serde_json::{Value, json};
use waitroom_core::settings::{ClaimMode, DrawSettings, LaneSettings, Rate, Returning};
use waitroom_core::{Millis, Settings, Timestamp};

use super::{from_json, to_json, value};

/// Reads it on top of the defaults.
#[track_caller]
fn read(document: Value) -> Settings {
    from_json(&document, &Settings::default()).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"))
}

/// Every mistake as one line.
#[track_caller]
fn mistakes(document: Value) -> Vec<String> {
    let wrong = from_json(&document, &Settings::default()).expect_err("has mistakes");
    wrong.iter().map(ToString::to_string).collect()
}

#[test]
fn an_empty_document_is_the_base() {
    assert_eq!(read(json!({})), Settings::default());
    let base = Settings { max_active: 7, ..Settings::default() };
    assert_eq!(from_json(&json!({}), &base), Ok(base.clone()));
    let changed = from_json(&json!({ "title": "Spring" }), &base);
    assert_eq!(changed, Ok(Settings { title: "Spring".into(), ..base }));
}

#[test]
fn a_document_reads_as_it_sounds() {
    let settings = read(json!({
        "title": "Spring sale",
        "lanes": ["main", { "name": "members", "weight": 3 }, { "name": "press" }],
        "returning": { "share": "20%", "within": "10m" },
        "max_active": 500,
        "rate": "500/min",
        "burst": 20,
        "tick": "200ms",
        "claim": "on_admission",
        "claim_within": "1m30s",
        "pass_life": 0,
        "heartbeat_timeout": "2m",
        "heartbeat_interval": "20s",
        "opens_at": "2026-05-01T11:00:00+02:00",
        "starts_at": "2026-05-01T10:00:00Z",
        "draw": { "beacon": "drand:quicknet:1234567" },
        "allowed_origins": ["https://shop.example"],
    }));
    let lane = |name: &str, weight| LaneSettings { name: name.into(), weight };
    let expected = Settings {
        title: "Spring sale".into(),
        lanes: vec![lane("main", 1), lane("members", 3), lane("press", 1)],
        returning: Some(Returning { share: 20, within: Millis(600_000) }),
        max_active: 500,
        rate: Some(Rate { count: 500, per: Millis(60_000) }),
        burst: Some(20),
        claim: ClaimMode::OnAdmission,
        heartbeat_interval: Millis(20_000),
        opens_at: Some(Timestamp(1_777_626_000_000)),
        starts_at: Some(Timestamp(1_777_629_600_000)),
        draw: Some(DrawSettings { beacon: Some("drand:quicknet:1234567".into()) }),
        allowed_origins: vec!["https://shop.example".into()],
        ..Settings::default()
    };
    assert_eq!(settings, expected);
}

#[test]
fn a_pace_can_be_written_in_several_ways() {
    let pace = |count, per| Some(Rate { count, per: Millis(per) });
    for (written, expected) in [
        (json!("10/s"), pace(10, 1_000)),
        (json!("500/min"), pace(500, 60_000)),
        (json!("500 / m"), pace(500, 60_000)),
        (json!("3/h"), pace(3, 3_600_000)),
        (json!("20/200ms"), pace(20, 200)),
        (json!({ "count": 7, "per": "30s" }), pace(7, 30_000)),
        (json!("none"), None),
        (json!(null), None),
    ] {
        assert_eq!(read(json!({ "rate": written })).rate, expected, "{written}");
    }
}

#[test]
fn what_has_no_unit_is_told_how_to_get_one() {
    for (document, said) in [
        (json!({ "claim_within": 90 }), r#"claim_within: 90 has no unit; write "90s" or "90m""#),
        (
            json!({ "claim_within": "90" }),
            r#"claim_within: "90" has no unit; write "90s" or "90m""#,
        ),
        (json!({ "rate": 10 }), r#"rate: 10 has no unit; write "10/s" or "10/min""#),
    ] {
        assert_eq!(mistakes(document), [said]);
    }
}

#[test]
fn each_mistake_says_what_would_do() {
    for (document, said) in [
        (json!([]), "a room document is a table of settings, not a list"),
        (json!({ "raet": "1/s" }), r#"raet: no such key; did you mean "rate"?"#),
        (json!({ "colour": 1 }), "colour: no such key"),
        (
            json!({ "claim_within": "1.5h" }),
            r#"claim_within: "1.5h" is not a span of time; write "90s", "2m", "1h30m" or "200ms""#,
        ),
        (json!({ "memory": true }), r#"memory: true is not a span of time; write "90s" or "2m""#),
        (json!({ "rate": "fast" }), r#"rate: "fast" is not a pace; write "10/s" or "500/min""#),
        (json!({ "rate": "+5/s" }), r#"rate: "+5/s" is not a pace; write "10/s" or "500/min""#),
        (
            json!({ "rate": "0/s" }),
            r#"rate.count: 0 does not fit; write "none" for manual admits only"#,
        ),
        (json!({ "rate": { "count": 5 } }), r#"rate: "per" is missing"#),
        (
            json!({ "rate": { "count": 5, "per": "1s", "pr": 1 } }),
            r#"rate.pr: no such key; did you mean "per"?"#,
        ),
        (json!({ "max_active": -1 }), "max_active: -1 is not a whole number of 0 or more"),
        (json!({ "max_active": 0 }), "max_active: 0 does not fit; allowed: 1 to 10000000"),
        (json!({ "burst": 5_000_000_000u64 }), "burst: 5000000000 is too much; at most 4294967295"),
        (json!({ "queue_all": "yes" }), r#"queue_all: "yes" is not true or false"#),
        (
            json!({ "claim": "explicitly" }),
            r#"claim: "explicitly" is not one of the words; did you mean "explicit"?"#,
        ),
        (
            json!({ "no_show": "x" }),
            r#"no_show: "x" is not one of the words; write "keep" or "return""#,
        ),
        (
            json!({ "opens_at": "2026-05-01T10:00:00" }),
            r#"opens_at: "2026-05-01T10:00:00" does not say how far it is from UTC; end it with Z or, say, +02:00"#,
        ),
        (
            json!({ "opens_at": 1_777_629_600 }),
            r#"opens_at: 1777629600 is not a moment; write it as "2026-05-01T10:00:00Z""#,
        ),
        (
            json!({ "opens_at": "2026-05-01T10:00:00Z", "starts_at": "2026-05-01T09:00:00Z" }),
            "starts_at: 2026-05-01T09:00:00.000Z is before opens_at (2026-05-01T10:00:00.000Z)",
        ),
        (
            json!({ "starts_at": "2026-05-01T10:00:00Z", "ends_at": "2026-05-01T10:00:00Z" }),
            "ends_at: 2026-05-01T10:00:00.000Z is not after starts_at (2026-05-01T10:00:00.000Z)",
        ),
        (json!({ "draw": true }), "draw: a draw needs starts_at, the moment it closes"),
        (
            json!({ "heartbeat_timeout": "1s" }),
            r#"heartbeat_timeout: "1s" does not fit; allowed: 3s to 31622400s"#,
        ),
        (json!({ "lanes": [{ "weight": 1 }] }), r#"lanes[0]: "name" is missing"#),
        (
            json!({ "lanes": ["a", "a"] }),
            r#"lanes[1].name: "a" does not fit; allowed: a name no other lane has"#,
        ),
        (
            json!({ "returning": { "share": "a%", "within": "1m" } }),
            r#"returning.share: "a%" is not a share; write 20 or "20%""#,
        ),
        (json!({ "allowed_origins": ["*", 5] }), "allowed_origins[1]: 5 is not a text"),
        (
            json!({ "allowed_origins": ["https://shop.example/"] }),
            r#"allowed_origins[0]: "https://shop.example/" does not fit; allowed: "https://shop.example", with a port if it has one, without a path; or "*""#,
        ),
    ] {
        assert_eq!(mistakes(document), [said]);
    }
}

#[test]
fn all_mistakes_are_told_at_once() {
    let told = mistakes(json!({
        "raet": "1/s",
        "claim_within": 90,
        "max_active": 0,
        "lanes": [{ "name": 5, "weight": -1, "colour": "red" }, "b"],
        "opens_at": "soon",
    }));
    let fields: Vec<&str> = told.iter().filter_map(|line| line.split(": ").next()).collect();
    let expected = ["claim_within", "lanes[0].colour", "lanes[0].name", "lanes[0].weight"];
    assert_eq!(fields[..4], expected);
    assert_eq!(fields[4..], ["opens_at", "raet", "max_active"]);
}

#[test]
fn an_unreadable_measure_blames_nobody_who_is_measured_by_it() {
    // Two hours are more than the default memory, which is not what was meant.
    let told = mistakes(json!({ "memory": "3 h", "returning": { "share": 5, "within": "2h" } }));
    assert_eq!(told.len(), 1, "{told:?}");
    let told = mistakes(json!({ "heartbeat_timeout": "10", "heartbeat_interval": "3m" }));
    assert_eq!(told.len(), 1, "{told:?}");
}

#[test]
fn a_theme_and_a_template_are_read_and_come_back_as_they_were() {
    let given = json!({
        "theme": { "accent": "#5b2a86", "texts": { "en": { "in_line": "Nearly there" } } },
        "template": "<h2>Doors at seven</h2>\n{{> waiting}}",
    });
    let settings = read(given.clone());
    assert!(settings.theme.contains("#5b2a86"), "{}", settings.theme);
    let written = to_json(&settings);
    assert_eq!((&written["theme"], &written["template"]), (&given["theme"], &given["template"]));
    let none = read(json!({ "theme": "none", "template": null }));
    assert_eq!((none.theme.as_str(), none.template.as_str()), ("", ""));
}

#[test]
fn what_is_wrong_with_a_theme_or_a_template_is_told_at_its_own_field() {
    for (given, field, word) in [
        (json!({ "theme": { "accent": "red" } }), "theme.accent", "colour"),
        (json!({ "theme": { "accent": "#ffffff" } }), "theme.accent", ""),
        (json!({ "theme": { "logo": { "url": "javascript:alert(1)" } } }), "theme.logo.url", ""),
        (json!({ "theme": { "style": "body{display:none}" } }), "theme", "style"),
        (json!({ "theme": "#5b2a86" }), "theme", "no theme"),
        (json!({ "template": "<p>Hello</p>" }), "template", "waiting"),
        (json!({ "template": "<script>x</script>{{> waiting}}" }), "template", "line 1"),
        (json!({ "template": "<div class=\"t-card\">{{> waiting}}</div>" }), "template", "line 1"),
        (json!({ "template": 7 }), "template", "text"),
    ] {
        let told = mistakes(given.clone());
        let first = told.first().unwrap_or_else(|| panic!("{given} is taken"));
        assert!(first.starts_with(&format!("{field}: ")), "{given}: {told:?}");
        assert!(first.contains(word), "{given}: {told:?}");
    }
}

#[test]
fn every_setting_of_the_core_has_its_key() {
    let core = serde_json::to_value(Settings::default()).expect("settings are JSON");
    let names = |it: &Value| it.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&to_json(&Settings::default())), names(&core));
}

#[test]
fn a_wrong_value_is_quoted_but_not_at_any_length() {
    let told = mistakes(json!({ "rate": "é".repeat(100_000) }));
    assert!(told[0].len() < 400, "{}", told[0].len());
}

proptest! {
    #[test]
    fn what_was_written_reads_back_the_same(settings in any::settings()) {
        let written = to_json(&settings);
        prop_assert_eq!(from_json(&written, &Settings::default()), Ok(settings.clone()), "{}", written);
        let other = read(json!({ "rate": "none", "burst": 3, "draw": true,
            "starts_at": "2030-01-01T00:00:00Z", "title": "other", "lanes": ["x", "y"],
            "returning": { "share": 9, "within": "2m" } }));
        prop_assert_eq!(from_json(&written, &other), Ok(settings), "whatever the base");
    }

    #[test]
    fn every_span_reads_back_the_same(ms in any::<u64>(), small in 0u64..200_000_000) {
        for ms in [Millis(ms), Millis(small)] {
            prop_assert_eq!(value::span(&value::span_json(&ms)), Ok(ms));
        }
    }

    #[test]
    fn no_document_does_more_than_be_refused(document in any::document()) {
        match from_json(&document, &Settings::default()) {
            Ok(settings) => prop_assert_eq!(settings.check(), Ok(())),
            Err(mistakes) => {
                prop_assert!(!mistakes.is_empty());
                for it in mistakes {
                    prop_assert!(!it.problem.is_empty());
                    prop_assert!(it.field.is_empty() != document.is_object(), "{}", it);
                }
            }
        }
    }
}
