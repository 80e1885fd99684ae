//! Every decision record is listed in `docs/adr/README.md`, and every one listed exists.

use super::Complaint;
use crate::tree::Tree;

const FOLDER: &str = "docs/adr/";
const INDEX: &str = "docs/adr/README.md";

pub fn check(tree: &Tree) -> Vec<Complaint> {
    let Some(index) = tree.text(INDEX) else { return vec![format!("{INDEX} is missing")] };
    let mut complaints = vec![];
    for (path, _) in tree.under(FOLDER, ".md").filter(|(path, _)| *path != INDEX) {
        let name = &path[FOLDER.len()..];
        if !index.contains(&format!("({name})")) {
            complaints.push(format!("{path} is not listed in {INDEX}; link it as [title]({name})"));
        }
    }
    for name in index.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        if !name.contains('/') && !tree.has(&format!("{FOLDER}{name}")) {
            complaints.push(format!("{INDEX} lists {name}, which does not exist"));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_record_is_fine() {
        let tree = Tree::of([(INDEX, "| [one](0001-a.md) |"), ("docs/adr/0001-a.md", "")]);
        assert_eq!(check(&tree), Vec::<Complaint>::new());
    }

    #[test]
    fn a_record_that_is_not_listed_and_a_listing_without_a_record_are_both_named() {
        let tree = Tree::of([(INDEX, "| [two](0002-b.md) |"), ("docs/adr/0001-a.md", "")]);
        let said = check(&tree);
        assert!(said[0].contains("docs/adr/0001-a.md is not listed"), "{said:?}");
        assert!(said[1].contains("0002-b.md, which does not exist"), "{said:?}");
    }
}
