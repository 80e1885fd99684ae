//! The call to finish, for those who own something that the listener cannot end by itself:
//! sockets after an upgrade, long polls, streams.

use tokio::sync::watch;

/// Says whether the listener is closing. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Drain(watch::Receiver<bool>);

#[derive(Debug)]
pub(crate) struct DrainCall(watch::Sender<bool>);

impl Drain {
    pub fn is_on(&self) -> bool {
        *self.0.borrow()
    }

    /// Comes back when the listener begins to close, at once when it already has, and also when
    /// it is gone: either way nobody should wait for more.
    pub async fn wait(&mut self) {
        let _gone_is_on = self.0.wait_for(|on| *on).await;
    }
}

impl DrainCall {
    pub(crate) fn new() -> (DrainCall, Drain) {
        let (sender, receiver) = watch::channel(false);
        (DrainCall(sender), Drain(receiver))
    }

    pub(crate) fn call(&self) {
        self.0.send_replace(true);
    }
}
