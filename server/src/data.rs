//! The data folder, as the commands that look into it or change it open it.
//!
//! Lives here: opening it, finding a room in it, and telling what is wrong in words that name
//! the folder, the effect and the next step, with codes.
//! Stays out: what each command does with it.
//! The store is opened inline, without threads: a command does one thing after another. While it
//! is open the folder is locked, so no server can run on it, and none is disturbed.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use clap::Args;
use waitroom_store::disk::RealDisk;
use waitroom_store::file::{OpenError, Options, RecoveryReport};
use waitroom_store::{Error, FileStore, RoomName, Seams, Store, Stored};

use crate::failure::{Exit, Failure};
use crate::place::Place;

/// How much of a log is in memory at once.
const READ_BYTES: usize = 4 << 20;

/// `--data DIR`.
#[derive(Debug, Args)]
pub struct Data {
    /// The data folder; no server may be running on it.
    #[arg(long = "data", value_name = "DIR")]
    pub dir: PathBuf,
}

impl Data {
    /// Opens the store that is there.
    pub fn open(&self) -> Result<FileStore, Failure> {
        // Opening makes a store where there is none; a mistyped folder must not become one.
        if !self.dir.join("journal").is_dir() {
            let said = format!("data folder {}: there is no store in it", self.dir.display());
            let failure = Failure::new(Exit::NotThere, said).coded("WR-2005");
            return Err(failure
                .means("nothing was read or changed")
                .advise("give the folder that the server was started with"));
        }
        self.open_or_make()
    }

    /// Opens the store that is there, or makes one.
    pub fn open_or_make(&self) -> Result<FileStore, Failure> {
        // Folders above a new one must be named, or they cannot be made durably.
        let dir = if self.dir.exists() { self.dir.clone() } else { absolute(&self.dir)? };
        let disk = RealDisk::new(dir);
        let opened = FileStore::inline(disk, Options::default(), Seams::real());
        let (store, report) = opened.map_err(|error| self.refused(&error))?;
        warn(&report);
        Ok(store)
    }

    /// Where a cut would end the journal before the damage that keeps it from opening.
    /// `None` when it opens, or when no cut helps.
    pub fn damage(&self) -> Result<Option<Place>, Failure> {
        let disk = RealDisk::new(&self.dir);
        match FileStore::inline(disk, Options::default(), Seams::real()) {
            Ok(_) => Ok(None),
            Err(OpenError::Damaged { file, at, .. }) => {
                Ok(Place::before_damage(&self.dir, Path::new(&file), at))
            }
            Err(error) => Err(self.refused(&error)),
        }
    }

    pub fn refused(&self, error: &OpenError) -> Failure {
        let dir = self.dir.display();
        match error {
            OpenError::InUse { pid, .. } => {
                let holder = pid.map_or("another process".into(), |pid| format!("process {pid}"));
                Failure::new(Exit::Busy, format!("data folder {dir}: in use by {holder}"))
                    .coded("WR-2001")
                    .means("nothing was read or changed; the other process is not disturbed")
                    .advise("stop it first, or work on a restored backup of the folder")
            }
            OpenError::Damaged { file, at, why } => {
                let mut advice = "keep a copy of the data folder, check the disk, \
                                  then restore the newest backup"
                    .to_string();
                if let Some(place) = Place::before_damage(&self.dir, Path::new(file), *at) {
                    advice += &format!(
                        ";\nor go on without what follows (it is moved aside):\n\
                         waitroom repair --data {dir} --cut {place}"
                    );
                }
                Failure::new(Exit::Wrong, format!("{file}: damaged at byte {at}: {why}"))
                    .coded("WR-2002")
                    .means("something that was acknowledged cannot be read; no room opens; nothing was changed")
                    .advise(advice)
            }
            OpenError::Version { file, found } => {
                let said =
                    format!("{file}: format version {found}, which this release cannot read");
                Failure::new(Exit::Wrong, said)
                    .coded("WR-2003")
                    .means("nothing was changed")
                    .advise("use the release that wrote it, or a newer one")
            }
            OpenError::Io { doing, error } => disk(format!("cannot {doing}: {error}")),
        }
    }
}

/// `--room NAME`.
#[derive(Debug, Args)]
pub struct Room {
    /// The room.
    #[arg(long = "room", value_name = "NAME", value_parser = RoomName::parse)]
    pub name: RoomName,
}

impl Room {
    /// The room's name, once it is known to be there.
    pub fn find(&self, data: &Data, store: &FileStore) -> Result<&RoomName, Failure> {
        let rooms = now(store.rooms()).map_err(|error| failed("list the rooms", &error))?;
        if rooms.contains(&self.name) {
            return Ok(&self.name);
        }
        let there: Vec<&str> = rooms.iter().map(RoomName::as_str).collect();
        let there = if there.is_empty() { "none".into() } else { there.join(", ") };
        let said = format!("room \"{}\": not in data folder {}", self.name, data.dir.display());
        Err(Failure::new(Exit::NotThere, said)
            .coded("WR-2006")
            .means("nothing was changed")
            .advise(format!("give one of the rooms that are there: {there}")))
    }
}

/// Hands over a room's log from its first event to its last, batch by batch.
pub fn each_batch(
    store: &FileStore,
    room: &RoomName,
    mut each: impl FnMut(&Stored) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let unread = |error| failed(&format!("read the log of room {room}"), &error);
    let end = now(store.tip(room)).map_err(unread)?.head;
    let mut at = now(store.trimmed_to(room)).map_err(unread)?;
    while at < end {
        let batches = now(store.read(room, at, READ_BYTES)).map_err(unread)?;
        let Some(last) = batches.last() else {
            return Err(untrusted(format!(
                "room \"{room}\": its log ends at event {at}, not {end}"
            )));
        };
        at = last.head;
        batches.iter().try_for_each(&mut each)?;
    }
    Ok(())
}

/// What the store could not do, for whoever asked for it.
pub fn failed(doing: &str, error: &Error) -> Failure {
    match error {
        Error::Damaged { why } => untrusted(format!("cannot {doing}: {why}")),
        other => disk(format!("cannot {doing}: {other}")),
    }
}

/// What is stored is not what was written.
pub fn untrusted(said: String) -> Failure {
    Failure::new(Exit::Wrong, said)
        .coded("WR-2007")
        .means("what is stored of this room cannot be trusted; nothing was changed")
        .advise("keep a copy of the data folder, check the disk, then restore the newest backup")
}

fn disk(said: String) -> Failure {
    Failure::new(Exit::Io, said)
        .coded("WR-2004")
        .means("the command did not finish; what was acknowledged before is still there")
        .advise("look at space, permissions and health of the disk, then try again")
}

/// A target that must be new. Nothing is ever written over.
pub fn must_be_new(what: &str, target: &Path) -> Result<PathBuf, Failure> {
    let shown = target.display();
    let taken = match std::fs::read_dir(target) {
        // An empty folder is as good as none.
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => target.exists(),
    };
    if taken {
        return Err(Failure::new(
            Exit::Taken,
            format!("{what} {shown}: there is something already"),
        )
        .coded("WR-2008")
        .means("nothing was written")
        .advise("give a new name, or move away what is there"));
    }
    absolute(target)
}

/// The store takes relative paths as inside the data folder; operators mean the working folder.
pub fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|error| Failure::new(Exit::Io, format!("{}: {error}", path.display())))
}

/// The answer of a store that was opened inline.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => unreachable!("an inline store answers before it returns"),
    }
}

/// Says what opening had to put right. An ordinary opening is not worth a word.
pub fn warn(report: &RecoveryReport) {
    let ordinary =
        report.cut.is_none() && report.half_imports.is_empty() && report.set_aside.is_empty();
    if !ordinary {
        eprintln!("note: {report}");
    }
}
