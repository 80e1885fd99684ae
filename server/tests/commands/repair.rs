//! Damage: the refusal names a command, and the command works.

use crate::sale::queued;
use crate::shell::{Folder, contents};

const SEGMENT: &str = "data/journal/00000000000000000001.seg";

/// A store with one room that is damaged in the middle.
fn damaged() -> Folder {
    let folder = Folder::new();
    queued(&folder.path("data"), "spring-sale", 200);
    let path = folder.path(SEGMENT);
    let mut bytes = std::fs::read(&path).expect("the journal");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(&path, bytes).expect("written");
    folder
}

/// The command that a refusal advises.
fn advised(said: &str) -> String {
    let line = said.lines().map(str::trim).find(|line| line.starts_with("waitroom repair"));
    line.unwrap_or_else(|| panic!("no command in {said}")).to_owned()
}

#[test]
fn the_refusal_names_a_command_that_brings_the_store_back() {
    let folder = damaged();
    let before = contents(&folder.path("data"));
    let said = folder.run("rooms --data data").exits(1).says(&[
        "error[WR-2002]",
        "damaged at byte",
        "something that was acknowledged cannot be read; no room opens; nothing was changed",
        "restore the newest backup",
    ]);
    let unlocked = |files: Vec<(std::path::PathBuf, Vec<u8>)>| -> Vec<_> {
        files.into_iter().filter(|(path, _)| !path.ends_with("LOCK")).collect()
    };
    assert_eq!(unlocked(contents(&folder.path("data"))), unlocked(before));
    folder.run(&advised(&said.err)).exits(0).says(&["cut at", "moved aside: "]);
    assert!(folder.path("data/damaged/00000000000000000001.seg").is_file(), "nothing is destroyed");
    let json = folder.run("rooms --data data --json").exits(0).json();
    let head = json["rooms"][0]["head"].as_u64().expect("the room is there");
    assert!(head > 20 && head < 200, "what was before the damage is there: {head}");
    folder.run("log --data data --room spring-sale").exits(0);
}

#[test]
fn a_healthy_store_is_not_cut() {
    let folder = Folder::new();
    queued(&folder.path("data"), "spring-sale", 5);
    let before = folder.run("rooms --data data --json").json()["rooms"].clone();
    let said = folder.run(&format!("repair --data data --cut {SEGMENT} 100")).exits(64);
    said.says(&["error[WR-2012]", "no damage begins at", "nothing was cut"]);
    assert_eq!(folder.run("rooms --data data --json").json()["rooms"], before);
}

#[test]
fn a_cut_beside_the_damage_is_refused_and_told_the_right_place() {
    let folder = damaged();
    let said = folder.run(&format!("repair --data data --cut {SEGMENT} 100")).exits(64);
    said.says(&["error[WR-2012]", "cut where the damage is: --cut data/journal/"]);
    for bad in ["12.seg 100", &format!("{SEGMENT} ten"), &format!("{SEGMENT} -1")] {
        folder.run(&format!("repair --data data --cut {bad}")).exits(64);
    }
}

#[test]
fn a_missing_segment_can_be_cut_away_too() {
    let folder = Folder::new();
    // Every backup seals a segment, so this makes several.
    for i in 0..3 {
        queued(&folder.path("data"), &format!("room-{i}"), 3);
        folder.run(&format!("backup --data data --to backup-{i}")).exits(0);
    }
    std::fs::remove_file(folder.path("data/journal/00000000000000000002.seg")).expect("there");
    let said = folder.run("rooms --data data").exits(1).says(&["error[WR-2002]", "is missing"]);
    folder.run(&advised(&said.err)).exits(0);
    let json = folder.run("rooms --data data --json").exits(0).json();
    assert_eq!(json["rooms"][0]["room"], "room-0");
}
