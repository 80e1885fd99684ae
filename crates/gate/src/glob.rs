//! Patterns of hosts and paths: `*` stands for any run of letters, also for none.

/// Whether the whole text fits. Linear but for the stars, and hostile texts cannot make it worse
/// than text × pattern: on a mismatch only the last star takes one letter more.
pub fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if p < pattern.len() && pattern[p] == b'*' {
            star = Some((p, t));
            p += 1;
        } else if p < pattern.len() && pattern[p] == text[t] {
            p += 1;
            t += 1;
        } else if let Some((at, taken)) = star {
            star = Some((at, taken + 1));
            p = at + 1;
            t = taken + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::fits;

    #[test]
    fn a_star_stands_for_any_run_of_letters() {
        for (pattern, text) in [
            ("/a", "/a"),
            ("/assets/*", "/assets/"),
            ("/assets/*", "/assets/a/b.css"),
            ("*.css", "/deep/down.css"),
            ("*.shop.example", "www.shop.example"),
            ("/a*b*c", "/a-b-b-c"),
            ("*", ""),
        ] {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("/a", "/ab"),
            ("/a", "/"),
            ("/assets/*", "/assets"),
            ("*.css", "/x.css.php"),
            ("*.shop.example", "shop.example"),
            ("", "a"),
        ] {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
    }

    /// What the words say, without cleverness.
    fn slow(pattern: &[u8], text: &[u8]) -> bool {
        match pattern {
            [] => text.is_empty(),
            [b'*', rest @ ..] => (0..=text.len()).any(|at| slow(rest, &text[at..])),
            [letter, rest @ ..] => text.first() == Some(letter) && slow(rest, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn it_is_the_same_as_trying_everything(pattern in "[ab*]{0,6}", text in "[ab]{0,8}") {
            prop_assert_eq!(fits(&pattern, &text), slow(pattern.as_bytes(), text.as_bytes()));
        }
    }
}
