//! Promise 9: a paused room admits nobody.
//!
//! Between the answer to an operator's pause and the sending of the resume, the room is paused.
//! In versions: from the first that anybody is told of as paused, to the last that anybody had
//! heard of when the resume was sent. Whoever waits at a version of that stretch and is inside by
//! another one of it was admitted during the pause.
//! All calls of operators must be in the history, or none: a resume that nobody wrote down looks
//! like a pause that leaks.

use std::collections::BTreeMap;

use crate::history::Verb;

use super::Found;
use super::book::{Book, RoomIx};
use super::seen::Seen;

#[derive(Debug, Default)]
pub(super) struct Check {
    rooms: BTreeMap<(u16, RoomIx), Heard>,
}

/// What was heard of a room so far, in one file.
#[derive(Debug, Default)]
struct Heard {
    /// The latest moment and the newest version, thinned: a version was heard of by its moment.
    steps: Vec<(u64, u64)>,
    latest: u64,
    newest: u64,
    pauses: Vec<Pause>,
}

#[derive(Clone, Copy, Debug)]
struct Pause {
    answered: u64,
    /// The newest version heard of before: what is paused in an older one was paused by an
    /// earlier pause.
    after: u64,
    paused_from: Option<u64>,
    resume_sent: Option<u64>,
}

const PROMISE: u8 = 9;

/// Finer steps would cost memory and find nothing more.
const STEP_NS: u64 = 10_000_000;

impl super::Check for Check {
    fn promise(&self) -> u8 {
        PROMISE
    }

    fn take(&mut self, seen: &Seen<'_>, _: &Book, _: &mut Found) {
        let heard = self.rooms.entry((seen.file, seen.room)).or_default();
        match seen.call.call {
            Verb::Pause if seen.fine().is_some() => {
                if heard.pauses.last().is_none_or(|pause| pause.resume_sent.is_some()) {
                    heard.pauses.push(Pause {
                        answered: seen.call.t1,
                        after: heard.newest,
                        paused_from: None,
                        resume_sent: None,
                    });
                }
            }
            // Whatever became of it, from here on the room may be running again.
            Verb::Resume => {
                if let Some(pause) = heard.pauses.last_mut() {
                    pause.resume_sent.get_or_insert(seen.call.t0);
                }
            }
            _ => heard.take(seen),
        }
    }

    fn finish(&mut self, book: &Book, found: &mut Found) {
        for ((_, room), heard) in &self.rooms {
            for pause in &heard.pauses {
                let Some(from) = pause.paused_from else { continue };
                let to = match pause.resume_sent {
                    Some(sent) => heard.newest_before(sent),
                    None => heard.newest,
                };
                for (ticket, row) in book.tickets().filter(|(_, row)| row.room == *room) {
                    let (Some(waited), Some(inside)) = (row.waiting_to, row.inside_from) else {
                        continue;
                    };
                    if waited >= from && inside <= to {
                        let said = format!(
                            "{row} waits at version {waited} and is inside by version {inside}, \
                             and from {from} to {to} the room was paused"
                        );
                        found.add(PROMISE, said, &[ticket]);
                    }
                }
            }
        }
    }
}

impl Heard {
    fn take(&mut self, seen: &Seen<'_>) {
        let Some(got) = seen.fine() else { return };
        let Some(version) = got.version else { return };
        self.latest = self.latest.max(seen.call.t1);
        if version > self.newest {
            self.newest = version;
            if self.steps.last().is_none_or(|(at, _)| self.latest >= at + STEP_NS) {
                self.steps.push((self.latest, version));
            }
        }
        if let Some(pause) = self.pauses.last_mut()
            && pause.resume_sent.is_none()
            && seen.call.t0 >= pause.answered
            && version >= pause.after
            && got.room_status.as_deref() == Some("paused")
            && seen.call.call.is_a_look()
        {
            pause.paused_from = Some(pause.paused_from.map_or(version, |it| it.min(version)));
        }
    }

    fn newest_before(&self, moment: u64) -> u64 {
        let earlier = self.steps.partition_point(|(at, _)| *at < moment);
        earlier.checked_sub(1).map_or(0, |last| self.steps[last].1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tell::{KEPT, broken};

    /// Ana waits at version 11, which is paused, and is inside by `inside` as told at `told`.
    fn story(inside: u64, told: u64) -> String {
        format!(
            "bo 0..1 status B -> 200 v=9 waiting 0:8 pos=2 running
             op 10..20 pause -> 200
             bo 21..22 status B -> 200 v=11 waiting 0:8 pos=2 paused
             ana 40..50 status A -> 200 v=11 waiting 0:7 pos=1 paused
             ana {}..{told} status A -> 200 v={inside} admitted 0:7 pos=0
             op 100..110 resume -> 200
             bo 120..130 status B -> 200 v=30 waiting 0:8 pos=1 running",
            told - 1
        )
    }

    #[test]
    fn an_admission_in_the_pause_is_found() {
        assert_eq!(broken(&story(12, 70)), [9]);
    }

    #[test]
    fn the_last_millisecond_before_the_resume_counts_and_the_next_does_not() {
        assert_eq!(broken(&story(12, 99)), [9]);
        assert_eq!(broken(&story(12, 100)), KEPT);
    }

    #[test]
    fn an_admission_before_the_pause_is_fine() {
        let story = "
            ana 0..1 status A -> 200 v=9 waiting 0:7 pos=1 running
            op 10..20 pause -> 200
            bo 21..22 status B -> 200 v=11 waiting 0:8 pos=1 paused
            ana 40..50 status A -> 200 v=11 admitted 0:7 pos=0 paused
            op 100..110 resume -> 200";
        assert_eq!(broken(story), KEPT, "it may have been admitted by version 10");
    }

    #[test]
    fn a_pause_that_never_ends_holds_to_the_end() {
        let story = "
            op 10..20 pause -> 200
            ana 40..50 status A -> 200 v=11 waiting 0:7 pos=1 paused
            ana 60..70 status A -> 200 v=12 admitted 0:7 pos=0 paused";
        assert_eq!(broken(story), [9]);
    }
}
