//! Redis lost everything, and there is a mirror: the room comes back to an empty Redis, paused.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::MASTER;
use crate::instance::{Instance, soon};
use crate::parts::Nats;
use crate::servers::{DURABLE, Server};
use crate::settings;
use crate::wiped::config;

fn rebuild(nats: &Nats, config: &Path) -> (Output, Value) {
    let out = Command::new(env!("CARGO_BIN_EXE_waitroom"))
        .args(["rebuild", "default", "--json", "--from", &nats.url(), "--config"])
        .arg(config)
        .env("WAITROOM_MASTER_KEY", MASTER)
        .output()
        .expect("the binary was built with this test");
    let told = serde_json::from_slice(&out.stdout).unwrap_or_default();
    (out, told)
}

#[test]
fn a_wiped_redis_comes_back_from_a_mirror_paused_with_everybody_in_their_place() {
    let (redis, nats) = (Server::redis(&DURABLE), Nats::start());
    let (url, config, mirror) = (redis.url(), config(&redis), nats.url());
    let first = Instance::with(
        &[
            &settings(&url, "redis-sync")[..],
            &[
                ("WAITROOM_EVENTS_MIRROR_TO", &mirror),
                ("WAITROOM_EVENTS_MIRROR_DIGEST_EVERY", "1s"),
            ],
        ]
        .concat(),
    );
    let tokens: Vec<String> =
        (0..5).map(|who| first.join(who)["token"].as_str().expect("a token").to_owned()).collect();
    soon("the mirror holds all of it", || {
        let events = first.operate("GET", "/admin/v1/events", "").json();
        let sinks = events["sinks"].as_array().cloned().unwrap_or_default();
        let mirror = sinks.into_iter().find(|it| it["sink"] == "mirror")?;
        let rooms = mirror["rooms"].as_array().cloned().unwrap_or_default();
        let stands = |name: &str| {
            let room = rooms.iter().find(|it| it["room"] == name)?;
            (room["lag_events"] == 0).then(|| room["at"].as_u64().unwrap_or(0))
        };
        let newest = first.operate("GET", "/admin/v1/rooms/default/log?limit=1", "").json();
        (newest["head"] == stands("default")? && stands("_system")? > 0).then_some(())
    });
    let (out, _) = rebuild(&nats, &config);
    assert_ne!(out.status.code(), Some(0), "not while an instance runs on it: {out:?}");
    first.stop();
    let (out, told) = rebuild(&nats, &config);
    assert_eq!(told["error"]["code"], "WR-2011", "what is there is not written over: {out:?}");
    assert!(redis.say("FLUSHALL").contains("OK"));

    let (out, told) = rebuild(&nats, &config);
    assert!(out.status.success(), "{out:?}");
    assert_eq!(told["keys"], true, "an empty Redis needs the installation's keys: {told}");
    let next = Instance::with(&settings(&url, "redis-sync"));
    for (place, token) in (1..).zip(&tokens) {
        let seen = next.status(token);
        assert_eq!((&seen["position"], &seen["room_status"]), (&place.into(), &"paused".into()));
    }
    assert_eq!(next.join(20)["position"], 6);
    // Nobody is let in before an operator says so.
    next.operate("POST", "/admin/v1/rooms/default/admit", r#"{"count":2}"#);
    assert_eq!(next.status(&tokens[0])["position"], 1);
    let resumed = next.operate("POST", "/admin/v1/rooms/default/resume", "{}");
    assert!(resumed.status < 300, "{resumed:?}");
    let admitted = next.operate("POST", "/admin/v1/rooms/default/admit", r#"{"count":2}"#);
    assert!(admitted.status < 300, "{admitted:?}");
    soon("the first is inside", || (next.status(&tokens[0])["status"] == "active").then_some(()));
    next.stop();
}
