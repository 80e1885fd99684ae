//! Whether an installation that is there already knows a room, and has the keys that its tickets
//! were made with. Without them everybody would be in their place, and nobody could prove it.

use waitroom_store::seal::MasterKey;
use waitroom_store::system::System;
use waitroom_store::{RoomName, Seams, Store};

use crate::serve::secrets_of;

/// The error says what it lacks.
pub async fn knows<S: Store>(store: S, master: &MasterKey, room: &RoomName) -> Result<(), String> {
    let system = System::open(store, master.clone(), Seams::real(), "waitroom rebuild").await;
    let system = system.map_err(|error| format!("cannot be read: {error}"))?;
    if !system.rooms().any(|(name, _)| name == room.as_str()) {
        return Err("does not know the room, and so has none of its keys".into());
    }
    for name in secrets_of(room) {
        match system.secret(&name) {
            Ok(Some(_)) => {}
            Ok(None) => return Err("has lost the room's keys".into()),
            Err(error) => return Err(format!("has keys that cannot be opened: {error}")),
        }
    }
    Ok(())
}
