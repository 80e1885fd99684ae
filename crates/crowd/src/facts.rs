//! The settings that promises are measured by, from the admin API's picture of a room.

use serde_json::Value;

use crate::history::{Pace, RoomFacts};

/// What a room's document says, as far as the judge needs it.
pub fn facts(document: &Value) -> RoomFacts {
    let ms = |key: &str| document[key].as_str().and_then(duration_ms);
    let rate = rate(&document["rate"]);
    let pace = match rate {
        // Only operators let people in.
        None if document["rate"].is_null() => Some(Pace { count: 0, per_ms: 1_000, burst: 0 }),
        None => None,
        Some((count, per_ms)) => {
            let tick_ms = ms("tick").unwrap_or(200);
            // One tick's worth, at least one.
            let usual = (count * tick_ms).div_ceil(per_ms.max(1)).max(1);
            Some(Pace { count, per_ms, burst: document["burst"].as_u64().unwrap_or(usual) })
        }
    };
    // Tokens that come back cannot be told from outside; then the pace is left to the log.
    let returns = document["no_show"].as_str() == Some("return");
    let draws = document["draw"].is_object();
    let windows = document["shuffle_window"].as_u64().is_some_and(|window| window > 1);
    RoomFacts {
        max_active: document["max_active"].as_u64(),
        pace: pace.filter(|_| !returns),
        memory_ms: ms("memory"),
        shuffled: Some(draws || windows),
    }
}

/// "10/s", "500/min" or {count, per}.
fn rate(value: &Value) -> Option<(u64, u64)> {
    if let Some(object) = value.as_object() {
        let per = object.get("per")?;
        let per_ms = per.as_u64().or_else(|| duration_ms(per.as_str()?))?;
        return Some((object.get("count")?.as_u64()?, per_ms));
    }
    let (count, per) = value.as_str()?.split_once('/')?;
    let per_ms = match per.trim() {
        "s" | "sec" | "second" => 1_000,
        "m" | "min" | "minute" => 60_000,
        "h" | "hour" => 3_600_000,
        span => duration_ms(span)?,
    };
    Some((count.trim().parse().ok()?, per_ms))
}

/// "1h30m", "90s", "200ms", "0".
fn duration_ms(text: &str) -> Option<u64> {
    if text == "0" {
        return Some(0);
    }
    let (mut all, mut rest) = (0u64, text.trim());
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (count, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let unit_ms = match unit.trim() {
            "ms" => 1,
            "s" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        all = all.checked_add(count.parse::<u64>().ok()?.checked_mul(unit_ms)?)?;
        rest = tail;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_document_gives_the_limits() {
        let document = json!({
            "max_active": 500, "rate": "100/s", "tick": "200ms", "memory": "1h30m",
            "shuffle_window": 1, "no_show": "keep"
        });
        let found = facts(&document);
        assert_eq!(found.max_active, Some(500));
        assert_eq!(found.pace, Some(Pace { count: 100, per_ms: 1_000, burst: 20 }));
        assert_eq!((found.memory_ms, found.shuffled), (Some(5_400_000), Some(false)));
    }

    #[test]
    fn a_room_without_a_rate_admits_nobody_by_itself() {
        assert_eq!(facts(&json!({})).pace, Some(Pace { count: 0, per_ms: 1_000, burst: 0 }));
        assert_eq!(facts(&json!({ "rate": "1/s", "no_show": "return" })).pace, None);
        let slow = facts(&json!({ "rate": "30/min", "burst": 3 })).pace;
        assert_eq!(slow, Some(Pace { count: 30, per_ms: 60_000, burst: 3 }));
    }

    #[test]
    fn spans_without_a_unit_are_none() {
        assert_eq!(duration_ms("90"), None);
        assert_eq!(duration_ms("90x"), None);
        assert_eq!(duration_ms("0"), Some(0));
        assert_eq!(duration_ms("1m500ms"), Some(60_500));
    }
}
