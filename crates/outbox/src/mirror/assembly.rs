//! A log from the pieces of a mirror, each checked by its seal and each batch against the chain.
//!
//! What comes a second time is passed over: a bus delivers at least once. What is missing, altered,
//! added by others or in the wrong place ends it, with the event behind which nothing can be
//! trusted. So does a second history: a repeat, or a digest, that is not of the batches there are.
//! A batch at the end of which parts are missing was never acknowledged, and is reported only.

use std::fmt;

use waitroom_store::{Appended, Head, RoomName, Stored};

use super::piece::{self, Kind, Piece, SealKey, Unread};

/// The room's digest at an event, as its owner computed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub at: Head,
    pub digest: [u8; 32],
}

/// The mirror holds up to here and no further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    pub after: Head,
    pub why: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the mirror breaks after event {}: {}", self.after, self.why)
    }
}

#[derive(Debug)]
pub struct Assembly {
    key: SealKey,
    room: RoomName,
    at: Appended,
    half: Option<Half>,
    /// Where each batch ended, oldest first: what comes again must be the same.
    ends: Vec<Appended>,
    /// The newest digest that lies within what is there.
    mark: Option<Mark>,
}

/// A batch of which parts are still to come.
#[derive(Debug)]
struct Half {
    with: Appended,
    after: Head,
    parts: u16,
    body: Vec<u8>,
}

impl Assembly {
    pub fn new(key: &SealKey, room: &RoomName) -> Assembly {
        let (key, room) = (key.clone(), room.clone());
        Assembly { key, room, at: Appended::default(), half: None, ends: Vec::new(), mark: None }
    }

    pub fn at(&self) -> Appended {
        self.at
    }

    pub fn mark(&self) -> Option<Mark> {
        self.mark
    }

    /// The last event of a batch of which only some parts came.
    pub fn half(&self) -> Option<Head> {
        self.half.as_ref().map(|half| half.with.head)
    }

    /// The next piece; a batch when it completes one that was not there yet.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Option<Stored>, Broken> {
        let piece = match Piece::read(&self.key, &self.room, bytes) {
            Ok(piece) => piece,
            Err(Unread::NoPiece) => return Err(self.broken("the next piece cannot be read")),
            Err(Unread::Foreign { after, head }) => {
                let first = after.0.saturating_add(1);
                return Err(self.broken(&format!(
                    "the next piece, of events {first} to {head}, was altered or added: its seal \
                     is not of this room and this master key"
                )));
            }
        };
        let held = piece.with.head <= self.at.head;
        if held && !self.was(piece.with) {
            return Err(self.broken("it holds two histories"));
        }
        match piece.kind {
            // It is put behind what the mirror holds.
            Kind::Digest if !held => Err(self.missing(piece.with.head)),
            Kind::Digest => {
                let Some(mark) = piece::mark(piece.body) else {
                    return Err(self.broken("a digest cannot be read"));
                };
                let newer = self.mark.is_none_or(|known| known.at < mark.at);
                if newer && mark.at <= self.at.head {
                    self.mark = Some(mark);
                }
                Ok(None)
            }
            // It came before, or its sender began anew.
            Kind::Batch if held => Ok(None),
            Kind::Batch => self.part(&piece),
        }
    }

    fn part(&mut self, piece: &Piece<'_>) -> Result<Option<Stored>, Broken> {
        let mut half = match self.half.take() {
            Some(half)
                if piece.part == half.parts
                    && half.with == piece.with
                    && half.after == piece.before.head =>
            {
                half
            }
            _ if piece.part == 0 => {
                let (with, after) = (piece.with, piece.before.head);
                Half { with, after, parts: 0, body: Vec::with_capacity(piece.body.len()) }
            }
            _ => return Err(self.broken("a part of the next batch is missing")),
        };
        half.body.extend_from_slice(piece.body);
        half.parts += 1;
        if half.parts < piece.of {
            self.half = Some(half);
            return Ok(None);
        }
        self.whole(half).map(Some)
    }

    fn whole(&mut self, half: Half) -> Result<Stored, Broken> {
        if half.after > self.at.head {
            return Err(self.missing(half.after));
        }
        let batch = piece::batch(half.with, half.after, &half.body);
        let fits = batch.filter(|batch| {
            let chain = self.at.chain.next(&self.room, &batch.link(), &batch.payload);
            batch.after == self.at.head && batch.chain == chain
        });
        let Some(batch) = fits else {
            return Err(self.broken("the next batch is not the one that was appended there"));
        };
        self.at = half.with;
        self.ends.push(self.at);
        Ok(batch)
    }

    /// Whether a batch ended there, with that chain; before the first there is nothing.
    fn was(&self, end: Appended) -> bool {
        if end == Appended::default() {
            return true;
        }
        let at = self.ends.binary_search_by_key(&end.head, |it| it.head);
        at.is_ok_and(|at| self.ends[at] == end)
    }

    fn missing(&self, last: Head) -> Broken {
        let first = self.at.head.0 + 1;
        self.broken(&format!("events {first} to {last} are missing"))
    }

    fn broken(&self, why: &str) -> Broken {
        Broken { after: self.at.head, why: why.to_owned() }
    }
}
