//! The names of our keys, and the slot of a Cluster that each is in.
//!
//! All keys of a room hold its name in braces, so that a Cluster keeps them together and a script
//! may touch them all. The keys of no room (instances, names of rooms) hold a tag of their own.

use waitroom_store::{LeaseName, RoomName};

/// Slots of a Redis Cluster.
pub const SLOTS: u16 = 16_384;

#[derive(Debug, Clone)]
pub struct Keys {
    prefix: String,
}

impl Keys {
    pub fn new(prefix: &str) -> Keys {
        Keys { prefix: prefix.to_owned() }
    }

    fn of_room(&self, room: &RoomName, what: &str) -> String {
        format!("{}:{{{room}}}:{what}", self.prefix)
    }

    /// Head, chain, name of the newest batch, what is committed.
    pub fn tip(&self, room: &RoomName) -> String {
        self.of_room(room, "tip")
    }

    /// The batches: a stream whose ids are heads.
    pub fn log(&self, room: &RoomName) -> String {
        self.of_room(room, "log")
    }

    /// Cursors, snapshots, trim and floor.
    pub fn keep(&self, room: &RoomName) -> String {
        self.of_room(room, "keep")
    }

    pub fn board(&self, room: &RoomName) -> String {
        self.of_room(room, "board")
    }

    /// The chunks of one snapshot.
    pub fn snapshot(&self, room: &RoomName, id: &str) -> String {
        self.of_room(room, &format!("snapshot:{id}"))
    }

    /// The lease of a room lies beside the room; others have no room, and a `/` that no room has.
    pub fn lease(&self, name: &LeaseName) -> String {
        match name.as_str().strip_prefix("room/") {
            Some(room) => format!("{}:{{{room}}}:lease", self.prefix),
            None => format!("{}:{{/{name}}}:lease", self.prefix),
        }
    }

    pub fn room_lease(&self, room: &RoomName) -> String {
        self.lease(&LeaseName::room(room))
    }

    /// Every name under which a room was ever opened. Grows with names, not with visitors.
    pub fn rooms(&self) -> String {
        format!("{}:rooms", self.prefix)
    }

    pub fn instances(&self) -> String {
        format!("{}:instances", self.prefix)
    }
}

/// The slot of a key: CRC-16 (XMODEM) of what is in its first braces, or of all of it.
pub fn slot(key: &str) -> u16 {
    let tag = key
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'))
        .map(|(tag, _)| tag)
        .filter(|tag| !tag.is_empty())
        .unwrap_or(key);
    let crc = tag.bytes().fold(0u16, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    });
    crc % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first is the check value of the algorithm, 0x31c3, the others are what
    /// `CLUSTER KEYSLOT` of a real server said.
    #[test]
    fn slots_are_those_of_the_server() {
        assert_eq!(slot("123456789"), 0x31c3);
        assert_eq!(slot("somekey"), 11_058);
        assert_eq!(slot("foo{hash_tag}"), 2_515);
        assert_eq!(slot("foo{}{bar}"), 8_363);
    }

    #[test]
    fn all_keys_of_a_room_are_in_one_slot() {
        let (keys, room) = (Keys::new("wr"), RoomName::parse("spring-sale").expect("a name"));
        let slots = [
            keys.tip(&room),
            keys.log(&room),
            keys.keep(&room),
            keys.board(&room),
            keys.snapshot(&room, "a"),
            keys.room_lease(&room),
        ]
        .map(|key| slot(&key));
        assert_eq!(slots, [slot("spring-sale"); 6]);
    }
}
