//! What operators did, by room: acts that must have left a trace in the log.

use crate::history::Verb;

use super::seen::Seen;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acts {
    pub admits_acknowledged: u64,
    pub admits_unknown: u64,
    /// Pauses of a room that was surely running, resumes of one that was surely paused. Others
    /// may have changed nothing, and what changes nothing is no event.
    pub pauses: u64,
    pub resumes: u64,
    paused: Option<bool>,
}

impl Acts {
    pub(super) fn take(&mut self, seen: &Seen<'_>) {
        let fine = seen.fine().is_some();
        let unknown = seen.got().is_none_or(|got| got.is_unknown());
        match seen.call.call {
            Verb::Admit => {
                self.admits_acknowledged += u64::from(fine);
                self.admits_unknown += u64::from(unknown);
            }
            Verb::Pause if fine => {
                self.pauses += u64::from(self.paused == Some(false));
                self.paused = Some(true);
            }
            Verb::Resume if fine => {
                self.resumes += u64::from(self.paused == Some(true));
                self.paused = Some(false);
            }
            Verb::Pause | Verb::Resume if unknown => self.paused = None,
            _ => {}
        }
    }
}
