//! Writing and reading the small things that events and snapshots are made of.
//!
//! Numbers are variable-length (seven bits a byte, low first), byte strings carry their length.
//! Reading is total: whatever the bytes are, the answer is a value or `Damaged`, never a panic
//! and never a large allocation on the word of a damaged length.

use std::fmt;
use std::sync::Arc;

/// The bytes are not what this release or its predecessor wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged(pub &'static str);

pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
}

pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(crate) fn put_option<T>(
    out: &mut Vec<u8>,
    value: Option<T>,
    put: impl FnOnce(&mut Vec<u8>, T),
) {
    match value {
        None => out.push(0),
        Some(value) => {
            out.push(1);
            put(out, value);
        }
    }
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Damaged> {
        let (first, rest) = self.bytes.split_first().ok_or(Damaged("ends early"))?;
        self.bytes = rest;
        Ok(*first)
    }

    pub(crate) fn number(&mut self) -> Result<u64, Damaged> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = (byte & 0x7F) as u64;
            if shift == 63 && bits > 1 {
                return Err(Damaged("a number of more than 64 bits"));
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                // One way to write each number, or two logs of one history would differ.
                return match byte {
                    0 if shift > 0 => Err(Damaged("a number with a useless last byte")),
                    _ => Ok(number),
                };
            }
        }
        Err(Damaged("a number without an end"))
    }

    pub(crate) fn slice(&mut self, len: usize) -> Result<&'a [u8], Damaged> {
        let (taken, rest) = self.bytes.split_at_checked(len).ok_or(Damaged("ends early"))?;
        self.bytes = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        Ok(self.slice(N)?.try_into().expect("the slice has the asked length"))
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Damaged> {
        let len = self.number()?;
        self.slice(usize::try_from(len).map_err(|_| Damaged("a length beyond memory"))?)
    }

    pub(crate) fn text(&mut self) -> Result<String, Damaged> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| Damaged("text that is not UTF-8"))
    }

    pub(crate) fn shared(&mut self) -> Result<Arc<[u8]>, Damaged> {
        Ok(self.bytes()?.into())
    }

    pub(crate) fn flag(&mut self) -> Result<bool, Damaged> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Damaged("a flag that is neither 0 nor 1")),
        }
    }

    pub(crate) fn option<T>(
        &mut self,
        take: impl FnOnce(&mut Self) -> Result<T, Damaged>,
    ) -> Result<Option<T>, Damaged> {
        if self.flag()? { take(self).map(Some) } else { Ok(None) }
    }

    pub(crate) fn end(&self) -> Result<(), Damaged> {
        if self.is_empty() { Ok(()) } else { Err(Damaged("more bytes than expected")) }
    }
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "damaged: {}", self.0)
    }
}

impl std::error::Error for Damaged {}
