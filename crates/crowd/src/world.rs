//! What all visitors of a run share.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::clock::Start;
use crate::history::Recorder;
use crate::plan::Plan;
use crate::tally::Tally;
use crate::wire::{Pool, Rpc};

#[derive(Debug)]
pub struct World {
    pub plan: Plan,
    pub start: Start,
    /// For calls that are answered at once.
    pub pool: Pool,
    /// For long polls, so that they keep nobody waiting.
    pub long: Pool,
    pub admin: Option<Pool>,
    pub rpc: Option<Rpc>,
    pub recorder: Recorder,
    pub tally: Tally,
}

/// The end of the run, as each visitor learns of it.
#[derive(Clone, Debug)]
pub struct Stop(pub watch::Receiver<bool>);

impl Stop {
    pub fn is_now(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for the end.
    pub async fn wait(&mut self) {
        // A run whose sender is gone is over too.
        let _ = self.0.wait_for(|stop| *stop).await;
    }

    /// Sleeps; false if the run ended meanwhile.
    pub async fn sleep(&mut self, ms: u64) -> bool {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(ms)) => true,
            () = self.wait() => false,
        }
    }
}

pub type Shared = Arc<World>;
