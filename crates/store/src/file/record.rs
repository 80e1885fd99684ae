//! How the journal spells things: frames, and what is in them.
//!
//! Lives here: bytes in, records out, and back. All integers little-endian.
//! Stays out: what records mean when added up (`state`) and in which file they are (`segment`).
//!
//! A frame, the unit that is whole or not there:
//! ```text
//! len    u32   bytes after the checksum
//! crc    u32   CRC-32 of len and of those bytes
//! group  u64   offset in the segment at which this record's group begins
//! kind   u8
//! body   …
//! ```
//! `group` says how far the file had been synced when this frame was written, because a group is
//! only written after the one before it was synced. So a whole frame that names a group beyond some
//! broken place proves that the broken place once was good: damage, not a torn tail.
//! To add a kind: a constant, a variant of [`Note`], its arms here and in `state`, and a fixture.

use crate::{
    cursor::{Cursor, Gap},
    file::state::{Granted, Room, State},
    log::{Appended, Chain, Head, Link},
    name::{LeaseName, RoomName, SinkName},
};

/// Before the body: len, crc, group, kind.
const FRAME_HEAD: usize = 4 + 4 + 8 + 1;
/// What `len` counts of the head: group and kind.
const COUNTED_HEAD: usize = 8 + 1;
/// Payloads above this are refused. Far above any sensible batch, far below what a frame can hold.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 64 << 20;
/// A checkpoint holds every room; at some 300 bytes each this is a million of them.
const FRAME_BYTES_MAX: usize = 512 << 20;

const BATCH: u8 = 1;
const CARRIED: u8 = 2;
const LEASED: u8 = 3;
const RELEASED: u8 = 4;
const CURSOR: u8 = 5;
const CURSOR_DROPPED: u8 = 6;
const TRIMMED: u8 = 7;
const FLOOR: u8 = 8;
const REMOVED: u8 = 9;
const ADOPTED: u8 = 10;
const EPOCHS_RAISED: u8 = 11;
const CHECKPOINT: u8 = 12;
const CLOSED: u8 = 13;
const KIND_MAX: u8 = CLOSED;

/// A record of the journal.
#[derive(Debug, PartialEq)]
pub(crate) enum Record<'a> {
    Batch(BatchRecord<'a>),
    Note(Note),
    /// The sum of everything before; the first record of every segment.
    Checkpoint(State),
    /// The store was closed in good order: everything before was synced.
    Closed,
}

/// A batch, fresh or carried forward from a segment that was to go.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BatchRecord<'a> {
    pub carried: bool,
    pub room: RoomName,
    pub link: Link,
    pub at_ms: u64,
    /// The chain before it. With it each batch proves itself without its predecessor at hand.
    pub before: Chain,
    pub payload: &'a [u8],
}

impl BatchRecord<'_> {
    pub fn chain(&self) -> Chain {
        self.before.next(&self.room, &self.link, self.payload)
    }
}

/// Everything else that must be remembered, as a fact.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Note {
    Leased {
        name: LeaseName,
        epoch: u32,
        nonce: u128,
        who: String,
    },
    Released {
        name: LeaseName,
    },
    Cursor {
        room: RoomName,
        sink: SinkName,
        cursor: Cursor,
    },
    CursorDropped {
        room: RoomName,
        sink: SinkName,
    },
    Trimmed {
        room: RoomName,
        to: Head,
    },
    Floor {
        room: RoomName,
        floor: Option<Head>,
    },
    Removed {
        room: RoomName,
    },
    /// An import begins: the room's log starts after `base`, and counts once it reaches `until`.
    Adopted {
        room: RoomName,
        base: Appended,
        until: Head,
    },
    /// After a restore or a cut: epochs of the lost time must not be given again.
    EpochsRaised {
        by: u32,
    },
}

/// A frame whose checksum is right.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    pub group: u64,
    kind: u8,
    body: &'a [u8],
    /// Length of the whole frame.
    pub len: usize,
}

/// Why there is no frame here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoFrame {
    /// Nothing follows: the ordinary end.
    End,
    /// Something follows, but no whole frame.
    Broken(&'static str),
}

/// Reads the frame at the beginning of `bytes`, if it is whole.
pub(crate) fn frame(bytes: &[u8]) -> Result<Frame<'_>, NoFrame> {
    if bytes.is_empty() {
        return Err(NoFrame::End);
    }
    let Some(head) = bytes.first_chunk::<FRAME_HEAD>() else {
        return Err(NoFrame::Broken("the file ends within a record's head"));
    };
    let counted = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
    if !(COUNTED_HEAD..=FRAME_BYTES_MAX).contains(&counted) {
        return Err(NoFrame::Broken("a record has an impossible length"));
    }
    let Some(counted_bytes) = bytes.get(8..8 + counted) else {
        return Err(NoFrame::Broken("the file ends within a record"));
    };
    let crc = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    if checksum(&bytes[..4], counted_bytes) != crc {
        return Err(NoFrame::Broken("a record's checksum is wrong"));
    }
    let group = u64::from_le_bytes(head[8..16].try_into().expect("eight bytes"));
    Ok(Frame { group, kind: head[16], body: &counted_bytes[COUNTED_HEAD..], len: 8 + counted })
}

/// Whether a frame could begin here, cheaply: asked at every byte when searching behind damage.
pub(crate) fn plausible(bytes: &[u8], offset: u64) -> bool {
    let Some(head) = bytes.first_chunk::<FRAME_HEAD>() else { return false };
    let counted = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
    let group = u64::from_le_bytes(head[8..16].try_into().expect("eight bytes"));
    (COUNTED_HEAD..=bytes.len() - 8).contains(&counted)
        && group <= offset
        && (BATCH..=KIND_MAX).contains(&head[16])
}

fn checksum(len: &[u8], rest: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(len);
    hasher.update(rest);
    hasher.finalize()
}

/// Appends one frame to `out`, its body written by `body`.
fn write_frame(out: &mut Vec<u8>, group: u64, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&group.to_le_bytes());
    out.push(kind);
    body(out);
    let counted =
        u32::try_from(out.len() - start - 8).expect("bodies are bounded well below 4 GiB");
    out[start..start + 4].copy_from_slice(&counted.to_le_bytes());
    let crc = checksum(&counted.to_le_bytes(), &out[start + 8..]);
    out[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
}

pub(crate) fn write_batch(out: &mut Vec<u8>, group: u64, batch: &BatchRecord<'_>) {
    let kind = if batch.carried { CARRIED } else { BATCH };
    write_frame(out, group, kind, |out| {
        write_text(out, batch.room.as_str());
        let link = &batch.link;
        out.extend_from_slice(&link.epoch.to_le_bytes());
        out.extend_from_slice(&link.nonce.to_le_bytes());
        out.extend_from_slice(&link.number.to_le_bytes());
        out.extend_from_slice(&link.after.0.to_le_bytes());
        out.extend_from_slice(&link.events.to_le_bytes());
        out.extend_from_slice(&batch.at_ms.to_le_bytes());
        out.extend_from_slice(&batch.before.0);
        out.extend_from_slice(batch.payload);
    });
}

pub(crate) fn write_note(out: &mut Vec<u8>, group: u64, note: &Note) {
    match note {
        Note::Leased { name, epoch, nonce, who } => write_frame(out, group, LEASED, |out| {
            write_text(out, name.as_str());
            out.extend_from_slice(&epoch.to_le_bytes());
            out.extend_from_slice(&nonce.to_le_bytes());
            write_text(out, who);
        }),
        Note::Released { name } => {
            write_frame(out, group, RELEASED, |out| write_text(out, name.as_str()));
        }
        Note::Cursor { room, sink, cursor } => write_frame(out, group, CURSOR, |out| {
            write_text(out, room.as_str());
            write_text(out, sink.as_str());
            write_cursor(out, cursor);
        }),
        Note::CursorDropped { room, sink } => write_frame(out, group, CURSOR_DROPPED, |out| {
            write_text(out, room.as_str());
            write_text(out, sink.as_str());
        }),
        Note::Trimmed { room, to } => write_frame(out, group, TRIMMED, |out| {
            write_text(out, room.as_str());
            out.extend_from_slice(&to.0.to_le_bytes());
        }),
        Note::Floor { room, floor } => write_frame(out, group, FLOOR, |out| {
            write_text(out, room.as_str());
            write_head(out, *floor);
        }),
        Note::Removed { room } => {
            write_frame(out, group, REMOVED, |out| write_text(out, room.as_str()));
        }
        Note::Adopted { room, base, until } => write_frame(out, group, ADOPTED, |out| {
            write_text(out, room.as_str());
            out.extend_from_slice(&base.head.0.to_le_bytes());
            out.extend_from_slice(&base.chain.0);
            out.extend_from_slice(&until.0.to_le_bytes());
        }),
        Note::EpochsRaised { by } => write_frame(out, group, EPOCHS_RAISED, |out| {
            out.extend_from_slice(&by.to_le_bytes());
        }),
    }
}

pub(crate) fn write_closed(out: &mut Vec<u8>, group: u64) {
    write_frame(out, group, CLOSED, |_| {});
}

/// Rooms and leases sorted by name, so that the same state always has the same bytes.
pub(crate) fn write_checkpoint(out: &mut Vec<u8>, group: u64, state: &State) {
    write_frame(out, group, CHECKPOINT, |out| write_state(out, state));
}

pub(crate) fn write_state(out: &mut Vec<u8>, state: &State) {
    let mut rooms: Vec<_> = state.rooms.iter().collect();
    rooms.sort_by_key(|(name, _)| *name);
    out.extend_from_slice(&(rooms.len() as u32).to_le_bytes());
    for (name, room) in rooms {
        write_text(out, name.as_str());
        out.extend_from_slice(&room.tip.head.0.to_le_bytes());
        out.extend_from_slice(&room.tip.chain.0);
        out.extend_from_slice(&room.last.0.to_le_bytes());
        out.extend_from_slice(&room.last.1.to_le_bytes());
        out.extend_from_slice(&room.trimmed_to.0.to_le_bytes());
        write_head(out, room.floor);
        write_head(out, room.adopting);
        out.extend_from_slice(&(room.cursors.len() as u32).to_le_bytes());
        for (sink, cursor) in room.cursors.iter() {
            write_text(out, sink.as_str());
            write_cursor(out, cursor);
        }
    }
    let mut leases: Vec<_> = state.leases.iter().collect();
    leases.sort_by_key(|(name, _)| *name);
    out.extend_from_slice(&(leases.len() as u32).to_le_bytes());
    for (name, granted) in leases {
        write_text(out, name.as_str());
        out.extend_from_slice(&granted.epoch.to_le_bytes());
        out.extend_from_slice(&granted.nonce.to_le_bytes());
        write_text(out, &granted.who);
        out.push(u8::from(granted.released));
    }
    let mut removals: Vec<_> = state.removals.iter().collect();
    removals.sort();
    out.extend_from_slice(&(removals.len() as u32).to_le_bytes());
    for (name, times) in removals {
        write_text(out, name.as_str());
        out.extend_from_slice(&times.to_le_bytes());
    }
}

/// Names and holders are bounded well below this by whoever parsed them.
fn write_text(out: &mut Vec<u8>, text: &str) {
    let len = u8::try_from(text.len()).expect("names have at most 120 bytes, holders 200");
    out.push(len);
    out.extend_from_slice(text.as_bytes());
}

/// `None` is spelled as the one head no log can reach.
fn write_head(out: &mut Vec<u8>, head: Option<Head>) {
    out.extend_from_slice(&head.map_or(u64::MAX, |head| head.0).to_le_bytes());
}

fn write_cursor(out: &mut Vec<u8>, cursor: &Cursor) {
    out.extend_from_slice(&cursor.at.0.to_le_bytes());
    out.push(u8::from(cursor.broken));
    let gap = cursor.gap;
    write_head(out, gap.map(|gap| gap.after));
    write_head(out, gap.map(|gap| gap.to));
}

/// What a frame with a right checksum says. An error here is our own mistake or a newer format:
/// a checksum does not come right by accident.
pub(crate) fn record<'a>(frame: &Frame<'a>) -> Result<Record<'a>, &'static str> {
    let mut body = Body(frame.body);
    let record = match frame.kind {
        BATCH | CARRIED => {
            let room = body.room()?;
            let link = Link {
                epoch: body.u32()?,
                nonce: body.u128()?,
                number: body.u64()?,
                after: Head(body.u64()?),
                events: body.u32()?,
            };
            let at_ms = body.u64()?;
            let before = Chain(body.array()?);
            let payload = std::mem::take(&mut body.0);
            Record::Batch(BatchRecord {
                carried: frame.kind == CARRIED,
                room,
                link,
                at_ms,
                before,
                payload,
            })
        }
        LEASED => Record::Note(Note::Leased {
            name: body.lease()?,
            epoch: body.u32()?,
            nonce: body.u128()?,
            who: body.text()?.to_string(),
        }),
        RELEASED => Record::Note(Note::Released { name: body.lease()? }),
        CURSOR => Record::Note(Note::Cursor {
            room: body.room()?,
            sink: body.sink()?,
            cursor: body.cursor()?,
        }),
        CURSOR_DROPPED => {
            Record::Note(Note::CursorDropped { room: body.room()?, sink: body.sink()? })
        }
        TRIMMED => Record::Note(Note::Trimmed { room: body.room()?, to: Head(body.u64()?) }),
        FLOOR => Record::Note(Note::Floor { room: body.room()?, floor: body.head()? }),
        REMOVED => Record::Note(Note::Removed { room: body.room()? }),
        ADOPTED => Record::Note(Note::Adopted {
            room: body.room()?,
            base: Appended { head: Head(body.u64()?), chain: Chain(body.array()?) },
            until: Head(body.u64()?),
        }),
        EPOCHS_RAISED => Record::Note(Note::EpochsRaised { by: body.u32()? }),
        CHECKPOINT => Record::Checkpoint(body.state()?),
        CLOSED => Record::Closed,
        _ => return Err("a record of an unknown kind"),
    };
    if body.0.is_empty() { Ok(record) } else { Err("a record with more in it than it should have") }
}

/// Takes a body apart from the front.
struct Body<'a>(&'a [u8]);

type Field<T> = Result<T, &'static str>;

impl<'a> Body<'a> {
    fn bytes(&mut self, len: usize) -> Field<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(len).ok_or("a record that ends too early")?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Field<[u8; N]> {
        Ok(self.bytes(N)?.try_into().expect("as many as were asked for"))
    }

    fn u8(&mut self) -> Field<u8> {
        Ok(self.array::<1>()?[0])
    }

    fn u32(&mut self) -> Field<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Field<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn u128(&mut self) -> Field<u128> {
        Ok(u128::from_le_bytes(self.array()?))
    }

    fn flag(&mut self) -> Field<bool> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err("a flag that is neither yes nor no"),
        }
    }

    fn text(&mut self) -> Field<&'a str> {
        let len = self.u8()?;
        std::str::from_utf8(self.bytes(usize::from(len))?).map_err(|_| "a text that is not UTF-8")
    }

    fn room(&mut self) -> Field<RoomName> {
        RoomName::parse_stored(self.text()?).map_err(|_| "a bad room name")
    }

    fn lease(&mut self) -> Field<LeaseName> {
        LeaseName::parse(self.text()?).map_err(|_| "a bad lease name")
    }

    fn sink(&mut self) -> Field<SinkName> {
        SinkName::parse(self.text()?).map_err(|_| "a bad sink name")
    }

    fn head(&mut self) -> Field<Option<Head>> {
        let head = self.u64()?;
        Ok((head != u64::MAX).then_some(Head(head)))
    }

    fn cursor(&mut self) -> Field<Cursor> {
        let (at, broken) = (Head(self.u64()?), self.flag()?);
        let gap = match (self.head()?, self.head()?) {
            (Some(after), Some(to)) => Some(Gap { after, to }),
            (None, None) => None,
            _ => return Err("half a gap"),
        };
        Ok(Cursor { at, broken, gap })
    }

    fn state(&mut self) -> Field<State> {
        let mut state = State::default();
        for _ in 0..self.u32()? {
            let name = self.room()?;
            let mut room = Room {
                tip: Appended { head: Head(self.u64()?), chain: Chain(self.array()?) },
                last: (self.u32()?, self.u64()?),
                trimmed_to: Head(self.u64()?),
                floor: self.head()?,
                adopting: self.head()?,
                ..Room::default()
            };
            let mut cursors = std::collections::BTreeMap::new();
            for _ in 0..self.u32()? {
                cursors.insert(self.sink()?, self.cursor()?);
            }
            room.cursors = cursors.into();
            state.rooms.insert(name, room);
        }
        for _ in 0..self.u32()? {
            let name = self.lease()?;
            let granted = Granted {
                epoch: self.u32()?,
                nonce: self.u128()?,
                who: self.text()?.into(),
                released: self.flag()?,
            };
            state.leases.insert(name, granted);
        }
        for _ in 0..self.u32()? {
            let name = self.room()?;
            state.removals.insert(name, self.u32()?);
        }
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn room() -> RoomName {
        RoomName::parse("spring-sale").unwrap()
    }

    fn batch(payload: &[u8]) -> BatchRecord<'_> {
        let link = Link { epoch: 7, nonce: 8 << 80, number: 9, after: Head(10), events: 11 };
        BatchRecord {
            carried: false,
            room: room(),
            link,
            at_ms: 12,
            before: Chain([13; 32]),
            payload,
        }
    }

    fn notes() -> Vec<Note> {
        let (name, sink) = (LeaseName::room(&room()), SinkName::parse("nats").unwrap());
        let whole = Cursor { at: Head(1), broken: false, gap: None };
        let gap = Some(Gap { after: Head(1), to: Head(5) });
        let broken = Cursor { at: Head(5), broken: true, gap };
        let base = Appended { head: Head(3), chain: Chain([4; 32]) };
        vec![
            Note::Leased { name: name.clone(), epoch: 3, nonce: 4, who: "é host:1".into() },
            Note::Released { name },
            Note::Cursor { room: room(), sink: sink.clone(), cursor: whole },
            Note::Cursor { room: RoomName::system(), sink: sink.clone(), cursor: broken },
            Note::CursorDropped { room: room(), sink },
            Note::Trimmed { room: room(), to: Head(9) },
            Note::Floor { room: room(), floor: Some(Head(0)) },
            Note::Floor { room: room(), floor: None },
            Note::Removed { room: room() },
            Note::Adopted { room: room(), base, until: Head(8) },
            Note::EpochsRaised { by: 1000 },
        ]
    }

    #[test]
    fn every_record_reads_back_as_it_was_written() {
        let mut bytes = Vec::new();
        for note in notes() {
            write_note(&mut bytes, 77, &note);
        }
        write_batch(&mut bytes, 77, &batch(b"payload"));
        write_batch(&mut bytes, 77, &BatchRecord { carried: true, ..batch(b"") });
        write_closed(&mut bytes, 77);
        let mut left = &bytes[..];
        let mut read = Vec::new();
        while !left.is_empty() {
            let frame = frame(left).expect("whole");
            assert!(plausible(left, 77));
            assert_eq!(frame.group, 77);
            read.push(record(&frame).expect("understood"));
            left = &left[frame.len..];
        }
        let mut expected: Vec<Record<'_>> = notes().into_iter().map(Record::Note).collect();
        expected.push(Record::Batch(batch(b"payload")));
        expected.push(Record::Batch(BatchRecord { carried: true, ..batch(b"") }));
        expected.push(Record::Closed);
        assert_eq!(read, expected);
    }

    #[test]
    fn no_cut_and_no_flipped_bit_leaves_a_whole_frame() {
        let mut bytes = Vec::new();
        write_batch(&mut bytes, 5, &batch(b"payload"));
        for len in 1..bytes.len() {
            assert!(matches!(frame(&bytes[..len]), Err(NoFrame::Broken(_))), "cut at {len}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(frame(&flipped).is_err(), "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn hostile_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 0u8..20) {
            let _ = frame(&bytes);
            let _ = plausible(&bytes, 50);
            // The same bytes as a body with a right checksum, so that decoding is reached.
            let mut framed = Vec::new();
            write_frame(&mut framed, 0, kind, |out| out.extend_from_slice(&bytes));
            let _ = record(&frame(&framed).expect("whole"));
        }
    }
}
