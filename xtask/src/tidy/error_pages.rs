//! Every error code in the product has its page in `docs/errors/`, and every page its code.

use std::collections::BTreeMap;

use super::Complaint;
use crate::tree::Tree;

const PAGES: &str = "docs/errors/";
const PREFIX: &str = "WR-";
const DIGITS: usize = 4;

pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = vec![];
    let mut used: BTreeMap<&str, &str> = BTreeMap::new();
    let product = tree.under("crates/", "").chain(tree.under("server/", ""));
    for (path, text) in product {
        for code in codes(text) {
            used.entry(code).or_insert(path);
        }
    }
    for (code, path) in &used {
        let page = format!("{PAGES}{code}.md");
        if !tree.has(&page) {
            complaints.push(format!("{path} uses {code}, which has no page {page}"));
        }
    }
    for (path, _) in tree.under(PAGES, ".md") {
        let name = &path[PAGES.len()..path.len() - ".md".len()];
        if codes(name).next() == Some(name) && !used.contains_key(name) {
            complaints.push(format!(
                "{path} explains {name}, which no code below crates/ or server/ uses"
            ));
        }
    }
    complaints
}

/// All `WR-dddd` of exactly four digits.
fn codes(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices(PREFIX).filter_map(|(at, _)| {
        let end = at + PREFIX.len() + DIGITS;
        let code = text.get(at..end)?;
        let whole = !text[end..].starts_with(|c: char| c.is_ascii_digit());
        (whole && code[PREFIX.len()..].bytes().all(|b| b.is_ascii_digit())).then_some(code)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_page_that_know_each_other_are_fine() {
        let tree = Tree::of([
            ("crates/store/src/error.rs", "Code(\"WR-2103\") WR-12345 WR-12 WR-"),
            ("docs/errors/WR-2103.md", ""),
            ("docs/errors/README.md", ""),
        ]);
        assert_eq!(check(&tree), Vec::<Complaint>::new());
    }

    #[test]
    fn a_code_without_a_page_names_the_file_that_uses_it() {
        let said = check(&Tree::of([("server/src/wire.rs", "WR-1001")]));
        assert!(said[0].contains("server/src/wire.rs uses WR-1001"), "{said:?}");
    }

    #[test]
    fn a_page_without_a_code_is_named() {
        let said = check(&Tree::of([("docs/errors/WR-1001.md", "WR-1001")]));
        assert!(said[0].contains("docs/errors/WR-1001.md"), "{said:?}");
    }
}
