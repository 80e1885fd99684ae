//! SIGHUP: the configuration file and the certificates are read again.
//!
//! All or nothing as far as reading goes: a file with a mistake changes nothing, neither rooms nor
//! certificates, and every mistake is told. Then each room is given its new settings as a whole; a
//! room that cannot take them (a lane with people in it cannot go) keeps its old ones, and that is
//! told as well.
//! Only rooms whose settings *in the file* are others than when it was last read are touched: what
//! an operator turned at night by API or command is not turned back by whoever renews a
//! certificate. The level of the log follows the file; other sections take a restart.

use std::path::PathBuf;
use std::sync::Arc;

use waitroom_api::{Desk, metrics};
use waitroom_listen::Tls;

use super::rooms::{self, FileRooms};
use super::say;
use crate::config::{Config, Environment};
use crate::telemetry::Lines;

#[derive(Debug)]
pub struct Reload {
    file: Option<PathBuf>,
    rooms: FileRooms,
    tls: Vec<Arc<Tls>>,
    lines: Lines,
}

impl Reload {
    pub fn new(
        file: Option<PathBuf>,
        rooms: FileRooms,
        tls: Vec<Arc<Tls>>,
        lines: Lines,
    ) -> Reload {
        Reload { file, rooms, tls, lines }
    }

    pub async fn run(&mut self, desk: &Desk) {
        let loaded = Config::load(self.file.as_deref(), &Environment::of_this_process());
        let config = match loaded {
            Ok(config) => config,
            Err(mistakes) => {
                desk.metrics.reloaded(metrics::Reload::Refused);
                return say::not_reloaded(&mistakes);
            }
        };
        self.lines.level(config.log.level);
        let mut outcome = metrics::Reload::Done;
        for tls in &self.tls {
            let reloaded = tls.reload();
            if reloaded.is_err() {
                outcome = metrics::Reload::Refused;
            }
            say::reloaded(reloaded);
        }
        let mut changed = Vec::new();
        for (name, settings) in config.rooms {
            if self.rooms.get(&name).as_ref() == Some(&settings) {
                continue;
            }
            match rooms::put(desk, &name, settings.clone(), rooms::FILE).await {
                Ok(()) => {
                    changed.push(name.to_string());
                    self.rooms.set(name, settings);
                }
                Err(undone) => {
                    outcome = metrics::Reload::Refused;
                    say::room_not_reloaded(&name, &undone.into());
                    // A room that is closed gets them when it opens. Otherwise they are not taken
                    // over, so that the next reload tries again.
                    if desk.unopened.rooms().contains_key(&name) {
                        self.rooms.set(name, settings);
                    }
                }
            }
        }
        desk.metrics.reloaded(outcome);
        say::rooms_reloaded(&changed);
    }
}
