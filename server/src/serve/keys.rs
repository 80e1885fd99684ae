//! The keys that sign: made once, sealed in the store, the same after every start.

use std::sync::Arc;

use waitroom_api::desk::Signatures;
use waitroom_pass::{
    AdapterKey, AdapterTokens, LiveTickets, Passes, SigningKey, StoredKey, TicketTokens,
};
use waitroom_store::Store;
use waitroom_store::system::System;

use super::installation::{House, SERVER};
use super::plan;
use crate::config::Config;
use crate::failure::{Exit, Failure};

/// Live tickets remembered as used: thirty seconds' worth of openings at 3,000 a second.
const LIVE_TICKETS_MAX: usize = 100_000;
/// How long a token of the earlier interfaces lives between two heartbeats.
const ADAPTER_LIFE_S: u64 = 300;
/// The one generation of HMAC keys there is so far; a second one would be numbered 2.
const GENERATION: u8 = 1;

pub async fn signatures<S: Store + Clone>(
    house: &House<S>,
    config: &Config,
    now_s: u64,
) -> Result<Signatures, Failure> {
    let ticket = secret(house, "tokens/ticket/1").await?;
    let live = secret(house, "tokens/live/1").await?;
    let adapter = secret(house, "tokens/adapter/1").await?;
    // The last one signs; tokens of the secret stay good when an operator's key takes over.
    let mut adapter_keys = vec![AdapterKey::Secret(GENERATION, adapter)];
    adapter_keys.extend(plan::adapter_key(&config.pass)?.map(AdapterKey::Rsa));
    let one = |key| [(GENERATION, key)];
    let good = "one key of one generation is a good set";
    Ok(Signatures {
        tokens: TicketTokens::new(&one(ticket)).expect(good),
        live_tickets: LiveTickets::new(&one(live), LIVE_TICKETS_MAX).expect(good),
        adapter_tokens: AdapterTokens::new(adapter_keys, ADAPTER_LIFE_S).expect(good),
        join_tokens: plan::join_tokens(&config.pass)?,
        passes: Arc::new(passes(house, config, now_s).await?),
    })
}

/// The pass keys of the store, or a first one. A change of the algorithm is a rotation: the new
/// key is published at once and signs when everyone can know it.
async fn passes<S: Store + Clone>(
    house: &House<S>,
    config: &Config,
    now_s: u64,
) -> Result<Passes, Failure> {
    let rotation = plan::rotation(config);
    // Kept until the first key is in the store: another instance that starts now must find it.
    let mut system = house.pen().await.map_err(|error| unreadable(&error.to_string()))?;
    let stored = stored(&system)?;
    let loaded = Passes::load(&stored, rotation, now_s);
    let loaded = loaded.map_err(|error| unreadable(&error.to_string()))?;
    let own = plan::signing_key(config)?;
    let passes = match (loaded, own) {
        (None, None) => Passes::generate(plan::algorithm(config), rotation, now_s),
        (None, Some(key)) => Passes::new(key, rotation, now_s),
        (Some(passes), Some(key)) => {
            let known = passes.jwks().contains(key.kid());
            if !known {
                rotate(&passes, key, now_s)?;
            }
            passes
        }
        (Some(passes), None) => {
            if !passes.jwks().contains(&format!("\"alg\":\"{}\"", plan::algorithm(config).name())) {
                rotate(&passes, SigningKey::generate(plan::algorithm(config)), now_s)?;
            }
            passes
        }
    };
    keep_in(&mut system, &passes).await?;
    Ok(passes)
}

/// Every pass key that the store has.
fn stored<S: Store>(system: &System<S>) -> Result<Vec<StoredKey>, Failure> {
    let mut stored = Vec::new();
    for name in system.secret_names().filter(|name| name.starts_with("pass/")) {
        let bytes = system.secret(name).map_err(|error| unreadable(&error.to_string()))?;
        stored.extend(bytes.as_deref().and_then(StoredKey::from_bytes));
    }
    Ok(stored)
}

/// Takes over the keys that another instance added.
pub fn adopt<S: Store>(system: &System<S>, passes: &Passes, now_s: u64) {
    for key in stored(system).unwrap_or_default() {
        // One that is known already is not taken twice.
        let _ = passes.adopt(&key, now_s);
    }
}

fn rotate(passes: &Passes, key: SigningKey, now_s: u64) -> Result<(), Failure> {
    passes.rotate(key, now_s).map_err(|error| unreadable(&error.to_string()))
}

/// Seals every key that the store does not have yet.
pub async fn keep<S: Store + Clone>(house: &House<S>, passes: &Passes) -> Result<(), Failure> {
    let mut system = house.pen().await.map_err(|error| unreadable(&error.to_string()))?;
    keep_in(&mut system, passes).await
}

async fn keep_in<S: Store>(system: &mut System<S>, passes: &Passes) -> Result<(), Failure> {
    for key in passes.stored() {
        let bytes = key.to_bytes();
        let signs = SigningKey::from_pkcs8(&key.pkcs8);
        let signs = signs.map_err(|error| unreadable(&error.to_string()))?;
        let name = format!("pass/{}", signs.kid());
        let known = system.secret(&name).ok().flatten().is_some_and(|kept| kept == bytes);
        if !known {
            let kept = system.keep_secret(SERVER, &name, &bytes).await;
            kept.map_err(|error| unreadable(&error.to_string()))?;
        }
    }
    system.put_down().await;
    Ok(())
}

/// What the gate signs its own cookies with.
pub async fn gate<S: Store + Clone>(house: &House<S>) -> Result<waitroom_gate::Secrets, Failure> {
    Ok(waitroom_gate::Secrets {
        checked: secret(house, "tokens/gate/1").await?,
        staff: secret(house, "tokens/staff/1").await?,
    })
}

async fn secret<S: Store + Clone>(house: &House<S>, name: &str) -> Result<[u8; 32], Failure> {
    house.secret(name).await.map_err(|error| unreadable(&error.to_string()))
}

fn unreadable(why: &str) -> Failure {
    Failure::new(Exit::Wrong, format!("the keys of this installation cannot be used: {why}"))
        .coded("WR-2101")
        .means("the server does not start: tickets and passes that were given out would be refused")
        .advise("start it with the master key that the data folder was made with")
}
