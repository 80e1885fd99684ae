//! Origins: where passed requests go.
//!
//! A connection to an origin has no task of its own: whoever uses it drives it, in the task of
//! the visitor's connection (`link.rs`), and an idle one just lies in a list (`pool.rs`). So a
//! request costs no spawn and no wake-up of another thread. Several origins share the requests;
//! one that fails is left alone for a while (`health.rs`). `upload.rs` frames what goes out,
//! `head.rs` and `chunks.rs` read what comes in.

mod answer;
mod chunks;
mod head;
mod health;
mod link;
mod pool;
mod stream;
mod tls;
mod upload;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use http::Uri;

use crate::site::OriginManners;

pub use answer::OriginBody;
pub use head::Head;
pub use health::probe;
pub use link::Failed;
pub use pool::{InUse, Origin, Taken};
pub use stream::Stream;
pub use tls::Trust;
pub use upload::Upload;

/// The origins of one site.
#[derive(Debug)]
pub struct Origins {
    pub all: Vec<Arc<Origin>>,
    pub manners: OriginManners,
    in_flight: Arc<AtomicUsize>,
    turn: AtomicUsize,
}

/// Counts one request at the origins until it is dropped.
#[derive(Debug)]
pub struct InFlight(Arc<AtomicUsize>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Origins {
    /// The error, in words for the operator, is about certificates.
    pub fn new(addresses: &[Uri], manners: OriginManners) -> Result<Origins, String> {
        let tls = addresses.iter().any(|uri| uri.scheme_str() == Some("https"));
        let trust = tls.then(|| Trust::load(manners.ca.as_deref())).transpose()?;
        let all = addresses.iter().filter_map(|uri| {
            Origin::new(uri, manners.idle_connections_max, trust.as_ref()).map(Arc::new)
        });
        let all = all.collect();
        Ok(Origins { all, manners, in_flight: Arc::default(), turn: AtomicUsize::new(0) })
    }

    /// How many requests are at the origins now.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Relaxed)
    }

    /// Room for one more request, or none.
    pub fn enter(&self) -> Option<InFlight> {
        let before = self.in_flight.fetch_add(1, Relaxed);
        let entered = InFlight(self.in_flight.clone());
        (before < self.manners.in_flight_max).then_some(entered)
    }

    /// The origin with the least to do among those that live; taking turns among equals. When
    /// none lives, the one that failed longest ago: it may have come back. `but` has just failed.
    pub fn choose(&self, but: Option<&Arc<Origin>>, now_ms: u64) -> Option<Arc<Origin>> {
        if let [only] = &self.all[..] {
            return Some(only.clone());
        }
        let turn = self.turn.fetch_add(1, Relaxed);
        let others = |origin: &&Arc<Origin>| but.is_none_or(|but| !Arc::ptr_eq(but, origin));
        let turned = || {
            let count = self.all.len().max(1);
            (0..self.all.len()).map(move |i| &self.all[(turn + i) % count])
        };
        let living = turned().filter(others).filter(|it| it.health.lives(now_ms));
        let chosen = living.min_by_key(|it| it.in_use());
        let chosen =
            chosen.or_else(|| turned().filter(others).min_by_key(|it| it.health.retry_at()));
        chosen.or_else(|| turned().next()).cloned()
    }
}
