//! A batch as it lies in the stream: a header of fixed length, then the payload.
//!
//! ```text
//! name     28 digits: epoch (8) and number (20); the script compares them as text
//! nonce    16 bytes, little-endian
//! after     8 bytes, little-endian
//! events    4 bytes, little-endian
//! chain    32 bytes
//! payload  the rest
//! ```
//! `scripts/append.lua` looks at these offsets; change both or none. Beside the record an entry has
//! the time (`t`) and the sum of all payload bytes up to it (`y`).

use waitroom_store::{Chain, Head, Link, Stored};

use crate::trouble::Trouble;

pub const HEADER_BYTES: usize = 28 + 16 + 8 + 4 + 32;

/// What names a batch, in an order that text has, too.
pub fn name(epoch: u32, number: u64) -> String {
    format!("{epoch:08}{number:020}")
}

pub fn write(link: &Link, chain: &Chain, payload: &[u8]) -> Vec<u8> {
    let mut record = Vec::with_capacity(HEADER_BYTES + payload.len());
    record.extend_from_slice(name(link.epoch, link.number).as_bytes());
    record.extend_from_slice(&link.nonce.to_le_bytes());
    record.extend_from_slice(&link.after.0.to_le_bytes());
    record.extend_from_slice(&link.events.to_le_bytes());
    record.extend_from_slice(&chain.0);
    record.extend_from_slice(payload);
    record
}

pub fn read(record: &[u8], at_ms: u64) -> Result<Stored, Trouble> {
    parse(record, at_ms).ok_or_else(|| Trouble::Damaged("a batch is too short".into()))
}

fn parse(record: &[u8], at_ms: u64) -> Option<Stored> {
    let (name, rest) = record.split_at_checked(28)?;
    let name = std::str::from_utf8(name).ok()?;
    let (nonce, rest) = rest.split_first_chunk::<16>()?;
    let (after, rest) = rest.split_first_chunk::<8>()?;
    let (events, rest) = rest.split_first_chunk::<4>()?;
    let (chain, payload) = rest.split_first_chunk::<32>()?;
    let link = Link {
        epoch: name[..8].parse().ok()?,
        nonce: u128::from_le_bytes(*nonce),
        number: name[8..].parse().ok()?,
        after: Head(u64::from_le_bytes(*after)),
        events: u32::from_le_bytes(*events),
    };
    Some(Stored {
        after: link.after,
        head: Head(link.after.0.checked_add(u64::from(link.events))?),
        epoch: link.epoch,
        nonce: link.nonce,
        number: link.number,
        events: link.events,
        at_ms,
        payload: payload.to_vec(),
        chain: Chain(*chain),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_as_it_was_written() {
        let link = Link { epoch: 7, nonce: 1 << 99, number: u64::MAX, after: Head(12), events: 3 };
        let chain = Chain([9; 32]);
        let record = write(&link, &chain, b"payload");
        let stored = read(&record, 5).expect("whole");
        assert_eq!((stored.link(), stored.chain, stored.head), (link, chain, Head(15)));
        assert_eq!((&stored.payload[..], stored.at_ms), (&b"payload"[..], 5));
        for cut in 0..HEADER_BYTES {
            assert!(read(&record[..cut], 5).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn names_are_in_the_order_of_epochs_and_numbers() {
        let names = [(1, 9), (1, 10), (2, 0), (10, 0), (10, u64::MAX)].map(|(e, n)| name(e, n));
        assert!(names.is_sorted());
        assert!(names.iter().all(|name| name.len() == 28));
    }
}
