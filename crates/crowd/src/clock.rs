//! The run's clock: nanoseconds since its start, never going back, and the wall clock beside it.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

#[derive(Clone, Copy, Debug)]
pub struct Start {
    instant: Instant,
    pub wall_ms: u64,
}

impl Start {
    pub fn now() -> Start {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Start { instant: Instant::now(), wall_ms: wall.as_millis() as u64 }
    }

    pub fn ns(&self) -> u64 {
        self.instant.elapsed().as_nanos() as u64
    }

    pub fn instant(&self) -> Instant {
        self.instant
    }
}
