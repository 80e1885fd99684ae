//! Every flag, variable and key that `deploy/` names is one that the binary knows.

use std::collections::BTreeSet;
use std::path::Path;

use crate::tools::{done, file, waitroom};

/// No settings; docs/configuration.md has them.
const OTHERS: [&str; 2] = ["WAITROOM_MASTER_KEY", "WAITROOM_ADMIN_KEY"];

/// The variable of every key of the defaults.
fn variables() -> BTreeSet<String> {
    let defaults = include_str!("../../default.toml");
    let mut section = String::new();
    let mut all = BTreeSet::new();
    for line in defaults.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name.to_owned();
        } else if let Some((key, _)) = line.split_once(" = ")
            && !key.starts_with('#')
        {
            all.insert(format!("WAITROOM_{section}_{key}").to_uppercase().replace('.', "_"));
        }
    }
    all
}

fn files(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).expect("deploy/ is there") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            files(&path, found);
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            found.push((path.display().to_string(), text));
        }
    }
}

/// Words of a text that begin like this, as far as such names go.
fn words<'a>(text: &'a str, begin: &'a str) -> impl Iterator<Item = &'a str> {
    text.match_indices(begin).map(|(at, _)| {
        let rest = &text[at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
        &rest[..end.unwrap_or(rest.len())]
    })
}

#[test]
fn every_variable_is_a_setting() {
    let known = variables();
    assert!(known.contains("WAITROOM_SERVER_PUBLIC") && known.len() > 60, "{known:?}");
    let mut all = Vec::new();
    files(&file(""), &mut all);
    let mut seen = 0;
    for (path, text) in &all {
        for name in words(text, "WAITROOM_") {
            seen += 1;
            assert!(known.contains(name) || OTHERS.contains(&name), "{path}: {name}");
        }
    }
    assert!(seen > 10, "deploy/ names variables");
}

#[test]
fn every_flag_of_serve_is_one() {
    let help = done(waitroom().args(["serve", "--help"]));
    let known: BTreeSet<&str> = words(&help, "--").collect();
    let mut seen = 0;
    for name in ["docker/compose.yaml", "kubernetes/waitroom.yaml", "systemd/waitroom.service"] {
        let text = std::fs::read_to_string(file(name)).expect("it is there");
        let serves = text.lines().filter(|line| {
            !line.trim_start().starts_with('#') && line.contains("serve") && line.contains("--")
        });
        for flag in serves.flat_map(|line| words(line, "--")) {
            seen += 1;
            assert!(known.contains(flag), "{name}: serve has no {flag}");
        }
    }
    assert!(seen >= 4, "{seen} flags");
}

#[test]
fn every_configuration_is_without_mistakes() {
    for name in ["waitroom.toml", "docker/waitroom.toml"] {
        let told = [("WAITROOM_CLUSTER_ADVERTISE", "waitroom-1:7946")];
        done(waitroom().arg("check").arg(file(name)).envs(told));
    }
}
