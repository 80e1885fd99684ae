//! The rooms of this instance at start: those of the store, those of the file, and the one of
//! development.

use std::collections::BTreeMap;

use waitroom_api::admin::acting::Deed;
use waitroom_api::{Desk, Problem};
use waitroom_core::settings::ClaimMode;
use waitroom_core::{Actor, Command, Millis, Settings};
use waitroom_store::RoomName;

use super::installation::SERVER;

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
        put(desk, name, settings.clone(), FILE).await?;
    }
    if dev && kept.is_empty() && file.is_empty() {
        let name = RoomName::parse("default").expect("it is a room name");
        put(desk, &name, dev_settings(), SERVER).await?;
    }
    Ok(desk.rooms().len())
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
    room.board_since(room.handle().committed()).await;
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
