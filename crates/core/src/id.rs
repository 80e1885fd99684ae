//! The name of a ticket: one encrypted block that needs no table.
//!
//! Lives here: [`TicketId`] and its printed form, [`IdKey`] which writes and reads ids, and the
//! [`SupportCode`] that a visitor can read out on the phone.
//! Stays out: whether a ticket exists, and who may act for it. An id names a ticket; it is no
//! credential. Visitors prove themselves with the ticket token, services with an API key.
//!
//! The 128 bits of an id are one AES-128 block under a key of the room. Before encryption they
//! read, from the most significant bit down:
//!
//! ```text
//! version 4 | lane 8 | joining epoch 24 | number 40 | zero check 52
//! ```
//!
//! A reader decrypts and looks whether the check bits are zero and the version is known, so an
//! altered id, a guess, or an id of another room is refused without looking anything up: it
//! passes with a chance of 2⁻⁵² at most. `docs/ticket-id.md` tells the same to outsiders, and
//! `docs/vectors/ticket-id.json` holds ids made by a second implementation.
//! To change the layout, raise `VERSION` and let [`IdKey::read`] know both.

use std::fmt;
use std::str::FromStr;

use aes::Aes128;
use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The layout above. Zero is left out so that a block of zeros is no id under any key.
const VERSION: u128 = 1;

/// Epochs have 24 bits: a room would have to change hands every second for half a year.
pub const EPOCH_MAX: u32 = (1 << EPOCH_BITS) - 1;

/// Numbers have 40 bits: a million joins a second for twelve days, in one lane.
pub const NUMBER_MAX: u64 = (1 << NUMBER_BITS) - 1;

const EPOCH_BITS: u32 = 24;
const NUMBER_BITS: u32 = 40;
const CHECK_BITS: u32 = 52;

const NUMBER_SHIFT: u32 = CHECK_BITS;
const EPOCH_SHIFT: u32 = NUMBER_SHIFT + NUMBER_BITS;
const LANE_SHIFT: u32 = EPOCH_SHIFT + EPOCH_BITS;
const VERSION_SHIFT: u32 = LANE_SHIFT + u8::BITS;

/// Parts a room's id key from everything else that is ever made of its secret. The zero byte
/// ends the label, so no label is the beginning of another.
const KEY_LABEL: &[u8] = b"waitroom/v1/id-key\0";

/// Where the hyphens of the printed form stand: 8-4-4-4-12.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];
const PRINTED_LEN: usize = 36;

/// A ticket's name as the world sees it. Any 16 bytes are a `TicketId`; whether they name a
/// ticket of a room is for that room's [`IdKey::read`] to say.
///
/// Printed like a UUID because every database, log and form knows what to do with one. It has
/// no UUID version or variant: all 128 bits are ours.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TicketId([u8; 16]);

impl TicketId {
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// Reads the printed form, in lower or upper case, and nothing else: one ticket has one
    /// spelling, so logs can be searched and caches keyed by it.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let text = text.as_bytes();
        if text.len() != PRINTED_LEN {
            return Err(ParseError::Length { found: text.len() });
        }
        let mut bytes = [0; 16];
        let mut digits = 0;
        for (at, &byte) in text.iter().enumerate() {
            if HYPHENS.contains(&at) {
                if byte != b'-' {
                    return Err(ParseError::Hyphen { at });
                }
                continue;
            }
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                b'A'..=b'F' => byte - b'A' + 10,
                _ => return Err(ParseError::Digit { at }),
            };
            bytes[digits / 2] = bytes[digits / 2] << 4 | digit;
            digits += 1;
        }
        Ok(Self(bytes))
    }

    /// The text of the id, in ASCII: hexadecimal digits in the groups of a UUID.
    pub fn printed(self) -> [u8; PRINTED_LEN] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [b'-'; PRINTED_LEN];
        let mut at = 0;
        for byte in self.0 {
            at += usize::from(HYPHENS.contains(&at));
            text[at] = DIGITS[usize::from(byte >> 4)];
            text[at + 1] = DIGITS[usize::from(byte & 0xf)];
            at += 2;
        }
        text
    }

    /// The short code of this ticket, to read out on the phone. Anyone who has the id can work
    /// it out, and several tickets may share one: it finds a ticket, it proves nothing.
    pub fn support_code(self) -> SupportCode {
        SupportCode::of(self)
    }
}

impl fmt::Display for TicketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.printed();
        f.write_str(str::from_utf8(&text).expect("hexadecimal digits and hyphens are ASCII"))
    }
}

impl fmt::Debug for TicketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for TicketId {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for TicketId {
    type Error = ParseError;

    fn try_from(text: String) -> Result<Self, ParseError> {
        Self::parse(&text)
    }
}

impl From<TicketId> for String {
    fn from(id: TicketId) -> Self {
        id.to_string()
    }
}

/// What an id says once its room has read it. That such a ticket was ever given out is a
/// different question: after a loss, a number outside its epoch's range is `place_lost`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Named {
    pub lane: u8,
    pub epoch: u32,
    pub number: u64,
}

/// The key under which one room writes and reads its ids, with its AES schedule worked out
/// once. Two rooms never share a secret, so an id of one means nothing in the other.
#[derive(Clone)]
pub struct IdKey(Aes128);

impl IdKey {
    /// The id key is the first 16 bytes of SHA-256 over the label and the room's secret. The
    /// secret itself never encrypts anything, so an id can say nothing about other keys made
    /// of it.
    pub fn derive(room_secret: &[u8; 32]) -> Self {
        let hash = Sha256::new().chain_update(KEY_LABEL).chain_update(room_secret).finalize();
        let mut key = [0; 16];
        key.copy_from_slice(&hash[..16]);
        Self(Aes128::new(&key.into()))
    }

    /// The one id of this ticket. The same three facts always give the same id, which is why
    /// a repeated answer needs no memory of the first.
    pub fn name(&self, lane: u8, epoch: u32, number: u64) -> Result<TicketId, OutOfRange> {
        if epoch > EPOCH_MAX {
            return Err(OutOfRange::Epoch { epoch });
        }
        if number > NUMBER_MAX {
            return Err(OutOfRange::Number { number });
        }
        let plain = VERSION << VERSION_SHIFT
            | u128::from(lane) << LANE_SHIFT
            | u128::from(epoch) << EPOCH_SHIFT
            | u128::from(number) << NUMBER_SHIFT;
        let mut block = plain.to_be_bytes().into();
        self.0.encrypt_block(&mut block);
        Ok(TicketId(block.into()))
    }

    /// What the id says, or `None` when this room never wrote it: forged, altered or foreign.
    /// Which of these it was cannot be told apart, and need not be.
    pub fn read(&self, id: &TicketId) -> Option<Named> {
        let mut block = id.0.into();
        self.0.decrypt_block(&mut block);
        let plain = u128::from_be_bytes(block.into());
        if low_bits(plain, CHECK_BITS) != 0 || plain >> VERSION_SHIFT != VERSION {
            return None;
        }
        Some(Named {
            lane: low_bits(plain >> LANE_SHIFT, u8::BITS) as u8,
            epoch: low_bits(plain >> EPOCH_SHIFT, EPOCH_BITS) as u32,
            number: low_bits(plain >> NUMBER_SHIFT, NUMBER_BITS) as u64,
        })
    }
}

/// Says nothing about the key: debug output ends up in logs.
impl fmt::Debug for IdKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdKey(..)")
    }
}

/// Eight letters and digits in two groups, such as `7ZQ4-0M1K`: 35 bits of the id and a check
/// character.
///
/// Support staff type it in and see the ticket. It is found by naming the tickets of the room
/// one after the other and comparing, so it needs no table either; in a queue of 20 million
/// about one code in 1,700 fits a second ticket, and staff are shown both. It is therefore no
/// credential and must never open anything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SupportCode([u8; SupportCode::LEN]);

impl SupportCode {
    const LEN: usize = 8;
    const DATA_BITS: u32 = 35;

    /// Crockford's alphabet: no I, L, O or U, so nothing that is read aloud or copied by hand
    /// is taken for something else.
    const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

    /// The first bits of the id serve as they are: an encrypted block has no structure that a
    /// hash would have to hide, and a search over a whole room stays one AES block a ticket.
    fn of(id: TicketId) -> Self {
        let data = u128::from_be_bytes(id.0) >> (u128::BITS - Self::DATA_BITS);
        let mut symbols = [0; Self::LEN];
        for (at, symbol) in symbols.iter_mut().take(Self::LEN - 1).enumerate() {
            let shift = Self::DATA_BITS - 5 * (at as u32 + 1);
            *symbol = low_bits(data >> shift, 5) as u8;
        }
        // With a zero in its place the remainder is just what the check character must cancel.
        symbols[Self::LEN - 1] = remainder(&symbols);
        Self(symbols)
    }

    /// The text of the code, in ASCII: two groups of four.
    pub fn printed(self) -> [u8; SupportCode::LEN + 1] {
        let mut text = [b'-'; Self::LEN + 1];
        for (at, &symbol) in self.0.iter().enumerate() {
            text[at + usize::from(at >= Self::LEN / 2)] = Self::ALPHABET[usize::from(symbol)];
        }
        text
    }

    /// Reads what staff typed: either case, with or without hyphens and spaces, and with the
    /// letters that Crockford's alphabet lacks taken for the digits they look like.
    pub fn parse(text: &str) -> Result<Self, CodeError> {
        let mut symbols = [0; Self::LEN];
        let mut found = 0;
        for letter in text.chars().filter(|letter| !matches!(letter, '-' | ' ')) {
            let meant = match letter.to_ascii_uppercase() {
                'O' => '0',
                'I' | 'L' => '1',
                other => other,
            };
            let value = Self::ALPHABET.iter().position(|&known| char::from(known) == meant);
            let value = value.ok_or(CodeError::Letter { letter })?;
            if let Some(symbol) = symbols.get_mut(found) {
                *symbol = value as u8;
            }
            found += 1;
        }
        if found != Self::LEN {
            return Err(CodeError::Length { found });
        }
        if remainder(&symbols) != 0 {
            return Err(CodeError::Misread);
        }
        Ok(Self(symbols))
    }
}

impl fmt::Display for SupportCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(str::from_utf8(&self.printed()).expect("the alphabet is ASCII"))
    }
}

impl Serialize for SupportCode {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl fmt::Debug for SupportCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for SupportCode {
    type Err = CodeError;

    fn from_str(text: &str) -> Result<Self, CodeError> {
        Self::parse(text)
    }
}

/// A fact that has no room in the block. The ranges are far beyond any sale, so this is a
/// mistake of the caller; it is an error rather than a panic because a wrapped number would
/// give two people one ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutOfRange {
    Epoch { epoch: u32 },
    Number { number: u64 },
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Epoch { epoch } => write!(f, "epoch {epoch} is above {EPOCH_MAX}"),
            Self::Number { number } => write!(f, "ticket number {number} is above {NUMBER_MAX}"),
        }
    }
}

impl std::error::Error for OutOfRange {}

/// Why a text is no ticket id. Positions count bytes from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    Length { found: usize },
    Hyphen { at: usize },
    Digit { at: usize },
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { found } => {
                write!(f, "a ticket id has {PRINTED_LEN} characters, this has {found}")
            }
            Self::Hyphen { at } => write!(f, "a ticket id has a hyphen at position {at}"),
            Self::Digit { at } => {
                write!(f, "a ticket id has a hexadecimal digit at position {at}")
            }
        }
    }
}

impl std::error::Error for ParseError {}

/// Why a text is no support code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeError {
    Length {
        found: usize,
    },
    Letter {
        letter: char,
    },
    /// The check character does not fit: a letter was misheard, or two changed places.
    Misread,
}

impl fmt::Display for CodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { found } => {
                write!(f, "a support code has {} characters, this has {found}", SupportCode::LEN)
            }
            Self::Letter { letter } => write!(f, "{letter:?} does not occur in support codes"),
            Self::Misread => f.write_str("this support code was misread: please ask again"),
        }
    }
}

impl std::error::Error for CodeError {}

fn low_bits(value: u128, bits: u32) -> u128 {
    value & ((1 << bits) - 1)
}

/// The symbols as a polynomial over the field of 32 elements (x⁵ = x² + 1), taken at x. A good
/// code gives zero. Powers of x repeat only after 31 places, so each of the eight characters
/// has a weight of its own: every single wrong character and every swap of two is noticed.
fn remainder(symbols: &[u8]) -> u8 {
    let mut sum = 0;
    for symbol in symbols {
        let doubled = sum << 1;
        sum = if doubled & 0b10_0000 == 0 { doubled } else { doubled ^ 0b10_0101 };
        sum ^= symbol;
    }
    sum
}
