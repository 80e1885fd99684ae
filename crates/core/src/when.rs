//! Moments as people and machines both read them: `2026-05-01T10:00:00.000Z`.
//!
//! Lives here: writing them, and reading what others wrote (RFC 3339). Stays out: time zones by
//! name, whose rules change by law; whoever writes a moment says how far it is from UTC.

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// Days in 400 years, after which the calendar repeats.
const DAYS_IN_ERA: u64 = 146_097;
/// From 1 March of year 0 to 1 January 1970.
const DAYS_BEFORE_1970: u64 = 719_468;

/// The first moment of the year 10,000, in milliseconds since 1970.
pub const YEAR_10_000_MS: u64 = 253_402_300_800_000;

/// Milliseconds since 1970 in UTC.
pub fn utc(ms: u64) -> String {
    if ms < YEAR_10_000_MS {
        return String::from_utf8(utc_text(ms).to_vec()).expect("digits and signs are ASCII");
    }
    // Nobody waits that long; five digits still read rightly.
    let (year, month, day) = date(ms / DAY_MS);
    let (seconds, ms) = (ms % DAY_MS / 1_000, ms % 1_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// The same text in ASCII, of a moment before [`YEAR_10_000_MS`]. Written digit by digit: every
/// answer to a visitor holds one or two of these, and the general formatter costs more than the
/// rest of the answer.
pub fn utc_text(ms: u64) -> [u8; 24] {
    debug_assert!(ms < YEAR_10_000_MS, "{ms} has no such text");
    let (days, ms) = (ms / DAY_MS, ms % DAY_MS);
    let (year, month, day) = date(days);
    let (seconds, ms) = (ms / 1_000, ms % 1_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let mut text = *b"0000-00-00T00:00:00.000Z";
    for (end, digits, mut number) in [
        (4, 4, year),
        (7, 2, month),
        (10, 2, day),
        (13, 2, hour),
        (16, 2, minute),
        (19, 2, second),
        (23, 3, ms),
    ] {
        for place in (end - digits..end).rev() {
            text[place] = b'0' + (number % 10) as u8;
            number /= 10;
        }
    }
    text
}

/// Milliseconds since 1970 of a moment in RFC 3339, such as `2026-05-01T12:00:00+02:00`; or what
/// is wrong with it, in words that go on after the text itself. Finer fractions are cut off.
pub fn parse(text: &str) -> Result<u64, &'static str> {
    const SHAPE: &str = "is not a moment; write it as 2026-05-01T10:00:00Z";
    let bytes = text.as_bytes();
    if bytes.len() < 19 {
        return Err(SHAPE);
    }
    let (clock, rest) = bytes.split_at(19);
    let parted = clock[4] == b'-'
        && clock[7] == b'-'
        && matches!(clock[10], b'T' | b't' | b' ')
        && clock[13] == b':'
        && clock[16] == b':';
    let part = |from: usize, to: usize| digits(&clock[from..to]).ok_or(SHAPE);
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let (hour, minute, second) = (part(11, 13)?, part(14, 16)?, part(17, 19)?);
    if !parted {
        return Err(SHAPE);
    }
    if !(1..=12).contains(&month) || day == 0 || day > days_in(year, month) {
        return Err("has no such day in the calendar");
    }
    // Leap seconds have no number of their own since 1970.
    if hour > 23 || minute > 59 || second > 59 {
        return Err("has no such time of day");
    }
    let (ms, zone) = fraction(rest).ok_or(SHAPE)?;
    let ahead_ms = match zone {
        [] => return Err("does not say how far it is from UTC; end it with Z or, say, +02:00"),
        _ => ahead_of_utc_ms(zone).ok_or(SHAPE)?,
    };
    let seconds = day_number(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    (seconds * 1_000 + ms)
        .checked_sub(DAYS_BEFORE_1970 * DAY_MS)
        .and_then(|since_1970| since_1970.checked_add_signed(-ahead_ms))
        .ok_or("lies before 1970")
}

/// Milliseconds of `.123456`, if there is one, and what follows.
fn fraction(rest: &[u8]) -> Option<(u64, &[u8])> {
    let Some(rest) = rest.strip_prefix(b".") else { return Some((0, rest)) };
    let len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let ms =
        (0..3).fold(0, |ms, i| ms * 10 + rest[..len].get(i).map_or(0, |d| u64::from(d - b'0')));
    (len > 0).then(|| (ms, &rest[len..]))
}

/// `Z`, `+02:00`, `-03:30`.
fn ahead_of_utc_ms(zone: &[u8]) -> Option<i64> {
    match zone {
        [b'Z' | b'z'] => Some(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (digits(&[*h1, *h2])?, digits(&[*m1, *m2])?);
            let ms = (hours * 3_600 + minutes * 60) as i64 * 1_000;
            let signed = if *sign == b'+' { ms } else { -ms };
            (hours < 24 && minutes < 60).then_some(signed)
        }
        _ => None,
    }
}

fn digits(bytes: &[u8]) -> Option<u64> {
    bytes
        .iter()
        .try_fold(0, |n, byte| byte.is_ascii_digit().then(|| n * 10 + u64::from(byte - b'0')))
}

fn days_in(year: u64, month: u64) -> u64 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 => 28 + u64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1 March of year 0, so January and February of year 0 have none; they lie long
/// before 1970 anyway and count as its first day.
fn day_number(year: u64, month: u64, day: u64) -> u64 {
    let (year, from_march) = match month {
        3.. => (year, month - 3),
        _ => match year.checked_sub(1) {
            Some(year) => (year, month + 9),
            None => return 0,
        },
    };
    year * 365 + year / 4 - year / 100 + year / 400 + (153 * from_march + 2) / 5 + day - 1
}

/// Years are counted from 1 March here: then the leap day is the last of its year, and months
/// have the same lengths in every year.
fn date(days_since_1970: u64) -> (u64, u64, u64) {
    let days = days_since_1970 + DAYS_BEFORE_1970;
    let (era, day_of_era) = (days / DAYS_IN_ERA, days % DAYS_IN_ERA);
    // A leap day every 1,461 days, none every 36,524, one again in the last day of the era.
    let years =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (years * 365 + years / 4 - years / 100);
    // March to July and August to December have 153 days each: 31, 30, 31, 30, 31.
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + years + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments_read_as_they_should() {
        assert_eq!(utc(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(utc(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(utc(1_709_251_199_999), "2024-02-29T23:59:59.999Z");
        assert_eq!(utc(1_709_251_200_000), "2024-03-01T00:00:00.000Z");
        assert_eq!(utc(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn every_day_of_eight_centuries_follows_the_one_before() {
        let mut before = date(0);
        for days in 1..DAYS_IN_ERA * 2 {
            let (year, month, day) = date(days);
            let last = days_in(before.0, before.1);
            let next = match before {
                (y, 12, 31) => (y + 1, 1, 1),
                (y, m, d) if d == last => (y, m + 1, 1),
                (y, m, d) => (y, m, d + 1),
            };
            assert_eq!((year, month, day), next);
            before = next;
        }
    }

    #[test]
    fn what_was_written_is_read_back() {
        for day in 0..DAYS_IN_ERA {
            let ms = day * DAY_MS + day * 7_919 % DAY_MS;
            assert_eq!(parse(&utc(ms)), Ok(ms), "{}", utc(ms));
        }
        assert_eq!(
            parse("9999-12-31T23:59:59.999Z").map(utc),
            Ok("9999-12-31T23:59:59.999Z".into())
        );
    }

    #[test]
    fn a_moment_is_the_same_wherever_it_was_written() {
        let ten = parse("2026-05-01T10:00:00Z").expect("a moment");
        assert_eq!(utc(ten), "2026-05-01T10:00:00.000Z");
        for same in [
            "2026-05-01T12:00:00+02:00",
            "2026-05-01T06:30:00-03:30",
            "2026-05-02T00:00:00+14:00",
            "2026-05-01t10:00:00z",
            "2026-05-01 10:00:00.0Z",
        ] {
            assert_eq!(parse(same), Ok(ten), "{same}");
        }
        assert_eq!(parse("2026-05-01T10:00:00.1239Z"), Ok(ten + 123));
        assert_eq!(parse("2026-05-01T10:00:00.5Z"), Ok(ten + 500));
    }

    #[test]
    fn what_is_no_moment_says_why() {
        for (text, why) in [
            ("", "is not a moment"),
            ("tomorrow at ten, please", "is not a moment"),
            ("2026-05-01", "is not a moment"),
            ("2026-05-01T10:00Z", "is not a moment"),
            ("2026/05/01T10:00:00Z", "is not a moment"),
            ("2026-05-01T10:00:00.Z", "is not a moment"),
            ("2026-05-01T10:00:00+0200", "is not a moment"),
            ("2026-05-01T10:00:00+24:00", "is not a moment"),
            ("2026-05-01T10:00:00Z ", "is not a moment"),
            ("2026-05-01T10:00:00é", "is not a moment"),
            ("2026-02-29T10:00:00Z", "no such day"),
            ("2026-13-01T10:00:00Z", "no such day"),
            ("2026-00-01T10:00:00Z", "no such day"),
            ("2026-05-00T10:00:00Z", "no such day"),
            ("2026-05-01T24:00:00Z", "no such time"),
            ("2026-05-01T10:60:00Z", "no such time"),
            ("2026-05-01T10:00:60Z", "no such time"),
            ("2026-05-01T10:00:00", "from UTC"),
            ("1969-12-31T23:59:59Z", "before 1970"),
            ("1970-01-01T00:00:00+00:01", "before 1970"),
            ("0000-01-01T00:00:00Z", "before 1970"),
        ] {
            let said = parse(text).expect_err(text);
            assert!(said.contains(why), "{text}: {said}");
        }
    }

    #[test]
    fn the_end_of_time_has_a_date_too() {
        assert!(utc(u64::MAX).ends_with('Z'));
    }
}
