//! Live channels: a room tells everyone who stays connected.
//!
//! Lives here: [`Hub`], which looks at each new board once and puts letters into mailboxes;
//! [`Mailbox`], which never holds more than the newest of each kind; the WebSocket and
//! server-sent events that carry letters out; the single-use tickets that open them.
//! Stays out: what is in an answer (`answer.rs`) and on a board (`core`).
//!
//! The board goes out as the same bytes for all, framed once. A personal frame is written only
//! when a ticket's status changes. Whoever reads slowly is skipped to the newest picture, because
//! a mailbox has one place for it.

mod frames;
mod hub;
mod mailbox;
mod open;
mod socket;
mod stream;
mod voice;

pub use frames::{Carrier, take as take_frame};
pub use hub::{Hub, PublicForm, Subscription};
pub use open::{stream, ticket, upgrade, websocket};
pub use stream::Stream;
pub use voice::Voice;
