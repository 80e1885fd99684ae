//! A log from a mirror into a file beside the data folder, checked batch by batch, and folded.

use std::path::{Path, PathBuf};

use waitroom_core::{Room, codec};
use waitroom_outbox::mirror::{Assembly, Broken, Mark, Place, SealKey};
use waitroom_store::disk::RealDisk;
use waitroom_store::file::Copying;
use waitroom_store::{Appended, Head, RoomName};

use crate::data::absolute;
use crate::exported;
use crate::failure::{Exit, Failure};

/// What a mirror holds of a log, in a file that goes when this goes.
#[derive(Debug)]
pub struct Fetched {
    room: RoomName,
    path: PathBuf,
    pub tip: Appended,
    pub batches: u64,
    /// The last event of a batch at the end of which parts are missing.
    pub half: Option<Head>,
    /// The newest digest of the source.
    pub mark: Option<Mark>,
}

/// What the log comes to when it is folded.
#[derive(Debug)]
pub struct Proof {
    pub at_tip: [u8; 32],
}

enum Stop {
    Broken(Broken),
    Disk(std::io::Error),
}

impl Fetched {
    /// None when the mirror holds nothing of it.
    pub fn read(
        place: &Place,
        name: &str,
        key: &SealKey,
        room: &RoomName,
        data: &Path,
    ) -> Result<Option<Fetched>, Failure> {
        let path = beside(data, room)?;
        let disk = |error: std::io::Error| {
            Failure::new(Exit::Io, format!("{}: {error}", path.display())).coded("WR-2004")
        };
        let mut assembly = Assembly::new(key, room);
        let mut file = Copying::begin(RealDisk::new(""), room, &path).map_err(disk)?;
        let mut batches = 0;
        let take = |piece: &[u8]| {
            if let Some(batch) = assembly.take(piece).map_err(Stop::Broken)? {
                file.add(&batch).map_err(Stop::Disk)?;
                batches += 1;
            }
            Ok(())
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(disk)?;
        let read = runtime.block_on(place.read(name, room, take));
        // Buses are left in the background; nothing waits for them.
        runtime.shutdown_background();
        match read {
            Ok(Ok(())) => {}
            Ok(Err(Stop::Broken(broken))) => return Err(not_whole(room, &broken)),
            Ok(Err(Stop::Disk(error))) => return Err(disk(error)),
            Err(trouble) => {
                return Err(Failure::new(Exit::Unavailable, format!("the mirror: {trouble}"))
                    .means("nothing was changed")
                    .advise("look at the address, and whether the server is there"));
            }
        }
        let tip = file.finish().map_err(disk)?;
        let (mark, half) = (assembly.mark(), assembly.half());
        let fetched = Fetched { room: room.clone(), path, tip, batches, half, mark };
        Ok((tip.head > Head::EMPTY).then_some(fetched))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Folds the log, and compares the room with its source where that told its digest.
    pub fn prove(&self) -> Result<Proof, Failure> {
        let mut file = exported::open(&self.path)?;
        let (mut folded, mut differs) = (Room::new(), false);
        let unread = |why: String| exported::not_whole(&self.path, &why);
        while let Some(batch) = file.next_batch().map_err(|error| unread(error.to_string()))? {
            let mut at = batch.after;
            codec::decode(&batch.payload, |event| {
                folded.absorb(&event);
                at = Head(at.0 + 1);
                if let Some(mark) = self.mark.filter(|mark| mark.at == at) {
                    differs |= folded.state().digest() != mark.digest;
                }
            })
            .map_err(|damaged| unread(damaged.0.into()))?;
        }
        match self.mark {
            Some(mark) if differs => Err(other_digest(&self.room, mark.at)),
            _ => Ok(Proof { at_tip: folded.state().digest() }),
        }
    }
}

impl Drop for Fetched {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Not in the data folder, which may be new, but on the same disk.
fn beside(data: &Path, room: &RoomName) -> Result<PathBuf, Failure> {
    let mut path = absolute(data)?.into_os_string();
    path.push(format!(".rebuild-{room}.wrroom"));
    Ok(path.into())
}

/// The mirror is not what was written to it.
fn not_whole(room: &RoomName, broken: &Broken) -> Failure {
    Failure::new(Exit::Wrong, format!("room \"{room}\": {broken}"))
        .coded("WR-2020")
        .means("something is missing from the mirror, or was altered or added; nothing was changed")
        .advise("try another mirror, a backup (waitroom restore) or an export (waitroom import)")
}

/// The log holds together and still makes another room.
pub fn other_digest(room: &RoomName, at: Head) -> Failure {
    let said = format!("room \"{room}\": at event {at} it is another room than its source was");
    Failure::new(Exit::Wrong, said)
        .coded("WR-2020")
        .means("its digest differs from the source's; do not let people into it")
        .advise("use the release that the source ran, then rebuild into a new folder")
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
