//! No tracked file knows where somebody keeps their checkout.
//!
//! Such a path works on one machine only, and tells the reader about that machine.

use super::Complaint;
use crate::tree::Tree;

/// Put together from halves, so that this file does not complain about itself.
const PLACES: [&str; 4] =
    [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/Us", "ers/")];

pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = vec![];
    for (path, text) in tree.files() {
        for (index, line) in text.lines().enumerate() {
            for place in PLACES.iter().filter(|place| names_place(line, place)) {
                complaints.push(format!("{path}:{}: an absolute path below {place}", index + 1));
            }
        }
    }
    complaints
}

/// Absolute only: in `net/work/` or `example.org/home/` the slash follows a name.
fn names_place(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line[..at].chars().next_back().unwrap_or(' ');
        !before.is_alphanumeric() && !"_-.}*~".contains(before)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absolute_path_of_a_checkout_is_named_with_its_line() {
        for place in PLACES {
            let text = format!("fine\ncd \"{place}shop\"\n");
            let said = check(&Tree::of([("docs/a.md", text.as_str())]));
            assert_eq!(said.len(), 1, "{place}");
            assert!(said[0].starts_with("docs/a.md:2: "), "{said:?}");
        }
    }

    #[test]
    fn a_relative_path_and_an_address_are_fine() {
        for place in PLACES {
            let text = format!("frame{place}x https://example.org{place}x ..{place}x");
            assert!(check(&Tree::of([("a.md", text.as_str())])).is_empty(), "{place}");
        }
    }
}
