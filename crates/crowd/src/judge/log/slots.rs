//! Slots taken, from events alone.
//!
//! A slot is taken by the admission and held until no gate can accept the pass: until its end
//! plus leeway, or until gates confirmed the end, which shows as `Released`.

use std::collections::HashMap;

use waitroom_core::{Entry, Millis, Ticket, Timestamp, What};

#[derive(Debug, Default)]
pub(super) struct Slots {
    taken: HashMap<Ticket, Option<Timestamp>>,
    pub max_active: u64,
    leeway: Millis,
}

impl Slots {
    pub fn held(&self) -> u64 {
        self.taken.len() as u64
    }

    pub fn free(&self) -> u64 {
        self.max_active.saturating_sub(self.held())
    }

    /// Folds an event in. Says what is wrong with a slot that is given up too early.
    pub fn take(&mut self, at: Timestamp, what: &What) -> Option<String> {
        match what {
            What::Configured { settings, .. } => {
                (self.max_active, self.leeway) = (settings.max_active, settings.pass_leeway);
            }
            What::Admitted { ticket, entry, .. } => {
                let pass_ends = match entry {
                    Entry::MustClaim { .. } => None,
                    Entry::Claimed(session) => Some(session.pass_expires_at),
                };
                self.taken.insert(*ticket, pass_ends);
            }
            What::Claimed { ticket, session } | What::Renewed { ticket, session } => {
                if let Some(pass_ends) = self.taken.get_mut(ticket) {
                    *pass_ends = (*pass_ends).max(Some(session.pass_expires_at));
                }
            }
            What::Ended { ticket, held_until, .. } => return self.end(at, *ticket, *held_until),
            What::Released { ticket } => {
                self.taken.remove(ticket);
            }
            _ => {}
        }
        None
    }

    fn end(&mut self, at: Timestamp, ticket: Ticket, held: Option<Timestamp>) -> Option<String> {
        let pass_ends = *self.taken.get(&ticket)?;
        if held.is_none() {
            self.taken.remove(&ticket);
        }
        let accepted_until = pass_ends.map(|ends| ends.after(self.leeway)).filter(|it| *it > at);
        (held < accepted_until).then(|| {
            format!(
                "the slot of {ticket} is held until {held:?}, its pass is good until \
                 {accepted_until:?}"
            )
        })
    }
}
