//! What clients saw, held against the log.
//!
//! Promise 1: a join that was acknowledged with a version is in the log by that index. Promise 15:
//! the live state is the log's. Whoever was seen waiting at a version had not been admitted by
//! it, and whoever was inside by a version had been.
//! Only where orders are numbers, because clients see orders.

use waitroom_store::RoomName;

use super::super::book::Book;
use super::known::Known;
use super::{Found, snapshot_plus_tail_is_replay};

const PROMISE: u8 = 1;

pub(super) fn check(room: &RoomName, known: &Known, book: &Book, found: &mut Found) {
    if known.shuffled {
        return;
    }
    let of_room = |(_, row): &(_, &super::super::book::Row)| {
        book.room(row.room).name == room.as_str() && book.is_first_come(row.room)
    };
    for (ticket, row) in book.tickets().filter(of_room) {
        let (Some(place), Some(joined_by)) = (row.place(), row.joined_by) else { continue };
        let Some(marks) = known.at(place).filter(|marks| marks.joined <= joined_by) else {
            let said = format!("{row} was acknowledged by version {joined_by}");
            found.add(PROMISE, said, &[ticket]);
            continue;
        };
        let admitted = (marks.admitted > 0).then_some(marks.admitted);
        if let Some(inside) = row.inside_from
            && admitted.is_none_or(|admitted| admitted > inside)
        {
            let said = format!("{row} was shown inside by version {inside}");
            found.add(snapshot_plus_tail_is_replay::PROMISE, said, &[ticket]);
        }
        let gone = [marks.admitted, marks.ended].into_iter().filter(|index| *index > 0).min();
        if let (Some(waited), Some(gone)) = (row.waiting_to, gone)
            && waited >= gone
        {
            let said = format!("{row} was shown waiting at version {waited}");
            found.add(snapshot_plus_tail_is_replay::PROMISE, said, &[ticket]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plant::{KEPT, Room};

    /// Settings, start and the like come first; the first join is this event.
    const FIRST: u64 = Room::FIRST_JOIN;

    fn seen(version: u64, order: u64, status: &str) -> String {
        format!("ana 0..1 status A -> 200 v={version} {status} 0:{order} pos=0")
    }

    #[test]
    fn an_acknowledged_join_that_the_log_has_later_or_not_at_all_is_found() {
        let room = || Room::running().join(0).join(1);
        assert_eq!(room().broken_with(&seen(FIRST + 1, 1, "waiting")), KEPT);
        assert_eq!(room().broken_with(&seen(FIRST, 1, "waiting")), [1]);
        assert_eq!(room().broken_with(&seen(FIRST + 1, 2, "waiting")), [1]);
    }

    #[test]
    fn a_picture_that_is_one_event_ahead_or_behind_the_log_is_found() {
        let room = || Room::running().join(0).admit(0);
        assert_eq!(room().broken_with(&seen(FIRST, 0, "waiting")), KEPT);
        assert_eq!(room().broken_with(&seen(FIRST + 1, 0, "waiting")), [15]);
        assert_eq!(room().broken_with(&seen(FIRST + 1, 0, "admitted")), KEPT);
        assert_eq!(room().broken_with(&seen(FIRST, 0, "admitted")), [15]);
    }

    #[test]
    fn the_log_explains_a_violation() {
        let said = Room::running().join(0).admit(0).said_with(&seen(FIRST + 1, 0, "waiting"));
        let expected = format!("joined at event {FIRST}, admitted at {}", FIRST + 1);
        assert!(said.contains(&expected), "{said}");
    }
}
