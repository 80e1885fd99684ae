//! A server that is started from within this program, as the demo does.
//!
//! It tells where it is to whoever started it instead of the terminal, and listens to them
//! instead of the signals: they end other things too, in an order of their own.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use tokio::sync::{oneshot, watch};

use super::say::Addresses;

/// Where the server is.
#[derive(Clone, Debug)]
pub struct Up {
    pub public: SocketAddr,
    pub admin: Option<SocketAddr>,
    /// The owner's key, unless the environment gave one.
    pub key: Option<String>,
}

#[derive(Debug)]
pub struct Stage {
    up: Mutex<Option<oneshot::Sender<Up>>>,
    end: watch::Receiver<bool>,
}

impl Stage {
    /// `up` hears where it is, once; it ends when `end` becomes true or its sender is gone.
    pub fn new(up: oneshot::Sender<Up>, end: watch::Receiver<bool>) -> Stage {
        Stage { up: Mutex::new(Some(up)), end }
    }

    pub(super) fn is_up(&self, addresses: &Addresses, key: Option<&str>) {
        let up = self.up.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (public, admin, key) = (addresses.public, addresses.admin, key.map(str::to_owned));
        if let Some(up) = up {
            // Whoever does not want to know any more will end it.
            let _ = up.send(Up { public, admin, key });
        }
    }

    pub(super) async fn ended(&self) -> &'static str {
        let mut end = self.end.clone();
        let _ = end.wait_for(|end| *end).await;
        "the demo is over"
    }
}
