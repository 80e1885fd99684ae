//! Promise 12, by the log: with people waiting and a slot and a token free, someone is admitted
//! within a tick; an unclaimed slot returns after `claim_by`, a held one when its pass is dead.
//!
//! An event of the same epoch proves that the owner lived then. If it comes long after the moment
//! from which somebody could have entered, and nobody did, the room stuck in between. Rooms with
//! shuffle windows wait for their window and are left out.

use std::collections::BTreeSet;

use waitroom_core::{Entry, Millis, Ticket, Timestamp, What};

use super::doors::Doors;
use super::pace::Allowance;
use super::slots::Slots;
use super::{Found, Logged};

/// A disk or a machine that stalls longer is not healthy; see the takeover time in the design.
const PATIENCE: Millis = Millis(5_000);

const PROMISE: u8 = 12;

#[derive(Debug, Default)]
pub(super) struct Check {
    doors: Doors,
    slots: Slots,
    allowance: Allowance,
    waiting: u64,
    tick: Millis,
    shuffled: bool,
    /// From when on somebody could have entered.
    ready_at: Option<Timestamp>,
    /// Slots that must come back, by when.
    due: BTreeSet<(Timestamp, Ticket)>,
}

impl super::Check for Check {
    fn take(&mut self, it: &Logged<'_>, found: &mut Found) {
        let (at, what) = (it.event.at, &it.event.what);
        let limit = |from: Timestamp| from.after(self.tick).after(PATIENCE);
        if matches!(what, What::Opened { .. }) {
            // Whoever was to do it is gone; the new one gives everybody the full time again.
            self.ready_at = None;
            self.due.clear();
        }
        if let Some(ready) = self.ready_at.filter(|ready| at > limit(*ready)) {
            let said = format!(
                "event {}: from {} to {} somebody could have entered and nobody did",
                it.index, ready.0, at.0
            );
            found.add(PROMISE, said, &[]);
            self.ready_at = None;
        }
        while let Some((due, ticket)) =
            self.due.first().copied().filter(|(due, _)| at > limit(*due))
        {
            let said = format!("event {}: the slot of {ticket} was due at {}", it.index, due.0);
            found.add(PROMISE, said, &[]);
            self.due.remove(&(due, ticket));
        }
        self.fold(at, what);
    }
}

impl Check {
    fn fold(&mut self, at: Timestamp, what: &What) {
        self.doors.take(what);
        let _ = self.slots.take(at, what);
        let _ = self.allowance.take(at, what);
        match what {
            What::Configured { settings, .. } => {
                (self.tick, self.shuffled) = (settings.tick, settings.shuffle_window != 1);
            }
            What::Joined(joined) => self.waiting = joined.waiting,
            What::Admitted { ticket, waiting, entry, .. } => {
                self.waiting = *waiting;
                self.ready_at = None;
                if let Entry::MustClaim { by } = entry {
                    self.due.insert((*by, *ticket));
                }
            }
            What::Claimed { ticket, .. } | What::Released { ticket } => self.returned(*ticket),
            What::Ended { ticket, waiting, held_until, .. } => {
                self.waiting = *waiting;
                self.returned(*ticket);
                self.due.extend(held_until.map(|until| (until, *ticket)));
            }
            // Maintenance stops these clocks and the resume starts them anew.
            What::Held { .. } | What::Resumed { .. } => self.due.clear(),
            What::SaleEnded { .. } => self.waiting = 0,
            _ => {}
        }
        let possible = self.waiting > 0
            && self.slots.free() > 0
            && self.doors.shut().is_none()
            && !self.shuffled;
        let ready = self.allowance.next_in_ms().filter(|_| possible);
        let ready = ready.map(|ms| at.after(Millis(ms)));
        self.ready_at = match (self.ready_at, ready) {
            (Some(since), Some(ready)) => Some(since.min(ready)),
            (_, ready) => ready,
        };
    }

    fn returned(&mut self, ticket: Ticket) {
        // Few are due at once, and each is in here once.
        self.due.retain(|(_, other)| *other != ticket);
    }
}

#[cfg(test)]
mod tests {
    use super::super::plant::{KEPT, Room};

    #[test]
    fn a_room_that_admits_nobody_for_a_millisecond_too_long_is_found() {
        // The bucket is full when the first one comes; a tick is 200 ms.
        let room = |ms: u64| Room::running().join(0).wait(ms).join(1);
        assert_eq!(room(200 + 5_000).broken(), KEPT);
        assert_eq!(room(200 + 5_001).broken(), [12]);
        // Behind one who entered, the next token is there after 100 ms.
        let next = |ms: u64| Room::running().join(0).join(1).admit(0).claim(0).wait(ms).join(2);
        assert_eq!(next(100 + 200 + 5_000).broken(), KEPT);
        assert_eq!(next(100 + 200 + 5_001).broken(), [12]);
    }

    #[test]
    fn a_full_a_paused_or_an_ownerless_room_does_not_stick() {
        let full = Room::with(|settings| settings.max_active = 1).join(0).admit(0).claim(0);
        assert_eq!(full.join(1).wait(60_000).join(2).broken(), KEPT);
        assert_eq!(Room::running().join(0).pause().wait(60_000).join(1).broken(), KEPT);
        assert_eq!(Room::running().join(0).wait(60_000).reopen().broken(), KEPT);
    }

    #[test]
    fn an_unclaimed_slot_that_stays_a_millisecond_too_long_is_found() {
        let room = |ms: u64| Room::running().join(0).admit(0).wait(ms).join(1);
        assert_eq!(room(90_000 + 200 + 5_000).broken(), KEPT);
        assert_eq!(room(90_000 + 200 + 5_001).broken(), [12]);
    }
}
