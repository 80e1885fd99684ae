//! The contract every backend keeps.
//!
//! Lives here: the trait [`Store`], with its promises as named clauses. Each clause has one test
//! of the same name in [`crate::contract_tests`], and every backend runs them all: no capability
//! flags, no skips. A backend that cannot keep a clause is not a backend.
//! Stays out: how any of it is done, and what the bytes mean.
//!
//! To add a clause: write it here, write its test, list the test in `store_contract!`.

use std::future::Future;

use crate::{
    cursor::{Cursor, Gap, Retention},
    error::{AppendError, Error},
    lease::{Holder, Lease, Member},
    log::{Appended, Batch, Chain, Head, Stored},
    name::{LeaseName, RoomName, SinkName},
    snapshot::Snapshot,
};

/// Remembers rooms. Knows logs, leases, cursors and snapshots; knows nothing of tickets.
///
/// An append takes its place in line when the method is called, not when its future is first
/// polled: an owner may have several of one room on the way, and call order is log order. A dropped
/// future cancels nothing. Everything else happens, at the latest, while its future is awaited.
///
/// Appending
/// - `append_counts_events`: the head grows by the batch's events; the chain is [`Chain::next`].
/// - `append_refuses_a_stale_head`: of two writers exactly one wins; the loser leaves no trace.
/// - `append_refuses_a_batch_without_events`: a batch that says nothing has no place in the log.
/// - `append_is_fenced_without_the_current_lease`: an older epoch, another nonce, another room's
///   lease or a released one writes nothing.
/// - `an_expired_lease_appends_until_granted_anew`: time alone takes nobody's lease away; the
///   next grant does. Nothing else could have been appended in between.
/// - `a_retry_returns_its_own_head`: a batch already in the log, named by epoch, nonce and number,
///   is acknowledged again with the head and chain it has, however far the log has gone on.
/// - `a_retry_must_be_the_same_batch`: the same name with another content is refused.
/// - `batch_numbers_go_up`: within an epoch a number below the newest that is not in the log (any
///   more: a trimmed batch is gone) is refused.
/// - `appends_in_flight_keep_call_order`: appends need not be awaited one by one.
/// - `a_failed_append_fails_those_behind_it`: they were decided on a head that never came.
/// - `rooms_do_not_touch_each_other`: neither heads, chains, leases nor trims.
///
/// Reading
/// - `read_gives_whole_batches_in_order`: everything acknowledged, once, as it was appended.
/// - `read_starts_with_the_batch_that_holds_the_next_event`: also from within a batch.
/// - `read_is_bounded_but_brings_at_least_one_batch`: `max_bytes` bounds the payloads.
/// - `read_below_the_trim_says_so`: never a silent gap.
/// - `an_unknown_room_is_empty`: head 0, nothing to read, no snapshot.
/// - `follow_waits_for_the_next_commit`: and answers at once when there is something already.
/// - `acknowledged_survives_reopen`: logs, leases, cursors, trims, floors and snapshots that
///   returned `Ok` are there for whoever opens next.
///
/// Snapshots and trimming
/// - `the_latest_snapshot_comes_back_as_given`: chunk by chunk.
/// - `a_snapshot_must_lie_on_the_chain`: at a batch's head, with the chain there.
/// - `snapshots_never_go_back`: an older one than the newest is refused.
/// - `trim_stops_at_the_latest_snapshot`, `trim_stops_at_the_lowest_cursor`,
///   `trim_stops_at_keep_from`: refused above, with the floor and who holds it.
/// - `the_system_log_is_never_trimmed`: audit is exempt.
/// - `trim_limit_leaves_the_snapshot_before_the_newest`: so a damaged newest one costs nothing.
///
/// Leases
/// - `a_lease_has_one_holder`: others are told who and for how long.
/// - `epochs_never_go_down`: through expiry, release, reopening and removal of the room.
/// - `the_holder_who_asks_again_gets_a_new_epoch`: a restarted instance need not wait for itself.
/// - `a_renewed_lease_lasts_longer`: from now, not from when it would have ended.
/// - `a_lost_lease_cannot_be_renewed`: nor released on behalf of the new holder.
///
/// Cursors
/// - `cursors_never_go_back`: and never past the head.
/// - `a_dropped_cursor_pins_nothing`: dropping twice is dropping once.
/// - `a_cursor_cannot_begin_in_the_trimmed_part`: the sink must know that it missed something.
/// - `a_broken_cursor_pins_nothing_and_tells_its_gap`: until it advances past it.
/// - `retire_breaks_only_cursors_that_hold_trimming_up`: and only those over the cap.
///
/// The rest
/// - `members_fall_silent`: an instance is listed until its time is up.
/// - `the_newest_board_is_shown`: small, volatile, the last one wins.
/// - `rooms_lists_rooms_with_a_log`: in order, the `_system` log not among them.
/// - `a_removed_room_is_as_if_it_never_was`: except that its epochs go on.
pub trait Store: Send + Sync + 'static {
    /// Appends a batch if the log is at `expected` and `lease` is the room's current one.
    /// `Ok` means durable at the backend's level. The future owns all it needs, so that an owner
    /// can keep several on the way.
    fn append(
        &self,
        room: &RoomName,
        lease: &Lease,
        expected: Head,
        batch: Batch,
    ) -> impl Future<Output = Result<Appended, AppendError>> + Send + 'static + use<Self>;

    /// Committed batches that hold events after `from`.
    fn read(
        &self,
        room: &RoomName,
        from: Head,
        max_bytes: usize,
    ) -> impl Future<Output = Result<Vec<Stored>, Error>> + Send;

    /// The newest event that readers may see.
    fn committed_head(&self, room: &RoomName) -> impl Future<Output = Result<Head, Error>> + Send;

    /// The committed head with the chain there, for the public board and for `Opened`.
    fn tip(&self, room: &RoomName) -> impl Future<Output = Result<Appended, Error>> + Send;

    /// Resolves with the committed head once it is above `from`.
    fn follow(
        &self,
        room: &RoomName,
        from: Head,
    ) -> impl Future<Output = Result<Head, Error>> + Send + 'static + use<Self>;

    /// Events up to here are gone.
    fn trimmed_to(&self, room: &RoomName) -> impl Future<Output = Result<Head, Error>> + Send;

    /// Keeps a snapshot. Chunks are taken one by one, so a large room is never copied whole.
    fn snapshot(
        &self,
        room: &RoomName,
        at: Head,
        chain: Chain,
        chunks: impl Iterator<Item = Vec<u8>> + Send + 'static,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// The newest snapshot that is whole.
    fn latest_snapshot(
        &self,
        room: &RoomName,
    ) -> impl Future<Output = Result<Option<Snapshot>, Error>> + Send;

    /// Forgets events up to `to`. Trimming what is already trimmed is `Ok`.
    fn trim(&self, room: &RoomName, to: Head) -> impl Future<Output = Result<(), Error>> + Send;

    /// How far a careful caller trims: below every cursor and floor, and no further than the
    /// snapshot before the newest, so that there is always one to fall back to.
    fn trim_limit(&self, room: &RoomName) -> impl Future<Output = Result<Head, Error>> + Send;

    /// Sets (or lifts) the retention floor: events after `floor` stay, whatever cursors say.
    fn keep_from(
        &self,
        room: &RoomName,
        floor: Option<Head>,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Takes a lease for `ttl_ms`, under a new epoch.
    fn lease(
        &self,
        name: &LeaseName,
        who: &str,
        ttl_ms: u64,
    ) -> impl Future<Output = Result<Lease, Error>> + Send;

    /// Keeps a lease for `ttl_ms` from now.
    fn renew(&self, lease: &Lease, ttl_ms: u64) -> impl Future<Output = Result<(), Error>> + Send;

    /// Gives a lease back: the next one need not wait, and this one appends no more.
    fn release(&self, lease: &Lease) -> impl Future<Output = Result<(), Error>> + Send;

    /// Who holds it now, if anyone.
    fn holder_of(
        &self,
        name: &LeaseName,
    ) -> impl Future<Output = Result<Option<Holder>, Error>> + Send;

    fn cursor(
        &self,
        room: &RoomName,
        sink: &SinkName,
    ) -> impl Future<Output = Result<Option<Cursor>, Error>> + Send;

    /// All cursors of a room, by name.
    fn cursors(
        &self,
        room: &RoomName,
    ) -> impl Future<Output = Result<Vec<(SinkName, Cursor)>, Error>> + Send;

    /// Moves a cursor on, making it if it is new. From then on it pins what it has not read.
    fn advance(
        &self,
        room: &RoomName,
        sink: &SinkName,
        to: Head,
    ) -> impl Future<Output = Result<Cursor, Error>> + Send;

    fn drop_cursor(
        &self,
        room: &RoomName,
        sink: &SinkName,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Gives up, for this sink, everything up to `to`. Lasting, and the answer to "what is missing".
    fn mark_broken(
        &self,
        room: &RoomName,
        sink: &SinkName,
        to: Head,
    ) -> impl Future<Output = Result<Gap, Error>> + Send;

    /// Marks broken every cursor that is over the cap and holds trimming up, with its gap.
    fn retire(
        &self,
        room: &RoomName,
        keep: Retention,
    ) -> impl Future<Output = Result<Vec<(SinkName, Gap)>, Error>> + Send;

    /// Says that an instance is here, for `ttl_ms` more.
    fn announce(
        &self,
        instance: &str,
        about: Vec<u8>,
        ttl_ms: u64,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Everybody who announced themselves and is not overdue, by name.
    fn instances(&self) -> impl Future<Output = Result<Vec<Member>, Error>> + Send;

    /// Shows a small document for a room. Volatile: it may be gone after a restart.
    fn publish_board(
        &self,
        room: &RoomName,
        board: Vec<u8>,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    fn board(&self, room: &RoomName)
    -> impl Future<Output = Result<Option<Vec<u8>>, Error>> + Send;

    /// Every room with a log, by name, without `_system`.
    fn rooms(&self) -> impl Future<Output = Result<Vec<RoomName>, Error>> + Send;

    /// Cleans up after a finished room: log, snapshots, cursors, board.
    fn remove_room(&self, room: &RoomName) -> impl Future<Output = Result<(), Error>> + Send;
}
