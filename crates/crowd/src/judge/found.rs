//! What was found: the first violations of each promise, and how many there were.

use std::collections::BTreeMap;
use std::fmt;

use super::book::TicketIx;

/// More would not be read; a broken promise usually breaks a thousand times.
const KEPT_PER_PROMISE: usize = 20;

/// One broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// As the design counts them.
    pub promise: u8,
    pub said: String,
    /// Whom it happened to; the log may explain.
    pub tickets: Vec<TicketIx>,
    /// What the log says of them.
    pub explained: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "promise {}: {}", self.promise, self.said)?;
        self.explained.iter().try_for_each(|said| write!(f, "; {said}"))
    }
}

#[derive(Debug, Default)]
pub struct Found {
    first: Vec<Violation>,
    counts: BTreeMap<u8, u64>,
}

impl Found {
    pub fn add(&mut self, promise: u8, said: impl Into<String>, tickets: &[TicketIx]) {
        let count = self.counts.entry(promise).or_default();
        *count += 1;
        if *count <= KEPT_PER_PROMISE as u64 {
            let (said, tickets) = (said.into(), tickets.to_vec());
            self.first.push(Violation { promise, said, tickets, explained: Vec::new() });
        }
    }

    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The first of each promise, in the order of finding.
    pub fn first(&self) -> impl Iterator<Item = &Violation> {
        self.counts.keys().flat_map(|promise| self.first.iter().filter(|it| it.promise == *promise))
    }

    /// How often each promise was broken.
    pub fn counts(&self) -> impl Iterator<Item = (u8, u64)> + '_ {
        self.counts.iter().map(|(promise, count)| (*promise, *count))
    }

    /// Lets somebody who knows more say something about each ticket.
    pub fn explain(&mut self, mut about: impl FnMut(TicketIx) -> Option<String>) {
        for violation in &mut self.first {
            violation.explained.extend(violation.tickets.iter().filter_map(|it| about(*it)));
        }
    }

    pub fn count(&self, promise: u8) -> u64 {
        self.counts.get(&promise).copied().unwrap_or(0)
    }
}
