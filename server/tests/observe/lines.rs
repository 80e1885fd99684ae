//! Log lines: one for each step, for people or machines; a level that follows a reload.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::figures::{page, value};
use crate::instance::{Instance, soon};

#[test]
fn every_line_for_machines_is_one_object_and_every_step_has_one() {
    let server = Instance::with(&[("WAITROOM_LOG_FORMAT", "json")]);
    server.operate("POST", "/admin/v1/rooms/default/pause", r#"{"reason":"a planted reason"}"#);
    server.operate("POST", "/admin/v1/rooms/default/pause", r#"{}"#);
    server.operate("GET", "/admin/v1/rooms", "");
    let said = server.stop();
    let lines: Vec<Value> = said
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect();
    for line in &lines {
        assert!(line["timestamp"].is_string() && line["message"].is_string(), "{line}");
        let level = line["level"].as_str().expect("a level");
        assert!(["ERROR", "WARN", "INFO"].contains(&level), "{line}");
    }
    let of = |message: &str| {
        let fits = |line: &&Value| line["message"].as_str().is_some_and(|it| it.contains(message));
        lines.iter().filter(fits).collect::<Vec<_>>()
    };
    for (message, count) in [
        ("waitroom starts", 1),
        ("store opened", 1),
        ("room opened", 1),
        ("listening", 3),
        ("ready", 1),
        ("operator act", 2),
        ("stopping", 1),
        ("listener closed", 3),
        ("stopped", 1),
    ] {
        assert_eq!(of(message).len(), count, "{message}:\n{said}");
    }
    let acts = of("operator act");
    assert_eq!((&acts[0]["who"], &acts[0]["room"]), (&"owner".into(), &"default".into()));
    assert_eq!(acts[0]["act"], "POST /admin/v1/rooms/{room}/pause");
    assert_eq!((&acts[1]["level"], &acts[1]["code"]), (&"WARN".into(), &"bad_request".into()));
    assert!(!said.contains("a planted reason"), "bodies stay out:\n{said}");
}

#[test]
fn a_reload_changes_the_level_and_a_broken_file_changes_nothing() {
    let name = format!("observe-{}.toml", std::process::id());
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let write = |text: &str| fs::write(&file, text).expect("it can be written");
    write("[log]\nlevel = \"info\"\n");
    let path = file.to_str().expect("a plain path");
    let server = Instance::asked(&["--config", path], &[]);
    let reload = |outcome: &str| {
        let series = format!("waitroom_reloads_total{{outcome=\"{outcome}\"}}");
        let before = value(&page(&server), &series);
        let pid = server.pid().to_string();
        let sent = Command::new("kill").args(["-HUP", &pid]).status().expect("kill");
        assert!(sent.success());
        soon("the reload", || (value(&page(&server), &series) > before).then_some(()));
    };
    let act = || server.operate("POST", "/admin/v1/rooms/default/resume", "{}");
    act();
    write("[log]\nlevel = \"error\"\n");
    reload("done");
    act();
    write("[log]\nlevel = \"loud\"\n");
    reload("refused");
    act();
    write("[log]\nlevel = \"info\"\n");
    reload("done");
    act();
    let said = server.stop();
    let _ = fs::remove_file(&file);
    assert_eq!(said.matches("operator act").count(), 2, "{said}");
    assert!(said.contains("reload refused: the old settings and certificates stay"), "{said}");
    assert!(said.contains("line 2  log.level"), "the mistake and its line:\n{said}");
}
