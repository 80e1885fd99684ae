//! Names as the server makes them; joins ask for no more than the id.

use waitroom_core::id::{IdKey, TicketId};
use waitroom_core::{Epoch, Session, Ticket};
use waitroom_engine::RoomHandle;
use waitroom_outbox::{Names, Pending};

#[derive(Debug)]
pub struct BenchNames {
    key: IdKey,
    room: RoomHandle,
}

impl BenchNames {
    pub fn new(room: RoomHandle) -> BenchNames {
        BenchNames { key: IdKey::derive(&[3; 32]), room }
    }
}

impl Names for BenchNames {
    fn epoch_of(&self, ticket: Ticket) -> Option<Epoch> {
        Some(self.room.board_guard().state().named(ticket)?.epoch)
    }

    fn id(&self, ticket: Ticket, epoch: Epoch) -> TicketId {
        let named = self.key.name(ticket.lane.0, epoch.0, ticket.number.0);
        named.expect("tickets of a benchmark are within range")
    }

    fn user(&self, _: &[u8]) -> Option<String> {
        None
    }

    fn pass(&self, _: TicketId, _: Option<String>, _: &Session) -> String {
        String::new()
    }

    fn known_up_to(&self, head: u64) -> Pending<'_, ()> {
        Box::pin(async move {
            self.room.next_board(head.saturating_sub(1)).await;
        })
    }
}
