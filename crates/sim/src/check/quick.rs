//! Maps and sets for the checkers, hashed by a multiplication per word.
//!
//! Two thousand histories are judged in every run of the simulator, and the standard hash, made
//! against hostile keys, was most of the time. Nobody attacks a checker's maps.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

pub(super) type Map<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;
pub(super) type Set<K> = HashSet<K, BuildHasherDefault<Mix>>;

#[derive(Default)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(word.into());
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_u64(&mut self, word: u64) {
        // The golden ratio spreads neighbours; the fold brings the high bits down, where the map
        // looks for its bucket.
        let mixed = u128::from(self.0 ^ word ^ 0x51) * 0x9E37_79B9_7F4A_7C15;
        self.0 = (mixed as u64) ^ (mixed >> 64) as u64;
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
