//! What an event does not say of itself: how its ticket, its user and its pass are written.

use std::future::Future;
use std::pin::Pin;

use waitroom_core::id::TicketId;
use waitroom_core::{Epoch, Session, Ticket};

pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The names of one room. The server answers from the room's keys and its board.
pub trait Names: std::fmt::Debug + Send + Sync + 'static {
    /// In which epoch a ticket joined; none for one that the board does not know yet.
    fn epoch_of(&self, ticket: Ticket) -> Option<Epoch>;

    fn id(&self, ticket: Ticket, epoch: Epoch) -> TicketId;

    /// The shop's name for a user, where the room keeps it.
    fn user(&self, sealed: &[u8]) -> Option<String>;

    /// The pass of a session. The same claims each time; the signature may differ.
    fn pass(&self, id: TicketId, user: Option<String>, session: &Session) -> String;

    /// Resolves once [`Names::epoch_of`] knows every ticket up to this event. Must not hurry the
    /// room: telling the world can wait for the next board, visitors cannot.
    fn known_up_to(&self, head: u64) -> Pending<'_, ()>;

    /// A fingerprint of the room as its newest board has it, and at which event that is; for
    /// mirrors, so that who rebuilds the room can compare. May take its time.
    fn digest(&self) -> Pending<'_, Option<(u64, [u8; 32])>> {
        Box::pin(std::future::ready(None))
    }
}

/// For a log that is no room's and names nobody: the installation's own.
#[derive(Clone, Copy, Debug)]
pub struct Nameless;

impl Names for Nameless {
    fn epoch_of(&self, _: Ticket) -> Option<Epoch> {
        None
    }

    fn id(&self, _: Ticket, _: Epoch) -> TicketId {
        TicketId::from_bytes([0; 16])
    }

    fn user(&self, _: &[u8]) -> Option<String> {
        None
    }

    fn pass(&self, _: TicketId, _: Option<String>, _: &Session) -> String {
        String::new()
    }

    fn known_up_to(&self, _: u64) -> Pending<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
