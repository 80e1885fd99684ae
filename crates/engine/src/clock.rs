//! Room time: never backwards, never a jump.
//!
//! It begins at the later of the newest event and the wall clock, then goes with the monotonic
//! clock. The wall clock serves schedules, so room time is slewed towards it by at most one
//! percent; when the two are further apart than [`JUMP`], somebody set the clock: that raises an
//! alarm and changes nothing.

use waitroom_core::{Millis, Timestamp};

/// Further apart than this is no drift.
pub const JUMP: Millis = Millis::from_secs(30);

/// What the machine's clocks say at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    pub monotonic_ms: u64,
    pub wall_ms: u64,
}

#[derive(Clone, Debug)]
pub struct RoomClock {
    room: Timestamp,
    monotonic_ms: u64,
    /// Slewing in hundredths of a millisecond that did not make a whole one yet.
    owed: u64,
    jumped: bool,
}

impl RoomClock {
    pub fn open(last_event: Timestamp, reading: Reading) -> RoomClock {
        let room = last_event.max(Timestamp(reading.wall_ms));
        RoomClock { room, monotonic_ms: reading.monotonic_ms, owed: 0, jumped: false }
    }

    /// Room time now.
    pub fn now(&mut self, reading: Reading) -> Timestamp {
        let passed = reading.monotonic_ms.saturating_sub(self.monotonic_ms);
        self.monotonic_ms = self.monotonic_ms.max(reading.monotonic_ms);
        let ahead = self.room.0 + passed;
        let apart = ahead.abs_diff(reading.wall_ms);
        self.jumped = apart > JUMP.0;
        self.owed += if self.jumped { 0 } else { passed };
        let slew = (self.owed / 100).min(apart);
        self.owed = if apart == 0 { 0 } else { self.owed % 100 };
        // Slewing back is at most a hundredth of what passed, so room time still goes on.
        let room = if ahead < reading.wall_ms { ahead + slew } else { ahead - slew.min(passed) };
        self.room = self.room.max(Timestamp(room));
        self.room
    }

    /// Whether the wall clock stands so far off that somebody should look.
    pub fn alarm(&self) -> bool {
        self.jumped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(monotonic_ms: u64, wall_ms: u64) -> Reading {
        Reading { monotonic_ms, wall_ms }
    }

    #[test]
    fn room_time_begins_at_the_newest_event_when_the_wall_clock_was_set_back() {
        let mut clock = RoomClock::open(Timestamp(5_000), read(0, 1_000));
        assert_eq!(clock.now(read(0, 1_000)), Timestamp(5_000));
    }

    #[test]
    fn a_jump_of_the_wall_clock_raises_an_alarm_and_changes_nothing() {
        let mut clock = RoomClock::open(Timestamp(0), read(0, 100_000));
        assert_eq!(clock.now(read(1_000, 9_000_000)), Timestamp(101_000));
        assert!(clock.alarm());
        assert_eq!(clock.now(read(2_000, 102_000)), Timestamp(102_000));
        assert!(!clock.alarm());
    }

    #[test]
    fn drift_is_slewed_by_at_most_one_percent_in_both_directions() {
        for wall_ahead in [true, false] {
            let mut clock = RoomClock::open(Timestamp(0), read(0, 1_000_000));
            let mut last = clock.now(read(0, 1_000_000));
            for step in 1..=1_000u64 {
                let wall = 1_000_000 + step * 10;
                let wall = if wall_ahead { wall + 500 } else { wall - 500 };
                let now = clock.now(read(step * 10, wall));
                let moved = now.0 - last.0;
                assert!((9..=11).contains(&moved), "moved {moved} ms in 10 ms");
                last = now;
            }
            let moved = last.0 - 1_000_000;
            let expected = if wall_ahead { 10_100 } else { 9_900 };
            assert_eq!(moved, expected, "one percent of ten seconds was slewed");
        }
    }

    #[test]
    fn room_time_never_runs_backwards() {
        let mut clock = RoomClock::open(Timestamp(0), read(1_000, 50_000));
        let mut last = clock.now(read(1_000, 50_000));
        for (monotonic, wall) in [(900, 49_000), (1_000, 10), (1_001, 49_999), (1_002, 0)] {
            let now = clock.now(read(monotonic, wall));
            assert!(now >= last);
            last = now;
        }
    }
}
