//! What has to be seen to while the server runs: keys that follow each other, certificates that
//! are read again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use waitroom_api::Desk;
use waitroom_pass::{Alg, SigningKey};
use waitroom_store::{RoomName, Store};

use super::installation::House;
use super::reload::Reload;
use super::{keys, say};

/// How often somebody looks. Keys follow each other over hours and days.
const EVERY: Duration = Duration::from_secs(10);

/// How often a pass key is followed by a new one, and of which kind. Zero means never.
#[derive(Clone, Copy, Debug)]
pub struct KeyRotation {
    pub every: Duration,
    pub alg: Alg,
}

/// Runs until it is aborted.
pub async fn run<S: Store + Clone>(
    house: Arc<House<S>>,
    desk: Arc<Desk>,
    mut reload: Reload,
    rotation: KeyRotation,
) {
    let mut hangup = signal(SignalKind::hangup()).expect("signals can be listened for");
    let mut told = BTreeSet::new();
    loop {
        tokio::select! {
            _ = tokio::time::sleep(EVERY) => {
                see_to_keys(&house, &desk, rotation).await;
                house.note_use(false).await;
            }
            _ = hangup.recv() => reload.run(&desk).await,
            () = desk.alarm.notified() => tell_trouble(&desk, &mut told),
        }
    }
}

async fn see_to_keys<S: Store + Clone>(house: &House<S>, desk: &Desk, rotation: KeyRotation) {
    let passes = &desk.signatures.passes;
    let now_s = desk.now_s();
    let newest = passes.stored().iter().map(|key| key.signs_from_s).max().unwrap_or(now_s);
    let mut changed = passes.advance(now_s);
    let KeyRotation { every, alg } = rotation;
    // Of several instances one makes the next key; the others take it over.
    let first = house.cluster.as_ref().is_none_or(|cluster| cluster.is_first("pass keys"));
    if first && !every.is_zero() && now_s >= newest + every.as_secs() {
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

/// Says of which rooms the store takes nothing any more, and of which it does again.
fn tell_trouble(desk: &Desk, told: &mut BTreeSet<RoomName>) {
    for room in desk.rooms() {
        match room.pulse.trouble() {
            Some(why) => {
                if told.insert(room.name().clone()) {
                    say::trouble(&say::unwritable(room.name(), &why));
                }
            }
            None => {
                if told.remove(room.name()) {
                    say::writes_again(room.name());
                }
            }
        }
    }
}
