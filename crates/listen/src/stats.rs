//! What the front door counts. Others read it for metrics; nothing here decides.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of one listener, shared by all its connections.
#[derive(Debug, Default)]
pub struct Stats {
    pub(crate) accepted: AtomicU64,
    pub(crate) accept_failed: AtomicU64,
    pub(crate) refused_full: AtomicU64,
    pub(crate) refused_address: AtomicU64,
    pub(crate) refused_proxy: AtomicU64,
    pub(crate) failed_proxy: AtomicU64,
    pub(crate) failed_tls: AtomicU64,
    pub(crate) failed_http: AtomicU64,
    pub(crate) late_handshake: AtomicU64,
    pub(crate) late_header: AtomicU64,
    pub(crate) late_idle: AtomicU64,
    pub(crate) late_write: AtomicU64,
    pub(crate) parked: AtomicU64,
    pub(crate) upgraded: AtomicU64,
    pub(crate) open: AtomicU64,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that were given a seat.
    pub accepted: u64,
    /// Times the system would not hand over a connection (out of files or memory).
    pub accept_failed: u64,
    /// Closed at once: the house is full.
    pub refused_full: u64,
    /// Closed at once: this address has as many as it may.
    pub refused_address: u64,
    /// Closed at once: on a PROXY listener, from a peer that is not listed.
    pub refused_proxy: u64,
    /// Ended by a broken PROXY header.
    pub failed_proxy: u64,
    /// Ended by a failed TLS handshake.
    pub failed_tls: u64,
    /// Ended by broken HTTP, a limit of HTTP/2, or a client gone in the middle.
    pub failed_http: u64,
    /// Cut: too slow with PROXY header or TLS.
    pub late_handshake: u64,
    /// Cut: too slow with a request's headers, or silent from the start.
    pub late_header: u64,
    /// Closed: nothing asked for too long.
    pub late_idle: u64,
    /// Cut: took no bytes for too long.
    pub late_write: u64,
    /// Times an idle connection was taken apart to save its buffers.
    pub parked: u64,
    /// Sockets handed over after an upgrade.
    pub upgraded: u64,
    /// Open now, upgraded ones included.
    pub open: u64,
}

impl Stats {
    pub fn now(&self) -> Counts {
        Counts {
            accepted: self.accepted.load(Relaxed),
            accept_failed: self.accept_failed.load(Relaxed),
            refused_full: self.refused_full.load(Relaxed),
            refused_address: self.refused_address.load(Relaxed),
            refused_proxy: self.refused_proxy.load(Relaxed),
            failed_proxy: self.failed_proxy.load(Relaxed),
            failed_tls: self.failed_tls.load(Relaxed),
            failed_http: self.failed_http.load(Relaxed),
            late_handshake: self.late_handshake.load(Relaxed),
            late_header: self.late_header.load(Relaxed),
            late_idle: self.late_idle.load(Relaxed),
            late_write: self.late_write.load(Relaxed),
            parked: self.parked.load(Relaxed),
            upgraded: self.upgraded.load(Relaxed),
            open: self.open.load(Relaxed),
        }
    }
}

/// Counts one more. Relaxed: a counter orders nothing.
pub(crate) fn one_more(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}
