//! Waiting for the next commit of a room.
//!
//! What this instance wrote itself wakes its own followers at once. What others wrote is asked for,
//! often while a room is busy and rarely while it is quiet: no connection is held for a room, and a
//! quiet room costs a few small questions a second.

use std::time::Duration;

use tokio::sync::watch;
use waitroom_store::{Error, Head};

/// A board is shown a few times a second; nobody sees a delay of this much.
const OFTEN: Duration = Duration::from_millis(10);
const RARELY: Duration = Duration::from_millis(250);

/// Resolves once `committed` says more than `from`.
pub async fn follow<A, F>(
    mut told: watch::Receiver<Head>,
    from: Head,
    committed: A,
) -> Result<Head, Error>
where
    A: Fn() -> F,
    F: Future<Output = Result<Head, Error>>,
{
    let mut pause = OFTEN;
    loop {
        told.mark_unchanged();
        let head = committed().await?;
        if head > from {
            return Ok(head);
        }
        tokio::select! {
            _ = tokio::time::sleep(pause) => pause = (pause * 2).min(RARELY),
            // Cannot end: who asks keeps the sender.
            _ = told.changed() => {}
        }
    }
}
