//! Moments as people and machines both read them: `2026-05-01T10:00:00.000Z`.

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// Days in 400 years, after which the calendar repeats.
const DAYS_IN_ERA: u64 = 146_097;
/// From 1 March of year 0 to 1 January 1970.
const DAYS_BEFORE_1970: u64 = 719_468;

/// Milliseconds since 1970 in UTC.
pub fn utc(ms: u64) -> String {
    let (days, ms) = (ms / DAY_MS, ms % DAY_MS);
    let (year, month, day) = date(days);
    let (seconds, ms) = (ms / 1_000, ms % 1_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
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
            let leap =
                |y: u64| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
            let last = match before.1 {
                2 => 28 + u64::from(leap(before.0)),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
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
    fn the_end_of_time_has_a_date_too() {
        assert!(utc(u64::MAX).ends_with('Z'));
    }
}
