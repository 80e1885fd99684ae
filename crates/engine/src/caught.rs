//! A panic ends what panicked, and nothing else.
//!
//! A mistake of ours in one room must not take the room away for good, nor the rooms beside it.
//! Whoever runs something here throws away all it has touched and builds it anew: memory that a
//! panic left half changed is not to be trusted.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;

/// Runs a future to its end, or to the words of its panic. The panic was already told to the
/// process's panic hook. It is borrowed where it lies: moved in here it would take its place twice
/// in the task of every idle room.
pub(crate) async fn caught<F: Future>(mut future: Pin<&mut F>) -> Result<F::Output, String> {
    poll_fn(|context| {
        // Never polled again after a panic, and what it held is dropped by the caller.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(polled) => polled.map(Ok),
            Err(panic) => Poll::Ready(Err(words(&*panic))),
        }
    })
    .await
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a mistake of ours ended the room's task: {}", text.unwrap_or("no words"))
}
