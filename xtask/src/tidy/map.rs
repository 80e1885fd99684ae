//! ARCHITECTURE.md names every top-level folder and every crate, so the map shows the land.

use std::collections::BTreeSet;

use super::Complaint;
use crate::tree::Tree;

const MAP: &str = "ARCHITECTURE.md";

pub fn check(tree: &Tree) -> Vec<Complaint> {
    let Some(map) = tree.text(MAP) else { return vec![format!("{MAP} is missing")] };
    let top = tree.files().filter_map(|(path, _)| path.split_once('/')).map(|(folder, _)| folder);
    let crates = tree.files().filter_map(|(path, _)| path.strip_suffix("/Cargo.toml"));
    let folders: BTreeSet<&str> = top.chain(crates).collect();
    let unnamed = folders.into_iter().filter(|folder| !names(map, folder));
    unnamed.map(|folder| format!("{MAP} does not name the folder `{folder}/`")).collect()
}

/// A folder is named by its whole path, or by its last part with a slash, as in a drawn tree.
fn names(map: &str, folder: &str) -> bool {
    let last = folder.rsplit('/').next().expect("splitting yields at least one part");
    stands_in(map, folder, |after| !is_name(after)) || stands_in(map, last, |after| after == '/')
}

/// Whether `word` occurs as a word of its own with a fitting character behind it.
fn stands_in(text: &str, word: &str, fits_after: impl Fn(char) -> bool) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back().unwrap_or(' ');
        let after = text[at + word.len()..].chars().next().unwrap_or(' ');
        !is_name(before) && before != '/' && fits_after(after)
    })
}

fn is_name(character: char) -> bool {
    character.is_alphanumeric() || "_-.".contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(map: &str) -> Vec<Complaint> {
        check(&Tree::of([
            (MAP, map),
            ("crates/core/Cargo.toml", ""),
            ("crates/core/src/lib.rs", ""),
            ("docs/a.md", ""),
        ]))
    }

    #[test]
    fn a_drawn_tree_and_whole_paths_both_name_a_folder() {
        assert_eq!(complaints("crates/\n  core/   decides\ndocs/"), Vec::<Complaint>::new());
        assert_eq!(complaints("`crates/core` decides; `docs`; crates/"), Vec::<Complaint>::new());
    }

    #[test]
    fn a_folder_that_only_shares_letters_with_a_word_is_not_named() {
        let said = complaints("crates/\n  hardcore/ \n mydocs/ the core of docs.rs");
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].contains("`crates/core/`"), "{said:?}");
        assert!(said[1].contains("`docs/`"), "{said:?}");
    }

    #[test]
    fn a_tree_without_a_map_is_untidy() {
        assert_eq!(check(&Tree::of([("docs/a.md", "")])).len(), 1);
    }
}
