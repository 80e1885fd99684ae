//! The draw of a pre-sale: from a sealed seed to everybody's place, and the proof of it.
//!
//! Lives here: the hashes that commit to a seed and derive the keys of a draw, and [`Proof`],
//! which anyone can check afterwards.
//! Stays out: when a draw happens and where the seed, the beacon and the log come from; the
//! shuffle itself (`permutation`).
//!
//! Each value is published before the next can be known, so nobody can choose the outcome:
//!
//! ```text
//! opening   commitment = H("commitment", seed), and the name of a beacon round still to come
//! close     how many take part in each lane, and the chain hash of the log
//! draw      final key  = H("final", seed, counts, chain hash, beacon value)
//!           lane key   = H("lane", final key, lane), the key of the lane's permutation
//! after     the seed and the beacon value: anyone computes all of it again
//! ```
//!
//! `H` is SHA-256 over a label of its own and fields that are of fixed length or carry their
//! length, so no two different inputs are hashed as the same bytes. The exact bytes are in
//! `docs/draw.md`; `docs/vectors/draw.json` holds draws made by a second implementation.
//! Start reading at [`Proof::check`].

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::permutation::{N_MAX, Permutation};

const COMMITMENT_LABEL: &[u8] = b"waitroom/v1/draw/commitment\0";
const FINAL_LABEL: &[u8] = b"waitroom/v1/draw/final\0";
const LANE_LABEL: &[u8] = b"waitroom/v1/draw/lane\0";
const WINDOW_LABEL: &[u8] = b"waitroom/v1/window\0";

/// What a room publishes at its opening. The seed has 256 random bits, so the hash gives
/// nothing away, and no second seed with this hash can be found later.
pub fn commitment(seed: &[u8; 32]) -> [u8; 32] {
    Sha256::new().chain_update(COMMITMENT_LABEL).chain_update(seed).finalize().into()
}

/// How many people of a lane take part in the draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaneCount {
    pub lane: u8,
    pub count: u64,
}

/// The key of the whole draw. Nobody knows it before the close: the chain hash holds every
/// join, and the beacon value does not exist yet while people still join.
///
/// # Panics
/// When the lanes do not ascend, each named once: two spellings of one fact would give two
/// draws. Whoever takes counts from a stranger checks them first.
pub fn final_key(
    seed: &[u8; 32],
    counts: &[LaneCount],
    chain_hash: &[u8; 32],
    beacon: Option<&[u8]>,
) -> [u8; 32] {
    assert!(counts.is_sorted_by(|a, b| a.lane < b.lane), "lanes ascend, each named once");
    let mut hash = Sha256::new().chain_update(FINAL_LABEL).chain_update(seed);
    // 256 lanes do not fit in one byte.
    hash.update((counts.len() as u16).to_be_bytes());
    for LaneCount { lane, count } in counts {
        hash.update([*lane]);
        hash.update(count.to_be_bytes());
    }
    hash.update(chain_hash);
    // "No beacon" and "an empty beacon" are different stories, so the first has its own byte.
    match beacon {
        None => hash.update([0]),
        Some(value) => {
            hash.update([1]);
            hash.update((value.len() as u64).to_be_bytes());
            hash.update(value);
        }
    }
    hash.finalize().into()
}

/// The key of one lane's permutation. Lanes get keys of their own, so that equal numbers in
/// two lanes do not go to equal places.
pub fn lane_key(final_key: &[u8; 32], lane: u8) -> [u8; 16] {
    first_half(Sha256::new().chain_update(LANE_LABEL).chain_update(final_key).chain_update([lane]))
}

/// The key of one shuffle window: the tickets of `lane` from number `start` on. Every window
/// has its own, so that the end of one says nothing about the next.
pub fn window_key(seed: &[u8; 16], lane: u8, start: u64) -> [u8; 16] {
    let hash = Sha256::new().chain_update(WINDOW_LABEL).chain_update(seed);
    first_half(hash.chain_update([lane]).chain_update(start.to_be_bytes()))
}

/// Everything about a finished draw, as the room publishes it: JSON, with bytes as lower case
/// hexadecimal. `waitroom verify` reads this.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    pub format: Format,
    pub room: String,
    /// Published at the opening.
    #[serde(with = "hex::fixed")]
    pub commitment: [u8; 32],
    /// The beacon round that the room named at its opening, if it named one.
    pub beacon_round: Option<String>,
    /// Published at the close, lanes ascending.
    pub counts: Vec<LaneCount>,
    /// The log's chain hash at the close.
    #[serde(with = "hex::fixed")]
    pub chain_hash: [u8; 32],
    /// Revealed after the draw.
    #[serde(with = "hex::fixed")]
    pub seed: [u8; 32],
    /// What the beacon said. Absent when none was named, or when an operator went on without.
    #[serde(default, with = "hex::maybe")]
    pub beacon_value: Option<Vec<u8>>,
    #[serde(with = "hex::fixed")]
    pub final_key: [u8; 32],
}

/// Which rules a proof follows. A reader refuses what it does not know instead of guessing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Format {
    #[serde(rename = "waitroom-draw-1")]
    V1,
}

impl Proof {
    pub fn from_json(text: &str) -> Result<Self, ProofError> {
        serde_json::from_str(text)
            .map_err(|error| ProofError::Unreadable { why: error.to_string() })
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("strings, numbers and lists always serialise")
    }

    /// Computes the draw again from what was revealed and compares it with what was published.
    ///
    /// This shows that the parts of the proof belong together. That the commitment, the round
    /// name, the counts and the chain hash are those that the room showed at the time, and that
    /// the beacon really said this value, only someone who looks there can know; `docs/draw.md`
    /// lists what to compare.
    pub fn check(&self) -> Result<Verified, ProofError> {
        for pair in self.counts.windows(2) {
            if pair[0].lane >= pair[1].lane {
                return Err(ProofError::LanesOutOfOrder { lane: pair[1].lane });
            }
        }
        for &LaneCount { lane, count } in &self.counts {
            if count > N_MAX {
                return Err(ProofError::TooMany { lane, count });
            }
        }
        let assurance = match (&self.beacon_round, &self.beacon_value) {
            (None, None) => Assurance::Committed,
            (Some(_), None) => Assurance::BeaconWaived,
            (None, Some(_)) => return Err(ProofError::BeaconUnannounced),
            (Some(_), Some(value)) if value.is_empty() => return Err(ProofError::BeaconEmpty),
            (Some(_), Some(_)) => Assurance::Verifiable,
        };
        if commitment(&self.seed) != self.commitment {
            return Err(ProofError::SeedMismatch);
        }
        let computed =
            final_key(&self.seed, &self.counts, &self.chain_hash, self.beacon_value.as_deref());
        if computed != self.final_key {
            return Err(ProofError::FinalKeyMismatch { computed });
        }
        let permutation = |&LaneCount { lane, count }: &LaneCount| {
            (lane, Permutation::new(lane_key(&computed, lane), count))
        };
        Ok(Verified { assurance, lanes: self.counts.iter().map(permutation).collect() })
    }

    /// Checks the proof and looks up one place: at which order the ticket is served, or `None`
    /// if it took no part in the draw. For more than one place keep the [`Verified`].
    pub fn order_of(&self, lane: u8, number: u64) -> Result<Option<u64>, ProofError> {
        Ok(self.check()?.order_of(lane, number))
    }
}

/// A draw that was computed again and found as published. Only [`Proof::check`] makes one.
#[derive(Clone, Debug)]
pub struct Verified {
    assurance: Assurance,
    lanes: BTreeMap<u8, Permutation>,
}

impl Verified {
    pub fn assurance(&self) -> Assurance {
        self.assurance
    }

    /// The lanes that took part, with how many people each.
    pub fn counts(&self) -> impl Iterator<Item = LaneCount> {
        self.lanes.iter().map(|(&lane, order)| LaneCount { lane, count: order.n() })
    }

    /// At which order a ticket is served, or `None` if it took no part in the draw.
    pub fn order_of(&self, lane: u8, number: u64) -> Option<u64> {
        let permutation = self.lanes.get(&lane)?;
        (number < permutation.n()).then(|| permutation.forward(number))
    }

    /// Which ticket is served at `order`, or `None` if that place was not drawn.
    pub fn number_at(&self, lane: u8, order: u64) -> Option<u64> {
        let permutation = self.lanes.get(&lane)?;
        (order < permutation.n()).then(|| permutation.inverse(order))
    }
}

/// How much a draw proves. The page says no more than this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assurance {
    /// A beacon named in advance went in: nobody could know or steer the outcome.
    Verifiable,
    /// No beacon was named. The seed was fixed in advance, but the room knew it, and could have
    /// tried out the last joins until it liked the outcome.
    Committed,
    /// A beacon was named, and an operator went on without it: an audited act. It proves no
    /// more than `Committed`, and readers must be told why.
    BeaconWaived,
}

impl Assurance {
    /// The word for pages, JSON and test vectors.
    pub fn word(self) -> &'static str {
        match self {
            Self::Verifiable => "verifiable",
            Self::Committed => "committed",
            Self::BeaconWaived => "beacon_waived",
        }
    }
}

/// Why a proof proves nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProofError {
    Unreadable { why: String },
    LanesOutOfOrder { lane: u8 },
    TooMany { lane: u8, count: u64 },
    BeaconUnannounced,
    BeaconEmpty,
    SeedMismatch,
    FinalKeyMismatch { computed: [u8; 32] },
}

impl ProofError {
    /// A stable word for scripts and test vectors.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "unreadable",
            Self::LanesOutOfOrder { .. } => "lanes_out_of_order",
            Self::TooMany { .. } => "too_many",
            Self::BeaconUnannounced => "beacon_unannounced",
            Self::BeaconEmpty => "beacon_empty",
            Self::SeedMismatch => "seed_mismatch",
            Self::FinalKeyMismatch { .. } => "final_key_mismatch",
        }
    }
}

impl fmt::Display for ProofError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { why } => write!(f, "this is not a proof of a draw: {why}"),
            Self::LanesOutOfOrder { lane } => {
                write!(f, "lane {lane} is named twice or after a higher one")
            }
            Self::TooMany { lane, count } => {
                write!(f, "lane {lane} cannot have {count} people: {N_MAX} is the most")
            }
            Self::BeaconUnannounced => f.write_str(
                "a beacon value was used, but no beacon round was named at the opening: \
                 it may have been picked afterwards",
            ),
            Self::BeaconEmpty => f.write_str("the beacon value is empty"),
            Self::SeedMismatch => {
                f.write_str("the revealed seed is not the one committed to at the opening")
            }
            Self::FinalKeyMismatch { computed } => write!(
                f,
                "seed, counts, chain hash and beacon give the final key {}, not the published one",
                hex::encode(computed)
            ),
        }
    }
}

impl std::error::Error for ProofError {}

fn first_half(hash: Sha256) -> [u8; 16] {
    let mut key = [0; 16];
    key.copy_from_slice(&hash.finalize()[..16]);
    key
}

/// Bytes as lower case hexadecimal in JSON. Upper case is refused, so that a proof has one
/// spelling and can itself be hashed and compared.
mod hex {
    use std::fmt::Write;

    use serde::Deserialize;
    use serde::de::Error;

    pub fn encode(bytes: &[u8]) -> String {
        let mut text = String::with_capacity(2 * bytes.len());
        for byte in bytes {
            write!(text, "{byte:02x}").expect("writing to a string does not fail");
        }
        text
    }

    fn decode<E: Error>(text: &str) -> Result<Vec<u8>, E> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Ok(byte - b'0'),
            b'a'..=b'f' => Ok(byte - b'a' + 10),
            _ => Err(E::custom("bytes are written in lower case hexadecimal")),
        };
        if !text.len().is_multiple_of(2) {
            return Err(E::custom("bytes are written with two hexadecimal digits each"));
        }
        text.as_bytes().chunks(2).map(|pair| Ok(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
    }

    pub mod fixed {
        use super::*;

        pub fn serialize<S: serde::Serializer>(bytes: &[u8; 32], to: S) -> Result<S::Ok, S::Error> {
            to.serialize_str(&encode(bytes))
        }

        pub fn deserialize<'de, D>(from: D) -> Result<[u8; 32], D::Error>
        where
            D: serde::Deserializer<'de>,
        {
            let bytes = decode::<D::Error>(&String::deserialize(from)?)?;
            let found = bytes.len();
            bytes
                .try_into()
                .map_err(|_| D::Error::custom(format!("expected 32 bytes, found {found}")))
        }
    }

    pub mod maybe {
        use super::*;

        pub fn serialize<S: serde::Serializer>(
            bytes: &Option<Vec<u8>>,
            to: S,
        ) -> Result<S::Ok, S::Error> {
            match bytes {
                Some(bytes) => to.serialize_some(&encode(bytes)),
                None => to.serialize_none(),
            }
        }

        pub fn deserialize<'de, D>(from: D) -> Result<Option<Vec<u8>>, D::Error>
        where
            D: serde::Deserializer<'de>,
        {
            Option::<String>::deserialize(from)?.map(|text| decode(&text)).transpose()
        }
    }
}
