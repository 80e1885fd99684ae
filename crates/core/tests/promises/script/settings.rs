//! Settings as words: `rate=10/1s burst=5 lanes=3:1 returning=20%/60s`.

use super::world::T0;
use waitroom_core::settings::{
    ClaimMode, DrawSettings, LaneSettings, NoShow, PublicBoardMode, Rate, Returning,
};
use waitroom_core::{Millis, Settings, Timestamp};

/// What a script's room has unless its line says otherwise: everyone queues, the pace hardly
/// matters, and gates have perfect clocks, so that each test turns on only what it is about.
pub fn plain() -> Settings {
    Settings {
        queue_all: true,
        rate: Some(Rate { count: 1_000, per: Millis(1_000) }),
        burst: Some(1_000),
        pass_leeway: Millis(0),
        ..Settings::default()
    }
}

pub fn apply(settings: &mut Settings, word: &str) {
    let (key, value) = word.split_once('=').unwrap_or_else(|| panic!("{word}: not key=value"));
    let number = || value.parse::<u64>().unwrap_or_else(|_| panic!("{word}: not a number"));
    match key {
        "max_active" => settings.max_active = number(),
        "max_waiting" => settings.max_waiting = number(),
        "rate" => settings.rate = optional(value).map(rate),
        "burst" => settings.burst = optional(value).map(|_| number() as u32),
        "tick" => settings.tick = span(value),
        "queue_all" => settings.queue_all = yes(value),
        "claim" if value == "explicit" => settings.claim = ClaimMode::Explicit,
        "claim" if value == "on_admission" => settings.claim = ClaimMode::OnAdmission,
        "claim_within" => settings.claim_within = span(value),
        "session_timeout" => settings.session_timeout = span(value),
        "session_renewal" => settings.session_renewal = yes(value),
        "pass_life" => settings.pass_life = span(value),
        "pass_leeway" => settings.pass_leeway = span(value),
        "heartbeat_timeout" => settings.heartbeat_timeout = span(value),
        "ticket_life" => settings.ticket_life = span(value),
        "memory" => settings.memory = span(value),
        "no_show" if value == "keep" => settings.no_show = NoShow::Keep,
        "no_show" if value == "return" => settings.no_show = NoShow::Return,
        "opens_at" => settings.opens_at = optional(value).map(moment),
        "starts_at" => settings.starts_at = optional(value).map(moment),
        "ends_at" => settings.ends_at = optional(value).map(moment),
        "draw" if value == "none" => settings.draw = None,
        "draw" if value == "committed" => settings.draw = Some(DrawSettings { beacon: None }),
        "draw" => settings.draw = Some(DrawSettings { beacon: Some(value.into()) }),
        "window" => settings.shuffle_window = number() as u32,
        "public_board" if value == "full" => settings.public_board = PublicBoardMode::Full,
        "public_board" if value == "coarse" => settings.public_board = PublicBoardMode::Coarse,
        "public_board" if value == "off" => settings.public_board = PublicBoardMode::Off,
        "keep_inside" => settings.keep_inside = yes(value),
        "title" => settings.title = "t".repeat(number() as usize),
        "lanes" => settings.lanes = lanes(value),
        "returning" => settings.returning = optional(value).map(returning),
        _ => panic!("{word}: no such setting in the words of scripts"),
    }
}

pub fn span(word: &str) -> Millis {
    let digits = word.strip_suffix("ms").map(|digits| (digits, 1.0));
    let (digits, unit) = digits
        .or_else(|| word.strip_suffix('s').map(|digits| (digits, 1_000.0)))
        .or_else(|| word.strip_suffix('h').map(|digits| (digits, 3_600_000.0)))
        .unwrap_or_else(|| panic!("{word}: a span has a unit, such as 1.5s, 200ms or 1h"));
    let value: f64 = digits.parse().unwrap_or_else(|_| panic!("{word}: not a span"));
    Millis((value * unit).round() as u64)
}

pub fn moment(word: &str) -> Timestamp {
    T0.after(span(word))
}

fn optional(value: &str) -> Option<&str> {
    (value != "none").then_some(value)
}

fn yes(value: &str) -> bool {
    match value {
        "yes" => true,
        "no" => false,
        _ => panic!("{value}: yes or no"),
    }
}

fn rate(value: &str) -> Rate {
    let (count, per) = value.split_once('/').expect("a rate is written 10/1s");
    Rate { count: count.parse().expect("a rate's count is a number"), per: span(per) }
}

/// `3:1` makes the lanes `l0` and `l1` with these weights; `none` makes no lane at all.
fn lanes(value: &str) -> Vec<LaneSettings> {
    let weights = optional(value).into_iter().flat_map(|value| value.split(':'));
    weights
        .enumerate()
        .map(|(i, weight)| LaneSettings {
            name: format!("l{i}"),
            weight: weight.parse().expect("a weight is a number"),
        })
        .collect()
}

fn returning(value: &str) -> Returning {
    let (share, within) = value.split_once("%/").expect("returning is written 20%/60s");
    Returning { share: share.parse().expect("a share is a number"), within: span(within) }
}
