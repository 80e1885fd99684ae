//! What the log tells of each ticket: who joined, in which epoch, where it was moved, when it was
//! over. The plainest possible fold, for checkers that hold clients' answers against the log.

use waitroom_core::{Command, Epoch, Identity, JoinKey, Joined, Presented, Reply, Ticket, What};

use super::quick::Map;
use crate::history::History;

pub(super) struct Tickets<'a> {
    by_ticket: Map<Ticket, Told<'a>>,
}

pub(super) struct Told<'a> {
    /// Index of the event that gave the number.
    pub(super) born: u64,
    pub(super) epoch: Epoch,
    /// None for a ticket that an operator's move made.
    pub(super) joined: Option<&'a Joined>,
    /// The name that somebody told after they had joined.
    pub(super) bound: Option<Identity>,
    pub(super) moved_from: Option<Ticket>,
    pub(super) moved_to: Option<(u64, Ticket)>,
    pub(super) admitted: Option<u64>,
    /// Index of the event that ended, moved or closed it.
    pub(super) over: Option<u64>,
}

impl<'a> Tickets<'a> {
    pub(super) fn of(history: &'a History) -> Tickets<'a> {
        let mut tickets = Tickets {
            by_ticket: Map::with_capacity_and_hasher(history.log.len(), Default::default()),
        };
        for it in &history.log {
            let (index, epoch) = (it.index, it.epoch);
            let told = |joined, moved_from| Told {
                born: index,
                epoch,
                joined,
                bound: None,
                moved_from,
                moved_to: None,
                admitted: None,
                over: None,
            };
            // A number that is given twice is promise 14's business; here the first one counts.
            match &it.event.what {
                What::Joined(joined) => {
                    tickets.by_ticket.entry(joined.ticket).or_insert(told(Some(joined), None));
                }
                What::Moved { from, to, .. } => {
                    if let Some(old) = tickets.by_ticket.get_mut(from) {
                        old.over.get_or_insert(index);
                        old.moved_to.get_or_insert((index, *to));
                    }
                    tickets.by_ticket.entry(*to).or_insert(told(None, Some(*from)));
                }
                What::Bound { ticket, identity } => {
                    let root = tickets.root(*ticket);
                    if let Some(told) = tickets.by_ticket.get_mut(&root) {
                        told.bound.get_or_insert(*identity);
                    }
                }
                What::Admitted { ticket, .. } => {
                    if let Some(told) = tickets.by_ticket.get_mut(ticket) {
                        told.admitted.get_or_insert(index);
                    }
                }
                What::Ended { ticket, .. } => {
                    if let Some(told) = tickets.by_ticket.get_mut(ticket) {
                        told.over.get_or_insert(index);
                    }
                }
                What::SaleEnded { .. } => {
                    for told in tickets.by_ticket.values_mut() {
                        if told.admitted.is_none() {
                            told.over.get_or_insert(index);
                        }
                    }
                }
                _ => {}
            }
        }
        tickets
    }

    pub(super) fn get(&self, ticket: Ticket) -> Option<&Told<'a>> {
        self.by_ticket.get(&ticket)
    }

    /// The ticket as the log has it, if it was given in this epoch.
    pub(super) fn given_in(&self, ticket: Ticket, epoch: Epoch) -> Option<&Told<'a>> {
        self.get(ticket).filter(|told| told.epoch == epoch)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Ticket, &Told<'a>)> {
        self.by_ticket.iter().map(|(ticket, told)| (*ticket, told))
    }

    /// The ticket with which the person came, before any move.
    pub(super) fn root(&self, mut ticket: Ticket) -> Ticket {
        while let Some(told) = self.get(ticket)
            && let Some(from) = told.moved_from
            && self.get(from).is_some_and(|earlier| earlier.born < told.born)
        {
            ticket = from;
        }
        ticket
    }

    /// Where the ticket had been moved to by a version.
    pub(super) fn resolved(&self, mut ticket: Ticket, version: u64) -> Ticket {
        while let Some(told) = self.get(ticket)
            && let Some((index, to)) = told.moved_to
            && index <= version
            && self.get(to).is_some_and(|later| later.born > told.born)
        {
            ticket = to;
        }
        ticket
    }

    pub(super) fn identity(&self, ticket: Ticket) -> Option<Identity> {
        let told = self.get(self.root(ticket))?;
        told.joined.and_then(|joined| joined.identity).or(told.bound)
    }

    pub(super) fn key(&self, ticket: Ticket) -> Option<JoinKey> {
        self.get(self.root(ticket))?.joined?.key
    }
}

/// The ticket that a command is about, as its sender presents it.
pub(super) fn presented(command: &Command) -> Option<&Presented> {
    match command {
        Command::Claim(presented)
        | Command::Leave(presented)
        | Command::Renew(presented)
        | Command::HandOver(presented)
        | Command::End { ticket: presented, .. }
        | Command::Move { ticket: presented, .. } => Some(presented),
        _ => None,
    }
}

/// The ticket that an answer is about.
pub(super) fn answered(reply: &Reply) -> Option<Ticket> {
    match reply {
        Reply::Joined { ticket, .. }
        | Reply::Claimed { ticket, .. }
        | Reply::Renewed { ticket, .. }
        | Reply::Over { ticket, .. }
        | Reply::HandedOver { ticket, .. }
        | Reply::Moved { to: ticket, .. } => Some(*ticket),
        _ => None,
    }
}
