//! A portable file of a room that lies in any store, written through the contract alone.
//!
//! Lives here: the writing. The format, and reading it, are in `portable.rs`. The file store has a
//! way of its own, which knows the chain before any batch; here a log that was trimmed begins at
//! its newest snapshot.

use std::{io, path::Path};

use super::portable::{MAGIC, Out, READ_BYTES, write_batch};
use crate::{
    contract::Store,
    disk::{Disk, DiskFile, RealDisk, parent_of, temporary_of},
    error::Error,
    log::{Appended, Head, Stored},
    name::RoomName,
    snapshot::Snapshot,
};

/// Writes a room to `to`, which must be a whole path. The room goes on meanwhile; should trimming
/// overtake the export, it fails and can be repeated.
pub async fn export_of<S: Store>(store: &S, room: &RoomName, to: &Path) -> Result<Appended, Error> {
    let tip = store.tip(room).await?;
    let trimmed_to = store.trimmed_to(room).await?;
    let snapshot = match trimmed_to > Head::EMPTY {
        true => store.latest_snapshot(room).await?,
        false => None,
    };
    if trimmed_to > Head::EMPTY && snapshot.is_none() {
        let why = format!("the log of {room} was trimmed, and there is no snapshot");
        return Err(Error::Damaged { why });
    }
    let newest = store.read(room, Head(tip.head.0.saturating_sub(1)), 1).await?;
    let epoch = newest.first().map_or(0, |stored| stored.epoch);
    let disk = RealDisk::new("");
    let io = |error: io::Error| Error::Refused {
        why: format!("cannot write {}: {error}", disk.shown(to)),
    };
    let base = snapshot
        .as_ref()
        .map_or_else(Appended::default, |it| Appended { head: it.at, chain: it.chain });
    disk.create_dir(parent_of(to)).map_err(io)?;
    let temporary = temporary_of(to);
    let _ = disk.remove(&temporary);
    let file = disk.create(&temporary).map_err(io)?;
    let mut out = Out { file, buffer: MAGIC.to_vec(), offset: 0 };
    begin(&mut out, room, base, tip, epoch, snapshot).map_err(io)?;
    let (mut reached, mut count) = (base, 0u64);
    while reached.head < tip.head {
        // The log may have gone on meanwhile; this export ends where it stood at the beginning.
        let batches = store.read(room, reached.head, READ_BYTES).await?;
        let mut known = batches.iter().filter(|stored| stored.head <= tip.head);
        let written = known.clone().try_for_each(|stored| write_one(&mut out, stored));
        written.map_err(io)?;
        count += known.clone().count() as u64;
        match known.next_back() {
            Some(last) => reached = Appended { head: last.head, chain: last.chain },
            None => return Err(Error::refused(format!("room {room} was removed meanwhile"))),
        }
    }
    end(&mut out, reached, count).map_err(io)?;
    disk.rename(&temporary, to).map_err(io)?;
    disk.sync_dir(parent_of(to)).map_err(io)?;
    Ok(reached)
}

fn begin<F: DiskFile>(
    out: &mut Out<F>,
    room: &RoomName,
    base: Appended,
    tip: Appended,
    epoch: u32,
    snapshot: Option<Snapshot>,
) -> io::Result<()> {
    out.item(b'R', |body| {
        body.push(room.as_str().len() as u8);
        body.extend_from_slice(room.as_str().as_bytes());
        body.extend_from_slice(&base.head.0.to_le_bytes());
        body.extend_from_slice(&base.chain.0);
        body.extend_from_slice(&tip.head.0.to_le_bytes());
        body.extend_from_slice(&epoch.to_le_bytes());
    })?;
    let Some(snapshot) = snapshot else { return Ok(()) };
    out.item(b'S', |body| {
        body.extend_from_slice(&snapshot.at.0.to_le_bytes());
        body.extend_from_slice(&snapshot.chain.0);
    })?;
    let mut chunks = snapshot.chunks.iter();
    chunks.try_for_each(|chunk| out.item(b'C', |body| body.extend_from_slice(chunk)))
}

fn write_one<F: DiskFile>(out: &mut Out<F>, stored: &Stored) -> io::Result<()> {
    out.item(b'B', |body| write_batch(body, stored))
}

fn end<F: DiskFile>(out: &mut Out<F>, tip: Appended, count: u64) -> io::Result<()> {
    out.item(b'E', |body| {
        body.extend_from_slice(&tip.head.0.to_le_bytes());
        body.extend_from_slice(&tip.chain.0);
        body.extend_from_slice(&count.to_le_bytes());
    })?;
    out.flush()?;
    out.file.sync_data()
}
