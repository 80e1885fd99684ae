//! Configuration files, good and bad, as `waitroom check` judges them.
//!
//! `good/NAME.toml` must be accepted. `bad/NAME.toml` must be refused with exit 64 and exactly
//! the words in `bad/NAME.txt` beside it. A new case needs no code: write the file, run the test,
//! and put what it printed beside it once it reads well.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn cases(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config").join(folder);
    let entries = std::fs::read_dir(&folder).expect("the folder of cases");
    let mut cases: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    cases.retain(|path| path.extension().is_some_and(|it| it == "toml"));
    cases.sort();
    assert!(!cases.is_empty());
    cases
}

/// Runs it as somebody would in the folder of the case, with nothing of ours in the environment.
fn check(case: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_waitroom"));
    command.env_clear().arg("check").args(more);
    command.current_dir(case.parent().expect("a folder")).arg(case.file_name().expect("a name"));
    command.output().expect("the binary was built with this test")
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("text")
}

#[test]
fn good_files_are_accepted() {
    for case in cases("good") {
        let said = check(&case, &[]);
        assert_eq!(said.status.code(), Some(0), "{}: {}", case.display(), text(said.stderr));
        assert!(text(said.stdout).contains(": no mistakes"), "{}", case.display());
        assert_eq!(text(said.stderr), "", "{}", case.display());
    }
}

#[test]
fn bad_files_are_refused_with_the_words_beside_them() {
    let mut wrong = Vec::new();
    for case in cases("bad") {
        let said = check(&case, &[]);
        assert_eq!(said.status.code(), Some(64), "{}", case.display());
        let expected = std::fs::read_to_string(case.with_extension("txt")).unwrap_or_default();
        let told = text(said.stderr);
        if told != expected {
            wrong.push(format!("{}\nsaid:\n{told}expected:\n{expected}", case.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_word_beside_a_bad_file_belongs_to_one() {
    let bad = cases("bad");
    let folder = bad[0].parent().expect("a folder");
    for entry in std::fs::read_dir(folder).expect("the folder of cases") {
        let path = entry.expect("an entry").path();
        assert!(path.with_extension("toml").exists(), "{} has no case", path.display());
    }
}

#[test]
fn mistakes_are_one_json_object_when_asked_for() {
    for case in cases("bad") {
        let said = check(&case, &["--json"]);
        let json: serde_json::Value = serde_json::from_slice(&said.stdout).expect("one object");
        let problems = json["error"]["problems"].as_array().expect("a list");
        let lines = text(said.stderr).lines().count() - 1;
        assert_eq!(problems.len(), lines, "{}: as many as are told to people", case.display());
        assert_eq!(json["error"]["exit"], 64);
    }
}

#[test]
fn a_file_that_is_not_there_is_said_to_be_missing() {
    let said = check(Path::new(env!("CARGO_MANIFEST_DIR")).join("nowhere.toml").as_path(), &[]);
    assert_eq!(said.status.code(), Some(66));
    let told = text(said.stderr);
    assert!(told.starts_with("nowhere.toml: 1 problem\n  cannot be read: "), "{told}");
}

#[test]
fn the_shipped_default_is_good() {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("default.toml");
    assert_eq!(check(&default, &[]).status.code(), Some(0));
}
