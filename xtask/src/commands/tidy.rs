//! `cargo xtask tidy`: the rules of [`crate::tidy`] on the tracked tree.

use crate::failure::{Failure, Outcome};
use crate::tidy::{RULES, complaints};
use crate::tree::Tree;

pub fn run() -> Outcome {
    let complaints = complaints(&Tree::tracked()?);
    if complaints.is_empty() {
        eprintln!("tidy: {} rules kept", RULES.len());
        return Ok(());
    }
    for complaint in &complaints {
        eprintln!("tidy: {complaint}");
    }
    Err(Failure::new(format!("the tree is not tidy: {} complaints above", complaints.len())))
}
