//! Nothing unfinished, switched off or left over from a search for a bug is in the tree.

use super::Complaint;
use crate::tree::Tree;

/// Put together from halves, so that this file does not complain about itself.
const LEFTOVERS: [&str; 4] = [
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    concat!("#[ig", "nore"),
    concat!("db", "g!("),
];

pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = vec![];
    for (path, text) in tree.under("", ".rs") {
        for (index, line) in text.lines().enumerate() {
            for word in LEFTOVERS.iter().filter(|word| line.contains(**word)) {
                complaints
                    .push(format!("{path}:{}: `{word}`; finish it or take it out", index + 1));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_leftover_is_found_with_its_line() {
        for word in LEFTOVERS {
            let text = format!("fn fine() {{}}\n    {word}\n");
            let said = check(&Tree::of([("server/src/main.rs", text.as_str())]));
            assert_eq!(said.len(), 1, "{word}");
            assert!(said[0].starts_with("server/src/main.rs:2: "), "{said:?}");
        }
    }

    #[test]
    fn prose_may_talk_about_them() {
        assert!(check(&Tree::of([("docs/style.md", LEFTOVERS[0])])).is_empty());
    }
}
