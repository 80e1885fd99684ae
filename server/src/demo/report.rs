//! How the demo went, and whether everything held that was promised.
//!
//! A check is a sentence with a verdict. One that does not hold makes the demo exit with 1.

use std::time::Duration;

use serde_json::{Value, json};
use waitroom_crowd::Outcome;
use waitroom_crowd::judge::{Verdict, log::LogTotals};
use waitroom_crowd::report::{number, span};
use waitroom_shop::Read;

use super::bots::Tries;
use super::bus::Heard;
use super::buyer::Told;
use super::story::Story;

/// What was seen, from every side.
#[derive(Debug)]
pub struct Seen<'a> {
    pub story: &'a Story,
    pub seed: u64,
    pub crowd: &'a Outcome,
    pub told: &'a Told,
    pub bots: &'a Tries,
    pub turned_away_by_shop: u64,
    pub ledger: &'a Read,
    /// The room at the end, as its operators see it.
    pub room: &'a Value,
    pub verdict: &'a Verdict,
    pub log: Option<&'a LogTotals>,
    pub pace: &'a Pace,
    /// Where checkouts went over a bus.
    pub bus: Option<&'a Heard>,
    /// How long the bots could try: until the end, which is when a person has seen enough.
    pub open_for: Duration,
    /// Somebody ended it before its time.
    pub cut_short: bool,
}

/// Admissions a minute: before the shop was slow, at the lowest, and at the best after that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    pub before: Option<u64>,
    pub lowest: Option<u64>,
    pub after: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct Check {
    pub name: &'static str,
    pub held: bool,
    pub said: String,
}

/// What one address may get at most: a family's worth at once, and ten a minute.
const HOARD_BURST: u64 = 20;
const HOARD_PER_MIN: u64 = 10;

pub fn checks(seen: &Seen<'_>) -> Vec<Check> {
    let ledger = seen.ledger;
    let seats = u64::from(seen.story.seats);
    let twice = seen.told.twice.load(std::sync::atomic::Ordering::Relaxed);
    let oversold = ledger.oversold + twice;
    let mut checks = vec![
        Check {
            name: "no_seat_sold_twice",
            held: oversold == 0 && ledger.seats <= seats && seen.told.seats() <= ledger.seats,
            said: format!(
                "{} of {} seats sold in {} orders, oversold {oversold}",
                number(ledger.seats),
                number(seats),
                number(ledger.orders)
            ),
        },
        Check {
            name: "every_buyer_held_a_pass",
            held: ledger.without_pass == 0,
            said: format!(
                "{} of {} orders carry a pass that the published keys confirm, each its own",
                number(ledger.orders - ledger.without_pass),
                number(ledger.orders)
            ),
        },
        Check {
            name: "no_bot_got_in",
            held: seen.bots.got_in() == 0,
            said: format!(
                "{} attempts without a good pass got in; the shop itself turned {} away",
                number(seen.bots.got_in()),
                number(seen.turned_away_by_shop)
            ),
        },
        hoarding(seen),
        promises(seen),
        surprises(seen),
    ];
    checks.extend(followed(seen));
    checks.extend(seen.bus.map(came_round));
    checks
}

fn hoarding(seen: &Seen<'_>) -> Check {
    let [tried, _, got] = seen.bots.hoarder.numbers();
    // One more for the moment in which the last one came.
    let most = HOARD_BURST + HOARD_PER_MIN * (seen.open_for.as_secs() / 60 + 1) + 1;
    Check {
        name: "no_address_hoards_places",
        held: got <= most,
        said: format!(
            "one address asked for {} places and got {} (at most {most})",
            number(tried),
            number(got)
        ),
    }
}

fn promises(seen: &Seen<'_>) -> Check {
    let totals = &seen.verdict.totals;
    let events = seen.log.map_or(0, |log| log.events);
    let broken: Vec<String> = seen.verdict.found.counts().map(|(it, _)| it.to_string()).collect();
    let said = if broken.is_empty() {
        format!(
            "{} calls of visitors and {} events of the log: no promise is broken",
            number(totals.lines),
            number(events)
        )
    } else {
        let first = seen.verdict.found.first().next().map(|it| it.to_string());
        format!("broken promises: {}; first: {}", broken.join(", "), first.unwrap_or_default())
    };
    Check { name: "promises_kept", held: broken.is_empty() && events > 0, said }
}

fn surprises(seen: &Seen<'_>) -> Check {
    let strange = seen.told.strange();
    let mut first = seen.crowd.first_surprises.iter().chain(&strange);
    let count = seen.crowd.surprises + strange.len() as u64;
    let said = match first.next() {
        Some(first) => format!("{} answers that should not be; first: {first}", number(count)),
        None => "no visitor saw anything wrong".to_owned(),
    };
    Check { name: "nobody_saw_anything_wrong", held: count == 0, said }
}

/// What the shop said on the bus, and what the room made of it.
fn came_round(heard: &Heard) -> Check {
    let Heard { name, ended, published, ended_sessions, too_late, strange, .. } = *heard;
    let done = ended_sessions + too_late;
    Check {
        name: "every_checkout_came_round",
        // At least once: a message may come twice, and then the session is over already.
        held: published == ended && done >= published && strange == 0 && ended_sessions > 0,
        said: format!(
            "{} checkouts ended, {} said on {name}, {} ended their session, {} found it over{}",
            number(ended),
            number(published),
            number(ended_sessions),
            number(too_late),
            if strange > 0 {
                format!(", {} were not understood", number(strange))
            } else {
                String::new()
            }
        ),
    }
}

/// Admissions a minute that the story never goes below (`story.rs`).
const FLOOR: u64 = 60;

/// Only where the story came that far.
fn followed(seen: &Seen<'_>) -> Option<Check> {
    let Pace { before, lowest, after } = *seen.pace;
    let (before, lowest, after) = (before?, lowest?, after?);
    // A machine on which the shop was slow before anybody made it so shows nothing either way.
    if before <= FLOOR {
        return None;
    }
    Some(Check {
        name: "the_pace_followed_the_shop",
        held: lowest < before && after > lowest,
        said: format!(
            "{} let in a minute, {} while the shop was slow, then {} again",
            number(before),
            number(lowest),
            number(after)
        ),
    })
}

pub fn json(seen: &Seen<'_>, checks: &[Check]) -> Value {
    let people = &seen.crowd.people;
    let bots: serde_json::Map<String, Value> = seen
        .bots
        .kinds()
        .iter()
        .map(|(name, kind)| {
            let [tried, refused, through] = kind.numbers();
            let told = json!({ "tried": tried, "refused": refused, "through": through });
            ((*name).to_owned(), told)
        })
        .collect();
    let count = |it: &std::sync::atomic::AtomicU64| it.load(std::sync::atomic::Ordering::Relaxed);
    json!({
        "kept": checks.iter().all(|it| it.held),
        "cut_short": seen.cut_short,
        "seed": seen.seed,
        "took_ms": seen.crowd.took_ms,
        "visitors": people.arrived,
        "admitted": seen.room["admissions"],
        "bought": count(&seen.told.bought),
        "declined": count(&seen.told.declined),
        "looked_only": count(&seen.told.looked_only),
        "came_too_late": count(&seen.told.too_late),
        "never_paid": count(&seen.told.abandoned),
        "seat_was_gone": count(&seen.told.seat_gone),
        "gave_up": people.left + people.silent,
        "ended_by_the_room": people.ended,
        "without_a_place": people.refused,
        "unfinished": people.unfinished,
        "no_shows": seen.room["no_shows"],
        "waits": seen.crowd.waited,
        "seats": seen.story.seats,
        "sold": seen.ledger.seats,
        "orders": seen.ledger.orders,
        "oversold": seen.ledger.oversold + count(&seen.told.twice),
        "orders_without_a_pass": seen.ledger.without_pass,
        "bots_refused": seen.bots.refused() + seen.crowd.forgeries,
        "bots": bots,
        "bus": seen.bus.map(|it| json!({
            "name": it.name,
            "checkouts": it.ended,
            "published": it.published,
            "ended_sessions": it.ended_sessions,
            "too_late": it.too_late,
            "strange": it.strange,
            "events": it.events,
        })),
        "pace_per_min": {
            "before": seen.pace.before, "lowest": seen.pace.lowest, "after": seen.pace.after,
        },
        "checks": checks
            .iter()
            .map(|it| json!({ "name": it.name, "held": it.held, "said": it.said }))
            .collect::<Vec<_>>(),
    })
}

pub fn text(seen: &Seen<'_>, checks: &[Check]) -> String {
    let told = json(seen, checks);
    let figure = |name: &str| number(told[name].as_u64().unwrap_or(0));
    let mut lines = vec![
        String::new(),
        format!(
            "{} visitors in {}; seed {}{}",
            figure("visitors"),
            span(seen.crowd.took_ms),
            seen.seed,
            if seen.cut_short { "; ended before its time" } else { "" }
        ),
        format!(
            "  people   {} let in, {} bought, {} gave up, {} only looked, {} found it sold out",
            figure("admitted"),
            figure("bought"),
            figure("gave_up"),
            figure("looked_only"),
            number(
                told["ended_by_the_room"].as_u64().unwrap_or(0)
                    + told["without_a_place"].as_u64().unwrap_or(0)
                    + told["came_too_late"].as_u64().unwrap_or(0)
            ),
        ),
        format!(
            "  seats    {} of {} sold, oversold {}; {} cards declined, {} baskets lapsed, {} wanted a seat just gone",
            figure("sold"),
            figure("seats"),
            figure("oversold"),
            figure("declined"),
            figure("never_paid"),
            figure("seat_was_gone")
        ),
        format!("  bots     {} attempts refused", figure("bots_refused")),
    ];
    if let Some(heard) = seen.bus {
        lines.push(format!(
            "  bus      {}: {} events of the room told, {} checkouts heard",
            heard.name,
            number(heard.events),
            number(heard.ended_sessions + heard.too_late + heard.strange)
        ));
    }
    if let Some(waited) = seen.crowd.waited {
        lines.push(format!(
            "  waits    half within {}, 95 % within {}, the longest {}",
            span(waited.p50_ms),
            span(waited.p95_ms),
            span(waited.longest_ms)
        ));
    }
    lines.push(String::new());
    for check in checks {
        let mark = if check.held { "kept  " } else { "BROKEN" };
        lines.push(format!("  {mark} {}", check.said));
    }
    lines.push(String::new());
    lines.push(match checks.iter().all(|it| it.held) {
        true => "everything held".to_owned(),
        false => "something did not hold; see above".to_owned(),
    });
    lines.join("\n")
}
