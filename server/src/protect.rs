//! `waitroom protect http://localhost:3000`: a waiting room before a site, in one line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use hyper::Uri;
use serde_json::Value;
use waitroom_api::document::value;
use waitroom_core::settings::Rate;
use waitroom_store::RoomName;

use crate::config;
use crate::failure::{Exit, Failure};
use crate::serve::{Protects, Serve};

/// Puts a waiting room before a site: everything on one port, one command.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  waitroom protect http://localhost:3000 --capacity 200 --rate 10/s"
)]
pub struct Protect {
    /// The site, such as http://localhost:3000.
    #[arg(value_name = "ORIGIN", value_parser = origin)]
    origin: Uri,
    /// The room before it; made if there is none.
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = room)]
    room: RoomName,
    /// How many may be inside at once.
    #[arg(long, value_name = "PEOPLE", default_value_t = 100)]
    capacity: u64,
    /// How many are let in over time, such as 10/s or 30/min.
    #[arg(long, value_name = "PACE", default_value = "10/s", value_parser = rate)]
    rate: (Rate, String),
    /// Everyone waits for a turn, also when nobody else does. Otherwise a quiet room lets people
    /// straight through.
    #[arg(long)]
    queue_all: bool,
    /// Where visitors come in. Port 0 picks a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Where operators come in. Port 0 picks a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8081")]
    admin: SocketAddr,
    /// Visitors come over TLS that ends before this: cookies are for HTTPS only.
    #[arg(long)]
    behind_tls: bool,
    /// The data folder; made if there is none.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// A configuration file for everything else.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Prints the chosen addresses as one line of JSON on standard output.
    #[arg(long)]
    addresses_json: bool,
}

impl Protect {
    pub fn run(self) -> Result<Exit, Failure> {
        if self.capacity == 0 {
            let said = "a capacity of 0 lets nobody in".to_owned();
            return Err(Failure::new(Exit::Usage, said).means("nothing was started"));
        }
        let protects = Protects {
            origin: self.origin,
            room: self.room,
            capacity: self.capacity,
            rate: self.rate.0,
            rate_text: self.rate.1,
            queue_all: self.queue_all,
            listen: self.listen,
            admin: self.admin,
            behind_tls: self.behind_tls,
        };
        Serve::to_protect(protects, self.addresses_json, self.data, self.config).run()
    }
}

fn origin(text: &str) -> Result<Uri, String> {
    config::gate::origin(&Value::from(text))
}

fn room(text: &str) -> Result<RoomName, String> {
    config::gate::room_name(&Value::from(text))
}

fn rate(text: &str) -> Result<(Rate, String), String> {
    value::rate(&Value::from(text)).map(|rate| (rate, text.to_owned()))
}
