//! Documents in Cloudflare's names: the same rooms, the same strictness.

use serde_json::json;
use waitroom_core::Settings;

use super::{mistakes, read};
use crate::document;

#[test]
fn a_cloudflare_document_and_ours_give_the_same_room() {
    let theirs = read(json!({
        "description": "Checkout",
        "host": "shop.example.com",
        "path": "/shop/checkout",
        "new_users_per_minute": 200,
        "total_active_users": 250,
        "session_duration": 5,
        "disable_session_renewal": true,
        "queueing_method": "random",
        "queue_all": false,
        "suspended": false,
        "prequeue_start_time": "2026-05-01T09:00:00Z",
        "event_start_time": "2026-05-01T10:00:00Z",
        "event_end_time": "2026-05-01T17:00:00Z",
        "shuffle_at_event_start": true,
    }));
    let ours = read(json!({
        "title": "Checkout",
        "target_url": "https://shop.example.com/shop/checkout",
        "rate": "200/min",
        "max_active": 250,
        "session_timeout": "5m",
        "session_renewal": false,
        "shuffle_window": 1_024,
        "opens_at": "2026-05-01T09:00:00Z",
        "starts_at": "2026-05-01T10:00:00Z",
        "ends_at": "2026-05-01T17:00:00Z",
        "draw": true,
    }));
    assert_eq!(theirs, ours);
}

#[test]
fn an_export_of_theirs_is_taken_as_it_comes() {
    let export = json!({
        "id": "699d98642c564d2e855e9661899b7252", "created_on": "2014-01-01T05:20:00.12345Z",
        "modified_on": "2014-01-01T05:20:00.12345Z", "next_event_start_time": null,
        "host": "shop.example.com", "path": "", "new_users_per_minute": 200,
        "total_active_users": 200, "session_duration": 1, "queueing_method": "fifo",
        "additional_routes": [], "cookie_attributes": { "samesite": "auto", "secure": "auto" },
        "cookie_suffix": "", "custom_page_html": "", "default_template_language": "en-US",
        "enabled_origin_commands": [], "json_response_enabled": false,
        "queueing_status_code": 200, "turnstile_mode": "off", "turnstile_action": "log",
    });
    let ours = json!({
        "target_url": "https://shop.example.com/", "rate": "200/min", "max_active": 200,
        "session_timeout": "1m",
    });
    assert_eq!(read(export), read(ours));
}

#[test]
fn queue_all_of_theirs_lets_nobody_in_and_passthrough_everybody() {
    let shut = read(json!({ "new_users_per_minute": 200, "queue_all": true }));
    assert_eq!(shut, read(json!({ "rate": null, "queue_all": true })));
    for open in [json!({ "suspended": true }), json!({ "queueing_method": "passthrough" })] {
        let settings = read(open);
        assert_eq!(settings, read(json!({ "rate": "1000000/s", "max_active": 10_000_000 })));
    }
    // In a document of ours it means what it always did.
    let ours = read(json!({ "queue_all": true, "rate": "200/min" }));
    assert!(ours.queue_all && ours.rate.is_some());
}

#[test]
fn what_cannot_be_is_told_by_the_name_that_was_written() {
    let told = mistakes(json!({
        "new_users_per_minute": 0,
        "total_active_users": 0,
        "session_duration": "5m",
        "queueing_method": "lifo",
        "event_start_time": "2026-05-01T10:00:00Z",
        "event_end_time": "2026-05-01T09:00:00Z",
    }));
    for expected in [
        "session_duration: \"5m\" is not a number; it counts minutes",
        "queueing_method: \"lifo\" is not one of the words",
        "new_users_per_minute: 0 does not fit",
        "total_active_users: 0 does not fit; allowed: 1 to 10000000",
        "event_end_time: 2026-05-01T09:00:00.000Z is not after event_start_time",
    ] {
        assert!(told.iter().any(|it| it.starts_with(expected)), "{expected}: {told:#?}");
    }
}

#[test]
fn the_two_languages_are_not_mixed() {
    let told = mistakes(json!({ "new_users_per_minute": 5, "max_active": 7, "rate": "5/s" }));
    assert_eq!(told.len(), 2, "{told:#?}");
    assert!(told[0].starts_with("max_active: a name of ours, and \"new_users_per_minute\""));
    let told = mistakes(json!({ "total_active_users": 5, "new_user_per_minute": 7 }));
    assert_eq!(told, ["new_user_per_minute: no such key; did you mean \"new_users_per_minute\"?"]);
    let told = mistakes(json!({ "suspended": true, "queue_all": true }));
    assert!(told[0].starts_with("suspended: nobody waits"), "{told:?}");
    let told = mistakes(json!({ "queueing_method": "reject" }));
    assert!(told[0].contains("waitroom room maintenance"), "{told:?}");
    let told = mistakes(json!({ "total_active_users": 5, "custom_page_html": "<p>" }));
    assert!(told[0].starts_with("custom_page_html: no setting of a room"), "{told:?}");
}

#[test]
fn a_change_in_their_names_leaves_the_rest() {
    let base = Settings { max_waiting: 9, ..Settings::default() };
    let written = document::read(&json!({ "new_users_per_minute": 60 }), &base).expect("possible");
    assert_eq!(written.keys, ["rate"]);
    assert_eq!(written.settings.max_waiting, 9);
}
