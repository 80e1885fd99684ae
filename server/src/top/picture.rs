//! What is worth showing, made of two looks: paces need both, everything else the newer one.

use std::time::Duration;

use super::scrape::Scrape;
use super::source::{Look, Told};

/// A server at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Picture {
    pub version: String,
    pub up: Option<Duration>,
    pub ready: bool,
    /// Processor time over time: 1 is one core.
    pub cpu: f64,
    pub memory_bytes: f64,
    pub connections: f64,
    pub requests_per_s: f64,
    pub failures_per_s: f64,
    pub rooms: Vec<RoomPicture>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoomPicture {
    pub name: String,
    pub status: String,
    pub reason: Option<String>,
    pub waiting: f64,
    pub admitted: f64,
    pub active: f64,
    pub slots_taken: f64,
    pub slots_max: f64,
    /// None where only operators admit.
    pub limit_per_s: Option<f64>,
    pub admitted_per_s: f64,
    pub joined_per_s: f64,
    pub joined: f64,
    pub admissions: f64,
    pub no_shows: f64,
    pub completed: f64,
    pub left: f64,
    pub expired: f64,
    /// What the last in line can expect; none while it is unknown.
    pub likely_wait_s: Option<f64>,
    /// Of all who were admitted: half waited no longer, nine of ten no longer.
    pub waited_s: Option<(f64, f64)>,
    pub estimates_told: f64,
    pub estimates_held: f64,
    pub live: f64,
    pub queue: f64,
    pub board_age_s: f64,
    /// Half and 99 of 100 appends since the last look, or of all if there was none.
    pub append_s: Option<(f64, f64)>,
    /// How many these are of.
    pub appends: f64,
    pub batch: Option<f64>,
    /// What somebody should look at, the worst first.
    pub problems: Vec<String>,
}

/// Beyond this the disk makes visitors wait.
const APPEND_SLOW_S: f64 = 0.1;
/// One slow write of a few is no news.
const APPENDS_MIN: f64 = 20.0;
/// Far from the four in five that should hold; and enough of them to say so.
const HELD_MIN: f64 = 0.6;
const TOLD_MIN: f64 = 100.0;
/// A quarter of those let in do not come: the rate is lower than it looks.
const NO_SHOWS_MANY: f64 = 0.25;
const ADMISSIONS_MIN: f64 = 50.0;
/// Readers see the room as it was; boards are published five times a second.
const BOARD_OLD_S: f64 = 2.0;

impl Picture {
    pub fn between(before: &Look, now: &Look) -> Picture {
        let seconds = now.at.duration_since(before.at).as_secs_f64().max(1e-3);
        let (old, new) = (&before.figures, &now.figures);
        let pace = |name: &str, labels: &[(&str, &str)]| {
            (new.sum(name, labels) - old.sum(name, labels)).max(0.0) / seconds
        };
        let started = new.value("process_start_time_seconds", &[]);
        let since = |started: f64| {
            let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?;
            Duration::try_from_secs_f64(wall.as_secs_f64() - started).ok()
        };
        Picture {
            version: new.label("waitroom_build_info", "version").unwrap_or("?").to_owned(),
            up: started.and_then(since),
            ready: new.value("waitroom_ready", &[]) == Some(1.0),
            cpu: pace("process_cpu_seconds_total", &[]),
            memory_bytes: new.value("process_resident_memory_bytes", &[]).unwrap_or(0.0),
            connections: new.sum("waitroom_listener_connections", &[]),
            requests_per_s: pace("waitroom_requests_total", &[]),
            failures_per_s: pace("waitroom_requests_total", &[("status", "5xx")]),
            rooms: now.rooms.iter().map(|room| RoomPicture::of(room, old, new, seconds)).collect(),
        }
    }
}

impl RoomPicture {
    fn of(told: &Told, old: &Scrape, new: &Scrape, seconds: f64) -> RoomPicture {
        let room = [("room", told.name.as_str())];
        let value = |name: &str| new.value(name, &room);
        let figure = |name: &str| value(name).unwrap_or(0.0);
        // A room that was not there a moment ago has no pace yet.
        let pace = |name: &str| {
            let before = old.value(name, &room).or(value(name)).unwrap_or(0.0);
            (figure(name) - before).max(0.0) / seconds
        };
        let recent = |name: &str| {
            let all = new.histogram(name, &room);
            let since = all.since(&old.histogram(name, &room));
            if since.count() > 0.0 { since } else { all }
        };
        let append = recent("waitroom_journal_append_seconds");
        let batch = recent("waitroom_journal_batch_events");
        let waited = new.histogram("waitroom_wait_seconds", &room);
        let mut picture = RoomPicture {
            name: told.name.clone(),
            status: told.status.clone(),
            reason: told.reason.clone(),
            waiting: figure("waitroom_waiting"),
            admitted: figure("waitroom_admitted"),
            active: figure("waitroom_active"),
            slots_taken: figure("waitroom_slots_taken"),
            slots_max: figure("waitroom_slots_max"),
            limit_per_s: value("waitroom_rate_limit_per_second"),
            admitted_per_s: pace("waitroom_admissions_total"),
            joined_per_s: pace("waitroom_joined_total"),
            joined: figure("waitroom_joined_total"),
            admissions: figure("waitroom_admissions_total"),
            no_shows: figure("waitroom_no_shows_total"),
            completed: figure("waitroom_completed_total"),
            left: figure("waitroom_left_total"),
            expired: figure("waitroom_expired_total"),
            likely_wait_s: value("waitroom_likely_wait_seconds"),
            waited_s: waited.quantile(0.5).zip(waited.quantile(0.9)),
            estimates_told: figure("waitroom_estimates_told_total"),
            estimates_held: figure("waitroom_estimates_held_total"),
            live: new.sum("waitroom_live_connections", &room),
            queue: figure("waitroom_queue_depth"),
            board_age_s: figure("waitroom_board_age_seconds"),
            append_s: append.quantile(0.5).zip(append.quantile(0.99)),
            appends: append.count(),
            batch: (batch.count() > 0.0).then(|| batch.sum / batch.count()),
            problems: Vec::new(),
        };
        let lost = value("waitroom_room_open") == Some(0.0);
        let overloaded = [("room", told.name.as_str()), ("reason", "overloaded")];
        let refused = |scrape: &Scrape| scrape.sum("waitroom_unanswered_total", &overloaded);
        picture.problems = picture.judge(lost, refused(new) > refused(old));
        picture
    }

    /// Of those admitted, the share that never came.
    pub fn no_show_share(&self) -> Option<f64> {
        (self.admissions > 0.0).then(|| self.no_shows / self.admissions)
    }

    /// Of the sampled estimates, the share that held.
    pub fn coverage(&self) -> Option<f64> {
        (self.estimates_told > 0.0).then(|| self.estimates_held / self.estimates_told)
    }

    fn judge(&self, lost: bool, overloaded: bool) -> Vec<String> {
        let mut found = Vec::new();
        if lost {
            found.push("the room has lost its store: nobody joins, nobody is let in".to_owned());
        }
        if overloaded {
            found.push("joins are refused: more come than the writer can take".to_owned());
        }
        if self.board_age_s > BOARD_OLD_S {
            found.push(format!("visitors see a board that is {:.0} s old", self.board_age_s));
        }
        let hangs = |slow: f64| slow >= APPEND_SLOW_S && self.appends >= APPENDS_MIN;
        if let Some((_, slow)) = self.append_s.filter(|(_, slow)| hangs(*slow)) {
            found.push(format!("the disk is slow: some writes take {}", span(slow)));
        }
        let full = self.slots_max > 0.0 && self.slots_taken >= self.slots_max;
        if full && self.waiting > 0.0 {
            found.push("all slots are taken: people enter as others leave".to_owned());
        }
        let many = |share: f64| share > NO_SHOWS_MANY && self.admissions >= ADMISSIONS_MIN;
        if let Some(share) = self.no_show_share().filter(|share| many(*share)) {
            found.push(format!("{:.0} % of those let in never came", share * 100.0));
        }
        let astray = |share: f64| share < HELD_MIN && self.estimates_told >= TOLD_MIN;
        if let Some(share) = self.coverage().filter(|share| astray(*share)) {
            found.push(format!("only {:.0} % of the waits told held", share * 100.0));
        }
        if let Some(reason) = &self.reason {
            found.push(format!("{}: {reason}", self.status));
        }
        found
    }
}

/// "1.6 ms", "2.5 s", "12 min".
pub fn span(seconds: f64) -> String {
    match seconds {
        it if it < 0.001 => format!("{:.0} us", it * 1e6),
        it if it < 1.0 => format!("{} ms", trimmed(it * 1e3)),
        it if it < 120.0 => format!("{} s", trimmed(it)),
        it if it < 7_200.0 => format!("{:.0} min", it / 60.0),
        it if it < 172_800.0 => format!("{} h", trimmed(it / 3_600.0)),
        it => format!("{:.0} d", it / 86_400.0),
    }
}

fn trimmed(value: f64) -> String {
    let digits = if value >= 10.0 || (value - value.round()).abs() < 0.05 { 0 } else { 1 };
    format!("{value:.digits$}")
}

/// "9.5", "120": a pace.
pub fn pace(per_s: f64) -> String {
    if per_s >= 100.0 { format!("{per_s:.0}") } else { format!("{per_s:.1}") }
}

#[cfg(test)]
pub mod tests {
    use std::time::Instant;

    use super::*;

    /// Two looks at a server, one second apart.
    pub fn looks() -> (Look, Look) {
        let page = |joined: u64, admitted: u64, appends: u64| {
            format!(
                r#"waitroom_waiting{{room="spring-sale"}} {}
waitroom_active{{room="spring-sale"}} 980
waitroom_slots_taken{{room="spring-sale"}} 1000
waitroom_slots_max{{room="spring-sale"}} 1000
waitroom_rate_limit_per_second{{room="spring-sale"}} 10
waitroom_joined_total{{room="spring-sale"}} {joined}
waitroom_admissions_total{{room="spring-sale"}} {admitted}
waitroom_no_shows_total{{room="spring-sale"}} 31
waitroom_likely_wait_seconds{{room="spring-sale"}} 1234
waitroom_room_open{{room="spring-sale"}} 1
waitroom_live_connections{{room="spring-sale",kind="websocket"}} 4000
waitroom_live_connections{{room="spring-sale",kind="events"}} 201
waitroom_estimates_told_total{{room="spring-sale"}} 200
waitroom_estimates_held_total{{room="spring-sale"}} 162
waitroom_journal_append_seconds_bucket{{room="spring-sale",le="0.0002"}} {appends}
waitroom_journal_append_seconds_bucket{{room="spring-sale",le="0.0016"}} {}
waitroom_journal_append_seconds_bucket{{room="spring-sale",le="+Inf"}} {}
waitroom_journal_batch_events_bucket{{room="spring-sale",le="+Inf"}} {appends}
waitroom_journal_batch_events_sum{{room="spring-sale"}} {}
waitroom_wait_seconds_bucket{{room="spring-sale",le="300"}} 500
waitroom_wait_seconds_bucket{{room="spring-sale",le="600"}} 900
waitroom_wait_seconds_bucket{{room="spring-sale",le="+Inf"}} 1000
waitroom_waiting{{room="vip"}} 0
waitroom_slots_max{{room="vip"}} 50
waitroom_room_open{{room="vip"}} 0
waitroom_build_info{{version="0.1.0"}} 1
waitroom_ready 1
waitroom_listener_connections{{listener="public"}} 4321
waitroom_requests_total{{listener="public",route="x",status="2xx"}} {}
process_resident_memory_bytes 47000000
process_cpu_seconds_total {}
"#,
                joined - admitted,
                appends * 2,
                appends * 2,
                appends * 12,
                joined * 3,
                joined as f64 / 1e5,
            )
        };
        let told = |name: &str, status: &str, reason: Option<&str>| Told {
            name: name.to_owned(),
            status: status.to_owned(),
            reason: reason.map(str::to_owned),
        };
        let rooms = vec![
            told("spring-sale", "running", None),
            told("vip", "paused", Some("Payment is down, back soon")),
        ];
        let at = Instant::now();
        let look = |at, page: &str| Look { at, rooms: rooms.clone(), figures: Scrape::read(page) };
        let first = look(at, &page(13_000, 1_000, 100));
        let second = look(at + Duration::from_secs(1), &page(13_041, 1_010, 120));
        (first, second)
    }

    #[test]
    fn paces_come_from_two_looks_and_all_else_from_the_newer() {
        let (first, second) = looks();
        let picture = Picture::between(&first, &second);
        assert_eq!((picture.requests_per_s, picture.connections), (123.0, 4_321.0));
        let room = &picture.rooms[0];
        assert_eq!((room.admitted_per_s, room.joined_per_s), (10.0, 41.0));
        assert_eq!((room.waiting, room.limit_per_s), (12_031.0, Some(10.0)));
        assert_eq!(room.append_s, Some((0.0002, 0.0016)), "of the last second's appends");
        assert_eq!((room.batch, room.waited_s), (Some(12.0), Some((300.0, 600.0))));
        assert_eq!(room.coverage(), Some(0.81));
        assert_eq!(room.problems, ["all slots are taken: people enter as others leave"]);
        let lost = "the room has lost its store: nobody joins, nobody is let in";
        let paused = "paused: Payment is down, back soon";
        assert_eq!(picture.rooms[1].problems, [lost, paused]);
    }

    #[test]
    fn spans_are_short_and_have_a_unit() {
        for (seconds, told) in [
            (0.0002, "200 us"),
            (0.0016, "1.6 ms"),
            (0.25, "250 ms"),
            (2.5, "2.5 s"),
            (90.0, "90 s"),
            (1_234.0, "21 min"),
            (7_200.0, "2 h"),
            (400_000.0, "5 d"),
        ] {
            assert_eq!(span(seconds), told);
        }
    }
}
