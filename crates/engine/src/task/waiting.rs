//! What a tenure waits for, one at a time, and how answers leave.

use super::{Held, InFlight};
use crate::handle::Answers;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use waitroom_core::PreparedDraw;
use waitroom_store::{AppendError, Appended};

pub(super) fn deliver(held: Vec<Held>, version: u64) {
    for Held { mut answers, to, .. } in held {
        match &mut answers {
            Answers::One(answer) => answer.version = version,
            Answers::Many(all) => all.iter_mut().for_each(|answer| answer.version = version),
        }
        // Whoever gave up waiting has still joined; a repeat finds the place.
        let _ = to.send(Ok(answers));
    }
}

/// The oldest append on its way; answers come in order.
pub(super) async fn next(in_flight: &mut VecDeque<InFlight>) -> Result<Appended, AppendError> {
    poll_fn(|context| match in_flight.front_mut() {
        Some(round) => round.append.as_mut().poll(context),
        None => Poll::Pending,
    })
    .await
}

pub(super) async fn finished(
    drawing: &mut Option<JoinHandle<PreparedDraw>>,
) -> Result<PreparedDraw, tokio::task::JoinError> {
    match drawing {
        Some(handle) => handle.await,
        None => std::future::pending().await,
    }
}

/// Another instance came or went.
pub(super) async fn changed(changes: &mut Option<watch::Receiver<u64>>) {
    let told = match changes {
        Some(changes) => changes.changed().await.is_ok(),
        None => false,
    };
    if !told {
        // Nobody tells, or nobody does any more: the cluster ends before its rooms.
        std::future::pending().await
    }
}

pub(super) async fn sleep(wake: Option<Duration>) {
    match wake {
        Some(wake) => tokio::time::sleep(wake).await,
        None => std::future::pending().await,
    }
}
