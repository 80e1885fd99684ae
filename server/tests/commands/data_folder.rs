//! Backup, restore, export, import, rooms: what they promise about a data folder.

use waitroom_store::file::Options;
use waitroom_store::{FileStore, Seams};

use crate::sale::queued;
use crate::shell::{Folder, contents, nobody_starts};

fn with_rooms(rooms: &[&str]) -> Folder {
    let folder = Folder::new();
    for room in rooms {
        queued(&folder.path("data"), room, 5);
    }
    folder
}

#[test]
fn rooms_tells_where_each_log_stands() {
    let folder = with_rooms(&["spring-sale", "autumn"]);
    let said = folder.run("rooms --data data").exits(0);
    said.says(&["spring-sale", "autumn", "last event", "rooms 2, journal"]);
    let json = folder.run("rooms --data data --json").exits(0).json();
    assert_eq!(json["rooms"][0]["room"], "autumn", "by name");
    assert!(json["rooms"][1]["head"].as_u64() > Some(8), "{json}");
    assert_eq!(json["journal"]["segments"], 1);
}

#[test]
fn a_backup_restores_to_the_same_rooms() {
    let folder = with_rooms(&["spring-sale", "autumn"]);
    let before = folder.run("rooms --data data --json").json()["rooms"].clone();
    folder.run("backup --data data --to monday").exits(0).says(&["rooms 2", "monday"]);
    folder.run("restore --from monday --to again").exits(0).says(&["restored to again"]);
    let after = folder.run("rooms --data again --json").exits(0).json()["rooms"].clone();
    assert_eq!(before, after);
}

#[test]
fn a_damaged_or_unfinished_backup_is_not_restored() {
    let folder = with_rooms(&["spring-sale"]);
    folder.run("backup --data data --to monday").exits(0);
    let segment = folder.path("monday/journal/00000000000000000001.seg");
    let mut bytes = std::fs::read(&segment).expect("copied");
    bytes[100] ^= 1;
    std::fs::write(&segment, bytes).expect("written");
    let said = folder.run("restore --from monday --to again").exits(1);
    said.says(&["error[WR-2009]", "checksum is wrong", "delete again"]);
    std::fs::remove_file(folder.path("monday/BACKUP")).expect("it was there");
    let said = folder.run("restore --from monday --to third").exits(1);
    said.says(&["error[WR-2009]", "no finished backup"]);
    assert!(!folder.path("third").exists(), "nothing was written");
}

#[test]
fn an_exported_room_is_the_same_elsewhere() {
    let folder = with_rooms(&["spring-sale"]);
    let there = folder.run("export --data data --room spring-sale --to sale.wrroom --json");
    let there = there.exits(0).json();
    let here = folder.run("import --data elsewhere --from sale.wrroom --json").exits(0).json();
    assert_eq!((&there["head"], &there["chain"]), (&here["head"], &here["chain"]));
    let log = |data: &str| folder.run(&format!("log --data {data} --room spring-sale")).exits(0);
    assert_eq!(log("data").out, log("elsewhere").out);
}

#[test]
fn an_import_over_a_room_or_of_a_bad_file_changes_nothing() {
    let folder = with_rooms(&["spring-sale"]);
    folder.run("export --data data --room spring-sale --to sale.wrroom").exits(0);
    let said = folder.run("import --data data --from sale.wrroom").exits(73);
    said.says(&["error[WR-2011]", "has a room of that name"]);
    std::fs::write(folder.path("bad.wrroom"), b"WRROOM01 and then nothing").expect("written");
    let said = folder.run("import --data fresh --from bad.wrroom").exits(1);
    said.says(&["error[WR-2010]", "not whole"]);
    folder.run("import --data fresh --from nowhere.wrroom").exits(74).says(&["cannot read"]);
    assert!(!folder.path("fresh").exists(), "a bad file leaves no trace");
}

#[test]
fn nothing_is_ever_written_over() {
    let folder = with_rooms(&["spring-sale"]);
    std::fs::write(folder.path("taken"), "mine").expect("written");
    folder.run("backup --data data --to monday").exits(0);
    for line in [
        "export --data data --room spring-sale --to taken",
        "backup --data data --to monday",
        "backup --data data --to taken",
        "restore --from monday --to data",
    ] {
        let before = contents(&folder.0);
        folder.run(line).exits(73).says(&["error[WR-2008]", "there is something already"]);
        assert_eq!(contents(&folder.0), before, "{line}");
    }
}

#[test]
fn a_mistyped_folder_or_room_is_told_and_nothing_is_made() {
    let folder = with_rooms(&["spring-sale"]);
    for line in ["rooms --data dta", "log --data dta --room a", "backup --data dta --to b"] {
        folder.run(line).exits(66).says(&["error[WR-2005]", "data folder dta", "no store"]);
    }
    assert!(!folder.path("dta").exists());
    let said = folder.run("export --data data --room sprin-sale --to a").exits(66);
    said.says(&["error[WR-2006]", "room \"sprin-sale\"", "the rooms that are there: spring-sale"]);
    folder.run("log --data data --room Spring").exits(64).says(&["begins with a-z"]);
}

#[test]
fn a_folder_in_use_says_by_whom_and_is_left_alone() {
    let folder = with_rooms(&["spring-sale"]);
    let data = folder.path("data");
    let held = FileStore::open(&data, Options::default(), Seams::real()).expect("it opens");
    let holder = format!("data folder data: in use by process {}", std::process::id());
    for line in [
        "rooms --data data",
        "log --data data --room spring-sale",
        "backup --data data --to monday",
        "export --data data --room spring-sale --to a",
        "repair --data data --cut data/journal/00000000000000000001.seg 100",
    ] {
        let said = folder.run(line).exits(75);
        said.says(&["error[WR-2001]", &holder, "not disturbed", "stop it first"]);
    }
    let json = folder.run("rooms --data data --json").exits(75).json();
    assert_eq!(json["error"]["code"], "WR-2001");
    let starting = nobody_starts();
    drop(held);
    drop(starting);
    folder.run("rooms --data data").exits(0);
}

#[test]
fn help_shows_an_example_and_a_mistake_exits_64() {
    let folder = Folder::new();
    for command in
        ["verify", "rooms", "log", "backup", "restore", "export", "import", "repair", "completions"]
    {
        let said = folder.run(&format!("{command} --help")).exits(0);
        said.says(&["Example:\n  ", &format!("waitroom {command}")]);
        folder.run(&format!("{command} --no-such-flag")).exits(64);
    }
    folder.run("no-such-command").exits(64);
    folder.run("--version").exits(0);
}

#[test]
fn shells_get_scripts_that_know_the_commands() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish"] {
        let said = folder.run(&format!("completions {shell}")).exits(0);
        said.says(&["waitroom", "verify", "ticket"]);
    }
    folder.run("completions tcsh").exits(64);
}
