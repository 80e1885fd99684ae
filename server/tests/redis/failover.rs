//! A crowd at one instance while sentinels replace the primary again and again: killed, then held,
//! by turns. Client histories decide whether anything was lost.

use std::process::{Command, Stdio};

use crate::MASTER;
use crate::instance::{Instance, KEY, soon};
use crate::servers::{DURABLE, Sentinels, until};

/// Twice in CI; `cargo xtask long redis` asks for more.
fn cycles() -> u64 {
    let given = std::env::var("WAITROOM_REDIS_CYCLES").ok();
    given.map_or(2, |given| given.parse().expect("WAITROOM_REDIS_CYCLES is a number"))
}

/// Sentinels wait so long between two promotions; the crowd comes for as long as all of them take.
const CYCLE_S: u64 = 9;

#[test]
fn a_crowd_loses_nothing_while_sentinels_replace_the_primary() {
    let mut all = Sentinels::watching(&DURABLE, 1_000);
    let urls = all.urls().join(",");
    let server = Instance::with(&[
        ("WAITROOM_STORE_KIND", "redis"),
        ("WAITROOM_STORE_DURABILITY", "redis-sync"),
        ("WAITROOM_REDIS_MODE", "sentinel"),
        ("WAITROOM_REDIS_URLS", &urls),
        ("WAITROOM_REDIS_PRIMARY", Sentinels::NAME),
        ("WAITROOM_REDIS_REPLICAS_REQUIRED", "1"),
        ("WAITROOM_MASTER_KEY", MASTER),
        ("WAITROOM_LIMITS_JOIN", "none"),
    ]);
    let sale = r#"{"rate":"100/s","max_active":200,"queue_all":true,"claim_within":"20s",
        "session_timeout":"30s","pass_life":"2s","pass_leeway":"0s","heartbeat_timeout":"60s"}"#;
    assert!(server.operate("PUT", "/admin/v1/rooms/sale", sale).status < 300);
    let history = format!("{}/failover-{}.jsonl", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    let visitors = 30 * CYCLE_S * cycles();
    let crowd = Command::new(env!("CARGO_BIN_EXE_waitroom"))
        .args(["crowd", &server.public, "--room", "sale", "--admin", &server.admin])
        .args(["--visitors", &visitors.to_string(), "--shape", "steady"])
        .args(["--over", &format!("{}s", CYCLE_S * cycles())])
        .args(["--duration", &format!("{}s", CYCLE_S * cycles() + 90)])
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
    let more = |people: u64| {
        let before = joined();
        let enough = (before + people).min(visitors);
        soon("people", || (joined() >= enough).then_some(()));
    };
    for cycle in 0..cycles() {
        more(20);
        let old = all.primary();
        let killed = cycle % 2 == 0;
        match killed {
            true => all.servers[old].kill(),
            false => all.servers[old].signal("STOP"),
        }
        let new = all.until_promoted(old);
        let port = all.servers[new].port;
        match killed {
            true => all.servers[old].restart_as_replica_of(port),
            false => {
                all.servers[old].signal("CONT");
                let said = all.servers[old].say(&format!("REPLICAOF 127.0.0.1 {port}"));
                assert!(said.contains("OK"), "{said}");
            }
        }
        until("the new primary is followed", || all.servers[new].is_followed());
        more(20);
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
    println!("one instance under a crowd: {} fail-overs\n{verdict}", cycles());
    let _ = std::fs::remove_file(&history);
}
