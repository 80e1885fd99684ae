//! A batch as it travels: in pieces small enough for any bus, each under a seal.
//!
//! ```text
//! version  u8   2
//! kind     u8   B a batch, or a part of one; D a digest
//! part, of u16  which part of how many
//! after    u64  the head before the batch
//! head     u64  the head with it
//! before   32   the chain before it; zeros where the writer did not know
//! chain    32   the chain with it
//! body     …    B: epoch u32, nonce u128, number u64, events u32, at_ms u64, payload
//!               D: at u64, digest 32
//! seal     32   HMAC-SHA-256 over the room's name, a zero byte and everything above
//! ```
//! Little-endian. A digest's `after` and `head` are what the mirror holds, its `at` the event that
//! it was taken at.
//! The chain shows what is missing; anybody could compute another one. The key of the seal follows
//! from the installation's master key, so whoever can write to the mirror still cannot add to it.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use waitroom_store::seal::MasterKey;
use waitroom_store::{Appended, Chain, Head, Link, RoomName, Stored};

use super::Mark;

/// Buses take a megabyte unless told otherwise.
const BODY_BYTES_MAX: usize = 512 << 10;
const VERSION: u8 = 2;
const FRONT: usize = 1 + 1 + 2 + 2 + 8 + 8 + 32 + 32;
const BATCH_FRONT: usize = 4 + 16 + 8 + 4 + 8;
const SEAL: usize = 32;

/// What seals the pieces of an installation's mirrors.
#[derive(Clone)]
pub struct SealKey([u8; 32]);

impl SealKey {
    pub fn of(master: &MasterKey) -> SealKey {
        SealKey(*master.hash_key("mirror").bytes())
    }

    fn over(&self, room: &RoomName, piece: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("any length is a key");
        mac.update(room.as_str().as_bytes());
        // No name has a zero in it, so no two rooms' pieces can be taken for each other's.
        mac.update(&[0]);
        mac.update(piece);
        mac
    }
}

impl std::fmt::Debug for SealKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealKey(…)")
    }
}

/// Why bytes are no piece of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// They do not look like one.
    NoPiece,
    /// They look like one, and the seal is not ours: altered, added by somebody else, of another
    /// room, or of an installation with another master key.
    Foreign {
        /// The events that it says it is about.
        after: Head,
        head: Head,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    pub kind: Kind,
    pub part: u16,
    pub of: u16,
    pub before: Appended,
    pub with: Appended,
    pub body: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Batch,
    Digest,
}

impl<'a> Piece<'a> {
    /// A piece of `room`, if its seal is ours.
    pub fn read(key: &SealKey, room: &RoomName, bytes: &'a [u8]) -> Result<Piece<'a>, Unread> {
        let sealed = bytes.split_last_chunk::<SEAL>();
        let (bytes, seal) = sealed.ok_or(Unread::NoPiece)?;
        let piece = Piece::look(bytes).ok_or(Unread::NoPiece)?;
        let (after, head) = (piece.before.head, piece.with.head);
        match key.over(room, bytes).verify_slice(seal) {
            Ok(()) => Ok(piece),
            Err(_) => Err(Unread::Foreign { after, head }),
        }
    }

    fn look(bytes: &'a [u8]) -> Option<Piece<'a>> {
        let (front, body) = bytes.split_at_checked(FRONT)?;
        let kind = match (front[0], front[1]) {
            (VERSION, b'B') => Kind::Batch,
            (VERSION, b'D') => Kind::Digest,
            _ => return None,
        };
        let (part, of) = (u16_at(front, 2), u16_at(front, 4));
        let before = Appended { head: Head(u64_at(front, 6)), chain: chain_at(front, 22) };
        let with = Appended { head: Head(u64_at(front, 14)), chain: chain_at(front, 54) };
        (part < of).then_some(Piece { kind, part, of, before, with, body })
    }

    /// Where a mirror stands whose newest piece is this one.
    pub fn standing(&self) -> Appended {
        if self.part + 1 == self.of { self.with } else { self.before }
    }

    fn write(&self, key: &SealKey, room: &RoomName) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FRONT + self.body.len() + SEAL);
        bytes.push(VERSION);
        bytes.push(match self.kind {
            Kind::Batch => b'B',
            Kind::Digest => b'D',
        });
        bytes.extend_from_slice(&self.part.to_le_bytes());
        bytes.extend_from_slice(&self.of.to_le_bytes());
        bytes.extend_from_slice(&self.before.head.0.to_le_bytes());
        bytes.extend_from_slice(&self.with.head.0.to_le_bytes());
        bytes.extend_from_slice(&self.before.chain.0);
        bytes.extend_from_slice(&self.with.chain.0);
        bytes.extend_from_slice(self.body);
        let seal = key.over(room, &bytes).finalize().into_bytes();
        bytes.extend_from_slice(&seal);
        bytes
    }
}

/// The pieces of a batch, in order. `before` is the chain before it, where that is known.
pub fn of_batch(
    key: &SealKey,
    room: &RoomName,
    stored: &Stored,
    before: Option<Chain>,
) -> Vec<Vec<u8>> {
    let mut body = Vec::with_capacity(BATCH_FRONT + stored.payload.len());
    body.extend_from_slice(&stored.epoch.to_le_bytes());
    body.extend_from_slice(&stored.nonce.to_le_bytes());
    body.extend_from_slice(&stored.number.to_le_bytes());
    body.extend_from_slice(&stored.events.to_le_bytes());
    body.extend_from_slice(&stored.at_ms.to_le_bytes());
    body.extend_from_slice(&stored.payload);
    let before = Appended { head: stored.after, chain: before.unwrap_or(Chain::START) };
    let with = Appended { head: stored.head, chain: stored.chain };
    let parts = body.chunks(BODY_BYTES_MAX);
    let of = u16::try_from(parts.len()).expect("a batch is far below 32 GiB");
    let piece =
        |(part, body)| Piece { kind: Kind::Batch, part, of, before, with, body }.write(key, room);
    (0..).zip(parts).map(piece).collect()
}

/// The one piece of a digest, behind what the mirror holds.
pub fn of_mark(key: &SealKey, room: &RoomName, mark: &Mark, held: Appended) -> Vec<u8> {
    let mut body = mark.at.0.to_le_bytes().to_vec();
    body.extend_from_slice(&mark.digest);
    let (before, with) = (held, held);
    Piece { kind: Kind::Digest, part: 0, of: 1, before, with, body: &body }.write(key, room)
}

/// A batch from its whole body; the caller checks it against the chain.
pub fn batch(with: Appended, after: Head, body: &[u8]) -> Option<Stored> {
    let (front, payload) = body.split_at_checked(BATCH_FRONT)?;
    let link = Link {
        epoch: u32::from_le_bytes(front[0..4].try_into().expect("four bytes")),
        nonce: u128::from_le_bytes(front[4..20].try_into().expect("sixteen bytes")),
        number: u64_at(front, 20),
        after,
        events: u32::from_le_bytes(front[28..32].try_into().expect("four bytes")),
    };
    (link.events > 0 && link.head() == with.head).then(|| Stored {
        after,
        head: with.head,
        epoch: link.epoch,
        nonce: link.nonce,
        number: link.number,
        events: link.events,
        at_ms: u64_at(front, 32),
        payload: payload.to_vec(),
        chain: with.chain,
    })
}

pub fn mark(body: &[u8]) -> Option<Mark> {
    let body: &[u8; 40] = body.try_into().ok()?;
    let digest = body[8..].try_into().expect("32 bytes");
    Some(Mark { at: Head(u64_at(body, 0)), digest })
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn chain_at(bytes: &[u8], at: usize) -> Chain {
    Chain(bytes[at..at + 32].try_into().expect("32 bytes"))
}
