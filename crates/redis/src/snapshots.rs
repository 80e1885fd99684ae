//! The chunks of a snapshot: a list of its own, which counts once it is written down as kept.
//!
//! An upload that never ends goes by itself: its key expires until the snapshot stays.

use redis::Value;
use sha2::{Digest, Sha256};

use crate::{
    ask::{Asker, Repeat},
    script::Call,
    trouble::Trouble,
    value,
};

/// Chunks are sent together up to this, so that a small snapshot is one round trip and a large
/// one is never whole in any buffer.
const TOGETHER_BYTES: usize = 1 << 20;
/// Chunks read at once.
const READ_CHUNKS: u64 = 16;
/// An unfinished upload is gone after this; each part of one that goes on puts it off.
const UNFINISHED: &str = "600";

/// Uploads chunks to `key`, and says how many there were and their sum.
pub async fn upload(
    asker: &Asker,
    key: &str,
    chunks: impl Iterator<Item = Vec<u8>>,
) -> Result<(u64, String), Trouble> {
    let mut sum = Sha256::new();
    let (mut count, mut bytes, mut part) = (0, 0, Vec::new());
    for chunk in chunks {
        sum.update((chunk.len() as u64).to_le_bytes());
        sum.update(&chunk);
        count += 1;
        bytes += chunk.len();
        part.push(chunk);
        if bytes >= TOGETHER_BYTES {
            push(asker, key, std::mem::take(&mut part)).await?;
            bytes = 0;
        }
    }
    if !part.is_empty() {
        push(asker, key, part).await?;
    }
    Ok((count, hex(&sum.finalize())))
}

async fn push(asker: &Asker, key: &str, part: Vec<Vec<u8>>) -> Result<(), Trouble> {
    let push = Call::Plain { name: "RPUSH", key: key.to_owned(), args: part };
    let expire = Call::plain("EXPIRE", key.to_owned(), &[UNFINISHED.as_bytes()]);
    // Sent twice it would be there twice: then this upload is given up, and the snapshot with it.
    asker.ask(vec![push, expire], Repeat::Never).await.map(drop)
}

/// Reads the chunks of a snapshot back; `None` if they are not what was written.
pub async fn download(
    asker: &Asker,
    key: &str,
    chunks: u64,
    wanted: &str,
) -> Result<Option<Vec<Vec<u8>>>, Trouble> {
    let mut sum = Sha256::new();
    let mut found: Vec<Vec<u8>> = Vec::new();
    for from in (0..chunks).step_by(READ_CHUNKS as usize) {
        let (first, last) = (from.to_string(), (from + READ_CHUNKS - 1).to_string());
        let call = Call::plain("LRANGE", key.to_owned(), &[first.as_bytes(), last.as_bytes()]);
        let Value::Array(part) = asker.look(call).await? else { return Ok(None) };
        for chunk in part {
            let chunk = value::bytes(chunk)?;
            sum.update((chunk.len() as u64).to_le_bytes());
            sum.update(&chunk);
            found.push(chunk);
        }
    }
    let whole = found.len() as u64 == chunks && hex(&sum.finalize()) == wanted;
    Ok(whole.then_some(found))
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
