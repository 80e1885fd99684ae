//! What the README tells people to type exists in this tree.
//!
//! Here only the words are compared with the tree; that the main job really runs is the
//! business of the CI step `demo`, which reads it from the same place.

use clap::CommandFactory;

use super::Complaint;
use crate::commands::Chores;
use crate::readme::{Commands, shell_lines};
use crate::tree::Tree;

const README: &str = "README.md";
const CI: &str = ".ci/run";

pub fn check(tree: &Tree) -> Vec<Complaint> {
    let Some(readme) = tree.text(README) else { return vec![format!("{README} is missing")] };
    let mut complaints: Vec<Complaint> =
        shell_lines(readme).filter_map(|line| why_it_cannot_run(tree, line)).collect();
    match Commands::read(readme) {
        Err(failure) => complaints.push(failure.to_string()),
        Ok(commands) if !runs_all_tests(&commands.all_tests) => complaints.push(format!(
            "{README}: the second command should run all tests, but is `{}`",
            commands.all_tests
        )),
        Ok(_) => {}
    }
    complaints
}

fn runs_all_tests(line: &str) -> bool {
    line == CI || line == "cargo xtask ci"
}

fn why_it_cannot_run(tree: &Tree, line: &str) -> Option<Complaint> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        ["cargo", "xtask", chore, ..] => {
            let known = Chores::command().get_subcommands().any(|known| known.get_name() == *chore);
            (!known).then(|| format!("{README}: `{line}`: xtask has no chore `{chore}`"))
        }
        ["cargo", "run", ..] => {
            let package = words.iter().skip_while(|word| **word != "-p").nth(1)?;
            let name = format!("name = \"{package}\"");
            let known = tree
                .files()
                .filter(|(path, _)| path.ends_with("Cargo.toml"))
                .any(|(_, manifest)| manifest.lines().any(|line| line.trim() == name));
            (!known).then(|| format!("{README}: `{line}`: no package `{package}` in this tree"))
        }
        [script, ..] if script.contains('/') => {
            let path = script.trim_start_matches("./");
            (!tree.has(path)).then(|| format!("{README}: `{line}`: {path} does not exist"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(first: &str, second: &str) -> Vec<Complaint> {
        let readme = format!("```sh\n{first}\n```\n```sh\n{second}\n```\n");
        check(&Tree::of([
            (README, readme.as_str()),
            (CI, ""),
            ("server/Cargo.toml", "[package]\nname = \"waitroom\"\n"),
        ]))
    }

    #[test]
    fn commands_that_exist_are_fine() {
        let first = "cargo run --release -p waitroom -- rehearse";
        assert_eq!(complaints(first, ".ci/run"), Vec::<Complaint>::new());
        assert_eq!(complaints(first, "cargo xtask ci"), Vec::<Complaint>::new());
    }

    #[test]
    fn a_package_a_chore_or_a_script_that_is_not_there_is_named() {
        for (first, missing) in [
            ("cargo run -p waiting -- rehearse", "waiting"),
            ("cargo xtask celebrate", "celebrate"),
            ("./demo/run", "demo/run"),
        ] {
            let said = complaints(first, ".ci/run");
            assert_eq!(said.len(), 1, "{said:?}");
            assert!(said[0].contains(missing), "{said:?}");
        }
    }

    #[test]
    fn the_second_command_runs_all_tests() {
        let said = complaints("cargo run -p waitroom", "cargo xtask tidy");
        assert!(said[0].contains("should run all tests"), "{said:?}");
    }
}
