//! Names that the store keys things by: rooms, leases, sinks.
//!
//! Lives here: what a well-formed name is. A name is parsed once, at the edge; whoever holds
//! one of these types need not look again. They become file names, Redis keys and metric
//! labels, so the alphabet is the smallest that still reads well.
//! Stays out: what the names mean.

use std::{fmt, sync::Arc};

/// Longest room name: with a suffix it must still be one label of a host name (63 letters).
const ROOM_BYTES_MAX: usize = 63;
/// Longest lease or sink name: a prefix and a room name fit well.
const OTHER_BYTES_MAX: usize = 120;

/// Why a text is not a name. Says which rule, because operators type these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadName {
    given: String,
    rule: &'static str,
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a name: {}", self.given, self.rule)
    }
}

impl std::error::Error for BadName {}

/// The name of a room and of its log. Cheap to clone: it is copied with every append.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoomName(Arc<str>);

impl RoomName {
    const SYSTEM: &'static str = "_system";

    /// `[a-z0-9][a-z0-9_-]{0,62}`: begins with a letter or digit, so no visitor-made room can
    /// ever take the name of an internal log, and no name is a path.
    pub fn parse(text: &str) -> Result<RoomName, BadName> {
        let bad = |rule| Err(BadName { given: text.chars().take(80).collect(), rule });
        let Some(&first) = text.as_bytes().first() else {
            return bad("it is empty");
        };
        if text.len() > ROOM_BYTES_MAX {
            return bad("a room name has at most 63 characters");
        }
        if !matches!(first, b'a'..=b'z' | b'0'..=b'9') {
            return bad("a room name begins with a-z or 0-9");
        }
        if !text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-')) {
            return bad("a room name holds only a-z, 0-9, _ and -");
        }
        Ok(RoomName(text.into()))
    }

    /// The one reserved log, for what belongs to no room: keys, secrets, audit.
    pub fn system() -> RoomName {
        RoomName(Self::SYSTEM.into())
    }

    pub fn is_system(&self) -> bool {
        &*self.0 == Self::SYSTEM
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Names read back from our own files: the alphabet, plus the reserved name.
    pub(crate) fn parse_stored(text: &str) -> Result<RoomName, BadName> {
        if text == Self::SYSTEM { Ok(Self::system()) } else { Self::parse(text) }
    }
}

fn parse_other(text: &str) -> Result<Arc<str>, BadName> {
    let bad = |rule| Err(BadName { given: text.chars().take(140).collect(), rule });
    if text.is_empty() {
        return bad("it is empty");
    }
    if text.len() > OTHER_BYTES_MAX {
        return bad("a lease or sink name has at most 120 characters");
    }
    if !text
        .bytes()
        .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'/' | b':'))
    {
        return bad("a lease or sink name holds only a-z, 0-9 and _ - . / :");
    }
    Ok(text.into())
}

/// What a lease is about: `room/<room>` for the writer of a room, anything else for other duties.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseName(Arc<str>);

impl LeaseName {
    const ROOM: &'static str = "room/";

    pub fn parse(text: &str) -> Result<LeaseName, BadName> {
        parse_other(text).map(LeaseName)
    }

    /// The lease that an append to `room` needs.
    pub fn room(room: &RoomName) -> LeaseName {
        LeaseName(format!("{}{room}", Self::ROOM).into())
    }

    /// Whether this is the lease of `room`, without building the name: asked on every append.
    pub fn is_of(&self, room: &RoomName) -> bool {
        self.0.strip_prefix(Self::ROOM) == Some(room.as_str())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A reader of a room's log that must see every event, and whose cursor the store keeps.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SinkName(Arc<str>);

impl SinkName {
    pub fn parse(text: &str) -> Result<SinkName, BadName> {
        parse_other(text).map(SinkName)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

macro_rules! shown_as_text {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
    )*};
}
shown_as_text!(RoomName, LeaseName, SinkName);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_name_is_short_lower_case_and_never_reserved() {
        for good in ["a", "0", "spring-sale", "a_b-c", &"x".repeat(63)] {
            assert!(RoomName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "_system", "_x", "-a", "A", "a b", "a/b", "..", "é", &"x".repeat(64)] {
            assert!(RoomName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_lease_of_a_room_belongs_to_that_room_only() {
        let (a, ab) = (RoomName::parse("a").unwrap(), RoomName::parse("ab").unwrap());
        assert!(LeaseName::room(&a).is_of(&a));
        assert!(!LeaseName::room(&a).is_of(&ab));
        assert!(!LeaseName::room(&ab).is_of(&a));
        assert!(!LeaseName::parse("a").unwrap().is_of(&a));
    }
}
