//! A file of Rust holds one idea; past 700 lines it holds two.

use super::Complaint;
use crate::tree::Tree;

const LINES_MAX: usize = 700;

pub fn check(tree: &Tree) -> Vec<Complaint> {
    let long = tree.under("", ".rs").filter_map(|(path, text)| {
        let lines = text.lines().count();
        (lines > LINES_MAX).then(|| format!("{path} has {lines} lines; split it at {LINES_MAX}"))
    });
    long.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seven_hundred_lines_are_fine_and_one_more_is_not() {
        let fine = "//\n".repeat(LINES_MAX);
        assert!(check(&Tree::of([("a.rs", fine.as_str())])).is_empty());
        let long = "//\n".repeat(LINES_MAX + 1);
        assert_eq!(check(&Tree::of([("a.rs", long.as_str())])).len(), 1);
    }
}
