//! Every clause in the doc comment of the `Store` trait has a test of that name, which every
//! backend runs.
//!
//! Clauses are points ``- `name`: promise`` or ``- `name`, `other_name`: promise`` above
//! `pub trait Store`. Their tests are functions of the same names, and `store_contract!` lists
//! them: a function that the macro forgets compiles, and never runs.

use std::collections::BTreeSet;

use super::Complaint;
use crate::tree::Tree;

const FOLDER: &str = "crates/store/";
const TRAIT: &str = "pub trait Store";
const MACRO: &str = "macro_rules! store_contract";

pub fn check(tree: &Tree) -> Vec<Complaint> {
    let contract = tree.under(FOLDER, ".rs").find_map(|(path, text)| {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let at = lines.iter().position(|line| is_the_trait(line))?;
        Some((path, points(&lines[..at])))
    });
    let Some((path, points)) = contract else {
        return vec![format!("no `{TRAIT}` below {FOLDER}: where is the contract?")];
    };
    let mut complaints = vec![];
    let mut clauses = BTreeSet::new();
    for point in &points {
        match names(point) {
            Some(names) => clauses.extend(names),
            None => complaints.push(format!("{path}: not of the form - `name`: promise: {point}")),
        }
    }
    if clauses.is_empty() {
        complaints.push(format!("{path}: `{TRAIT}` names no clause; write - `name`: promise"));
    }
    let Some((suite, listed)) = listed(tree) else {
        complaints.push(format!("no `{MACRO}` below {FOLDER}: who runs the clauses?"));
        return complaints;
    };
    for clause in &clauses {
        let head = format!("fn {clause}(");
        if !tree.under(FOLDER, ".rs").any(|(_, text)| text.contains(&head)) {
            complaints.push(format!("{path}: the clause `{clause}` has no test `fn {clause}`"));
        }
    }
    for clause in clauses.difference(&listed) {
        complaints.push(format!("{suite}: `store_contract!` does not run the clause `{clause}`"));
    }
    for test in listed.difference(&clauses) {
        complaints.push(format!("{path}: `{test}` is tested, but no clause on `{TRAIT}` says so"));
    }
    complaints
}

fn is_the_trait(line: &str) -> bool {
    line.strip_prefix(TRAIT).is_some_and(|rest| rest.starts_with([':', ' ', '<', '{']))
}

/// The points about clauses in the comment that ends where `above` ends, each as one line.
/// Attributes may stand between comment and trait.
fn points(above: &[&str]) -> Vec<String> {
    let belongs = |line: &&&str| line.starts_with("///") || line.starts_with("#[");
    let mut comment: Vec<&str> = above
        .iter()
        .rev()
        .take_while(belongs)
        .filter_map(|line| line.strip_prefix("///"))
        .collect();
    comment.reverse();
    let mut points: Vec<String> = vec![];
    let mut inside = false;
    for line in comment {
        if let Some(point) = line.trim_start().strip_prefix("- ") {
            inside = point.starts_with('`');
            points.extend(inside.then(|| point.to_owned()));
        } else if !line.starts_with("   ") {
            // A point goes on in lines that are indented as far as its first word.
            inside = false;
        } else if inside && let Some(point) = points.last_mut() {
            point.push(' ');
            point.push_str(line.trim());
        }
    }
    points
}

/// The names before the colon, if that is how the point begins.
fn names(point: &str) -> Option<BTreeSet<&str>> {
    let (names, _promise) = point.split_once("`:")?;
    let name = |name| is_name(name).then_some(name);
    names.strip_prefix('`')?.split("`, `").map(name).collect()
}

/// The words in the list of `store_contract!`, and the file it is in.
fn listed(tree: &Tree) -> Option<(&str, BTreeSet<&str>)> {
    tree.under(FOLDER, ".rs").find_map(|(path, text)| {
        let (_, body) = text.split_once(MACRO)?;
        let body = body.split("\n}").next().unwrap_or(body);
        let words = body.lines().map(str::trim).filter(|line| is_name(line));
        Some((path, words.collect()))
    })
}

fn is_name(word: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    !word.is_empty() && word.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTRACT: &str = "/// - `far_away`: no clause of Store\nstruct X;\n\n\
        /// Remembers.\n///\n/// - `append_is_whole`: all or none.\n/// - `heads_rise`,\n\
        ///   `heads_stay`: always, see `other`: it\n///   goes on.\n/// - plain words: fine\n\
        #[allow(async_fn_in_trait)]\npub trait Store: Send {}\n";
    const SUITE: &str = "macro_rules! store_contract {\n    () => { run!(\n\
        append_is_whole\n    heads_rise\n    heads_stay\n    ) };\n}\n\
        pub fn append_is_whole() {}\npub fn heads_rise() {}\nfn heads_stay() {}\n";

    fn complaints(contract: &str, suite: &str) -> Vec<Complaint> {
        check(&Tree::of([("crates/store/src/c.rs", contract), ("crates/store/src/t.rs", suite)]))
    }

    #[test]
    fn clauses_that_are_tested_and_run_are_kept() {
        assert_eq!(complaints(CONTRACT, SUITE), Vec::<Complaint>::new());
    }

    #[test]
    fn each_clause_of_a_point_needs_its_own_test() {
        for clause in ["append_is_whole", "heads_rise", "heads_stay"] {
            let head = format!("fn {clause}(");
            let said =
                complaints(CONTRACT, &SUITE.replace(&head, &format!("fn {clause}_at_times(")));
            assert_eq!(said.len(), 1, "{said:?}");
            assert!(said[0].contains(&format!("`{clause}` has no test")), "{said:?}");
        }
    }

    #[test]
    fn a_test_that_the_macro_forgets_is_named() {
        let said = complaints(CONTRACT, &SUITE.replace("    heads_rise\n", ""));
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("does not run the clause `heads_rise`"), "{said:?}");
    }

    #[test]
    fn a_test_without_a_clause_is_named() {
        let said = complaints(&CONTRACT.replace("`append_is_whole`", "*append_is_whole*"), SUITE);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("`append_is_whole` is tested"), "{said:?}");
    }

    #[test]
    fn a_point_that_forgets_its_colon_is_named_rather_than_skipped() {
        let said = complaints(&CONTRACT.replace("whole`:", "whole`"), SUITE);
        assert!(said[0].contains("not of the form"), "{said:?}");
    }

    #[test]
    fn a_trait_without_clauses_a_missing_trait_and_a_missing_suite_are_untidy() {
        assert!(complaints("/// Words.\npub trait Store {}", SUITE)[0].contains("names no clause"));
        assert!(complaints("pub trait Storefront {}", SUITE)[0].contains("where is the contract"));
        assert!(complaints(CONTRACT, "")[0].contains("who runs the clauses"));
    }
}
