//! What a log knows of each ticket and of operators' acts, to explain what clients saw.

use std::collections::BTreeMap;

use waitroom_core::{Ticket, What};
use waitroom_store::RoomName;

use super::super::Verdict;
use super::super::book::Place;
use super::Logged;

/// The log of one room, in short.
#[derive(Debug, Default)]
pub struct Known {
    lanes: BTreeMap<u8, Vec<Marks>>,
    /// Whether orders are numbers: no draw, no shuffle windows.
    pub shuffled: bool,
    pub head: u64,
    /// Acts of operators, by what the calls are named.
    acts: BTreeMap<&'static str, u64>,
}

/// The events of a ticket; 0 where there was none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    pub joined: u64,
    pub admitted: u64,
    pub ended: u64,
}

impl Known {
    pub(super) fn take(&mut self, it: &Logged<'_>) {
        self.head = it.index;
        match &it.event.what {
            What::Joined(joined) => self.of(joined.ticket).joined = it.index,
            What::Admitted { ticket, .. } => self.of(*ticket).admitted = it.index,
            What::Ended { ticket, .. } => self.of(*ticket).ended = it.index,
            What::Moved { from, to, .. } => {
                self.of(*from).ended = it.index;
                self.of(*to).joined = it.index;
            }
            What::DrawClosed { .. } | What::Sealed { .. } => self.shuffled = true,
            What::AdmittedNow { .. } => *self.acts.entry("admit").or_default() += 1,
            What::Held { .. } => *self.acts.entry("pause").or_default() += 1,
            What::Resumed { .. } => *self.acts.entry("resume").or_default() += 1,
            What::Configured { settings, .. } => self.shuffled |= settings.shuffle_window > 1,
            What::SaleEnded { .. } => {
                // Closed with the sale: every one that neither entered nor ended.
                for marks in self.lanes.values_mut().flatten() {
                    if marks.admitted == 0 && marks.ended == 0 {
                        marks.ended = it.index;
                    }
                }
            }
            _ => {}
        }
    }

    /// By place: only where orders are numbers.
    pub fn at(&self, place: Place) -> Option<Marks> {
        let marks = self.lanes.get(&place.lane)?.get(usize::try_from(place.order).ok()?)?;
        (marks.joined > 0).then_some(*marks)
    }

    /// How often the log has an act of operators.
    pub fn act(&self, name: &str) -> u64 {
        self.acts.get(name).copied().unwrap_or(0)
    }

    fn of(&mut self, ticket: Ticket) -> &mut Marks {
        let lane = self.lanes.entry(ticket.lane.0).or_default();
        let at = ticket.number.0 as usize;
        if lane.len() <= at {
            lane.resize(at + 1, Marks::default());
        }
        &mut lane[at]
    }

    /// Adds to each violation what the log says of its tickets.
    pub(super) fn explain(&self, room: &RoomName, verdict: &mut Verdict) {
        let Verdict { book, found, .. } = verdict;
        found.explain(|ticket| {
            let row = book.row(ticket);
            if book.room(row.room).name != room.as_str() || self.shuffled {
                return None;
            }
            let place = row.place()?;
            Some(match self.at(place) {
                None => format!("the log of {} events has no {place}", self.head),
                Some(marks) => format!("the log has {place} {marks}"),
            })
        });
    }
}

impl std::fmt::Display for Marks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "joined at event {}", self.joined)?;
        if self.admitted > 0 {
            write!(f, ", admitted at {}", self.admitted)?;
        }
        if self.ended > 0 {
            write!(f, ", ended at {}", self.ended)?;
        }
        Ok(())
    }
}
