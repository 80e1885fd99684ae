//! The other instances for operators: who is there, and who owns which room.

use http::StatusCode;
use serde_json::{Value, json};

use super::Act;
use crate::problem::Problem;

/// An instance that shares its rooms with nobody owns them all, and says so in the same words.
pub async fn show(act: Act) -> Result<(StatusCode, Value), Problem> {
    let picture = match act.desk.cluster.get() {
        Some(cluster) => cluster.picture(),
        None => {
            let rooms = act.desk.rooms();
            let owned = |name: &str| json!({ "room": name, "owner": null });
            let rooms: Vec<Value> = rooms.iter().map(|it| owned(it.name().as_str())).collect();
            json!({ "instance": null, "instances": [], "rooms": rooms })
        }
    };
    Ok((StatusCode::OK, picture))
}
