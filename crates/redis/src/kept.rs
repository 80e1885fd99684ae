//! What is kept of a room besides its log: how far it was trimmed, cursors, snapshots, the floor.
//!
//! Lives here: the picture of it, what may be done with it, and how it is written down. A change
//! is decided here, on a picture with a mark; the script writes it if the mark is still the same,
//! otherwise it is decided again on a new picture. The log only grows meanwhile, and nothing here
//! gets wrong by that.
//! Stays out: sending (`store.rs`), the chunks of snapshots (`snapshots.rs`).

use std::collections::BTreeMap;

use waitroom_store::{Chain, Cursor, Error, Gap, Head, HeldBy, RoomName, SinkName};

use crate::{
    trouble::Trouble,
    value::{Parts, digits},
};

/// A picture of what is kept, and what changes it is to have.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    /// Changes with every change; empty as long as nothing was kept.
    pub mark: String,
    /// How far readers may see. None: there is no such room.
    pub head: Option<Head>,
    pub trimmed_to: Head,
    pub floor: Option<Head>,
    pub cursors: BTreeMap<SinkName, Cursor>,
    /// Oldest first, at most two.
    pub snapshots: Vec<Kind>,
}

/// A snapshot as it is written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    pub at: Head,
    pub chain: Chain,
    /// Names its key.
    pub id: String,
    pub chunks: u64,
    /// SHA-256 over its chunks, in hex.
    pub sum: String,
}

/// Fields with values; an empty value takes the field away.
pub type Fields = Vec<(String, String)>;

impl Kept {
    pub fn read(mut parts: Parts) -> Result<Kept, Trouble> {
        let head = parts.text()?;
        let mut kept = Kept::default();
        if !head.is_empty() {
            let head = head.parse().map_err(|_| damaged("head", &head))?;
            kept.head = Some(Head(head));
        }
        let mut fields = parts.parts()?;
        let (mut newest, mut before) = (None, None);
        while fields.left() > 0 {
            let (field, value) = (fields.text()?, fields.text()?);
            let wrong = || damaged(&field, &value);
            match &*field {
                "mark" => kept.mark = value,
                "trimmed" => kept.trimmed_to = Head(value.parse().map_err(|_| wrong())?),
                "floor" => kept.floor = Some(Head(value.parse().map_err(|_| wrong())?)),
                "newest" => newest = Some(Kind::parse(&value).ok_or_else(wrong)?),
                "before" => before = Some(Kind::parse(&value).ok_or_else(wrong)?),
                field => {
                    let sink = field.strip_prefix("cursor:").ok_or_else(wrong)?;
                    let sink = SinkName::parse(sink).map_err(|_| wrong())?;
                    kept.cursors.insert(sink, parse_cursor(&value).ok_or_else(wrong)?);
                }
            }
        }
        kept.snapshots = before.into_iter().chain(newest).collect();
        Ok(kept)
    }

    /// There must be such a room.
    pub fn there(&self, room: &RoomName) -> Result<Head, Error> {
        self.head.ok_or_else(|| refused(format!("there is no room {room}")))
    }

    pub fn newest_snapshot(&self) -> Option<Head> {
        self.snapshots.last().map(|snapshot| snapshot.at)
    }

    /// How far trimming may go at most, and what holds it there. `given_up` sinks do not count.
    pub fn floor(&self, snapshot: Option<Head>, given_up: &[SinkName]) -> (Head, HeldBy) {
        let snapshot = (snapshot.unwrap_or_default(), HeldBy::Snapshot);
        let floor = self.floor.map(|floor| (floor, HeldBy::Retention));
        let pins =
            |(sink, cursor): &(&SinkName, &Cursor)| !cursor.broken && !given_up.contains(sink);
        let cursors = self.cursors.iter().filter(pins);
        let cursors = cursors.map(|(sink, cursor)| (cursor.at, HeldBy::Cursor(sink.clone())));
        // The first of the lowest: a snapshot before a floor before the sinks by name.
        let lower = |lowest: (Head, HeldBy), other: (Head, HeldBy)| {
            if other.0 < lowest.0 { other } else { lowest }
        };
        floor.into_iter().chain(cursors).fold(snapshot, lower)
    }

    /// The fields of a trim; none if that is trimmed already.
    pub fn trim(&self, to: Head) -> Result<Option<Fields>, Error> {
        if to <= self.trimmed_to {
            return Ok(None);
        }
        let (floor, held_by) = self.floor(self.newest_snapshot(), &[]);
        if to > floor {
            return Err(Error::AboveFloor { floor, held_by });
        }
        Ok(Some(vec![("trimmed".into(), digits(to.0))]))
    }

    pub fn advance(&self, head: Head, sink: &SinkName, to: Head) -> Result<Cursor, Error> {
        if to > head {
            return Err(refused(format!("the log ends at {head}, before {to}")));
        }
        let known = self.cursors.get(sink).copied();
        if let Some(known) = known.filter(|known| to < known.at) {
            return Err(refused(format!("the cursor is at {} already", known.at)));
        }
        // A whole cursor pins what it has not read, so only a new or a broken one can be below.
        if known.is_none_or(|known| known.broken) && to < self.trimmed_to {
            return Err(Error::Trimmed { to: self.trimmed_to });
        }
        Ok(Cursor { at: to, broken: false, gap: known.and_then(|known| known.gap) })
    }

    pub fn mark_broken(&self, head: Head, sink: &SinkName, to: Head) -> Result<Cursor, Error> {
        if to > head {
            return Err(refused(format!("the log ends at {head}, before {to}")));
        }
        let Some(cursor) = self.cursors.get(sink) else {
            return Err(refused(format!("there is no cursor {sink}")));
        };
        if to < cursor.at {
            return Err(refused(format!("the cursor is at {} already", cursor.at)));
        }
        // While it stays broken one gap grows; a cursor that was whole begins a new one.
        let after = cursor.gap.filter(|_| cursor.broken).map_or(cursor.at, |gap| gap.after);
        Ok(Cursor { at: to, broken: true, gap: Some(Gap { after, to }) })
    }
}

/// How a cursor is written down.
pub fn cursor_field(sink: &SinkName, cursor: Option<Cursor>) -> (String, String) {
    let value = cursor.map(|Cursor { at, broken, gap }| {
        let gap = gap.map(|Gap { after, to }| format!(" {after} {to}")).unwrap_or_default();
        format!("{at} {}{gap}", if broken { "broken" } else { "whole" })
    });
    (format!("cursor:{sink}"), value.unwrap_or_default())
}

fn parse_cursor(text: &str) -> Option<Cursor> {
    let mut words = text.split(' ');
    let at = Head(words.next()?.parse().ok()?);
    let broken = words.next()? == "broken";
    let gap = match words.next() {
        None => None,
        Some(after) => {
            let (after, to) = (after.parse().ok()?, words.next()?.parse().ok()?);
            Some(Gap { after: Head(after), to: Head(to) })
        }
    };
    Some(Cursor { at, broken, gap })
}

impl Kind {
    pub fn text(&self) -> String {
        let Kind { at, chain, id, chunks, sum } = self;
        format!("{at} {chain} {id} {chunks} {sum}")
    }

    fn parse(text: &str) -> Option<Kind> {
        let words: Vec<&str> = text.split(' ').collect();
        let [at, chain, id, chunks, sum] = words[..] else { return None };
        let mut bytes = [0; 32];
        for (byte, hex) in bytes.iter_mut().zip(chain.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?;
        }
        let chain = Chain(bytes);
        let (id, sum) = (id.to_owned(), sum.to_owned());
        Some(Kind { at: Head(at.parse().ok()?), chain, id, chunks: chunks.parse().ok()?, sum })
    }
}

pub fn refused(why: impl Into<String>) -> Error {
    Error::Refused { why: why.into() }
}

fn damaged(field: &str, value: &str) -> Trouble {
    Trouble::Damaged(format!("what is kept of a room has a strange {field}: {value:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_and_snapshots_are_read_back_as_written() {
        let gap = Some(Gap { after: Head(2), to: Head(5) });
        for cursor in [
            Cursor { at: Head(7), broken: false, gap: None },
            Cursor { at: Head(5), broken: true, gap },
            Cursor { at: Head(9), broken: false, gap },
        ] {
            let sink = SinkName::parse("bus").expect("a name");
            let (field, value) = cursor_field(&sink, Some(cursor));
            assert_eq!((&*field, parse_cursor(&value)), ("cursor:bus", Some(cursor)));
        }
        let (chain, id) = (Chain([0xab; 32]), "0f".to_owned());
        let kind = Kind { at: Head(3), chain, id, chunks: 4, sum: "aa".into() };
        assert_eq!(Kind::parse(&kind.text()), Some(kind));
    }
}
