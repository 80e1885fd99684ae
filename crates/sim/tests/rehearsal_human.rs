//! Numbers as people write them, and what a wrong one is told.

use waitroom_sim::rehearsal::Patience;
use waitroom_sim::rehearsal::human::{
    duration, number, parse_duration, parse_number, parse_patience, parse_share, short,
};

#[test]
fn numbers_are_read_the_way_people_write_them() {
    for (text, value) in [
        ("20M", 20_000_000),
        ("2.5k", 2_500),
        ("1_000", 1_000),
        ("1,000", 1_000),
        ("0", 0),
        ("18446744073709551615", u64::MAX),
        ("1G", 1_000_000_000),
    ] {
        assert_eq!(parse_number(text), Ok(value), "{text}");
    }
    for wrong in ["", "M", "-1", "1.5", "0.0001k", "1e9", "NaN", "inf", "1 2", "20X"] {
        let told = parse_number(wrong).expect_err(wrong);
        assert!(told.contains("20M"), "{wrong}: {told}");
    }
}

#[test]
fn durations_need_a_unit_and_are_told_so() {
    for (text, ms) in [
        ("90s", 90_000),
        ("5m", 300_000),
        ("1h30m", 5_400_000),
        ("200ms", 200),
        ("1.5s", 1_500),
        ("2d", 172_800_000),
    ] {
        assert_eq!(parse_duration(text), Ok(ms), "{text}");
    }
    assert_eq!(
        parse_duration("90").expect_err("no unit"),
        "\"90\" has no unit; write \"90s\" or \"90m\""
    );
    for wrong in ["", "s", "5x", "m5", "-5s", "5s5", "1e3s", "∞s"] {
        assert!(parse_duration(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn shares_lie_between_nothing_and_all() {
    assert_eq!(parse_share("35%"), Ok(0.35));
    assert_eq!(parse_share("0.35"), Ok(0.35));
    for wrong in ["101%", "1.1", "-1%", "%", "NaN", "inf"] {
        assert!(parse_share(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn patience_has_a_middle_and_a_kind() {
    let median_ms = 1_200_000;
    assert_eq!(parse_patience("none"), Ok(Patience::Endless));
    assert_eq!(parse_patience("20m"), Ok(Patience::Lognormal { median_ms, spread: 1.0 }));
    assert_eq!(parse_patience("20m,exponential"), Ok(Patience::Exponential { median_ms }));
    assert_eq!(parse_patience("20m,weibull=0.5"), Ok(Patience::Weibull { median_ms, shape: 0.5 }));
    for wrong in ["20", "0s", "20m,gamma", "20m,weibull=x", "20m,exponential=2"] {
        assert!(parse_patience(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn figures_are_shown_as_people_read_them() {
    assert_eq!(number(1_234_567), "1,234,567");
    assert_eq!(number(999), "999");
    assert_eq!(short(20_000_000.0), "20 M");
    assert_eq!(short(1_500.0), "1.5 k");
    for (ms, shown) in [
        (0, "0 s"),
        (850, "850 ms"),
        (12_400, "12.4 s"),
        (425_000, "7 min 05 s"),
        (7_380_000, "2 h 03 min"),
    ] {
        assert_eq!(duration(ms), shown);
    }
}
