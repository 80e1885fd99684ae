//! Promise 14, as far as clients can see it: no number is given twice.
//!
//! Two tickets of a lane never show the same order. Epochs and leases are in the log alone.

use super::Found;
use super::book::{Book, Place, RoomIx, TicketIx};
use super::seen::Seen;

#[derive(Debug, Default)]
pub(super) struct Check;

const PROMISE: u8 = 14;

impl super::Check for Check {
    fn promise(&self) -> u8 {
        PROMISE
    }

    fn take(&mut self, _: &Seen<'_>, _: &Book, _: &mut Found) {}

    fn finish(&mut self, book: &Book, found: &mut Found) {
        let placed =
            book.tickets().filter_map(|(ticket, row)| Some((row.room, row.place()?, ticket)));
        let mut placed: Vec<(RoomIx, Place, TicketIx)> = placed.collect();
        placed.sort_unstable();
        for pair in placed.windows(2) {
            let [(room, place, one), (other_room, other_place, other)] = *pair else { continue };
            if (room, place) == (other_room, other_place) {
                let said = format!("{} and {} hold one place", book.row(one), book.row(other));
                found.add(PROMISE, said, &[one, other]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tell::{KEPT, broken};

    fn story(place: &str) -> String {
        format!(
            "ana 0..9 join -> 201 t=A v=5 waiting 0:7 pos=1
             bo 0..9 join -> 201 t=B v=6 waiting {place} pos=1"
        )
    }

    #[test]
    fn two_tickets_with_one_number_are_found() {
        assert_eq!(broken(&story("0:7")), [14]);
    }

    #[test]
    fn neighbours_and_other_lanes_are_fine() {
        for place in ["0:8", "0:6", "1:7"] {
            assert_eq!(broken(&story(place)), KEPT, "{place}");
        }
    }
}
