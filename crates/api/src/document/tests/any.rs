//! Any settings that can be, and any document at all.

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use waitroom_core::settings::{
    ClaimMode, DrawSettings, LaneSettings, NoShow, PublicBoardMode, Rate, Returning,
};
use waitroom_core::{Millis, Settings, Timestamp};

use crate::document::keys;

fn span(ms: std::ops::RangeInclusive<u64>) -> impl Strategy<Value = Millis> {
    ms.prop_map(Millis)
}

/// Settings that the core accepts.
pub fn settings() -> impl Strategy<Value = Settings> {
    const DAY: u64 = 86_400_000;
    let texts = ("\\PC{0,40}", "\\PC{0,40}", vec("[a-z]{1,8}", 1..5), vec(origin(), 0..4));
    let counts = (1u64..10_000_000, 0u64..1 << 40, of(1u32..1_000_000), of(16u32..65_536));
    let spans = (span(20..=10_000), span(1_000..=DAY), span(1_000..=DAY), span(3_001..=DAY));
    let more = (span(0..=300_000), span(600_000..=DAY), 0u64..1_000_000, 0u64..1_000_000);
    let pace = of((1u32..1_000_000, 1_000u64..3_600_000));
    let choices = (vec(any::<bool>(), 8), 0..3u8, of(1u32..=90), of("[a-z:0-9]{1,20}"));
    let times = (0u64..250_000_000_000_000, 0u64..1_000_000, 1u64..1_000_000);
    (texts, counts, spans, more, pace, choices, times).prop_map(
        |(texts, counts, spans, more, pace, (yes, board, share, beacon), times)| {
            let (opens, starts, ends) = (times.0, times.0 + times.1, times.0 + times.1 + times.2);
            let lane = |(i, name): (usize, String)| LaneSettings {
                name: format!("{name}{i}"),
                weight: 1 + name.len() as u32,
            };
            Settings {
                title: texts.0,
                message: texts.1.clone(),
                target_url: texts.1,
                lanes: texts.2.into_iter().enumerate().map(lane).collect(),
                returning: share
                    .map(|share| Returning { share, within: Millis(1_000 + more.2 % 599_000) }),
                max_active: counts.0,
                max_waiting: counts.1,
                rate: pace.map(|(count, per)| Rate { count, per: Millis(per) }),
                burst: counts.2,
                tick: spans.0,
                queue_all: yes[0],
                claim: if yes[1] { ClaimMode::Explicit } else { ClaimMode::OnAdmission },
                claim_within: spans.1,
                session_timeout: spans.2,
                session_renewal: yes[2],
                pass_life: if yes[3] { spans.2 } else { Millis(0) },
                pass_leeway: more.0,
                heartbeat_timeout: spans.3,
                ticket_life: if yes[4] { Millis(spans.3.0 + more.2) } else { Millis(0) },
                memory: more.1,
                no_show: if yes[5] { NoShow::Keep } else { NoShow::Return },
                opens_at: yes[6].then_some(Timestamp(opens)),
                starts_at: (yes[7] || beacon.is_some()).then_some(Timestamp(starts)),
                ends_at: yes[0].then_some(Timestamp(ends)),
                draw: (yes[7] || beacon.is_some()).then_some(DrawSettings { beacon }),
                shuffle_window: counts.3.unwrap_or(1),
                public_board: [
                    PublicBoardMode::Full,
                    PublicBoardMode::Coarse,
                    PublicBoardMode::Off,
                ][board as usize],
                keep_inside: yes[1],
                keep_user_id: yes[2],
                allowed_origins: texts.3,
                heartbeat_interval: if yes[3] { Millis(spans.3.0 - 1) } else { Millis(0) },
                theme: if yes[4] { THEME.into() } else { String::new() },
                template: if yes[5] { TEMPLATE.into() } else { String::new() },
            }
        },
    )
}

/// As the document writes it: no blanks, keys in order.
const THEME: &str = r##"{"accent":"#5b2a86","texts":{"*":{"go":"Go!"}}}"##;
const TEMPLATE: &str = "<p>{{title}}</p>\n{{> waiting}}\n";

fn origin() -> impl Strategy<Value = String> {
    select(vec!["*", "https://shop.example", "http://localhost:3000", "http://[::1]:8"])
        .prop_map(String::from)
}

/// Mostly keys that exist, with values that are sometimes nearly right.
pub fn document() -> impl Strategy<Value = Value> {
    let key = prop_oneof![4 => select(keys::names().collect::<Vec<_>>()).prop_map(String::from),
        1 => "\\PC{0,12}"];
    let table = vec((key, anything()), 0..6)
        .prop_map(|entries| Value::Object(entries.into_iter().collect()));
    prop_oneof![8 => table, 1 => anything()]
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0u64..2_000).prop_map(Value::from),
        "\\PC{0,20}".prop_map(Value::from),
        "[0-9]{0,21}(ms|s|m|h|d|/s|/min|%)?".prop_map(Value::from),
        "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(Z|[+-][0-9]{2}:[0-9]{2})?"
            .prop_map(Value::from),
        select(vec!["none", "keep", "full", "off", "explicit", "*"]).prop_map(|it| json!(it)),
    ];
    let inner = ["name", "weight", "share", "within", "count", "per", "beacon", "x"];
    leaf.prop_recursive(3, 24, 5, move |it| {
        let key = select(inner.to_vec()).prop_map(String::from);
        prop_oneof![
            vec(it.clone(), 0..4).prop_map(Value::from),
            vec((key, it), 0..4).prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}
