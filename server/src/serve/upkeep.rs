//! What has to be seen to while the server runs: keys that follow each other, certificates that
//! are read again.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use waitroom_api::Desk;
use waitroom_api::metrics::Reload;
use waitroom_listen::Tls;
use waitroom_pass::{Alg, SigningKey};
use waitroom_store::Store;

use super::installation::House;
use super::{keys, say};
use crate::config::{Config, Environment};
use crate::telemetry::Lines;

/// How often somebody looks. Keys follow each other over hours and days.
const EVERY: Duration = Duration::from_secs(10);

/// How often a pass key is followed by a new one, and of which kind. Zero means never.
#[derive(Clone, Copy, Debug)]
pub struct KeyRotation {
    pub every: Duration,
    pub alg: Alg,
}

/// What is read again when the server is told to reload.
#[derive(Debug)]
pub struct Reading {
    pub file: Option<PathBuf>,
    pub lines: Lines,
}

impl Reading {
    /// The level of the log; the rest of a configuration needs a restart. A file with mistakes
    /// changes nothing.
    fn again(&self) -> Reload {
        match Config::load(self.file.as_deref(), &Environment::of_this_process()) {
            Ok(config) => {
                self.lines.level(config.log.level);
                say::reconfigured(None);
                Reload::Done
            }
            Err(mistakes) => {
                say::reconfigured(Some(&mistakes));
                Reload::Refused
            }
        }
    }
}

/// Runs until it is aborted.
pub async fn run<S: Store + Clone>(
    house: Arc<House<S>>,
    desk: Arc<Desk>,
    tls: Vec<Arc<Tls>>,
    rotation: KeyRotation,
    reading: Reading,
) {
    let mut hangup = signal(SignalKind::hangup()).expect("signals can be listened for");
    loop {
        tokio::select! {
            _ = tokio::time::sleep(EVERY) => see_to_keys(&house, &desk, rotation).await,
            _ = hangup.recv() => {
                desk.metrics.reloaded(reading.again());
                for tls in &tls {
                    let reloaded = tls.reload();
                    let outcome = if reloaded.is_ok() { Reload::Done } else { Reload::Refused };
                    desk.metrics.reloaded(outcome);
                    say::reloaded(reloaded);
                }
            }
        }
    }
}

async fn see_to_keys<S: Store + Clone>(house: &House<S>, desk: &Desk, rotation: KeyRotation) {
    let passes = &desk.signatures.passes;
    let now_s = desk.now_s();
    let newest = passes.stored().iter().map(|key| key.signs_from_s).max().unwrap_or(now_s);
    let mut changed = passes.advance(now_s);
    let KeyRotation { every, alg } = rotation;
    if !every.is_zero() && now_s >= newest + every.as_secs() {
        // A key that cannot be added now is added at the next look.
        changed |= passes.rotate(SigningKey::generate(alg), now_s).is_ok();
    }
    if !changed {
        return;
    }
    desk.metrics.key_changes.one();
    tracing::info!("the set of pass keys changed");
    if let Err(failure) = keys::keep(house, passes).await {
        say::trouble(&failure);
    }
}
