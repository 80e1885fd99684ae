//! Promise 5, by the log: for every window, paced admissions minus returned ones ≤
//! rate × window + burst; no catch-up burst after restart, pause or failover.

use waitroom_core::What;

use super::pace::Allowance;
use super::{Found, Logged};

#[derive(Debug, Default)]
pub(super) struct Check {
    allowance: Allowance,
}

const PROMISE: u8 = 5;

impl super::Check for Check {
    fn take(&mut self, it: &Logged<'_>, found: &mut Found) {
        if let Some(wrong) = self.allowance.take(it.event.at, &it.event.what)
            && let What::Admitted { ticket, .. } = &it.event.what
        {
            let said = format!("event {}: {ticket} is admitted where {wrong}", it.index);
            found.add(PROMISE, said, &[]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plant::{KEPT, Room};

    #[test]
    fn an_admission_one_millisecond_early_is_found() {
        // Ten a second, one at once: a tenth of a second between two.
        let room = || Room::running().join(0).join(1).admit(0);
        assert_eq!(room().wait(99).admit(1).broken(), [5]);
        assert_eq!(room().wait(100).admit(1).broken(), KEPT);
    }

    #[test]
    fn what_was_saved_up_before_a_pause_or_a_restart_is_gone() {
        let saved = || Room::running().join(0).join(1).wait(5_000);
        assert_eq!(saved().admit(0).broken_among(&[5]), KEPT);
        assert_eq!(saved().pause().resume().admit(0).broken_among(&[5]), [5]);
        assert_eq!(saved().reopen().admit(0).broken_among(&[5]), [5]);
        assert_eq!(saved().pause().resume().wait(100).admit(0).broken_among(&[5]), KEPT);
    }
}
