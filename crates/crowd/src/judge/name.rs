//! Names as numbers: ids, keys and users in sixteen bytes, whatever they looked like.

use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

/// A name that was an UUID, or a hash of one that was not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(pub u128);

impl Name {
    pub fn of(text: &str) -> Name {
        uuid(text).map_or_else(|| Name(hash(text)), Name)
    }
}

/// Ids of ours look like this again; other names are told by the number they became.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let it = format!("{:032x}", self.0);
        write!(f, "{}-{}-{}-{}-{}", &it[..8], &it[8..12], &it[12..16], &it[16..20], &it[20..])
    }
}

fn uuid(text: &str) -> Option<u128> {
    let bytes = text.as_bytes();
    let dashes = [8, 13, 18, 23];
    if bytes.len() != 36 || dashes.iter().any(|at| bytes[*at] != b'-') {
        return None;
    }
    let digits = bytes.iter().enumerate().filter(|(at, _)| !dashes.contains(at));
    digits.map(|(_, byte)| (*byte as char).to_digit(16)).try_fold(0u128, |sum, digit| {
        let digit = digit?;
        Some(sum << 4 | u128::from(digit))
    })
}

/// FNV-1a over 128 bits: the texts are ours or an honest recorder's, not an attacker's.
fn hash(text: &str) -> u128 {
    const PRIME: u128 = 0x0000000001000000000000000000013B;
    const BASIS: u128 = 0x6c62272e07bb014262b821756295c58d;
    text.bytes().fold(BASIS, |sum, byte| (sum ^ u128::from(byte)).wrapping_mul(PRIME))
}

/// A table by names. They are spread well already; hashing them again would cost more than it
/// gives.
pub type Map<V> = std::collections::HashMap<Name, V, BuildHasherDefault<Spread>>;

#[derive(Debug, Default)]
pub struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100000001b3);
        }
    }

    fn write_u128(&mut self, name: u128) {
        // Both halves times each other, and the product folded: names that count up, or whose
        // halves are alike, still spread.
        let (high, low) = ((name >> 64) as u64, name as u64);
        let product = u128::from(high ^ 0x243f6a8885a308d3) * u128::from(low ^ 0x13198a2e03707344);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_count_up_spread() {
        use std::hash::{BuildHasher, BuildHasherDefault};
        let hash = |name: u128| BuildHasherDefault::<Spread>::default().hash_one(Name(name));
        let spread = |name: fn(u128) -> u128| {
            let places: std::collections::BTreeSet<u64> =
                (0..10_000).map(|n| hash(name(n)) & 0xffff).collect();
            places.len()
        };
        // By chance alone 10,000 of 65,536 places would leave about 9,270 different ones.
        assert!(spread(|n| n) > 9_000);
        assert!(spread(|n| n << 64) > 9_000);
        assert!(spread(|n| n << 96 | n) > 9_000, "both halves alike");
    }

    #[test]
    fn an_id_reads_as_it_was_written_and_other_names_stay_apart() {
        let id = "f6c27f05-d2af-4a01-8000-0123456789ab";
        assert_eq!(Name::of(id).to_string(), id);
        assert_ne!(Name::of("user-1"), Name::of("user-2"));
        assert_ne!(Name::of("f6c27f05-d2af-4a01-8000-0123456789ag"), Name::of(id));
    }
}
