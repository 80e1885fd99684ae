//! The rooms of this instance at start: those of the store, those of the file, and the one of
//! development.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;
use waitroom_api::admin::acting::Deed;
use waitroom_api::{Code, Desk, Problem};
use waitroom_core::settings::ClaimMode;
use waitroom_core::{Actor, Command, Millis, Settings};
use waitroom_store::RoomName;

use super::installation::SERVER;

/// How long a start waits for a room that has no owner.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(100);

/// Who acts when the configuration file is read.
pub const FILE: &str = "file";

/// Opens every room, gives those of the file their settings, and says how many there are.
/// A room of the store that the file does not name keeps its settings: it was made by the API.
pub async fn open(
    desk: &Desk,
    kept: Vec<RoomName>,
    file: &BTreeMap<RoomName, Settings>,
    dev: bool,
) -> Result<usize, Problem> {
    for name in &kept {
        let room = desk.open(name, SERVER).await?;
        // An act that was cut off between its event and its audit entry.
        desk.catch_up(&room).await?;
    }
    for (name, settings) in file {
        put_patiently(desk, name, settings, FILE).await?;
    }
    if dev && kept.is_empty() && file.is_empty() {
        let name = RoomName::parse("default").expect("it is a room name");
        put_patiently(desk, &name, &dev_settings(), SERVER).await?;
    }
    Ok(desk.rooms().len())
}

/// At start a room may have no owner for a moment: the last one died with its lease, or whoever
/// should have it starts just now.
async fn put_patiently(
    desk: &Desk,
    name: &RoomName,
    settings: &Settings,
    who: &str,
) -> Result<(), Problem> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match put(desk, name, settings.clone(), who).await {
            Err(problem) if problem.code == Code::Unavailable && Instant::now() < deadline => {}
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
) -> Result<(), Problem> {
    let room = desk.open(name, SERVER).await?;
    let command = Command::Configure { settings: Box::new(settings), by: Actor::new(who) };
    desk.operate(&room, who, Deed::Configure, command).await?;
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
