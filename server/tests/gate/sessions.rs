//! What the origin says about sessions and the room, and when a slot is free.

use crate::house::{House, JSON};
use crate::instance::soon;
use crate::origin::Origin;

/// Admitted at once, or waiting.
fn status(house: &House, ticket: &serde_json::Value) -> String {
    let bearer = format!("Authorization: Bearer {}", ticket["token"].as_str().expect("a token"));
    let got = house.get("/.waitroom/v1/rooms/default/status", &["-H", &bearer]);
    got.json()["status"].as_str().expect("a status").to_owned()
}

#[test]
fn an_origin_that_says_complete_frees_the_slot_and_the_pass_is_worth_nothing() {
    for path in ["/complete", "/end"] {
        let house = House::protect(&Origin::start().url(), &["--capacity", "1", "--rate", "50/s"]);
        let pass = house.visitor();
        let next = house.join();
        assert_eq!(status(&house, &next), "waiting", "one is inside");
        let got = house.get(path, &["-H", &pass]);
        assert_eq!((got.status, got.header("waitroom-session")), (200, None), "{got:?}");
        assert!(got.head.contains("wr-pass-default=; Path=/; Max-Age=0"), "{got:?}");
        soon("the pass is refused", || {
            let got = house.get("/seen", &[&["-H", pass.as_str()][..], &JSON].concat());
            (got.status == 503 && got.json()["code"] == "pass_required").then_some(())
        });
        // The session would have gone on for ten minutes: only the gate's word frees it now.
        soon("the next is let in", || (status(&house, &next) == "admitted").then_some(()));
    }
}

#[test]
fn an_origin_that_says_sold_out_ends_the_sale() {
    let house = House::protect(&Origin::start().url(), &[]);
    let pass = house.visitor();
    let got = house.get("/sold-out", &["-H", &pass]);
    assert_eq!((got.status, got.header("waitroom-room")), (200, None));
    let url = format!("{}/.waitroom/v1/rooms/default/join", house.url);
    let refused = crate::instance::curl(&["-X", "POST", &url]);
    assert_eq!((refused.status, &refused.json()["code"]), (410, &"room_ended".into()));
    assert_eq!(house.get("/seen", &["-H", &pass]).status, 200, "those inside may finish");
}

#[test]
fn activity_renews_a_session_and_brings_a_newer_pass() {
    let config = "[rooms.default]\nsession_timeout = \"20s\"\n";
    let house = House::protect_with(&Origin::start().url(), config, &[]);
    let pass = house.visitor();
    let fresh = soon("a newer pass", || {
        let got = house.get("/seen", &["-H", &pass]);
        assert_eq!(got.status, 200, "{got:?}");
        got.head.lines().find_map(|line| {
            let cookie = line.strip_prefix("set-cookie: wr-pass-default=")?;
            Some(cookie.split(';').next().unwrap_or_default().to_owned())
        })
    });
    assert_ne!(pass, format!("Waitroom-Pass: {fresh}"));
    let got = house.get("/seen", &["-H", &format!("Cookie: wr-pass-default={fresh}")]);
    assert_eq!(got.status, 200, "{got:?}");
}

#[test]
fn maintenance_for_all_closes_the_site_also_for_those_inside() {
    let config = "[rooms.default]\nkeep_inside = false\n";
    let house = House::protect_with(&Origin::start().url(), config, &[]);
    let pass = house.visitor();
    assert_eq!(house.get("/seen", &["-H", &pass]).status, 200);
    let held =
        house.operate("POST", "/admin/v1/rooms/default/maintenance", r#"{"reason":"new shelves"}"#);
    assert!(held.status < 300, "{held:?}");
    let got = soon("the house is closed", || {
        let got = house.get("/seen", &[&["-H", pass.as_str()][..], &JSON].concat());
        (got.status == 503).then_some(got)
    });
    assert_eq!(
        (&got.json()["code"], &got.json()["detail"]),
        (&"maintenance".into(), &"new shelves".into())
    );
}
