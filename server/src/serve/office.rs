//! What operators ask of the installation, over the store: keys, the audit, logs.

use waitroom_api::admin::office::{AuditPage, LogPage, MadeKey, Office, WantedKey};
use waitroom_api::caller::Role;
use waitroom_api::desk::Pending;
use waitroom_api::{Code, Problem};
use waitroom_core::codec;
use waitroom_store::system::{ApiKey, AuditLine, NewKey, SystemError};
use waitroom_store::{Entropy, Head, OsEntropy, RoomName, Store};

use super::acts;
use super::installation::House;

/// How much of the `_system` log is read for one page of the audit; a page may then be shorter
/// than asked for, and `next` says where to go on.
const AUDIT_BYTES: usize = 1 << 20;
/// How much is read at once when looking for acts without an entry.
const CATCH_UP_BYTES: usize = 4 << 20;
/// How far back such an act can lie: the next one waits for its entry, and while the store is too
/// slow or full for an entry it takes no joins either.
const CATCH_UP_EVENTS: u64 = 1_000_000;

impl<S: Store + Clone> House<S> {
    async fn made(
        &self,
        id: &str,
        secret: String,
        done: Result<(), SystemError>,
    ) -> Result<MadeKey, Problem> {
        done.map_err(refused)?;
        let system = self.system.lock().await;
        self.keyring.take(system.api_keys());
        let key = system.api_key_named(id).cloned().ok_or_else(|| unknown_key(id))?;
        Ok(MadeKey { key, secret })
    }

    /// Writes down when keys were last used, if it is time for that.
    pub async fn note_use(&self, at_once: bool) {
        let now_ms = self.clock.wall_ms();
        let Some(used) = self.keyring.to_note(now_ms, at_once) else { return };
        // Soft: when it cannot be written now, it is written next time.
        let Ok(mut system) = self.pen().await else { return };
        if system.note_use(super::installation::SERVER, used).await.is_ok() {
            self.keyring.noted(now_ms);
        }
        system.put_down().await;
    }
}

impl<S: Store + Clone> Office for House<S> {
    fn keys(&self) -> Pending<'_, Vec<ApiKey>> {
        Box::pin(async move {
            let mut keys: Vec<ApiKey> = self.system.lock().await.api_keys().cloned().collect();
            for key in &mut keys {
                key.last_used_at_ms = key.last_used_at_ms.max(self.keyring.last_use(&key.hash));
            }
            keys.sort_by_key(|key| key.created_at_ms);
            keys
        })
    }

    fn create_key<'a>(&'a self, wanted: WantedKey<'a>) -> Pending<'a, Result<MadeKey, Problem>> {
        Box::pin(async move {
            let WantedKey { who, role, note, life_ms } = wanted;
            let (id, secret) = fresh_key();
            let expires_at_ms = life_ms.map(|life| self.clock.wall_ms().saturating_add(life));
            let key = NewKey { id: &id, secret: &secret, role: role.word(), note, expires_at_ms };
            let done = {
                let mut system = self.pen().await.map_err(refused)?;
                let done = system.create_api_key(who, &key).await;
                system.put_down().await;
                done
            };
            self.made(&id, secret, done).await
        })
    }

    fn rotate_key<'a>(
        &'a self,
        who: &'a str,
        id: &'a str,
        overlap_ms: u64,
    ) -> Pending<'a, Result<MadeKey, Problem>> {
        Box::pin(async move {
            let (next, secret) = fresh_key();
            let now_ms = self.clock.wall_ms();
            let done = {
                let mut system = self.pen().await.map_err(refused)?;
                let old = system.api_key_named(id).ok_or_else(|| unknown_key(id))?;
                // A key that ends is followed by one that lives as long as it was meant to.
                let life = old.expires_at_ms.map(|ends| ends.saturating_sub(old.created_at_ms));
                let expires_at_ms = life.map(|life| now_ms.saturating_add(life));
                let key = NewKey { id: &next, secret: &secret, role: "", note: "", expires_at_ms };
                let ends_at_ms = now_ms.saturating_add(overlap_ms);
                let done = system.rotate_api_key(who, id, ends_at_ms, &key).await;
                system.put_down().await;
                done
            };
            self.made(&next, secret, done).await
        })
    }

    fn revoke_key<'a>(&'a self, who: &'a str, id: &'a str) -> Pending<'a, Result<ApiKey, Problem>> {
        Box::pin(async move {
            let mut system = self.pen().await.map_err(refused)?;
            let now_ms = self.clock.wall_ms();
            let key = system.api_key_named(id).ok_or_else(|| unknown_key(id))?;
            let owner = |key: &ApiKey| key.role == Role::Owner.word() && key.is_live(now_ms);
            // Whoever locks themselves out at night needs the console of the machine.
            if owner(key) && !system.api_keys().any(|it| it.id != id && owner(it)) {
                let detail = "make another key of role owner first";
                return Err(Problem::new(Code::LastOwner, detail));
            }
            system.revoke_api_key(who, id).await.map_err(refused)?;
            system.put_down().await;
            self.keyring.take(system.api_keys());
            system.api_key_named(id).cloned().ok_or_else(|| unknown_key(id))
        })
    }

    fn audit_after<'a>(
        &'a self,
        after: u64,
        limit: usize,
        room: Option<&'a str>,
    ) -> Pending<'a, Result<AuditPage, Problem>> {
        Box::pin(async move {
            let mut system = self.system.lock().await;
            system.catch_up().await.map_err(unavailable)?;
            let tip = system.tip();
            let mut page = AuditPage {
                lines: Vec::new(),
                head: tip.head.0,
                chain: tip.chain.to_string(),
                next: after.max(tip.head.0),
            };
            let entries = system.entries_after(Head(after), AUDIT_BYTES).await;
            let entries = entries.map_err(unavailable)?;
            // Where the bytes ended; behind it there may be more.
            let mut next = entries.last().map_or(page.next, |(at, _)| at.0);
            for (at, entry) in &entries {
                let Some(line) = AuditLine::of(*at, entry) else { continue };
                if room.is_some_and(|room| line.room.as_deref() != Some(room)) {
                    continue;
                }
                if page.lines.len() == limit {
                    next = page.lines.last().map_or(next, |line| line.index);
                    break;
                }
                page.lines.push(line);
            }
            page.next = next;
            Ok(page)
        })
    }

    fn catch_up<'a>(&'a self, room: &'a RoomName) -> Pending<'a, Result<(), Problem>> {
        Box::pin(async move {
            let mut system = self.pen().await.map_err(unavailable)?;
            system.catch_up().await.map_err(unavailable)?;
            let tip = self.store.committed_head(room).await.map_err(store_failed)?;
            let oldest = tip.0.saturating_sub(CATCH_UP_EVENTS);
            let mut at = system.audited(room.as_str()).max(oldest);
            loop {
                let page = self.log_page(room, at, CATCH_UP_BYTES).await?;
                let Some((last, _)) = page.events.last() else {
                    system.put_down().await;
                    return Ok(());
                };
                for (index, event) in &page.events {
                    let Some(act) = acts::of(&event.what) else { continue };
                    let detail = act.detail(*index);
                    let noted = system.audit(act.who, Some(room), act.action, detail).await;
                    noted.map_err(unavailable)?;
                }
                at = *last;
            }
        })
    }

    fn events<'a>(
        &'a self,
        room: &'a RoomName,
        after: u64,
        bytes_max: usize,
    ) -> Pending<'a, Result<LogPage, Problem>> {
        Box::pin(self.log_page(room, after, bytes_max))
    }
}

impl<S: Store + Clone> House<S> {
    async fn log_page(
        &self,
        room: &RoomName,
        after: u64,
        bytes_max: usize,
    ) -> Result<LogPage, Problem> {
        let trimmed_to = self.store.trimmed_to(room).await.map_err(store_failed)?;
        let head = self.store.committed_head(room).await.map_err(store_failed)?;
        let from = Head(after).max(trimmed_to);
        let batches = self.store.read(room, from, bytes_max).await.map_err(store_failed)?;
        let mut events = Vec::new();
        for batch in batches {
            let mut index = batch.after.0;
            let read = codec::decode(&batch.payload, |event| {
                index += 1;
                if index > from.0 {
                    events.push((index, event));
                }
            });
            read.map_err(|_| Problem::new(Code::Unavailable, "the room's log cannot be read"))?;
        }
        Ok(LogPage { events, trimmed_to: trimmed_to.0, head: head.0 })
    }
}

/// `wrk_<id>_<secret>`: the id is what the audit says and what `rotate` and `revoke` take; the
/// secret is 256 random bits.
pub fn fresh_key() -> (String, String) {
    let random = || OsEntropy.next_u128();
    let id = format!("k{:08x}", random() as u32);
    let secret = format!("wrk_{id}_{:032x}{:032x}", random(), random());
    (id, secret)
}

fn unknown_key(id: &str) -> Problem {
    let id: String = id.chars().take(64).collect();
    Problem::new(Code::ApiKeyUnknown, format!("no key is called {id:?}"))
}

fn refused(error: SystemError) -> Problem {
    match error {
        SystemError::Refused { why } => Problem::new(Code::ApiKeyEnded, why),
        SystemError::Unknown { .. } => {
            let detail = "it may have been done or not; look at the list of keys";
            Problem::new(Code::OutcomeUnknown, detail)
        }
        error => unavailable(error),
    }
}

fn unavailable(error: SystemError) -> Problem {
    Problem::new(Code::Unavailable, error.to_string())
}

fn store_failed(error: waitroom_store::Error) -> Problem {
    Problem::new(Code::Unavailable, format!("the store cannot be read: {error}"))
}
