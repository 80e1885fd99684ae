//! SIGHUP: the configuration file and the certificates are read again.
//!
//! All or nothing as far as reading goes: a file with a mistake changes nothing, neither rooms nor
//! certificates, and every mistake is told. Then each room is given its new settings as a whole; a
//! room that cannot take them (a lane with people in it cannot go) keeps its old ones, and that is
//! told as well.
//! Only rooms whose settings *in the file* are others than when it was last read are touched: what
//! an operator turned at night by API or command is not turned back by whoever renews a
//! certificate. Sections other than `rooms` and what certificates are read from take a restart.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use waitroom_api::Desk;
use waitroom_core::Settings;
use waitroom_listen::Tls;
use waitroom_store::RoomName;

use super::{rooms, say};
use crate::config::{Config, Environment};

#[derive(Debug)]
pub struct Reload {
    file: Option<PathBuf>,
    /// As they stood in the file when it was last read.
    rooms: BTreeMap<RoomName, Settings>,
    tls: Vec<Arc<Tls>>,
}

impl Reload {
    pub fn new(
        file: Option<PathBuf>,
        rooms: BTreeMap<RoomName, Settings>,
        tls: Vec<Arc<Tls>>,
    ) -> Reload {
        Reload { file, rooms, tls }
    }

    pub async fn run(&mut self, desk: &Desk) {
        let loaded = Config::load(self.file.as_deref(), &Environment::of_this_process());
        let config = match loaded {
            Ok(config) => config,
            Err(mistakes) => return say::not_reloaded(&mistakes),
        };
        for tls in &self.tls {
            say::reloaded(tls.reload());
        }
        let mut changed = Vec::new();
        for (name, settings) in config.rooms {
            if self.rooms.get(&name) == Some(&settings) {
                continue;
            }
            match rooms::put(desk, &name, settings.clone(), rooms::FILE).await {
                Ok(()) => {
                    changed.push(name.to_string());
                    self.rooms.insert(name, settings);
                }
                // Not taken over, so that the next reload tries again.
                Err(problem) => say::room_not_reloaded(&name, &problem),
            }
        }
        say::rooms_reloaded(&changed);
    }
}
