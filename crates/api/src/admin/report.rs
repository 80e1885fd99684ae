//! What happened in a room so far, in numbers: for whoever tells others in the morning.
//!
//! Totals come from the room, which counts everything since its first day. The course of time
//! comes from its log, so it begins where the log begins; `complete` says whether that is the
//! beginning. JSON holds all of it, CSV the course, one row for each stretch of time.

use std::collections::BTreeMap;

use http::StatusCode;
use serde_json::{Value, json};
use waitroom_core::{Ending, Event, What, when};

use super::picture::picture;
use super::{Act, Told};
use crate::problem::Problem;
use crate::request::{bad_field, query};

/// How much log is read at once; other requests are answered in between.
const READ_BYTES: usize = 1 << 20;
const MINUTE_MS: u64 = 60_000;
/// More rows than this nobody reads: then they stand for longer stretches.
const ROWS_MAX: u64 = 1_500;
/// From a minute to a day, in minutes; each a whole number of the one before.
const STRETCHES: [u64; 5] = [1, 5, 15, 60, 1_440];

/// The counts of a stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Row {
    joined: u64,
    admitted: u64,
    completed: u64,
    left: u64,
    expired: u64,
    no_shows: u64,
    revoked: u64,
    /// The most who waited at once.
    waiting_max: u64,
    /// How many waited at its end.
    waiting: u64,
}

#[derive(Debug, Default)]
struct Course {
    /// By the minute since 1970.
    minutes: BTreeMap<u64, Row>,
    waits: Waits,
}

pub async fn report(act: Act) -> Result<Told, Problem> {
    let csv = match query(&act.uri, "format") {
        None | Some("json") => false,
        Some("csv") => true,
        Some(_) => return Err(bad_field("format", "json or csv")),
    };
    let room = act.room()?;
    let mut course = Course::default();
    let (mut at, mut trimmed_to) = (0, None);
    loop {
        let page = act.office()?.events(room.name(), at, READ_BYTES).await?;
        trimmed_to.get_or_insert(page.trimmed_to);
        let Some((last, _)) = page.events.last() else { break };
        at = *last;
        page.events.iter().for_each(|(_, event)| course.add(event));
        tokio::task::yield_now().await;
    }
    let (minutes, rows) = course.rows();
    if csv {
        return Ok(Told::Csv(as_csv(&rows)));
    }
    room.newest_board().await;
    let now = picture(&act.desk, &room);
    let totals = [
        "joined",
        "waiting",
        "admitted",
        "active",
        "admissions",
        "completed",
        "left",
        "expired",
        "no_shows",
        "revoked",
        "moved",
        "closed",
    ];
    let totals: serde_json::Map<String, Value> =
        totals.iter().map(|key| ((*key).to_owned(), now[*key].clone())).collect();
    let told = json!({
        "room": room.name().as_str(),
        "title": now["settings"]["title"],
        "status": now["status"],
        "version": at,
        "made_at": when::utc(act.desk.clock.wall_ms()),
        "complete": trimmed_to == Some(0),
        "totals": totals,
        "wait_s": course.waits.told(),
        "stretch_s": minutes * 60,
        "course": rows.iter().map(|(at_ms, row)| row.told(*at_ms)).collect::<Vec<Value>>(),
    });
    Ok((StatusCode::OK, told).into())
}

impl Course {
    fn add(&mut self, event: &Event) {
        let row = self.minutes.entry(event.at.0 / MINUTE_MS).or_default();
        let waiting = match &event.what {
            What::Joined(joined) => {
                row.joined += 1;
                joined.waiting
            }
            What::Admitted { joined_at, waiting, .. } => {
                row.admitted += 1;
                self.waits.add(event.at.since(*joined_at).0);
                *waiting
            }
            What::Ended { ending, waiting, .. } => {
                match ending {
                    Ending::Completed => row.completed += 1,
                    Ending::Left => row.left += 1,
                    Ending::NoShow => row.no_shows += 1,
                    Ending::Revoked => row.revoked += 1,
                    _ => row.expired += 1,
                }
                *waiting
            }
            What::SaleEnded { .. } => 0,
            _ => return,
        };
        row.waiting = waiting;
        row.waiting_max = row.waiting_max.max(waiting);
    }

    /// Rows of as many minutes as it takes to stay below [`ROWS_MAX`], each with its beginning.
    fn rows(&self) -> (u64, Vec<(u64, Row)>) {
        let first = self.minutes.keys().next().copied().unwrap_or(0);
        let last = self.minutes.keys().next_back().copied().unwrap_or(0);
        let fits = |minutes: &&u64| (last - first) / **minutes < ROWS_MAX;
        let minutes = *STRETCHES.iter().find(fits).unwrap_or(&STRETCHES[STRETCHES.len() - 1]);
        let mut rows: Vec<(u64, Row)> = Vec::new();
        // Minutes in which nothing was counted (a setting was changed) tell nothing.
        for (minute, row) in self.minutes.iter().filter(|(_, row)| **row != Row::default()) {
            let begins = minute / minutes * minutes * MINUTE_MS;
            match rows.last_mut() {
                Some((at, sum)) if *at == begins => sum.add(row),
                _ => rows.push((begins, row.clone())),
            }
        }
        (minutes, rows)
    }
}

impl Row {
    const NAMES: [&str; 9] = [
        "joined",
        "admitted",
        "completed",
        "left",
        "expired",
        "no_shows",
        "revoked",
        "waiting_max",
        "waiting",
    ];

    fn numbers(&self) -> [u64; 9] {
        let Row {
            joined,
            admitted,
            completed,
            left,
            expired,
            no_shows,
            revoked,
            waiting_max,
            waiting,
        } = *self;
        [joined, admitted, completed, left, expired, no_shows, revoked, waiting_max, waiting]
    }

    fn add(&mut self, later: &Row) {
        self.joined += later.joined;
        self.admitted += later.admitted;
        self.completed += later.completed;
        self.left += later.left;
        self.expired += later.expired;
        self.no_shows += later.no_shows;
        self.revoked += later.revoked;
        self.waiting_max = self.waiting_max.max(later.waiting_max);
        self.waiting = later.waiting;
    }

    fn told(&self, at_ms: u64) -> Value {
        let mut told = json!({ "from": when::utc(at_ms) });
        for (name, number) in Row::NAMES.iter().zip(self.numbers()) {
            told[*name] = number.into();
        }
        told
    }
}

fn as_csv(rows: &[(u64, Row)]) -> String {
    let mut text = format!("from,{}\r\n", Row::NAMES.join(","));
    for (at_ms, row) in rows {
        text += &when::utc(*at_ms);
        for number in row.numbers() {
            text += &format!(",{number}");
        }
        text += "\r\n";
    }
    text
}

/// How long those waited who were let in, in buckets an eighth of their size wide.
#[derive(Debug, Default)]
struct Waits {
    buckets: BTreeMap<u64, u64>,
    count: u64,
    sum_ms: u128,
    max_ms: u64,
}

impl Waits {
    fn add(&mut self, ms: u64) {
        *self.buckets.entry(bucket(ms)).or_default() += 1;
        self.count += 1;
        self.sum_ms += u128::from(ms);
        self.max_ms = self.max_ms.max(ms);
    }

    /// At most so long waited this share of them, to within an eighth.
    fn quantile_ms(&self, percent: u64) -> u64 {
        let rank = (self.count * percent).div_ceil(100).max(1);
        let mut seen = 0;
        for (bucket, count) in &self.buckets {
            seen += count;
            if seen >= rank {
                return upper(*bucket).min(self.max_ms);
            }
        }
        self.max_ms
    }

    fn told(&self) -> Value {
        if self.count == 0 {
            return Value::Null;
        }
        let seconds = |ms: u64| ms as f64 / 1_000.0;
        json!({
            "count": self.count,
            "mean": seconds((self.sum_ms / u128::from(self.count)) as u64),
            "p50": seconds(self.quantile_ms(50)),
            "p90": seconds(self.quantile_ms(90)),
            "p99": seconds(self.quantile_ms(99)),
            "max": seconds(self.max_ms),
        })
    }
}

/// Buckets of one below 16, then eight to each doubling.
fn bucket(ms: u64) -> u64 {
    if ms < 16 {
        return ms;
    }
    let shift = u64::from(ms.ilog2()) - 3;
    shift * 8 + (ms >> shift)
}

/// The largest that falls into a bucket.
fn upper(bucket: u64) -> u64 {
    if bucket < 16 {
        return bucket;
    }
    let shift = bucket / 8 - 1;
    (((bucket % 8 + 8) + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use waitroom_core::{Joined, Ticket, Timestamp};

    #[test]
    fn every_wait_falls_into_a_bucket_that_is_an_eighth_wide_at_most() {
        let mut last = 0;
        for ms in (0..5_000).chain((13..46).map(|shift| 1 << shift)) {
            let most = upper(bucket(ms));
            assert!(most >= ms && most - ms <= ms / 8, "{ms}: {most}");
            assert!(bucket(ms) >= last, "{ms}");
            last = bucket(ms);
        }
    }

    #[test]
    fn a_long_course_is_told_in_longer_stretches() {
        let join = |minute: u64, waiting: u64| {
            let joined = Joined { ticket: Ticket::new(0, 1), waiting, ..Joined::default() };
            What::Joined(joined).at(Timestamp(minute * MINUTE_MS))
        };
        let mut course = Course::default();
        course.add(&join(600, 1));
        course.add(&join(600, 2));
        course.add(&join(603, 3));
        let (minutes, rows) = course.rows();
        assert_eq!((minutes, rows.len()), (1, 2));
        assert_eq!((rows[0].1.joined, rows[0].1.waiting_max, rows[0].1.waiting), (2, 2, 2));
        course.add(&join(600 + ROWS_MAX, 1));
        let (minutes, rows) = course.rows();
        assert_eq!((minutes, rows.len()), (5, 2));
        assert_eq!((rows[0].1.joined, rows[0].1.waiting_max, rows[0].1.waiting), (3, 3, 3));
        let csv = as_csv(&rows);
        assert!(csv.starts_with("from,joined,admitted,"), "{csv}");
        assert!(csv.contains("1970-01-01T10:00:00.000Z,3,0,0,0,0,0,0,3,3\r\n"), "{csv}");
    }
}
