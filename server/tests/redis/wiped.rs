//! Redis lost everything: rooms come back from a copy, paused, and nobody gets another's place.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::MASTER;
use crate::instance::{Instance, soon};
use crate::servers::{DURABLE, Server};
use crate::settings;

pub fn config(redis: &Server) -> PathBuf {
    let path =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("wiped-{}.toml", redis.port));
    let text = format!(
        "[store]\nkind = \"redis\"\ndurability = \"redis-sync\"\n\
         [redis]\nurls = [\"{}\"]\nreplicas_required = 0\n",
        redis.url()
    );
    std::fs::write(&path, text).expect("the build's folder is writable");
    path
}

/// Runs a command of the binary; its exit code and what it said.
fn run(arguments: &[&str], config: &Path, folder: (&str, &Path)) -> (Option<i32>, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_waitroom"))
        .args(arguments)
        .arg("--config")
        .arg(config)
        .arg(folder.0)
        .arg(folder.1)
        .env("WAITROOM_MASTER_KEY", MASTER)
        .output()
        .expect("the binary was built with this test");
    let said = [out.stdout, out.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    (out.status.code(), said.concat())
}

#[test]
fn a_wiped_redis_comes_back_from_a_copy_paused_and_lost_places_are_called_lost() {
    let redis = Server::redis(&DURABLE);
    let (url, config) = (redis.url(), config(&redis));
    let first = Instance::with(&settings(&url, "redis-sync"));
    let join = |server: &Instance, who: u32| {
        server.join(who)["token"].as_str().expect("a token").to_owned()
    };
    let kept: Vec<String> = (0..5).map(|who| join(&first, who)).collect();
    let copy = config.with_extension("copy");
    let _ = std::fs::remove_dir_all(&copy);
    // While the instance runs.
    let (code, said) = run(&["backup"], &config, ("--to", &copy));
    assert_eq!(code, Some(0), "{said}");
    let lost: Vec<String> = (10..13).map(|who| join(&first, who)).collect();
    let (code, said) = run(&["restore"], &config, ("--from", &copy));
    assert_eq!(code, Some(73), "what is there is not written over: {said}");
    drop(first);
    assert!(redis.say("FLUSHALL").contains("OK"));

    let (code, said) = run(&["restore"], &config, ("--from", &copy));
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("paused"), "{said}");
    let next = Instance::with(&settings(&url, "redis-sync"));
    for (place, token) in (1..).zip(&kept) {
        let seen = next.status(token);
        assert_eq!((&seen["position"], &seen["room_status"]), (&place.into(), &"paused".into()));
    }
    // Their numbers are given to others now, and they are told.
    let late = next.join(20);
    assert_eq!(late["position"], 6);
    for token in &lost {
        let bearer = format!("Authorization: Bearer {token}");
        let told = next.get("/v1/rooms/default/status", &["-H", &bearer]);
        assert_eq!((told.status, told.json()["code"].as_str()), (410, Some("place_lost")));
    }
    // Nobody is let in before an operator says so.
    next.operate("POST", "/admin/v1/rooms/default/admit", r#"{"count":2}"#);
    assert_eq!(next.status(&kept[0])["position"], 1);
    let resumed = next.operate("POST", "/admin/v1/rooms/default/resume", "{}");
    assert!(resumed.status < 300, "{resumed:?}");
    let admitted = next.operate("POST", "/admin/v1/rooms/default/admit", r#"{"count":2}"#);
    assert!(admitted.status < 300, "{admitted:?}");
    soon("the first one enters", || (next.status(&kept[0])["position"] == 0).then_some(()));
    assert_eq!(next.status(&kept[4])["position"], 3);
    let _ = (std::fs::remove_dir_all(&copy), std::fs::remove_file(&config));
}
