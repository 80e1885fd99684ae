//! All that happened in a run as one number, so that two runs of a seed can be compared.
//!
//! Lives here: folding whatever is noted, in order. Not for secrets, and not against an adversary:
//! of two runs that differ anywhere the numbers differ, but for a chance of one in 2^64.

use std::fmt::{self, Write};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace(u64);

impl Trace {
    pub(super) fn note(&mut self, what: impl fmt::Debug) {
        write!(self, "{what:?};").expect("a number takes any text");
    }
}

impl Default for Trace {
    fn default() -> Trace {
        Trace(0xcbf2_9ce4_8422_2325)
    }
}

/// FNV-1a, eight bytes at a time: a run notes some megabytes.
impl Write for Trace {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for chunk in text.as_bytes().chunks(8) {
            let mut word = [chunk.len() as u8; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = (self.0 ^ u64::from_le_bytes(word)).wrapping_mul(0x100_0000_01b3);
            self.0 ^= self.0 >> 29;
        }
        Ok(())
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
