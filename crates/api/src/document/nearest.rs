//! What somebody probably meant: the known word nearest to one that nobody knows.
//!
//! Lives here: the distance and the hint. Stays out: which words are known.

/// Words that are longer are no slip of the fingers, and the distance takes the product of both
/// lengths to work out: hostile input must not cost more than a glance.
const WORD_MAX: usize = 64;

/// `; did you mean "upstream"?`, or nothing when no known word is near.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(word, known) {
        Some(near) => format!("; did you mean \"{near}\"?"),
        None => String::new(),
    }
}

/// The nearest within a third of its letters; the first of several.
fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    near(word, known, |letters| (letters / 3).max(1))
}

/// The nearest within so many slips; the first of several.
pub fn nearest_within<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
    slips_max: usize,
) -> Option<&'a str> {
    near(word, known, |_| slips_max)
}

fn near<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
    slips_max: impl Fn(usize) -> usize,
) -> Option<&'a str> {
    if word.is_empty() || word.len() > WORD_MAX {
        return None;
    }
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let word: Vec<char> = plain(word).chars().collect();
    let near = known.into_iter().filter_map(|name| {
        let letters: Vec<char> = plain(name).chars().collect();
        let slips = distance(&word, &letters);
        (slips <= slips_max(letters.len())).then_some((slips, name))
    });
    near.min_by_key(|(slips, _)| *slips).map(|(_, name)| name)
}

/// How many letters to add, drop, change or swap with their neighbour.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before_last = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let changed = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = changed.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_fingers_finds_its_word() {
        let known = ["rate", "max_active", "max_waiting", "claim_within"];
        for (slip, meant) in [
            ("raet", "rate"),
            ("Rate", "rate"),
            ("max-active", "max_active"),
            ("max_actve", "max_active"),
            ("max_wating", "max_waiting"),
            ("claimwithin", "claim_within"),
        ] {
            assert_eq!(nearest(slip, known), Some(meant), "{slip}");
        }
        assert_eq!(did_you_mean("raet", known), "; did you mean \"rate\"?");
    }

    #[test]
    fn a_word_that_is_far_from_all_is_not_guessed_at() {
        for other in ["", "colour", "speed", &"rate".repeat(1_000)] {
            assert_eq!(did_you_mean(other, ["rate", "max_active"]), "", "{other}");
        }
    }
}
