//! The judge: does a recorded history keep the promises of the design?
//!
//! Lives here: the walk over histories, the list of checkers, the verdict. One file per promise,
//! named after it. What several of them need to know of a ticket is in `book.rs`.
//! Client histories decide. The server's log (`log`) explains what they saw, and is judged itself
//! for the promises that only a log can break.
//! Nothing here asks the core to decide anything, so a mistake of the core cannot excuse itself.
//!
//! Memory: a row per ticket and a few columns beside it, never a line. Real time is compared only
//! within one file, because two files have two clocks unless somebody says otherwise ([`Clocks`]);
//! tickets and versions across all of them.
//! To add a promise: a file, a row in [`checks`], two planted violations in its tests.

mod acts;
mod book;
mod found;
mod name;
mod seen;

mod a_paused_room_admits_nobody;
mod never_above_the_pace;
mod never_over_capacity;
mod no_acknowledged_join_is_lost;
mod no_forged_token_is_accepted;
mod no_number_is_given_twice;
mod nobody_admitted_twice;
mod one_live_ticket_per_identity;
mod order_kept_in_lane;
mod positions_never_rise;

pub mod log;

#[cfg(test)]
mod tell;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use crate::history::{Line, Trouble, Verb, read};
pub use acts::Acts;
pub use book::{Book, Place, TicketIx};
pub use found::{Found, Violation};
use seen::Seen;

/// One promise, judged by what clients saw.
trait Check {
    /// As the design counts them.
    fn promise(&self) -> u8;
    /// One call. The book knows of it already.
    fn take(&mut self, seen: &Seen<'_>, book: &Book, found: &mut Found);
    /// All calls were seen.
    fn finish(&mut self, _book: &Book, _found: &mut Found) {}
}

/// Every checker, in the order of the promises.
fn checks() -> Vec<Box<dyn Check>> {
    vec![
        Box::<no_acknowledged_join_is_lost::Check>::default(),
        Box::<one_live_ticket_per_identity::Check>::default(),
        Box::<nobody_admitted_twice::Check>::default(),
        Box::<never_over_capacity::Check>::default(),
        Box::<never_above_the_pace::Check>::default(),
        Box::<order_kept_in_lane::Check>::default(),
        Box::<positions_never_rise::Check>::default(),
        Box::<a_paused_room_admits_nobody::Check>::default(),
        Box::<no_forged_token_is_accepted::Check>::default(),
        Box::<no_number_is_given_twice::Check>::default(),
    ]
}

/// What the histories say.
#[derive(Debug)]
pub struct Verdict {
    pub book: Book,
    pub found: Found,
    pub totals: Totals,
    /// What operators did, by room.
    pub acts: BTreeMap<String, Acts>,
    /// Things that the reader should know and that are no violation.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub lines: u64,
    pub lost: u64,
    pub joins_acknowledged: u64,
    pub tickets: u64,
    pub admitted: u64,
    pub forgeries: u64,
    pub operator_calls: u64,
}

/// Why a history could not be judged.
#[derive(Debug)]
pub struct Unread {
    pub file: String,
    pub trouble: Trouble,
}

impl std::fmt::Display for Unread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.file, self.trouble)
    }
}

/// Whose clocks the histories were written by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// Each has its own: times of two files say nothing about each other.
    Each,
    /// All were written on one machine. What came first in one can then be held against another.
    One,
}

/// The wall clock at a file's moment 0 is told in milliseconds, and may be that much later.
const STARTED_WITHIN_NS: u64 = 1_000_000;

/// Reads the histories and judges them.
pub fn judge(files: &[PathBuf], clocks: Clocks) -> Result<Verdict, Unread> {
    let mut bench = Bench::new(clocks);
    for path in files {
        let file = path.display().to_string();
        let unread = |trouble| Unread { file: file.clone(), trouble };
        let opened = File::open(path).map_err(|error| unread(Trouble::Io(error)))?;
        bench.hear(&file, BufReader::with_capacity(1 << 20, opened)).map_err(unread)?;
    }
    Ok(bench.close())
}

/// The judge at work.
struct Bench {
    checks: Vec<Box<dyn Check>>,
    book: Book,
    found: Found,
    totals: Totals,
    acts: BTreeMap<String, Acts>,
    notes: Vec<String>,
    files: u16,
    clocks: Clocks,
}

impl Bench {
    fn new(clocks: Clocks) -> Bench {
        Bench {
            clocks,
            checks: checks(),
            book: Book::default(),
            found: Found::default(),
            totals: Totals::default(),
            acts: BTreeMap::new(),
            notes: Vec::new(),
            files: 0,
        }
    }

    fn hear(&mut self, name: &str, from: impl BufRead) -> Result<(), Trouble> {
        let file = self.files;
        self.files += 1;
        let (mut clock, mut began_ns, mut late_ns) = (file, 0, 0);
        let torn = read(from, |number, line| {
            match line {
                Line::Header(header) => {
                    for (room, facts) in &header.rooms {
                        self.book.learn(room, facts);
                    }
                    if self.clocks == Clocks::One {
                        clock = 0;
                        began_ns = header.started_ms.saturating_mul(1_000_000);
                        late_ns = STARTED_WITHIN_NS;
                    }
                }
                Line::Call(mut call) => {
                    // Sent no earlier and answered no later than this, whatever was rounded.
                    call.t0 = call.t0.saturating_add(began_ns);
                    call.t1 = call.t1.saturating_add(began_ns + late_ns);
                    let seen = self.book.note((file, clock), number, call)?;
                    self.totals.count(&seen);
                    if seen.is_an_act() {
                        let acts = self.acts.entry(seen.call.room.to_string()).or_default();
                        acts.take(&seen);
                    }
                    for check in &mut self.checks {
                        check.take(&seen, &self.book, &mut self.found);
                    }
                }
            }
            Ok(())
        })?;
        if torn {
            self.notes.push(format!("{name}: its last line is torn and was left out"));
        }
        Ok(())
    }

    fn close(mut self) -> Verdict {
        for check in &mut self.checks {
            check.finish(&self.book, &mut self.found);
        }
        self.totals.tickets = self.book.len();
        self.totals.admitted = self.book.rows().filter(|row| row.was_inside()).count() as u64;
        let Bench { book, found, totals, acts, notes, .. } = self;
        Verdict { book, found, totals, acts, notes }
    }
}

impl Totals {
    fn count(&mut self, seen: &Seen<'_>) {
        self.lines += 1;
        self.lost += u64::from(seen.got().is_none());
        self.forgeries += u64::from(seen.call.sent.forged.is_some());
        self.operator_calls += u64::from(seen.is_an_act());
        let join = seen.call.call == Verb::Join && seen.fine().is_some() && seen.ticket.is_some();
        self.joins_acknowledged += u64::from(join);
    }
}
