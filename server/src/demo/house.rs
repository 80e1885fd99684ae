//! The waiting room before the shop, by the code of `waitroom protect`, on a thread of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::thread::JoinHandle;

use serde_json::Value;
use tokio::sync::{oneshot, watch};
use waitroom_store::RoomName;

use super::story::{ROOM, Story};
use super::wire::{Browser, look_up};
use crate::failure::{Exit, Failure};
use crate::serve::{Protects, Serve, Stage};

#[derive(Debug)]
pub struct House {
    pub public: SocketAddr,
    pub admin: SocketAddr,
    pub key: String,
    end: watch::Sender<bool>,
    serving: Option<JoinHandle<Result<Exit, Failure>>>,
}

/// Looks at the room as its operators do.
#[derive(Clone, Debug)]
pub struct Eyes {
    admin: SocketAddr,
    key: String,
}

impl Eyes {
    pub async fn room(&self) -> Option<Value> {
        look_up(self.admin, &self.key, &format!("/admin/v1/rooms/{ROOM}")).await
    }

    /// The page that Prometheus reads.
    pub async fn metrics(&self) -> Option<String> {
        let mut browser = Browser::new(self.admin).with("x-api-key", self.key.as_str());
        let got = browser.get("/metrics").await.ok()?;
        (got.status == 200).then_some(got.body)
    }
}

impl House {
    /// Visitors come in at the first of the addresses, operators at the second. `besides` is laid
    /// behind the story's configuration.
    pub async fn start(
        story: &Story,
        besides: &str,
        shop: SocketAddr,
        [listen, admin]: [SocketAddr; 2],
        folder: &Path,
    ) -> Result<House, Failure> {
        let config = folder.join("demo.toml");
        std::fs::write(&config, story.configuration() + besides).map_err(|error| {
            Failure::new(Exit::Io, format!("{}: {error}", config.display()))
                .means("nothing was started")
        })?;
        let (rate, rate_text) = story.rate();
        let protects = Protects {
            origin: format!("http://{shop}").parse().expect("an address is a URI"),
            room: RoomName::parse(ROOM).expect("a constant, and a name"),
            capacity: story.capacity,
            rate,
            rate_text,
            queue_all: true,
            listen,
            admin,
            behind_tls: false,
        };
        let (up, is_up) = oneshot::channel();
        let (end, ended) = watch::channel(false);
        let serve = Serve::to_protect(protects, false, Some(folder.join("data")), Some(config))
            .staged(Stage::new(up, ended));
        let serving = std::thread::spawn(move || serve.run());
        let Ok(up) = is_up.await else {
            // It ended before it was up, and knows why.
            let ended =
                serving.join().map_err(|_| Failure::new(Exit::Wrong, "the server broke"))?;
            return Err(ended
                .err()
                .unwrap_or_else(|| Failure::new(Exit::Wrong, "the server ended")));
        };
        let key = up.key.or_else(|| std::env::var("WAITROOM_ADMIN_KEY").ok()).unwrap_or_default();
        let admin = up.admin.expect("the demo asks for one");
        Ok(House { public: up.public, admin, key, end, serving: Some(serving) })
    }

    pub fn eyes(&self) -> Eyes {
        Eyes { admin: self.admin, key: self.key.clone() }
    }

    pub async fn room(&self) -> Value {
        self.eyes().room().await.unwrap_or_default()
    }

    /// Ends it in order, and waits until its folder is free.
    pub async fn end(&mut self) -> Result<(), Failure> {
        let _ = self.end.send(true);
        let Some(serving) = self.serving.take() else { return Ok(()) };
        let ended = tokio::task::spawn_blocking(|| serving.join()).await;
        match ended {
            Ok(Ok(Ok(_))) => Ok(()),
            Ok(Ok(Err(failure))) => Err(failure),
            _ => Err(Failure::new(Exit::Wrong, "the server broke")),
        }
    }
}
