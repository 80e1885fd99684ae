//! `core` depends on exactly four crates, none of which can open a file or read a clock.
//!
//! The list is the wall: a decision that needed a fifth crate is a decision for an ADR.

use std::collections::BTreeSet;

use super::Complaint;
use crate::tree::Tree;

const MANIFEST: &str = "crates/core/Cargo.toml";
const ALLOWED: [&str; 4] = ["aes", "serde", "serde_json", "sha2"];

pub fn check(tree: &Tree) -> Vec<Complaint> {
    let Some(manifest) = tree.text(MANIFEST) else { return vec![format!("{MANIFEST} is missing")] };
    let found = dependencies(manifest);
    let allowed: BTreeSet<&str> = ALLOWED.into();
    let mut complaints = vec![];
    for name in found.difference(&allowed) {
        complaints.push(format!("{MANIFEST} depends on `{name}`; core may only use {ALLOWED:?}"));
    }
    for name in allowed.difference(&found) {
        complaints.push(format!("{MANIFEST} no longer depends on `{name}`; shorten the list here"));
    }
    complaints
}

/// Names below every heading that feeds the library itself: `[dependencies]`, the same for a
/// target, build dependencies. Tests may use what they like. A renamed crate shows up under its
/// real name too, so an alias cannot slip through.
fn dependencies(manifest: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    let mut inside = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(heading) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let (table, name) = match heading.rsplit_once('.') {
                Some((table, name)) if is_dependency_table(table) => (table, Some(name)),
                _ => (heading, None),
            };
            inside = name.is_none() && is_dependency_table(table);
            names.extend(name);
        } else if inside && let Some((key, value)) = line.split_once('=') {
            if key.starts_with('#') {
                continue;
            }
            let key = key.trim();
            names.insert(key.split_once('.').map_or(key, |(name, _)| name).trim_matches('"'));
            names.extend(value.split_once("package").and_then(|(_, rest)| rest.split('"').nth(1)));
        }
    }
    names
}

fn is_dependency_table(heading: &str) -> bool {
    let last = heading.rsplit('.').next().expect("splitting yields at least one part");
    matches!(last, "dependencies" | "build-dependencies")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINE: &str = "[package]\nname = \"x\"\n[dependencies]\naes = \"1\"\n# tokio = \"1\"\n\
        serde = { version = \"1\", features = [\"derive\"] }\nserde_json.workspace = true\n\
        sha2 = \"1\"\n[dev-dependencies]\nproptest = \"1\"\n";

    fn complaints(manifest: &str) -> Vec<Complaint> {
        check(&Tree::of([(MANIFEST, manifest)]))
    }

    #[test]
    fn the_four_crates_and_any_test_tool_are_fine() {
        assert_eq!(complaints(FINE), Vec::<Complaint>::new());
    }

    #[test]
    fn a_fifth_crate_is_named_however_it_is_written() {
        for fifth in [
            "[dependencies]\ntokio = \"1\"\n",
            "[dependencies.tokio]\nversion = \"1\"\n",
            "[dependencies]\ntokio.workspace = true\n",
            "[build-dependencies]\ntokio = \"1\"\n",
            "[target.'cfg(unix)'.dependencies]\ntokio = \"1\"\n",
            "[target.'cfg(unix)'.dependencies.tokio]\nversion = \"1\"\n",
            "[dependencies]\naes = { package = \"tokio\", version = \"1\" }\n",
        ] {
            let said = complaints(&format!("{FINE}{fifth}"));
            assert_eq!(said.len(), 1, "{fifth}: {said:?}");
            assert!(said[0].contains("`tokio`"), "{said:?}");
        }
    }

    #[test]
    fn a_crate_that_is_gone_leaves_the_list_too() {
        let said = complaints(&FINE.replace("sha2 = \"1\"\n", ""));
        assert!(said[0].contains("no longer depends on `sha2`"), "{said:?}");
    }
}
