//! One test per clause of [`Store`], run by every backend unchanged.
//!
//! Lives here: the [`Fixture`] a backend brings, and `store_contract!`, which turns the tests into
//! `#[test]`s: `store_contract!(memory, MemoryFixture::new());`. The tests are plain functions over
//! a fixture, in one file per heading of the contract.
//! Stays out: what only one backend can do wrong (torn writes, damaged files); see its own tests.
//! Always compiled, so that backends in other crates can use it; nothing calls it in a release.

mod appending;
mod cursors;
mod leases;
mod reading;
mod rest;
mod snapshots;
mod writer;

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::Thread,
};

use crate::Store;

// `store_contract!` names a test by its clause alone, whichever file it is in.
pub use self::{appending::*, cursors::*, leases::*, reading::*, rest::*, snapshots::*};

/// A backend as the tests need it.
pub trait Fixture {
    type Store: Store;
    /// A handle, as another instance would have.
    fn store(&self) -> Self::Store;
    /// Lets the store's clock go on.
    fn advance(&self, ms: u64);
    /// Ends everything and opens again. The test has dropped its handles.
    fn reopen(&mut self);
}

/// Runs a future to its end on this thread.
pub fn wait<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Makes a module with one `#[test]` per clause. `$make` is evaluated afresh for each.
#[macro_export]
macro_rules! store_contract {
    ($name:ident, $make:expr) => {
        $crate::store_contract!(@ $name, $make,
            append_counts_events
            append_refuses_a_stale_head
            append_refuses_a_batch_without_events
            append_is_fenced_without_the_current_lease
            an_expired_lease_appends_until_granted_anew
            a_retry_returns_its_own_head
            a_retry_must_be_the_same_batch
            batch_numbers_go_up
            appends_in_flight_keep_call_order
            a_failed_append_fails_those_behind_it
            rooms_do_not_touch_each_other
            read_gives_whole_batches_in_order
            read_starts_with_the_batch_that_holds_the_next_event
            read_is_bounded_but_brings_at_least_one_batch
            read_below_the_trim_says_so
            an_unknown_room_is_empty
            follow_waits_for_the_next_commit
            acknowledged_survives_reopen
            the_latest_snapshot_comes_back_as_given
            a_snapshot_must_lie_on_the_chain
            snapshots_never_go_back
            trim_stops_at_the_latest_snapshot
            trim_stops_at_the_lowest_cursor
            trim_stops_at_keep_from
            the_system_log_is_never_trimmed
            trim_limit_leaves_the_snapshot_before_the_newest
            a_lease_has_one_holder
            epochs_never_go_down
            the_holder_who_asks_again_gets_a_new_epoch
            a_renewed_lease_lasts_longer
            a_lost_lease_cannot_be_renewed
            cursors_never_go_back
            a_dropped_cursor_pins_nothing
            a_cursor_cannot_begin_in_the_trimmed_part
            a_broken_cursor_pins_nothing_and_tells_its_gap
            retire_breaks_only_cursors_that_hold_trimming_up
            members_fall_silent
            the_newest_board_is_shown
            rooms_lists_rooms_with_a_log
            a_removed_room_is_as_if_it_never_was
        );
    };
    (@ $name:ident, $make:expr, $($clause:ident)*) => {
        mod $name {
            #[allow(unused_imports)]
            use super::*;
            $(#[test] fn $clause() { $crate::contract_tests::$clause($make); })*
        }
    };
}
