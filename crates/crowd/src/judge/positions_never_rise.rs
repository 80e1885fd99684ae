//! Promise 8: a position never rises in answers with non-falling versions.
//!
//! A look (status, heartbeat, frame) is exact at its version. The answer to a command carries the
//! head of its round and a position from somewhere in it, which can only be the larger one; so
//! it is held against what the same visitor had seen before asking, not against what came in
//! meanwhile.

use super::Found;
use super::book::Book;
use super::seen::Seen;

#[derive(Debug, Default)]
pub(super) struct Check {
    /// By ticket.
    lowest: Vec<Lowest>,
}

/// The newest version and the lowest position so far, and until when they were seen.
#[derive(Clone, Copy, Debug)]
struct Lowest {
    version: u64,
    position: u64,
    t1: u64,
    file: u16,
}

const PROMISE: u8 = 8;
const NOTHING: Lowest = Lowest { version: 0, position: u64::MAX, t1: 0, file: u16::MAX };

impl super::Check for Check {
    fn promise(&self) -> u8 {
        PROMISE
    }

    fn take(&mut self, seen: &Seen<'_>, book: &Book, found: &mut Found) {
        let Some(ticket) = seen.ticket else { return };
        let Some(got) = seen.fine() else { return };
        let (Some(version), Some(position)) = (got.version, got.position) else { return };
        let at = ticket.0 as usize;
        if self.lowest.len() <= at {
            self.lowest.resize(at + 1, NOTHING);
        }
        let before = &mut self.lowest[at];
        let afterwards = before.file == seen.file && seen.call.t0 >= before.t1;
        let comparable = seen.call.call.is_a_look() || afterwards;
        if comparable && version >= before.version && position > before.position {
            let said = format!(
                "{}: {} was at position {} by version {} and is at {position} in version {version}",
                seen.at(),
                book.row(ticket),
                before.position,
                before.version
            );
            found.add(PROMISE, said, &[ticket]);
        }
        *before = Lowest {
            version: before.version.max(version),
            position: before.position.min(position),
            t1: before.t1.max(seen.call.t1),
            file: seen.file,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::super::tell::{KEPT, broken};

    #[test]
    fn a_position_that_rises_by_one_is_found() {
        let story = |version: u64, position: u64| {
            format!(
                "ana 0..1 join -> 201 t=A v=10 waiting 0:9 pos=8
                 ana 2..3 status A -> 200 v=12 waiting 0:9 pos=7
                 ana 4..5 status A -> 200 v={version} waiting 0:9 pos={position}"
            )
        };
        assert_eq!(broken(&story(12, 8)), [8]);
        assert_eq!(broken(&story(12, 7)), KEPT);
        assert_eq!(broken(&story(11, 8)), KEPT, "an older picture may show the older position");
    }

    #[test]
    fn a_rise_across_an_older_picture_is_found() {
        let story = "
            ana 0..1 status A -> 200 v=12 waiting 0:9 pos=7
            ana 2..3 status A -> 200 v=11 waiting 0:9 pos=8
            ana 4..5 frame A -> v=13 waiting 0:9 pos=8";
        assert_eq!(broken(story), [8]);
    }

    #[test]
    fn a_command_is_held_against_what_was_seen_before_it_was_sent() {
        let story = |t0: u64| {
            format!(
                "ana 0..5 status A -> 200 v=12 waiting 0:9 pos=7
                 ana {t0}..9 join -> 200 t=A v=12 waiting 0:9 pos=8"
            )
        };
        assert_eq!(broken(&story(4)), KEPT);
        assert_eq!(broken(&story(5)), [8]);
    }
}
