//! Winning space back: letting go of old segments, and carrying forward what keeps them.
//!
//! Lives here: which segments nobody needs, when carrying is worth it, and where old files go.
//! Stays out: trimming itself, which is a rule of the contract (`controls`). This only follows it.
//!
//! Segments go oldest first, so that those left are numbered without a gap. One batch of a room that
//! nobody visits would hold them all; so once less than half of the oldest segment, or of all sealed
//! ones together, is needed, what is needed is written again into the newest, a little at a time.
//! Each round frees more than it writes, so it ends.

use std::{io, path::Path};

use crate::{
    disk::{Disk, read_span},
    file::{
        book::{Effect, Segment, Shared, for_each_batch},
        index::Placed,
        journal::{Journal, stage_batch},
        record::BatchRecord,
        segment,
    },
    log::Head,
    name::RoomName,
};

/// How much is carried forward between two groups: a few milliseconds of disk, so that carrying
/// never keeps a visitor waiting.
const CARRY_BYTES: u64 = 256 << 10;

impl<D: Disk> Journal<D> {
    /// Lets go of the oldest segments that nobody needs; the caller disposes of the files.
    pub(crate) fn detach_free(&mut self) -> Vec<(u64, u64)> {
        let mut free = Vec::new();
        if !self.untidy {
            return free;
        }
        let mut book = self.shared.book_mut();
        while book.pins == 0
            && let Some((&oldest, segment)) = book.segments.first_key_value()
            && oldest != self.active
        {
            let len = segment.len;
            if book.needs(oldest) {
                break;
            }
            book.segments.remove(&oldest);
            free.push((oldest, len));
        }
        free
    }

    /// Carries some of the oldest segment's batches forward if that is worth it: a room that
    /// nobody visits must not keep everybody's old segments. Returns whether anything was staged;
    /// then commit, and come again.
    pub(crate) fn stage_carry(&mut self) -> bool {
        if !self.untidy || self.make_ready().is_err() {
            return false;
        }
        match self.carry() {
            Ok(staged) => {
                self.untidy = staged;
                staged
            }
            Err(why) => {
                self.untidy = false;
                self.shared.alarm(format!("cannot carry old batches forward: {why}"));
                false
            }
        }
    }

    fn carry(&mut self) -> Result<bool, String> {
        let book = self.shared.book();
        let Some((&oldest, segment)) = book.segments.first_key_value() else { return Ok(false) };
        if oldest == self.active || book.pins > 0 {
            return Ok(false);
        }
        let (here, all) = book.needed_bytes(oldest);
        let body = |segment: &Segment<D>| segment.len - segment.body;
        let sealed: u64 =
            book.segments.range(..self.active).map(|(_, segment)| body(segment)).sum();
        if here * 2 >= body(segment) && all * 2 >= sealed {
            return Ok(false);
        }
        let mut staged = 0;
        // Sorted, so that the simulator's journals are the same byte for byte.
        let mut names: Vec<&RoomName> = book.logs.keys().collect();
        names.sort();
        'rooms: for name in names {
            let trimmed_to = book.state.rooms.get(name).map_or(Head::EMPTY, |room| room.trimmed_to);
            let entries = book.logs[name].entries().filter(|entry| entry.place.segment == oldest);
            for entry in entries {
                if staged > CARRY_BYTES {
                    break 'rooms;
                }
                let span = read_span(&*segment.file, entry.place.start, entry.place.end)
                    .map_err(|error| error.to_string())?;
                let mut carried = Vec::new();
                for_each_batch(&span, |batch| {
                    if batch.room == *name
                        && entry.holds(&batch.link)
                        && batch.link.head() > trimmed_to
                    {
                        let batch = BatchRecord { carried: true, ..batch };
                        let place = stage_batch(&mut self.buffer, self.active, self.len, &batch);
                        staged += place.end - place.start;
                        carried.push(Placed {
                            link: batch.link,
                            payload_bytes: batch.payload.len() as u64,
                            before: batch.before,
                            chain: batch.chain(),
                            place,
                        });
                    }
                })?;
                self.effects.extend(
                    carried.into_iter().map(|placed| Effect::Carried(name.clone(), placed)),
                );
            }
        }
        Ok(staged > 0)
    }
}

/// Disposes of a segment that nobody needs: to the archive if there is one, else away.
pub(crate) fn dispose<D: Disk>(shared: &Shared<D>, number: u64, len: u64) {
    let path = segment::path(number);
    let done = match &shared.options.archive {
        None => shared.disk.remove(&path),
        Some(archive) => archive_segment(shared, number, len, archive),
    };
    let done = done.and_then(|()| shared.disk.sync_dir(Path::new(segment::DIR)));
    if let Err(error) = done {
        // It comes back at the next opening and is let go again.
        shared.alarm(format!("cannot dispose of {}: {error}", shared.disk.shown(&path)));
    }
}

/// By copying, because the archive may be another filesystem; then the original goes.
fn archive_segment<D: Disk>(
    shared: &Shared<D>,
    number: u64,
    len: u64,
    archive: &Path,
) -> io::Result<()> {
    let path = segment::path(number);
    let bytes = read_span(&shared.disk.open(&path)?, 0, len)?;
    shared.disk.create_dir(archive)?;
    crate::disk::write_whole(&*shared.disk, &archive.join(segment::name(number)), &bytes)?;
    shared.disk.remove(&path)
}
