//! Promise 9, by the log: a room that is held or does not run admits nobody.

use waitroom_core::What;

use super::doors::Doors;
use super::{Found, Logged};

#[derive(Debug, Default)]
pub(super) struct Check {
    doors: Doors,
}

const PROMISE: u8 = 9;

impl super::Check for Check {
    fn take(&mut self, it: &Logged<'_>, found: &mut Found) {
        self.doors.take(&it.event.what);
        if let What::Admitted { ticket, .. } = &it.event.what
            && let Some(why) = self.doors.shut()
        {
            let said = format!("event {}: {ticket} is admitted while the room is {why}", it.index);
            found.add(PROMISE, said, &[]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plant::{KEPT, Room};

    #[test]
    fn an_admission_during_a_pause_is_found_and_right_after_it_is_not() {
        let paused = || Room::running().join(0).join(1).admit(0).pause();
        assert_eq!(paused().wait(200).admit(1).broken(), [9]);
        assert_eq!(paused().resume().wait(200).admit(1).broken(), KEPT);
    }

    #[test]
    fn an_admission_before_the_start_is_found() {
        assert_eq!(Room::before_start().join(0).admit(0).broken(), [9]);
    }
}
