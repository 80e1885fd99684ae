//! The rooms of this instance at start: those of the store, those of the file, and the one of
//! development.

use std::collections::BTreeMap;

use waitroom_api::{Desk, Problem};
use waitroom_core::settings::ClaimMode;
use waitroom_core::{Actor, Command, Millis, Settings};
use waitroom_store::RoomName;

use super::installation::SERVER;

/// Opens every room, gives those of the file their settings, and says how many there are.
/// A room of the store that the file does not name keeps its settings: it was made by the API.
pub async fn open(
    desk: &Desk,
    kept: Vec<RoomName>,
    file: &BTreeMap<RoomName, Settings>,
    dev: bool,
) -> Result<usize, Problem> {
    for name in &kept {
        desk.open(name, SERVER).await?;
    }
    for (name, settings) in file {
        put(desk, name, settings.clone()).await?;
    }
    if dev && kept.is_empty() && file.is_empty() {
        let name = RoomName::parse("default").expect("it is a room name");
        put(desk, &name, dev_settings()).await?;
    }
    Ok(desk.rooms().len())
}

async fn put(desk: &Desk, name: &RoomName, settings: Settings) -> Result<(), Problem> {
    let room = desk.open(name, SERVER).await?;
    if room.settings().is_none_or(|current| *current != settings) {
        let by = Actor::new(SERVER);
        room.send(Command::Configure { settings: Box::new(settings), by }).await?;
    }
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
