//! A mirror: the raw batches of every log, unfiltered and in order, somewhere else.
//!
//! What outsiders are told of a room cannot bring it back; its log can. So a mirror takes batches
//! as they stand, with the chain through them and under a seal of the installation, and whoever
//! reads it can prove that nothing is missing, altered or added. Now and then it also takes the room's digest, so that a room rebuilt from
//! it can be compared with the one it came from.
//! Lives here: where a mirror may be ([`Place`]) and when digests are due. [`piece`] has the bytes,
//! [`assembly`] puts them together again, and there is a file for each kind of place.
//! A mirror begins with the first event of a log or not at all: without it nothing can be rebuilt.

pub mod assembly;
pub mod kafka;
pub mod nats;
pub mod piece;
pub mod postgres;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use waitroom_store::{Appended, Head, RoomName, Stored};

use self::piece::Piece;
use crate::keeper::{Standing, other_history};
use crate::names::Names;
use crate::sink::Trouble;

pub use assembly::{Assembly, Broken, Mark};
pub use kafka::KafkaMirror;
pub use nats::NatsMirror;
pub use piece::SealKey;
pub use postgres::PostgresMirror;

/// Who we are there, and how the way is secured. Which of it there can be depends on the place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// A file: credentials for NATS, a password for Kafka and PostgreSQL.
    pub secret: Option<PathBuf>,
    /// Kafka's; the others say it in their address.
    pub tls: Option<crate::kafka::Tls>,
    /// How Kafka is shown the password, and whose it is.
    pub user: Option<(crate::kafka::Mechanism, String)>,
}

/// Where a mirror is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Nats(crate::nats::Link),
    Kafka(crate::kafka::Link),
    Postgres(crate::postgres::Link),
}

impl Place {
    /// `nats://…`, `kafka://host:port,…` or `postgres://…`, and who we are there.
    pub fn parse(address: &str, access: Access) -> Result<Place, String> {
        let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
        let Access { secret, tls, user } = access;
        if scheme != "kafka" && (tls.is_some() || user.is_some()) {
            return Err("only kafka:// takes these; others say it in their address".into());
        }
        match scheme {
            "nats" | "tls" => {
                let link = crate::nats::Link { servers: address.into(), credentials: secret };
                Ok(Place::Nats(link))
            }
            "kafka" if rest.is_empty() => Err("\"kafka://\" names no broker".into()),
            "kafka" => {
                let sasl = match (user, secret) {
                    (None, None) => None,
                    (Some((mechanism, user)), Some(password_file)) => {
                        Some(crate::kafka::Sasl { mechanism, user, password_file })
                    }
                    (None, Some(_)) => return Err("a password of nobody; name its user".into()),
                    (Some(_), None) => return Err("a user without a file of a password".into()),
                };
                Ok(Place::Kafka(crate::kafka::Link { brokers: rest.into(), tls, sasl }))
            }
            "postgres" | "postgresql" => {
                crate::postgres::is_address(address)?;
                let link = crate::postgres::Link { url: address.into(), password_file: secret };
                Ok(Place::Postgres(link))
            }
            _ => Err(format!(
                "\"{address}\" is no place for a mirror; write nats://…, kafka://… or postgres://…"
            )),
        }
    }

    /// Hands over every piece of a room that is there now, oldest first, as long as `take` wants
    /// more. `name` is the stream or topic.
    pub async fn read<E>(
        &self,
        name: &str,
        room: &RoomName,
        take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<Result<(), E>, Trouble> {
        match self {
            Place::Nats(link) => nats::read(link, name, room, take).await,
            Place::Kafka(link) => kafka::read(link, name, room, take).await,
            Place::Postgres(link) => postgres::read(link, room, take).await,
        }
    }
}

/// Where each room stands, for mirrors that would have to ask over the network.
#[derive(Debug, Default)]
struct Known(Mutex<BTreeMap<RoomName, Standing>>);

impl Known {
    fn get(&self, room: &RoomName) -> Option<Standing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(room).copied()
    }

    fn set(&self, room: &RoomName, at: Option<Standing>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match at {
            Some(at) => known.insert(room.clone(), at),
            None => known.remove(room),
        };
    }
}

/// Pieces, each with the head of its batch.
type Pieces = Vec<(Head, Vec<u8>)>;

/// What every mirror goes by, wherever it is: the seal of its pieces, and when digests are due.
#[derive(Debug)]
pub struct Terms {
    pub key: SealKey,
    pub marks: Marks,
}

impl Terms {
    /// The pieces of batches that follow `at`, and where the mirror stands with them.
    fn pieces(
        &self,
        room: &RoomName,
        mut at: Standing,
        batches: &[Stored],
    ) -> Result<(Standing, Pieces), Trouble> {
        let mut all = Vec::new();
        for batch in batches {
            let before = at.chain;
            at = at.with(room, batch).ok_or_else(|| other_history(room, at.head))?;
            let pieces = piece::of_batch(&self.key, room, batch, before);
            all.extend(pieces.into_iter().map(|piece| (batch.head, piece)));
        }
        Ok((at, all))
    }

    /// The piece of a digest to put behind what the mirror holds, if one is due.
    async fn mark(&self, room: &RoomName, held: Standing, names: &dyn Names) -> Pieces {
        let Standing { head, chain: Some(chain) } = held else { return Vec::new() };
        match self.marks.due(room, head, names).await {
            Some(mark) => {
                let held = Appended { head, chain };
                vec![(head, piece::of_mark(&self.key, room, &mark, held))]
            }
            None => Vec::new(),
        }
    }

    /// Where a mirror stands whose newest piece of a room is this one.
    fn standing(&self, room: &RoomName, newest: &[u8]) -> Result<Standing, Trouble> {
        let piece = Piece::read(&self.key, room, newest).map_err(|unread| {
            Trouble::new(match unread {
                piece::Unread::NoPiece => "the newest in the mirror is no piece of a log",
                piece::Unread::Foreign { .. } => {
                    "the newest piece in the mirror is not under this master key's seal"
                }
            })
        })?;
        let Appended { head, chain } = piece.standing();
        Ok(Standing { head, chain: Some(chain) })
    }
}

/// When digests are due. Making one goes through the whole room, so not too often.
#[derive(Debug)]
pub struct Marks {
    every: Duration,
    last: Mutex<BTreeMap<RoomName, (Instant, u64)>>,
}

impl Marks {
    pub fn every(every: Duration) -> Marks {
        Marks { every, last: Mutex::default() }
    }

    /// A mark to put behind what the mirror holds, if one is due.
    async fn due(&self, room: &RoomName, held: Head, names: &dyn Names) -> Option<Mark> {
        let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last().get(room).copied();
        if known.is_some_and(|(when, at)| when.elapsed() < self.every || at >= held.0) {
            return None;
        }
        let (at, digest) = names.digest().await?;
        let new = known.is_none_or(|(_, known)| at > known);
        // The board may be ahead of what the mirror holds; then the next one will do.
        if !new || at > held.0 {
            return None;
        }
        last().insert(room.clone(), (Instant::now(), at));
        Some(Mark { at: Head(at), digest })
    }
}

/// A mirror that was begun too late, or whose log was trimmed before it had it.
fn cannot_skip(room: &RoomName, to: Head) -> Trouble {
    Trouble::new(format!(
        "events of room {room} up to {to} are no longer kept, and a mirror without them is none"
    ))
}

/// A mirror is never made anew in place: it may be the only copy there is.
fn never_forgets(room: &RoomName) -> Trouble {
    Trouble::new(format!("a mirror keeps what it holds of room {room}; begin a new one elsewhere"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_by_its_address() {
        let place = |address: &str| Place::parse(address, Access::default());
        assert!(matches!(place("nats://127.0.0.1:4222"), Ok(Place::Nats(_))));
        assert!(matches!(place("postgres://w@db/w"), Ok(Place::Postgres(_))));
        let Ok(Place::Kafka(link)) = place("kafka://a:9092,b:9092") else { panic!("no Kafka") };
        assert_eq!(link.brokers, "a:9092,b:9092");
        for bad in ["", "127.0.0.1:4222", "redis://x", "kafka://"] {
            assert!(place(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_password_has_its_user_and_only_kafka_is_told_how_apart_from_its_address() {
        use crate::kafka::{Mechanism, Tls};
        let secret = || Some(PathBuf::from("password"));
        let user = || Some((Mechanism::ScramSha512, "waitroom".to_owned()));
        let by =
            |address: &str, secret, tls, user| Place::parse(address, Access { secret, tls, user });
        let kafka = by("kafka://a:9093", secret(), Some(Tls::default()), user());
        let Ok(Place::Kafka(link)) = kafka else { panic!("no Kafka") };
        assert_eq!((link.brokers.as_str(), link.tls), ("a:9093", Some(Tls::default())));
        assert_eq!(link.sasl.map(|it| it.password_file), secret());
        assert!(by("kafka://a:9093", secret(), None, None).is_err());
        assert!(by("kafka://a:9093", None, None, user()).is_err());
        assert!(by("nats://a:4222", None, Some(Tls::default()), None).is_err());
        assert!(by("postgres://w@db/w", secret(), None, user()).is_err());
        assert!(by("nats://a:4222", secret(), None, None).is_ok());
    }
}
