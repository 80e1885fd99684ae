//! How a room's day went so far, from its counts: what the queue API's `stats` asks for.
//!
//! The room counts since it was made; a day is the difference to what the counts were when the
//! day began. Somebody has to have looked then, so a room is followed from the first time that
//! this interface is used for it on this instance; `since` says from when the figures count.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::watch;
use waitroom_core::{Counts, Timestamp};

use super::Memory;
use crate::desk::{Desk, RoomDesk};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// The pace is measured over the last minute, in steps of a second.
const PACE_OVER_MS: u64 = 60_000;
const PACE_STEP_MS: u64 = 1_000;

/// One room's day, in UTC.
#[derive(Debug, Default)]
pub struct Today {
    seen: Option<Seen>,
    /// From when today's figures count: midnight, or the first look.
    since: Timestamp,
    began: Counts,
    peak: u64,
    /// Milliseconds that all waiting people together have spent in line today.
    waited_ms: u128,
    /// Admissions at steps of the last minute, oldest first.
    pace: VecDeque<(Timestamp, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    at: Timestamp,
    counts: Counts,
}

/// The day in figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    pub since: Timestamp,
    pub enqueued: u64,
    pub admitted: u64,
    pub expired: u64,
    pub peak: u64,
    pub avg_wait_s: f64,
    pub admitted_per_s: f64,
}

impl Today {
    /// Takes in what the counts are at this moment. Moments that lie behind are nothing new.
    pub fn see(&mut self, at: Timestamp, counts: Counts) {
        match self.seen {
            None => self.begin(at, counts),
            Some(seen) if at < seen.at => return,
            Some(seen) => {
                let midnight = Timestamp(at.0 / DAY_MS * DAY_MS);
                if seen.at < midnight {
                    // Every change is seen, so nothing happened between the last look and midnight.
                    self.begin(midnight, seen.counts);
                }
                let from = seen.at.max(midnight);
                self.waited_ms += u128::from(seen.counts.waiting) * u128::from(at.since(from).0);
            }
        }
        self.peak = self.peak.max(counts.waiting);
        self.seen = Some(Seen { at, counts });
        let newest = self.pace.back().map(|(at, _)| *at);
        if newest.is_none_or(|newest| at.since(newest).0 >= PACE_STEP_MS) {
            self.pace.push_back((at, counts.admissions));
        }
        // One step older than the minute stays: the pace is measured from there.
        while self.pace.get(1).is_some_and(|(step, _)| at.since(*step).0 >= PACE_OVER_MS) {
            self.pace.pop_front();
        }
    }

    fn begin(&mut self, since: Timestamp, counts: Counts) {
        self.since = since;
        self.began = counts;
        self.peak = counts.waiting;
        self.waited_ms = 0;
    }

    pub fn figures(&self) -> Figures {
        let counts = self.seen.map_or(Counts::default(), |seen| seen.counts);
        let stopped_waiting = |counts: &Counts| counts.joined - counts.waiting;
        let left = stopped_waiting(&counts).saturating_sub(stopped_waiting(&self.began));
        let avg_wait_s = match left {
            0 => 0.0,
            left => self.waited_ms as f64 / left as f64 / 1_000.0,
        };
        let admitted_per_s = match (self.pace.front(), self.seen) {
            (Some((from, before)), Some(seen)) if seen.at > *from => {
                let admitted = seen.counts.admissions.saturating_sub(*before);
                admitted as f64 * 1_000.0 / seen.at.since(*from).0 as f64
            }
            _ => 0.0,
        };
        Figures {
            since: self.since,
            enqueued: counts.joined.saturating_sub(self.began.joined),
            admitted: counts.admissions.saturating_sub(self.began.admissions),
            expired: counts.expired.saturating_sub(self.began.expired),
            peak: self.peak,
            avg_wait_s,
            admitted_per_s,
        }
    }
}

impl Memory {
    /// Follows a room's day from now on, if nobody does yet.
    pub fn follow(&self, desk: &Desk, room: &Arc<RoomDesk>) -> Arc<Mutex<Today>> {
        let mut rooms = self.today.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(today) = rooms.get(room.name()) {
            return today.clone();
        }
        let today = Arc::<Mutex<Today>>::default();
        see(room, &today);
        tokio::spawn(watch(Arc::downgrade(room), today.clone(), desk.draining.subscribe()));
        rooms.insert(room.name().clone(), today.clone());
        today
    }
}

/// The newest board, as it stands now.
pub fn see(room: &RoomDesk, today: &Mutex<Today>) -> Figures {
    let counts = room.handle().board_guard().state().counts();
    let mut today = today.lock().unwrap_or_else(PoisonError::into_inner);
    today.see(room.now(), counts);
    today.figures()
}

/// Looks at every board. A room in which nothing happens has none, and costs nothing here.
async fn watch(
    room: Weak<RoomDesk>,
    today: Arc<Mutex<Today>>,
    mut draining: watch::Receiver<bool>,
) {
    let mut version = 0;
    loop {
        let Some(handle) = room.upgrade().map(|room| room.handle().clone()) else { return };
        tokio::select! {
            board = handle.next_board(version) => {
                version = board.version();
                let mut today = today.lock().unwrap_or_else(PoisonError::into_inner);
                today.see(handle.now(), board.state().counts());
            }
            _ = draining.wait_for(|draining| *draining) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(joined: u64, waiting: u64, admissions: u64, expired: u64) -> Counts {
        Counts { joined, waiting, admissions, expired, ..Counts::default() }
    }

    #[test]
    fn a_day_counts_from_the_first_look_and_from_midnight() {
        let mut today = Today::default();
        let evening = Timestamp(10 * DAY_MS - 5_000);
        today.see(evening, counts(100, 10, 90, 0));
        today.see(evening.after(waitroom_core::Millis(1_000)), counts(104, 12, 91, 1));
        let figures = today.figures();
        assert_eq!((figures.since, figures.enqueued), (evening, 4));
        assert_eq!((figures.admitted, figures.expired, figures.peak), (1, 1, 12));
        // The next look is after midnight: what came since belongs to the new day.
        today.see(Timestamp(10 * DAY_MS + 3_000), counts(105, 9, 95, 1));
        let figures = today.figures();
        assert_eq!((figures.since, figures.enqueued), (Timestamp(10 * DAY_MS), 1));
        assert_eq!((figures.admitted, figures.expired, figures.peak), (4, 0, 12));
    }

    #[test]
    fn the_mean_wait_is_what_each_of_them_waited() {
        let mut today = Today::default();
        today.see(Timestamp(1_000_000), counts(0, 0, 0, 0));
        today.see(Timestamp(1_000_000), counts(2, 2, 0, 0));
        // One waits ten seconds, the other thirty.
        today.see(Timestamp(1_010_000), counts(2, 1, 1, 0));
        today.see(Timestamp(1_030_000), counts(2, 0, 2, 0));
        assert_eq!(today.figures().avg_wait_s, 20.0);
    }

    #[test]
    fn the_pace_is_that_of_the_last_minute() {
        let mut today = Today::default();
        for second in 0..=300 {
            // Ten a second for four minutes, then two.
            let admissions = if second <= 240 { second * 10 } else { 2_400 + (second - 240) * 2 };
            today.see(Timestamp(1_000_000 + second * 1_000), counts(9_999, 0, admissions, 0));
        }
        assert_eq!(today.figures().admitted_per_s, 2.0);
        assert!(today.pace.len() <= 62, "{} steps are kept", today.pace.len());
    }

    #[test]
    fn a_clock_that_stands_still_or_goes_back_breaks_nothing() {
        let mut today = Today::default();
        today.see(Timestamp(5_000), counts(1, 1, 0, 0));
        today.see(Timestamp(4_000), counts(9, 9, 0, 0));
        assert_eq!((today.figures().peak, today.figures().admitted_per_s), (1, 0.0));
    }
}
