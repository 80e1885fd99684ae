//! Who should own a room: every instance scores every room, and the highest score wins.
//!
//! Nobody has to agree on anything but who is there. When an instance comes or goes, only the rooms
//! move that it wins or had won; all others stay where they are.

/// The score of an instance for a room: the same everywhere, for ever.
pub(crate) fn score(instance: &str, room: &str) -> u64 {
    // FNV-1a over both names with a separator that no name contains, then a mix, because the last
    // letters alone would hardly change the upper bits that decide.
    let bytes = instance.bytes().chain([0xff]).chain(room.bytes());
    let folded = bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mixed = (folded ^ (folded >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ (mixed >> 33)
}

/// The instance that should own the room; none when there is nobody.
pub(crate) fn best<'a>(instances: impl Iterator<Item = &'a str>, room: &str) -> Option<&'a str> {
    // The name settles a tie, so that all settle it alike.
    instances.max_by_key(|instance| (score(instance, room), *instance))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(prefix: &str, count: usize) -> Vec<String> {
        (0..count).map(|at| format!("{prefix}-{at}")).collect()
    }

    fn owner<'a>(instances: &'a [String], room: &str) -> &'a str {
        best(instances.iter().map(String::as_str), room).expect("there is somebody")
    }

    #[test]
    fn rooms_spread_evenly() {
        let (instances, rooms) = (names("waitroom", 4), names("sale", 4_000));
        for instance in &instances {
            let owned = rooms.iter().filter(|room| owner(&instances, room) == instance).count();
            assert!((850..1_150).contains(&owned), "{instance} has {owned} of 4,000");
        }
    }

    #[test]
    fn only_the_rooms_of_who_came_or_went_move() {
        let (three, rooms) = (names("waitroom", 3), names("sale", 1_000));
        let four = names("waitroom", 4);
        for room in &rooms {
            let (before, after) = (owner(&three, room), owner(&four, room));
            assert!(after == before || after == "waitroom-3", "{room}: {before} to {after}");
        }
    }
}
