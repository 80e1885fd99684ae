//! Promise 4, by the log: no admission is made while slots held ≥ `max_active`.

use waitroom_core::What;

use super::slots::Slots;
use super::{Found, Logged};

#[derive(Debug, Default)]
pub(super) struct Check {
    slots: Slots,
}

const PROMISE: u8 = 4;

impl super::Check for Check {
    fn take(&mut self, it: &Logged<'_>, found: &mut Found) {
        if let What::Admitted { ticket, .. } = &it.event.what
            && self.slots.free() == 0
        {
            let (held, max) = (self.slots.held(), self.slots.max_active);
            let said = format!(
                "event {}: {ticket} is admitted while {held} slots of {max} are held",
                it.index
            );
            found.add(PROMISE, said, &[]);
        }
        if let Some(wrong) = self.slots.take(it.event.at, &it.event.what) {
            found.add(PROMISE, format!("event {}: {wrong}", it.index), &[]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plant::{KEPT, Room};

    #[test]
    fn one_more_than_may_be_inside_is_found() {
        let room = || Room::with(|settings| settings.max_active = 1).join(0).join(1).admit(0);
        assert_eq!(room().wait(200).admit(1).broken(), [4]);
        // A no-show frees the slot at once.
        assert_eq!(room().wait(90_000).no_show(0).admit(1).broken(), KEPT);
    }

    #[test]
    fn a_slot_that_is_free_one_millisecond_before_its_pass_is_dead_is_found() {
        let room = || Room::with(|settings| settings.max_active = 1).join(0).admit(0).claim(0);
        assert_eq!(room().wait(1_000).complete(0, 0).broken(), KEPT);
        assert_eq!(room().wait(1_000).complete(0, -1).broken(), [4]);
    }
}
