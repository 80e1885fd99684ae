//! It does not matter which instance is asked.

use crate::faults::alone;
use crate::house::{House, picture};
use std::time::{Duration, Instant};

use crate::instance::{Instance, soon};

#[test]
fn any_instance_takes_any_visitor_and_all_show_the_same_line() {
    let house = House::of(2);
    let [a, b] = &house.instances[..] else { panic!("two were started") };
    let mut tokens = Vec::new();
    for who in 0..6 {
        let at = if who % 2 == 0 { a } else { b };
        let joined = at.join(who);
        assert_eq!(joined["position"], who + 1, "{joined}");
        tokens.push((joined["token"].as_str().expect("a token").to_owned(), joined));
    }
    for ((token, joined), place) in tokens.iter().zip(1..) {
        for at in [a, b] {
            // Also where nobody has heard of the ticket yet, and never an older picture.
            let seen = at.status(token);
            assert_eq!(seen["position"], place, "{seen}");
            assert!(seen["version"].as_u64() >= joined["version"].as_u64(), "{seen} {joined}");
        }
    }
    // An operator may ask any of them, and all show what was done.
    let admitted = b.operate("POST", "/admin/v1/rooms/default/admit", r#"{"count":2}"#);
    assert_eq!(admitted.status, 200, "{admitted:?}");
    let admitted = a.operate("POST", "/admin/v1/rooms/default/admit", r#"{"count":1}"#);
    assert_eq!(admitted.status, 200, "{admitted:?}");
    for at in [a, b] {
        soon("the fourth is next", || (at.status(&tokens[3].0)["position"] == 1).then_some(()));
        let audit = at.operate("GET", "/admin/v1/audit?room=default", "").json();
        let acts = audit["entries"].as_array().expect("entries").iter();
        let admits = acts.filter(|entry| entry["action"] == "admit").count();
        assert_eq!(admits, 2, "{audit}");
    }
    // A room, and a key, that were made at one are known to the other.
    let made = a.operate("PUT", "/admin/v1/rooms/second", r#"{"queue_all":true}"#);
    assert!(made.status < 300, "{made:?}");
    let joined = soon("the other knows the room", || {
        let got = b.post("/v1/rooms/second/join", &[]);
        (got.status == 201).then(|| got.json())
    });
    assert_eq!(joined["position"], 1);
    let shown = picture(a);
    assert_eq!(shown["rooms"].as_array().map(Vec::len), Some(2), "{shown}");
}

#[test]
fn a_live_ticket_opens_one_channel_wherever_that_is() {
    let _alone = alone();
    let house = House::of(2);
    let [a, b] = &house.instances[..] else { panic!("two were started") };
    let token = a.join(1)["token"].as_str().expect("a token").to_owned();
    let bearer = format!("Authorization: Bearer {token}");
    let ticket = |of: &Instance| {
        let given = of.post("/v1/rooms/default/live-ticket", &["-H", &bearer]);
        given.json()["live_ticket"].as_str().expect("a live ticket").to_owned()
    };
    // A channel stays open; what it says first is enough.
    let open = |of: &Instance, ticket: &str| {
        let path = format!("/v1/rooms/default/stream?live_ticket={ticket}");
        of.get(&path, &["--max-time", "5"]).status
    };
    for (written, shown) in [(a, a), (a, b), (b, a)] {
        let ticket = ticket(written);
        assert_eq!(open(shown, &ticket), 200);
        assert_eq!((open(a, &ticket), open(b, &ticket)), (401, 401), "once");
    }
    // Of one who is gone nobody knows whether it was used.
    let late = ticket(b);
    let [a, b] = <[Instance; 2]>::try_from(house.instances).ok().expect("two were started");
    drop(b);
    assert_eq!(open(&a, &late), 401);
}

#[test]
fn whoever_is_heard_of_anywhere_keeps_the_place_and_whoever_is_not_loses_it() {
    let _alone = alone();
    const TIMEOUT: Duration = Duration::from_secs(10);
    let house = House::with(2, &[("WAITROOM_LIMITS_STATUS", "none")]);
    let room = r#"{"queue_all":true,"rate":"none","heartbeat_timeout":"10s"}"#;
    let made = house.instances[0].operate("PUT", "/admin/v1/rooms/short", room);
    assert!(made.status < 300, "{made:?}");
    house.settled(2);
    let at = house.owner_soon("short");
    let other = &house.instances[1 - at];
    let join = || {
        soon("a place", || {
            let got = other.post("/v1/rooms/short/join", &[]);
            (got.status == 201).then(|| got.json()["token"].as_str().expect("a token").to_owned())
        })
    };
    let began = Instant::now();
    let (silent, heard) = (join(), join());
    // A long poll ends when something changes, or after a second.
    let status = |token: &str| {
        let bearer = format!("Authorization: Bearer {token}");
        other.get("/v1/rooms/short/status?wait=1", &["-H", &bearer]).json()
    };
    // Heard of only where the room is not owned, until the other one is taken for gone.
    soon("the silent one loses the place", || {
        let seen = status(&heard);
        assert_eq!(seen["status"], "waiting", "{seen}");
        (seen["position"] == 1).then_some(())
    });
    assert!(began.elapsed() >= TIMEOUT, "{:?}", began.elapsed());
    // And for longer than anybody may be silent.
    let since = Instant::now();
    while since.elapsed() < TIMEOUT + Duration::from_secs(1) {
        assert_eq!(status(&heard)["status"], "waiting");
    }
    assert_eq!(status(&silent)["status"], "expired");
}
