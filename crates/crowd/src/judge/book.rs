//! Who is who: rooms and tickets that histories speak of, a compact row each.
//!
//! Lives here: what several checkers need of a ticket. `waiting_to`, `inside_from` and
//! `inside_to` are versions, that is indexes of the room's log: between them the judge knows
//! exactly what was so, whatever the clocks did.
//! Stays out: what a single checker needs; it keeps that in a column of its own.

use std::fmt;

use crate::history::{Call, RoomFacts, Verb};

use super::name::{Map, Name};
use super::seen::{Seen, Standing};

/// A room of the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoomIx(pub u16);

/// A ticket of the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TicketIx(pub u32);

/// Lane and order: where a ticket is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub lane: u8,
    pub order: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.lane, self.order)
    }
}

#[derive(Debug, Default)]
pub struct Book {
    rooms: Vec<Room>,
    tickets: Map<TicketIx>,
    rows: Vec<Row>,
    keys: Map<Key>,
}

#[derive(Clone, Debug)]
pub struct Room {
    pub name: String,
    pub facts: RoomFacts,
}

/// All that the book knows of a ticket.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub id: Name,
    order: u64,
    /// The newest version at which it was seen waiting.
    pub waiting_to: Option<u64>,
    /// A version by which it was admitted.
    pub inside_from: Option<u64>,
    /// The newest version at which it was seen inside.
    pub inside_to: Option<u64>,
    /// A version by which it had joined.
    pub joined_by: Option<u64>,
    pub room: RoomIx,
    lane: u8,
    /// An operator moved it: its id stands for another ticket.
    pub moved: bool,
}

/// What became of the joins with one `Idempotency-Key`.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// When the first of them was sent, and in which file.
    pub t0: u64,
    pub file: u16,
    /// The ticket that the first answer named.
    pub ticket: Option<TicketIx>,
    /// An answer said that the place is new; that it was there; that there is none.
    pub new: bool,
    pub repeated: bool,
    pub refused: bool,
    /// An attempt of which nobody knows what became.
    pub unknown: bool,
}

/// No order is that large: numbers have 40 bits.
const NO_ORDER: u64 = u64::MAX;

impl Row {
    pub fn place(&self) -> Option<Place> {
        (self.order != NO_ORDER).then_some(Place { lane: self.lane, order: self.order })
    }

    pub fn was_inside(&self) -> bool {
        self.inside_from.is_some() || self.inside_to.is_some()
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place() {
            Some(place) => write!(f, "ticket {} ({place})", self.id),
            None => write!(f, "ticket {}", self.id),
        }
    }
}

impl Book {
    pub fn row(&self, ticket: TicketIx) -> &Row {
        &self.rows[ticket.0 as usize]
    }

    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }

    pub fn tickets(&self) -> impl Iterator<Item = (TicketIx, &Row)> {
        (0..).map(TicketIx).zip(&self.rows)
    }

    pub fn len(&self) -> u64 {
        self.rows.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn room(&self, room: RoomIx) -> &Room {
        &self.rooms[usize::from(room.0)]
    }

    pub fn rooms(&self) -> impl Iterator<Item = (RoomIx, &Room)> {
        (0..).map(RoomIx).zip(&self.rooms)
    }

    /// Whether the order of a room is that of arrival, as far as anybody said or showed.
    pub fn is_first_come(&self, room: RoomIx) -> bool {
        self.room(room).facts.shuffled != Some(true)
    }

    pub fn key(&self, key: Name) -> Option<&Key> {
        self.keys.get(&key)
    }

    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.keys.values()
    }

    /// A ticket that the histories spoke of.
    pub fn find(&self, text: &str) -> Option<TicketIx> {
        self.tickets.get(&Name::of(text)).copied()
    }

    /// What a header, or an operator's call, says of a room. Of limits that changed the widest
    /// counts: lowering `max_active` evicts nobody, and clients cannot tell when a change began.
    pub(super) fn learn(&mut self, room: &str, facts: &RoomFacts) {
        let Ok(room) = self.room_of(room) else { return };
        let known = &mut self.rooms[usize::from(room.0)].facts;
        known.max_active = known.max_active.max(facts.max_active);
        known.memory_ms = match (known.memory_ms, facts.memory_ms) {
            (Some(was), Some(is)) => Some(was.min(is)),
            (was, is) => was.or(is),
        };
        known.shuffled = known.shuffled.max(facts.shuffled);
        known.pace = match (known.pace, facts.pace) {
            (Some(mut was), Some(is)) => {
                // count / per_ms, compared without dividing.
                if is.count.saturating_mul(was.per_ms) > was.count.saturating_mul(is.per_ms) {
                    (was.count, was.per_ms) = (is.count, is.per_ms);
                }
                was.burst = was.burst.max(is.burst);
                Some(was)
            }
            (was, is) => was.or(is),
        };
    }

    /// Enters a call and finds out whom it is about.
    pub(super) fn note<'a>(
        &mut self,
        (file, clock): (u16, u16),
        line: u64,
        call: Call<'a>,
    ) -> Result<Seen<'a>, String> {
        let room = self.room_of(&call.room)?;
        if let Some(facts) = &call.sent.facts {
            self.learn(&call.room, facts);
        }
        let (ticket, key, status) = (None, None, None);
        let mut seen = Seen { file, clock, line, call, room, ticket, key, status };
        let told = seen.fine().and_then(|got| got.ticket.as_deref()).map(Name::of);
        let presented = seen.call.sent.ticket.as_deref().map(Name::of);
        if let Some(name) = told.or(presented) {
            seen.ticket = Some(self.ticket_of(name, room)?);
        }
        if let (Some(told), Some(presented)) = (told, presented)
            && told != presented
            && seen.call.call.is_a_look()
        {
            let old = self.ticket_of(presented, room)?;
            self.rows[old.0 as usize].moved = true;
        }
        seen.status = seen.fine().and_then(|got| Standing::of(got.status.as_deref()?));
        if seen.fine().is_some_and(|got| got.draw_pending) {
            self.rooms[usize::from(room.0)].facts.shuffled = Some(true);
        }
        if let Some(ticket) = seen.ticket {
            self.rows[ticket.0 as usize].take(&seen);
        }
        if seen.call.call == Verb::Join
            && let Some(key) = seen.call.key.as_deref()
        {
            let key = Name::of(key);
            seen.key = Some(key);
            let (file, t0) = (file, seen.call.t0);
            self.keys.entry(key).or_insert_with(|| Key::new(file, t0)).take(&seen);
        }
        Ok(seen)
    }

    fn room_of(&mut self, name: &str) -> Result<RoomIx, String> {
        if let Some(at) = self.rooms.iter().position(|room| room.name == name) {
            return Ok(RoomIx(at as u16));
        }
        let ix = u16::try_from(self.rooms.len()).map_err(|_| "more than 65,536 rooms")?;
        self.rooms.push(Room { name: name.to_owned(), facts: RoomFacts::default() });
        Ok(RoomIx(ix))
    }

    fn ticket_of(&mut self, name: Name, room: RoomIx) -> Result<TicketIx, String> {
        if let Some(ticket) = self.tickets.get(&name) {
            return Ok(*ticket);
        }
        let ix = u32::try_from(self.rows.len()).map_err(|_| "more than 2^32 tickets")?;
        self.tickets.insert(name, TicketIx(ix));
        self.rows.push(Row {
            id: name,
            order: NO_ORDER,
            waiting_to: None,
            inside_from: None,
            inside_to: None,
            joined_by: None,
            room,
            lane: 0,
            moved: false,
        });
        Ok(TicketIx(ix))
    }
}

impl Key {
    fn new(file: u16, t0: u64) -> Key {
        let (ticket, no) = (None, false);
        Key { t0, file, ticket, new: no, repeated: no, refused: no, unknown: no }
    }

    fn take(&mut self, seen: &Seen<'_>) {
        match seen.got() {
            None => self.unknown = true,
            Some(got) if got.is_fine() => {
                self.ticket = self.ticket.or(seen.ticket);
                // A person whose name is known may have a place from another join.
                let by_key = seen.call.sent.user.is_none();
                self.new |= got.http != Some(200) || !by_key;
                self.repeated |= got.http == Some(200) && seen.ticket.is_some();
            }
            Some(got) if got.is_unknown() => self.unknown = true,
            Some(_) => self.refused = true,
        }
    }
}

impl Row {
    fn take(&mut self, seen: &Seen<'_>) {
        let Some(got) = seen.fine() else { return };
        // The first place counts; another one later is for promise 1 to find.
        if let (NO_ORDER, Some(lane), Some(order)) = (self.order, got.lane, got.order) {
            (self.lane, self.order) = (lane, order);
        }
        let Some(version) = got.version else { return };
        let joined_by = self.joined_by.map_or(version, |by| by.min(version));
        self.joined_by = Some(joined_by);
        match seen.status {
            Some(Standing::Waiting) => self.waiting_to = self.waiting_to.max(seen.looked_at()),
            Some(Standing::Inside) => {
                let from = self.inside_from.map_or(version, |from| from.min(version));
                self.inside_from = Some(from);
                self.inside_to = self.inside_to.max(seen.looked_at());
            }
            Some(Standing::Over) | None => {}
        }
    }
}
