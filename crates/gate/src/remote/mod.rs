//! A room that another waitroom runs: this process is only a gate before it.
//!
//! The owner of the room decides and counts; a gate elsewhere must not let anybody in whose slot
//! the owner has given to the next. Two things see to that:
//!
//! - A pass that this process has not seen before is asked about at the owner, once, and then
//!   counts as known for `checked_for`. So what ended before, whatever was lost in a restart here,
//!   is known where it is known best.
//! - Every half second the owner is asked for the sessions that ended early and whose slots it
//!   still holds, and is told which version of them this gate goes by. The owner frees a slot only
//!   when every gate that it knows by name has confirmed, or when the pass is over for everybody.
//!
//! A gate that is cut off goes on accepting the passes it knows until they end, and no others; it
//! confirms nothing, so nobody gets their slots meanwhile.
//!
//! | file | one idea |
//! |---|---|
//! | `known.rs` | what this gate knows of one room; no I/O, no clock |
//! | `ask.rs` | questions to the owner, over the connections that origins use too |
//! | `visit.rs` | a request of a site whose room is elsewhere |

mod ask;
mod known;
mod visit;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use http::Uri;
use waitroom_core::id::TicketId;
use waitroom_pass::{CheckedPasses, Verifier};
use waitroom_store::{Entropy, OsEntropy, RoomName};

use crate::gate::{Gate, SiteGate};
use crate::origin::Origins;
use crate::site::{OriginManners, Site};
use crate::verdict::Stand;
use known::Known;
pub use visit::{Caller, own, visit};

/// Where the room is, and who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomAt {
    /// The owner's address for visitors.
    pub public: Uri,
    /// And for operators, with a key of theirs.
    pub admin: Uri,
    pub key: String,
    /// What the owner calls this gate.
    pub gate: String,
}

/// How often the owner is heard.
const HEAR_EVERY: Duration = Duration::from_millis(500);
/// An owner that is this slow cannot be asked.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Remote {
    pub at: RoomAt,
    pub rooms: BTreeMap<String, RemoteRoom>,
    /// The owner as an origin, for our own addresses.
    pub door: Arc<SiteGate>,
    /// The same address for questions about passes, which must not wait behind visitors' streams.
    questions: Origins,
    admin: Origins,
}

#[derive(Debug)]
pub struct RemoteRoom {
    pub name: RoomName,
    /// From the first keys on that the owner told.
    verifier: OnceLock<Verifier>,
    known: Known,
    /// Nobody's cookies: the key is this process's own and signs nothing.
    checked: CheckedPasses,
}

/// Somebody inside a room that is elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    pub room: RoomName,
    pub ticket: TicketId,
    /// The end of the pass that was shown.
    pub expires_s: u64,
}

impl Remote {
    pub fn has_ended(&self, who: &Elsewhere) -> bool {
        let room = self.rooms.get(who.room.as_str());
        room.is_none_or(|room| room.known.stand(who.ticket) == Stand::Ended)
    }

    /// The error is for the operator.
    pub fn new(site: &Site, at: &RoomAt) -> Result<Remote, String> {
        let manners = OriginManners {
            keep_host: true,
            answer_timeout: ANSWERS_WITHIN,
            health_path: None,
            ..site.manners.clone()
        };
        let admin = Origins::new(std::slice::from_ref(&at.admin), manners.clone())?;
        let questions = Origins::new(std::slice::from_ref(&at.public), manners.clone())?;
        let mut door = Site::of_room(site.rooms().next().ok_or("no room is named")?.clone());
        door.origins = vec![at.public.clone()];
        // Long polls and streams are answered in their own time.
        door.manners = OriginManners { answer_timeout: site.manners.answer_timeout, ..manners };
        let rooms = site.rooms().map(|name| (name.to_string(), RemoteRoom::new(name.clone())));
        let door = Arc::new(SiteGate::new(door)?);
        Ok(Remote { at: at.clone(), rooms: rooms.collect(), door, questions, admin })
    }
}

impl RemoteRoom {
    fn new(name: RoomName) -> RemoteRoom {
        let mut secret = [0; 32];
        secret[..16].copy_from_slice(&OsEntropy.next_u128().to_be_bytes());
        secret[16..].copy_from_slice(&OsEntropy.next_u128().to_be_bytes());
        let checked = CheckedPasses::new(&[(1, secret)]);
        RemoteRoom {
            name,
            verifier: OnceLock::new(),
            known: Known::default(),
            checked: checked.expect("one key of one generation is a good set"),
        }
    }
}

impl RemoteRoom {
    /// Says whether these are keys.
    fn learn_keys(&self, keys: &str) -> bool {
        match self.verifier.get() {
            Some(verifier) => verifier.update(keys).is_ok(),
            None => match Verifier::new(keys, self.name.as_str()) {
                Ok(verifier) => self.verifier.set(verifier).is_ok(),
                Err(_) => false,
            },
        }
    }
}

/// Hears the owner for as long as the gate lives.
pub async fn follow(gate: Weak<Gate>, at: Arc<SiteGate>) {
    let Some(remote) = &at.remote else { return };
    loop {
        for room in remote.rooms.values() {
            let Some(gate) = gate.upgrade() else { return };
            let heard = ask::hear(remote, room).await.filter(|heard| room.learn_keys(&heard.keys));
            if let Some(heard) = &heard {
                room.known.heard(heard, gate.desk.now_s());
            }
            if room.known.note_reach(heard.is_some()) {
                let now = if heard.is_some() { "is heard" } else { "is not heard" };
                eprintln!("gate: the owner of room {:?} {now}", room.name.as_str());
            }
        }
        tokio::time::sleep(HEAR_EVERY).await;
    }
}
