//! How an origin is: seen by what requests come to, and asked now and then.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use http::Method;

use super::{Origin, Upload};
use crate::forward;
use crate::site::OriginManners;

/// So many failures in a row, and an origin is left alone for a while: one may be chance.
const FAILURES_MAX: u32 = 3;
/// For how long at first, and at most; doubled every time.
const ALONE_MS: u64 = 1_000;
const ALONE_MS_MAX: u64 = 30_000;

/// Time is an argument, in milliseconds of a steady clock.
#[derive(Debug, Default)]
pub struct Health {
    failures: AtomicU32,
    /// When it may be tried again; zero while it lives.
    retry_at_ms: AtomicU64,
}

impl Health {
    pub fn lives(&self, now_ms: u64) -> bool {
        now_ms >= self.retry_at_ms.load(Relaxed)
    }

    pub fn retry_at(&self) -> u64 {
        self.retry_at_ms.load(Relaxed)
    }

    pub fn worked(&self) {
        // Looked at first: nearly always there is nothing to write.
        if self.failures.load(Relaxed) != 0 {
            self.failures.store(0, Relaxed);
            self.retry_at_ms.store(0, Relaxed);
        }
    }

    pub fn failed(&self, now_ms: u64) {
        // Those who were on their way when it was left alone are one failure, not many.
        if !self.lives(now_ms) {
            return;
        }
        let failures = self.failures.fetch_add(1, Relaxed).saturating_add(1);
        if failures >= FAILURES_MAX {
            let doublings = (failures - FAILURES_MAX).min(5);
            let alone = (ALONE_MS << doublings).min(ALONE_MS_MAX);
            self.retry_at_ms.store(now_ms + alone, Relaxed);
        }
    }
}

/// Asks an origin how it is, over a connection of its own. An answer below 500 will do.
pub async fn probe(origin: &Arc<Origin>, manners: &OriginManners, path: &str) -> bool {
    let Ok(mut taken) = origin.connected(manners.connect_timeout).await else { return false };
    let write = |out: &mut Vec<u8>| {
        out.extend_from_slice(b"GET ");
        out.extend_from_slice(path.as_bytes());
        out.extend_from_slice(b" HTTP/1.1\r\n");
        forward::write_field(out, "host", origin.host_header.as_bytes());
        forward::write_field(out, "user-agent", b"waitroom-gate health check");
        forward::write_field(out, "connection", b"close");
        out.extend_from_slice(b"\r\n");
    };
    let mut nothing = Upload::Nothing;
    let within = manners.answer_timeout;
    let answer = taken.link.exchange(&Method::GET, write, &mut nothing, within).await;
    answer.is_ok_and(|answer| answer.status.as_u16() < 500)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_that_fails_is_left_alone_longer_and_longer_and_one_success_forgives_all() {
        let health = Health::default();
        health.failed(0);
        health.failed(0);
        assert!(health.lives(0), "two may be chance");
        health.failed(0);
        assert!(!health.lives(999));
        assert!(health.lives(1_000), "it is tried again");
        health.failed(1_000);
        assert!(!health.lives(2_999) && health.lives(3_000));
        for _ in 0..50 {
            health.failed(3_000);
        }
        assert!(health.lives(33_000), "never longer than half a minute");
        health.worked();
        assert!(health.lives(3_000));
    }
}
