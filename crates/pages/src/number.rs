//! Numbers and intervals of time as a language writes them.
//!
//! Browsers do this with `Intl`; this is for pages that are rendered here. A test compares both
//! for every language.

use crate::words::Words;

/// How a language groups digits.
struct Grouping {
    separator: char,
    /// Four digits stay together (1234, but 12.345).
    four_together: bool,
    /// Groups of two after the first of three.
    lakh: bool,
    zero: char,
}

fn grouping(tag: &str) -> Grouping {
    let separator = match tag {
        "de" | "es" | "pt" | "it" | "nl" | "da" | "tr" | "id" | "vi" => '.',
        "fr" => '\u{202F}',
        "pl" | "cs" | "sv" | "fi" | "nb" | "ru" | "uk" => '\u{A0}',
        "fa" => '\u{66C}',
        _ => ',',
    };
    Grouping {
        separator,
        four_together: matches!(tag, "es" | "it" | "pl"),
        lakh: tag == "hi",
        zero: if tag == "fa" { '۰' } else { '0' },
    }
}

/// `n` with its digits grouped.
pub fn number(tag: &str, n: u64) -> String {
    let Grouping { separator, four_together, lakh, zero } = grouping(tag);
    let digits = n.to_string();
    let count = digits.len();
    let mut text = String::with_capacity(count * 2);
    for (index, digit) in digits.bytes().enumerate() {
        let left = count - index;
        let boundary = if lakh { left > 1 && left % 2 == 1 } else { left.is_multiple_of(3) };
        if index > 0 && boundary && !(four_together && count == 4) {
            text.push(separator);
        }
        let value = u32::from(digit - b'0');
        text.push(char::from_u32(zero as u32 + value).expect("ten digits follow each other"));
    }
    text
}

/// An interval of seconds, in a unit and with figures as coarse as the knowledge is.
pub fn span(words: &Words, low_s: u64, high_s: u64) -> String {
    if high_s < 60 {
        return words.say("under_minute", &[]);
    }
    let (key, unit, each) = match high_s {
        10_800.. => ("hour", 3_600, 1),
        1_800.. => ("minute", 300, 5),
        _ => ("minute", 60, 1),
    };
    let (low, high) = (low_s / unit * each, high_s.div_ceil(unit) * each);
    let figure = |n| number(words.tag, n);
    let n = if low == high { figure(high) } else { format!("{}–{}", figure(low), figure(high)) };
    words.count(key, high, &n)
}

/// A moment for those whose browser runs no script: `2026-05-01 10:00 UTC`.
pub fn moment(unix_ms: u64) -> String {
    let minutes = unix_ms / 60_000;
    let (hour, minute) = (minutes / 60 % 24, minutes % 60);
    // Days since 0000-03-01 in the proleptic Gregorian calendar: leap days come last in a year.
    let day = minutes / 1_440 + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = (year + era * 400, if month < 10 { month + 3 } else { month - 9 });
    let year = if month <= 2 { year + 1 } else { year };
    format!("{year:04}-{month:02}-{date:02} {hour:02}:{minute:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_calendar() {
        assert_eq!(moment(0), "1970-01-01 00:00 UTC");
        assert_eq!(moment(951_782_340_000), "2000-02-28 23:59 UTC");
        assert_eq!(moment(951_782_400_000), "2000-02-29 00:00 UTC");
        assert_eq!(moment(1_777_629_600_000), "2026-05-01 10:00 UTC");
        assert_eq!(moment(4_102_444_799_000), "2099-12-31 23:59 UTC");
    }

    #[test]
    fn digits_are_grouped_as_the_language_does() {
        assert_eq!(number("en", 1_234_567), "1,234,567");
        assert_eq!(number("hi", 1_234_567), "12,34,567");
        assert_eq!(number("es", 1_234), "1234");
        assert_eq!(number("fa", 1_234), "۱٬۲۳۴");
        assert_eq!(number("en", 0), "0");
    }
}
