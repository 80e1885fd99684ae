//! Every page with invented people on it, for a look before a sale: `waitroom page preview`.

use crate::number::moment;
use crate::{Notice, Page, Schedule, Waiting, notice, privacy, waiting};

/// What can be looked at.
pub const STATES: &[&str] = &[
    "finding",
    "waiting",
    "next",
    "long",
    "unknown",
    "paused",
    "maintenance",
    "before",
    "draw",
    "drawing",
    "not_open",
    "turn",
    "ended",
    "sold_out",
    "lost",
    "lost_no_show",
    "left",
    "moved",
    "full",
    "error",
    "privacy",
];

/// Two hours and a bit: so that a countdown shows hours.
const AHEAD_MS: u64 = 2 * 3_600_000 + 14 * 60_000;

/// The page of one state for the room, language, theme and template of `shown`; none when there
/// is no such state. The page stands still: it asks no server.
pub fn preview(state: &str, shown: &Waiting<'_>) -> Option<Page> {
    let now_ms = shown.schedule.now_ms.unwrap_or_default();
    let ahead = Schedule {
        now_ms: shown.schedule.now_ms,
        opens_at_ms: Some(now_ms + AHEAD_MS),
        starts_at_ms: Some(now_ms + AHEAD_MS),
        draw: shown.schedule.draw,
    };
    let with = |answer: &str| still(&waiting(&Waiting { answer: Some(answer), ..*shown }));
    let early = |answer: &str| {
        still(&waiting(&Waiting { answer: Some(answer), schedule: ahead, ..*shown }))
    };
    Some(match state {
        "finding" => still(&waiting(&Waiting { answer: None, ..*shown })),
        "waiting" => with(&line(1_204, Some((660, 1_020)), "running", "")),
        "next" => with(&line(1, Some((5, 40)), "running", "")),
        "long" => with(&line(1_284_006, Some((9_900, 14_200)), "running", "")),
        "unknown" => with(&line(87, None, "running", "")),
        "paused" => with(&line(
            312,
            None,
            "paused",
            "The payment provider has trouble. We go on as soon as it works again, in about ten minutes.",
        )),
        "maintenance" => with(&line(312, None, "maintenance", "We are adding more seats.")),
        "before" => early(&before(false)),
        "draw" => early(&before(true)),
        "drawing" => with(&answer("waiting", "\"room_status\":\"drawing\",\"draw_pending\":true")),
        "not_open" => still(&notice(&Waiting { schedule: ahead, ..*shown }, Notice::NotOpen)),
        "turn" => {
            let until = moment(now_ms + 120_000).replace(" UTC", "Z").replace(' ', "T");
            let more = "\"room_status\":\"running\",\"position\":0,\"claim_by\"";
            with(&answer("admitted", &format!("{more}:\"{until}\"")))
        }
        "ended" => still(&notice(shown, Notice::Ended("The box office opens again on Monday."))),
        "sold_out" => still(&notice(shown, Notice::Ended("sold out"))),
        "lost" => still(&notice(shown, Notice::Lost("heartbeat_timeout"))),
        "lost_no_show" => still(&notice(shown, Notice::Lost("no_show"))),
        "left" => still(&notice(shown, Notice::Lost("left"))),
        "moved" => still(&notice(shown, Notice::Lost("moved_elsewhere"))),
        "full" => still(&notice(shown, Notice::Full)),
        "error" => still(&notice(shown, Notice::Error(""))),
        "privacy" => privacy(&Waiting { back_to: Some("/"), ..*shown }),
        _ => return None,
    })
}

/// The script shows what it was given and asks nobody. A data block is no script, so the policy
/// holds for the page as it did before.
fn still(page: &Page) -> Page {
    let html = page.html.replacen("\"still\":false", "\"still\":true", 1);
    Page { html, ..page.clone() }
}

fn line(position: u64, wait: Option<(u64, u64)>, room_status: &str, reason: &str) -> String {
    let wait = match wait {
        Some((low, high)) => {
            let likely = (low + high) / 2;
            format!("{{\"low_s\":{low},\"likely_s\":{likely},\"high_s\":{high}}}")
        }
        None => "null".to_owned(),
    };
    let (ahead, reason) = (position - 1, serde_json::Value::from(reason));
    answer(
        "waiting",
        &format!(
            "\"room_status\":\"{room_status}\",\"reason\":{reason},\"position\":{position},\
             \"ahead\":{ahead},\"wait\":{wait}"
        ),
    )
}

fn before(draw: bool) -> String {
    answer("waiting", &format!("\"room_status\":\"held\",\"draw_pending\":{draw}"))
}

fn answer(status: &str, more: &str) -> String {
    format!(
        "{{\"ticket\":\"0b6c3a52-preview\",\"room\":\"preview\",\"version\":1,\"status\":\"{status}\",\
         \"next_check_ms\":10000,\"support_code\":\"K7M-4QX\",{more}}}"
    )
}
