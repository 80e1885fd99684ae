//! What `waitroom protect` lays over a configuration: one room, one site, one port.

use std::net::SocketAddr;

use hyper::Uri;
use waitroom_core::Settings;
use waitroom_core::settings::Rate;
use waitroom_store::RoomName;

use crate::config::Config;

#[derive(Clone, Debug)]
pub struct Protects {
    pub origin: Uri,
    pub room: RoomName,
    pub capacity: u64,
    pub rate: Rate,
    /// The rate as it was written.
    pub rate_text: String,
    pub queue_all: bool,
    pub listen: SocketAddr,
    pub admin: SocketAddr,
    /// Whether visitors come over TLS, ended somewhere before this.
    pub behind_tls: bool,
}

impl Protects {
    pub fn lay_over(&self, config: &mut Config) {
        let server = &mut config.server;
        server.grpc = None;
        // Cookies for TLS only where there is TLS, or a browser would throw them away.
        server.dev = config.tls.public.cert.is_none() && !self.behind_tls;
        let base = config.rooms.remove(&self.room);
        let room = Settings {
            max_active: self.capacity,
            rate: Some(self.rate),
            queue_all: self.queue_all,
            ..base.unwrap_or_else(|| Settings { title: self.title(), ..Settings::default() })
        };
        config.rooms.insert(self.room.clone(), room);
        // The whole host is the site; the gate before it is the only way that this command knows.
        let mut site = config.gate.clone();
        site.room = Some(self.room.clone());
        site.origins = vec![self.origin.clone()];
        site.only_way_in = true;
        config.sites = vec![site];
    }

    fn title(&self) -> String {
        "You are in line".to_owned()
    }
}
