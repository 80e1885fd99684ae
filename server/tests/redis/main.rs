//! The real binary on a real Redis: places outlive both, a Redis that is away is told and waited
//! for, and one that would lose places is refused.

mod failover;
#[path = "../serve/instance.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod instance;
mod mirrored;
#[path = "../../../crates/outbox/tests/outbox/parts.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod parts;
#[path = "../../../crates/redis/tests/common/servers.rs"]
mod servers;
mod wiped;

use std::process::{Command, Output, Stdio};

use instance::{Instance, KEY, soon};
use servers::{DURABLE, Server};

/// Any will do, as long as the next instance has the same.
const MASTER: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

fn settings<'a>(url: &'a str, level: &'a str) -> [(&'a str, &'a str); 6] {
    [
        ("WAITROOM_STORE_KIND", "redis"),
        ("WAITROOM_STORE_DURABILITY", level),
        ("WAITROOM_REDIS_URLS", url),
        ("WAITROOM_REDIS_REPLICAS_REQUIRED", "0"),
        ("WAITROOM_MASTER_KEY", MASTER),
        ("WAITROOM_LIMITS_JOIN", "none"),
    ]
}

#[test]
fn places_outlive_the_instance_and_the_server() {
    let mut redis = Server::redis(&DURABLE);
    let url = redis.url();
    let first = Instance::with(&settings(&url, "redis-sync"));
    let tokens: Vec<String> =
        (0..5).map(|who| first.join(who)["token"].as_str().expect("a token").to_owned()).collect();
    // The instance ends by kill -9, and so does Redis.
    drop(first);
    redis.kill();
    redis.restart();
    let next = Instance::with(&settings(&url, "redis-sync"));
    for (place, token) in (1..).zip(&tokens) {
        assert_eq!(next.status(token)["position"], place);
    }
    assert_eq!(next.join(9)["position"], 6);
    let said = next.stop();
    assert!(said.contains("durability=\"redis-sync\""), "{said}");
    assert!(said.contains("store server") && said.contains("Redis "), "{said}");
}

#[test]
fn a_redis_that_is_away_is_told_and_waited_for() {
    let mut redis = Server::redis(&DURABLE);
    let server = Instance::with(&settings(&redis.url(), "redis-sync"));
    let token = server.join(1)["token"].as_str().expect("a token").to_owned();
    assert_eq!(server.status(&token)["position"], 1);
    let late = server.join(2)["token"].as_str().expect("a token").to_owned();
    redis.kill();
    let join = || server.post("/v1/rooms/default/join", &[]);
    let told = soon("a join that is refused", || Some(join()).filter(|it| it.status == 503));
    assert!(told.header("Retry-After").is_some(), "{told:?}");
    // Once the loss is known, nobody is left waiting for an answer.
    let told = soon("nothing was done, and that is told", || {
        Some(join()).filter(|it| it.json()["code"] == "unavailable")
    });
    assert_eq!(told.status, 503);
    let seen = server.status(&token);
    assert_eq!(seen["position"], 1, "whoever waits still sees the place: {seen}");
    // A place that is on no board yet cannot be shown, and is not called lost.
    let seen = server.status(&late);
    assert!(seen["position"] == 2 || seen["code"] == "unavailable", "{seen}");
    assert_eq!(server.get("/v1/rooms/default/board", &[]).status, 200);
    redis.restart();
    soon("a join that is taken", || (join().status == 201).then_some(()));
    assert_eq!(server.status(&token)["position"], 1);
    assert_eq!(server.status(&late)["position"], 2);
    let said = server.stop();
    assert_eq!(said.matches("room lost the store").count(), 1, "{said}");
}

/// A Redis that says nothing is not known to be away until an answer is overdue. Meanwhile no board
/// can be made, and whoever joined last is on none.
#[test]
fn a_place_that_is_on_no_board_yet_is_never_called_lost() {
    let redis = Server::redis(&DURABLE);
    let server = Instance::with(&settings(&redis.url(), "redis-sync"));
    for round in 0..4 {
        server.join(10 * round);
        let token = server.join(10 * round + 1)["token"].as_str().expect("a token").to_owned();
        redis.signal("STOP");
        let seen = std::thread::scope(|scope| {
            // Something is on its way, so that no board can follow.
            scope.spawn(|| server.post("/v1/rooms/default/join", &[]));
            let bearer = format!("Authorization: Bearer {token}");
            server.get("/v1/rooms/default/status", &["-H", &bearer])
        });
        redis.signal("CONT");
        assert!(matches!(seen.status, 200 | 503), "{seen:?}");
        let join = || server.post("/v1/rooms/default/join", &[]);
        soon("a join that is taken", || (join().status == 201).then_some(()));
        assert!(server.status(&token)["position"].is_number(), "it is there");
    }
}

/// What lies in Redis of one room is not what it was; the other room is served meanwhile.
#[test]
fn a_room_whose_log_cannot_be_read_is_closed_alone_and_opens_once_it_is_mended() {
    let redis = Server::redis(&DURABLE);
    let url = redis.url();
    let first = Instance::with(&settings(&url, "redis-sync"));
    let other = r#"{"queue_all":true,"rate":"none"}"#;
    let made = first.operate("PUT", "/admin/v1/rooms/other", other);
    assert!(made.status < 300, "{made:?}");
    let token = first.join(1)["token"].as_str().expect("a token").to_owned();
    first.stop();
    let (log, aside) = ("waitroom:{default}:log", "waitroom:{default}:aside");
    assert_eq!(redis.say(&format!("RENAME {log} {aside}")), "OK");
    assert_eq!(redis.say(&format!("SET {log} damaged")), "OK");

    let next = Instance::with(&settings(&url, "redis-sync"));
    assert_eq!(next.post("/v1/rooms/other/join", &[]).status, 201);
    let refused = next.post("/v1/rooms/default/join", &[]);
    assert_eq!(refused.status, 503, "{refused:?}");
    assert_eq!(refused.header("Retry-After").as_deref(), Some("10"));
    assert!(refused.body.contains("WR-2105"), "{refused:?}");
    let told = next.operate("GET", "/admin/v1/rooms/default", "");
    assert!(told.body.contains("WRONGTYPE"), "operators hear the cause: {told:?}");

    assert_eq!(redis.say(&format!("DEL {log}")), "1");
    assert_eq!(redis.say(&format!("RENAME {aside} {log}")), "OK");
    let join = || next.post("/v1/rooms/default/join", &[]);
    soon("it is open", || (join().status == 201).then_some(()));
    assert_eq!(next.status(&token)["position"], 1);
    next.stop();
}

#[test]
fn a_redis_that_would_lose_places_is_refused_with_reason_and_advice() {
    let evicts = Server::redis(&[&DURABLE[..], &["--maxmemory-policy", "allkeys-lru"]].concat());
    let lazy = Server::redis(&["--appendonly", "yes", "--appendfsync", "everysec", "--save", ""]);
    let nowhere = Server::redis(&["--appendonly", "no", "--save", ""]);
    for (redis, level, word, advice) in [
        (&evicts, "redis-async", "maxmemory-policy is allkeys-lru", "noeviction"),
        (&lazy, "redis-sync", "appendfsync is everysec", "appendfsync always"),
        (&nowhere, "redis-sync", "appendonly is not yes", "appendonly yes"),
        (&nowhere, "redis-async", "nothing is kept anywhere", "appendonly yes"),
    ] {
        let refused = serve(&settings(&redis.url(), level));
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{said}");
        assert!(said.contains("error[WR-2104]"), "{said}");
        assert!(said.contains(word) && said.contains(advice), "{said}");
    }
}

/// A server that does not start.
fn serve(variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_waitroom"))
        .args(["serve", "--dev", "--public", "127.0.0.1:0"])
        .envs(variables.iter().copied())
        .stdout(Stdio::null())
        .output()
        .expect("the binary was built with this test")
}

#[test]
fn a_crowd_loses_nothing_while_redis_is_killed_twice() {
    let mut redis = Server::redis(&DURABLE);
    let server = Instance::with(&settings(&redis.url(), "redis-sync"));
    let sale = r#"{"rate":"100/s","max_active":200,"queue_all":true,"claim_within":"10s",
        "session_timeout":"20s","pass_life":"2s","pass_leeway":"0s","heartbeat_timeout":"60s"}"#;
    assert!(server.operate("PUT", "/admin/v1/rooms/sale", sale).status < 300);
    let history = format!("{}/redis-{}.jsonl", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    let crowd = Command::new(env!("CARGO_BIN_EXE_waitroom"))
        .args(["crowd", &server.public, "--room", "sale", "--admin", &server.admin])
        .args(["--visitors", "600", "--over", "8s", "--shape", "steady", "--duration", "20s"])
        .args(["--stay", "2s", "--speed", "3", "--rate-limit-exempt", "--quiet"])
        .args(["--history", &history])
        .env("WAITROOM_ADMIN_KEY", KEY)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built with this test");
    let joined = || {
        let picture = server.operate("GET", "/admin/v1/rooms/sale", "").json();
        picture["joined"].as_u64().unwrap_or(0)
    };
    for people in [100, 300] {
        soon("people", || (joined() > people).then_some(()));
        redis.kill();
        redis.restart();
    }
    let crowd = crowd.wait_with_output().expect("it can be waited for");
    let words = String::from_utf8_lossy(&crowd.stdout);
    assert!(crowd.status.success(), "{words}{}", String::from_utf8_lossy(&crowd.stderr));
    let judged = Command::new(env!("CARGO_BIN_EXE_waitroom"))
        .args(["check-history", &history])
        .output()
        .expect("the binary was built with this test");
    let verdict = String::from_utf8_lossy(&judged.stdout).into_owned();
    assert!(judged.status.success(), "{verdict}");
    assert!(joined() >= 590, "{words}");
    let _ = std::fs::remove_file(&history);
}
