//! A portable file of a log that comes from elsewhere than a store: from a mirror, batch by batch.
//!
//! How long the log is becomes known at its end; then the first item is written a second time, and
//! the file gets its name. Until then there is no such file.

use std::io;
use std::path::{Path, PathBuf};

use crate::{
    disk::{Disk, DiskFile, parent_of, temporary_of},
    file::portable::{MAGIC, Out, write_batch, write_end, write_room},
    log::{Appended, Head, Stored},
    name::RoomName,
};

/// A file that is being written.
pub struct Copying<D: Disk> {
    disk: D,
    to: PathBuf,
    room: RoomName,
    out: Out<D::File>,
    tip: Appended,
    epoch: u32,
    count: u64,
    named: bool,
}

impl<D: Disk> Drop for Copying<D> {
    /// What was never finished is of no use to anybody.
    fn drop(&mut self) {
        if !self.named {
            let _ = self.disk.remove(&temporary_of(&self.to));
        }
    }
}

impl<D: Disk> std::fmt::Debug for Copying<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Copying").field("to", &self.to).field("tip", &self.tip).finish()
    }
}

impl<D: Disk> Copying<D> {
    pub fn begin(disk: D, room: &RoomName, to: &Path) -> io::Result<Copying<D>> {
        disk.create_dir(parent_of(to))?;
        let temporary = temporary_of(to);
        let _ = disk.remove(&temporary);
        let file = disk.create(&temporary)?;
        let out = Out { file, buffer: MAGIC.to_vec(), offset: 0 };
        let (to, room) = (to.to_path_buf(), room.clone());
        let tip = Appended::default();
        let mut copying = Copying { disk, to, room, out, tip, epoch: 0, count: 0, named: false };
        // Holds the place; every number in it has its final width.
        copying.put_room(Head::EMPTY)?;
        Ok(copying)
    }

    /// The next batch, which the caller has checked against the chain.
    pub fn add(&mut self, stored: &Stored) -> io::Result<()> {
        self.out.item(b'B', |body| write_batch(body, stored))?;
        self.tip = Appended { head: stored.head, chain: stored.chain };
        self.epoch = self.epoch.max(stored.epoch);
        self.count += 1;
        Ok(())
    }

    /// The file is whole and has its name when this returns.
    pub fn finish(mut self) -> io::Result<Appended> {
        let (tip, count) = (self.tip, self.count);
        self.out.item(b'E', |body| write_end(body, tip, count))?;
        self.out.flush()?;
        self.out.offset = MAGIC.len() as u64;
        self.put_room(tip.head)?;
        self.out.flush()?;
        self.out.file.sync_data()?;
        self.disk.rename(&temporary_of(&self.to), &self.to)?;
        self.named = true;
        self.disk.sync_dir(parent_of(&self.to))?;
        Ok(tip)
    }

    fn put_room(&mut self, tip: Head) -> io::Result<()> {
        let (room, epoch) = (&self.room, self.epoch);
        self.out.item(b'R', |body| write_room(body, room, Appended::default(), tip, epoch))
    }
}
