//! Rules about the tree that no compiler checks. Run by `cargo xtask tidy` and by a test.
//!
//! One file per rule. A rule looks at a [`Tree`] and complains; it changes nothing. Each has
//! tests on invented trees: one that is fine, and one for every way to break the rule.
//! To add a rule: a file here, a line in [`RULES`].

mod adr_index;
mod clauses_have_tests;
mod core_dependencies;
mod error_pages;
mod leftovers;
mod long_files;
mod machine_paths;
mod map;
mod readme_commands;

use crate::tree::Tree;

/// What is wrong, in words that name the file and the remedy.
pub type Complaint = String;

/// A rule with the name under which its complaints are shown.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    pub name: &'static str,
    check: fn(&Tree) -> Vec<Complaint>,
}

pub const RULES: &[Rule] = &[
    Rule { name: "core-dependencies", check: core_dependencies::check },
    Rule { name: "map", check: map::check },
    Rule { name: "clauses-have-tests", check: clauses_have_tests::check },
    Rule { name: "error-pages", check: error_pages::check },
    Rule { name: "leftovers", check: leftovers::check },
    Rule { name: "long-files", check: long_files::check },
    Rule { name: "adr-index", check: adr_index::check },
    Rule { name: "machine-paths", check: machine_paths::check },
    Rule { name: "readme-commands", check: readme_commands::check },
];

/// All complaints of all rules, each with its rule's name in front.
pub fn complaints(tree: &Tree) -> Vec<Complaint> {
    let named = |rule: &Rule| {
        let name = rule.name;
        (rule.check)(tree).into_iter().map(move |complaint| format!("{name}: {complaint}"))
    };
    RULES.iter().flat_map(named).collect()
}
