//! The rooms of this instance: those of the store, those of the file, and the one of development,
//! opened at start; and those that could not be, tried again until they are.
//!
//! A room that cannot be opened is told, noted with the desk, and costs no other room anything.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use waitroom_api::admin::acting::Deed;
use waitroom_api::desk::RoomDesk;
use waitroom_api::{Code, Desk, Problem};
use waitroom_core::settings::ClaimMode;
use waitroom_core::{Actor, Command, Millis, Settings};
use waitroom_store::RoomName;

use super::installation::SERVER;
use super::say;

/// How long a start waits for a room that has no owner.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(100);
/// Before rooms that could not be opened are tried again: a store that was away for a moment should
/// cost people no more than that. Then twice as long each time, up to [`TRY_MAX`]: what needs a
/// person takes longer, and reading a large room costs something.
const TRY_AGAIN: Duration = Duration::from_secs(2);
const TRY_MAX: Duration = Duration::from_secs(30);

/// Who acts when the configuration file is read.
pub const FILE: &str = "file";

/// Opens every room, gives those of the file their settings, and says how many are open.
/// A room of the store that the file does not name keeps its settings: it was made by the API.
/// The error is a mistake of the file: settings that a room cannot take.
pub async fn open(
    desk: &Desk,
    kept: &[RoomName],
    file: &FileRooms,
    dev: bool,
) -> Result<usize, Problem> {
    for name in kept {
        if let Some(room) = try_open(desk, name).await {
            desk.catch_up_or_later(&room).await;
        }
    }
    let file = file.all();
    for (name, settings) in &file {
        if desk.unopened.rooms().contains_key(name) {
            continue;
        }
        match put_patiently(desk, name, settings, FILE).await {
            Err(Undone::Closed(problem)) => note(desk, name, &problem),
            Err(Undone::Refused(problem)) => return Err(problem),
            Ok(()) => {}
        }
    }
    if dev && kept.is_empty() && file.is_empty() {
        let name = RoomName::parse("default").expect("it is a room name");
        put_patiently(desk, &name, &dev_settings(), SERVER).await?;
    }
    Ok(desk.rooms().len())
}

/// The rooms of the file and their settings there, as they were last read. Shared by whoever reads
/// it again and whoever opens rooms late.
#[derive(Clone, Debug, Default)]
pub struct FileRooms(Arc<Mutex<BTreeMap<RoomName, Settings>>>);

impl FileRooms {
    pub fn new(rooms: BTreeMap<RoomName, Settings>) -> FileRooms {
        FileRooms(Arc::new(Mutex::new(rooms)))
    }

    fn all(&self) -> BTreeMap<RoomName, Settings> {
        self.rooms().clone()
    }

    pub fn get(&self, room: &RoomName) -> Option<Settings> {
        self.rooms().get(room).cloned()
    }

    pub fn set(&self, room: RoomName, settings: Settings) {
        self.rooms().insert(room, settings);
    }

    fn rooms(&self) -> MutexGuard<'_, BTreeMap<RoomName, Settings>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a room does not have its settings.
#[derive(Debug)]
pub enum Undone {
    /// It cannot be opened, or not be written to: later, perhaps.
    Closed(Problem),
    /// It cannot take them.
    Refused(Problem),
}

impl From<Undone> for Problem {
    fn from(undone: Undone) -> Problem {
        match undone {
            Undone::Closed(problem) | Undone::Refused(problem) => problem,
        }
    }
}

/// Opens a room that the installation has, or notes that it cannot be.
pub async fn try_open(desk: &Desk, name: &RoomName) -> Option<Arc<RoomDesk>> {
    match desk.open(name, SERVER).await {
        Ok(room) => Some(room),
        Err(problem) => {
            note(desk, name, &problem);
            None
        }
    }
}

fn note(desk: &Desk, name: &RoomName, problem: &Problem) {
    if desk.unopened.note(name, &problem.detail) {
        say::trouble(&say::unopened(name, &problem.detail));
    }
}

/// Tries again what could not be opened, until it is aborted.
pub async fn keep_trying(desk: Arc<Desk>, file: FileRooms) {
    let mut pause = TRY_AGAIN;
    loop {
        if desk.unopened.is_empty() {
            desk.unopened.more().await;
            pause = TRY_AGAIN;
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => pause = (pause * 2).min(TRY_MAX),
            // One more: it may be back sooner than the others.
            () = desk.unopened.more() => {
                pause = TRY_AGAIN;
                continue;
            }
        }
        for name in desk.unopened.rooms().keys() {
            match open_after_all(&desk, name, file.get(name)).await {
                Ok(()) => say::open_after_all(name),
                Err(problem) => note(&desk, name, &problem),
            }
        }
    }
}

/// Opens a room while the doors are open: nobody finds it before it has its settings of the file.
/// One that cannot take them is served with those it had, and one that never had any is not.
async fn open_after_all(
    desk: &Desk,
    name: &RoomName,
    settings: Option<Settings>,
) -> Result<(), Problem> {
    let room = desk.open_unlisted(name, SERVER).await?;
    desk.catch_up_or_later(&room).await;
    if let Some(settings) = settings {
        match configure(desk, &room, settings, FILE).await {
            Err(Undone::Refused(problem)) if room.settings().is_some() => {
                say::room_not_reloaded(name, &problem);
            }
            done => done?,
        }
    }
    desk.list(&room);
    Ok(())
}

/// At start a room may have no owner for a moment: the last one died with its lease, or whoever
/// should have it starts just now.
async fn put_patiently(
    desk: &Desk,
    name: &RoomName,
    settings: &Settings,
    who: &str,
) -> Result<(), Undone> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match put(desk, name, settings.clone(), who).await {
            Err(Undone::Closed(problem))
                if problem.code == Code::Unavailable && Instant::now() < deadline => {}
            done => return done,
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Gives a room these settings, as an act of the file (or of the server): it is audited like any
/// other. Settings that the room has already change nothing.
pub async fn put(
    desk: &Desk,
    name: &RoomName,
    settings: Settings,
    who: &str,
) -> Result<(), Undone> {
    let room = desk.open_unlisted(name, SERVER).await.map_err(Undone::Closed)?;
    configure(desk, &room, settings, who).await?;
    desk.list(&room);
    Ok(())
}

async fn configure(
    desk: &Desk,
    room: &Arc<RoomDesk>,
    settings: Settings,
    who: &str,
) -> Result<(), Undone> {
    let command = Command::Configure { settings: Box::new(settings), by: Actor::new(who) };
    desk.operate(room, who, Deed::Configure, command).await.map_err(|problem| {
        match problem.code {
            Code::Unavailable => Undone::Closed(problem),
            _ => Undone::Refused(problem),
        }
    })?;
    room.newest_board().await;
    Ok(())
}

/// A room to try things in: everyone queues, nobody enters but by hand, and a coffee break costs
/// no place.
fn dev_settings() -> Settings {
    Settings {
        title: "Development".into(),
        queue_all: true,
        rate: None,
        max_active: 100_000,
        heartbeat_timeout: Millis::from_secs(600),
        claim: ClaimMode::OnAdmission,
        ..Settings::default()
    }
}
