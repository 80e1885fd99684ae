//! Which form of a word goes with a number: the cardinal rules of CLDR, for whole numbers.
//!
//! Browsers know them (`Intl.PluralRules`); this is for pages that are rendered here. A test
//! compares both.

/// The category of `n` in the language `tag`.
pub fn category(tag: &str, n: u64) -> &'static str {
    let (ten, hundred) = (n % 10, n % 100);
    let million = n != 0 && n.is_multiple_of(1_000_000);
    match tag {
        "zh-Hans" | "zh-Hant" | "ja" | "ko" | "id" | "vi" => "other",
        "hi" | "fa" => one_if(n <= 1),
        "fr" | "pt" if n <= 1 => "one",
        "es" | "it" if n == 1 => "one",
        "fr" | "pt" | "es" | "it" => {
            if million {
                "many"
            } else {
                "other"
            }
        }
        "cs" => match n {
            1 => "one",
            2..=4 => "few",
            _ => "other",
        },
        "pl" if n == 1 => "one",
        "ru" | "uk" if ten == 1 && hundred != 11 => "one",
        "pl" | "ru" | "uk" if (2..=4).contains(&ten) && !(12..=14).contains(&hundred) => "few",
        "pl" | "ru" | "uk" => "many",
        "ar" => match (n, hundred) {
            (0, _) => "zero",
            (1, _) => "one",
            (2, _) => "two",
            (_, 3..=10) => "few",
            (_, 11..=99) => "many",
            _ => "other",
        },
        "he" => match n {
            1 => "one",
            2 => "two",
            _ => "other",
        },
        _ => one_if(n == 1),
    }
}

fn one_if(one: bool) -> &'static str {
    if one { "one" } else { "other" }
}

/// The categories that numbers below a million have: what every counted word must offer. A form
/// for whole millions (`many` in Romance languages) may be missing; `other` stands in for it.
pub fn needed(tag: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    for n in 0..=200 {
        let category = category(tag, n);
        if !found.contains(&category) {
            found.push(category);
        }
    }
    found
}
