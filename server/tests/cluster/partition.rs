//! The owner of a room is cut off from Redis, with visitors on its side.

use crate::crowd::{Crew, Crowd, judged};
use crate::faults::alone;
use crate::house::{House, name, owner, preferred};
use crate::instance::{Got, Instance, soon};
use crate::spreader::Spreader;

const SALE: &str = r#"{"rate":"40/s","max_active":80,"queue_all":true,"claim_within":"20s",
    "session_timeout":"30s","pass_life":"5s","pass_leeway":"0s","heartbeat_timeout":"60s"}"#;

fn join(at: &Instance, room: &str) -> Got {
    at.post(&format!("/v1/rooms/{room}/join"), &[])
}

fn joined(house: &House, at: usize) -> u64 {
    let shown = house.instances[at].operate("GET", "/admin/v1/rooms/sale", "").json();
    shown["joined"].as_u64().unwrap_or(0)
}

#[test]
fn an_owner_that_is_cut_off_from_redis_shows_what_it_knew_and_gives_nothing_out() {
    let _alone = alone();
    let house = House::behind_cutters(3);
    let made = house.instances[0].operate("PUT", "/admin/v1/rooms/sale", SALE);
    assert!(made.status < 300, "{made:?}");
    // Another room, of the same owner, in which nobody is let in by itself: somebody waits there.
    let still = r#"{"rate":"none","queue_all":true,"claim":"explicit"}"#;
    let should = preferred(&house.instances[0], "sale");
    let room = (0..60).map(|at| format!("still-{at}")).find(|room| {
        let made = house.instances[0].operate("PUT", &format!("/admin/v1/rooms/{room}"), still);
        assert!(made.status < 300, "{made:?}");
        preferred(&house.instances[0], room) == should
    });
    let room = room.expect("one of sixty hashes to it");
    house.at_rest(3);
    let at = house.owner_soon("sale");
    assert_eq!(house.owner_soon(&room), at);
    let (cut, others) = (&house.instances[at], [(at + 1) % 3, (at + 2) % 3]);
    let was = name(cut);
    // On its side: a crowd, and three whom we know, in a room that stands still. Two of them may
    // come in, and one has come.
    let on_its_side =
        Crowd::start(&cut.public, &cut.admin, &Crew { visitors: 150, over_s: 8, seed: 1 });
    let way = Spreader::to(others.iter().map(|at| house.instances[*at].public.clone()));
    let admin = &house.instances[others[0]].admin;
    let elsewhere = Crowd::start(&way.url, admin, &Crew { visitors: 250, over_s: 8, seed: 2 });
    let tokens: Vec<String> = (0..3)
        .map(|_| join(cut, &room).json()["token"].as_str().expect("a token").to_owned())
        .collect();
    let bearer = |token: &str| format!("Authorization: Bearer {token}");
    let claim = |of: &Instance, token: &str| {
        of.post(&format!("/v1/rooms/{room}/claim"), &["-H", &bearer(token)])
    };
    let status = |of: &Instance, token: &str| {
        of.get(&format!("/v1/rooms/{room}/status"), &["-H", &bearer(token)]).json()
    };
    let path = format!("/admin/v1/rooms/{room}/admit");
    let admitted = cut.operate("POST", &path, r#"{"count":2}"#);
    assert_eq!(admitted.status, 200, "{admitted:?}");
    let claimed = claim(cut, &tokens[0]);
    assert_eq!(claimed.status, 200, "{claimed:?}");
    // The last that happens in this room before the cut.
    let seen = soon("the third is next", || {
        Some(status(cut, &tokens[2])).filter(|seen| seen["version"] == claimed.json()["version"])
    });
    assert_eq!(seen["position"], 1, "{seen}");
    soon("people", || (joined(&house, at) > 60).then_some(()));
    house.ways[at].close();
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("it is after 1970");
    let cut_at = since.as_millis() as u64;

    // The others take the room, and take everybody.
    let other = &house.instances[others[0]];
    let now = soon("another owns the room", || owner(other, "sale").filter(|owner| *owner != was));
    soon("a join elsewhere", || (join(other, "sale").status == 201).then_some(()));
    // Both rooms are another's by now, or nobody's; on the side that is cut off nobody gets a place
    // or a pass, and is told to come back, and when.
    soon("it knows that it cannot decide", || (join(cut, "sale").status == 503).then_some(()));
    for room in ["sale", &room] {
        for _ in 0..5 {
            let refused = join(cut, room);
            assert_eq!(refused.status, 503, "{refused:?}");
            assert!(refused.header("Retry-After").is_some(), "{refused:?}");
        }
    }
    for token in &tokens[..2] {
        let refused = claim(cut, token);
        assert_eq!(refused.status, 503, "no pass, new or again: {refused:?}");
    }
    // Whoever waits there sees the last picture, and how old it is.
    let still = status(cut, &tokens[2]);
    assert_eq!((&still["position"], &still["version"]), (&seen["position"], &seen["version"]));
    let board = cut.get(&format!("/v1/rooms/{room}/board"), &[]);
    assert_eq!(board.status, 200, "{board:?}");
    let shown_at = board.json()["at"].as_u64().expect("a board says of when it is");
    assert!(shown_at <= cut_at + 1_000, "of before the cut, and it says so: {board:?}");

    // It heals by itself: it follows the new owner, and takes visitors again.
    house.ways[at].open();
    soon("it follows", || owner(cut, "sale").filter(|owner| *owner != was));
    soon("a join is taken", || (join(cut, "sale").status == 201).then_some(()));
    soon("the pass is given", || (claim(cut, &tokens[1]).status == 200).then_some(()));
    println!("cut off: {was}; taken over by {now}");
    let histories = [on_its_side, elsewhere].map(|crowd| crowd.ended().1);
    let verdict = judged(&house, &histories);
    assert_eq!((&verdict["kept"], &verdict["broken"]), (&true.into(), &serde_json::json!({})));
    assert!(verdict["admitted"].as_u64() > Some(200), "{verdict}");
}
