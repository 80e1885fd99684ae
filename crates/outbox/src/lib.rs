//! Tells the world what happened in rooms, in order, at least once; and hears what checkouts say.
//!
//! Lives here: what the events of a log mean to outsiders ([`translate()`]), the relay that reads the
//! committed log and never forgets where it stood ([`relay`]), the places events go to ([`nats`],
//! [`kafka`], [`webhook`]), and what checkouts say on buses ([`source`]).
//! Stays out: deciding anything, and every other way of talking to a room. Names of tickets, users
//! and passes come through [`Names`]; sessions are ended through [`source::Checkout`].
//! Promise: a sink gets every event that its filter lets by, at least once, with an id that never
//! changes, and sees each for the first time in the order of the log. A dead sink slows nobody.
//!
//! Start reading at [`relay::Relay::run`]. To add a sink: implement [`Sink`], and let the server's
//! configuration know it.

pub mod backoff;
pub mod body;
pub mod carry;
pub mod duty;
pub mod figures;
mod flight;
pub mod kafka;
pub mod keeper;
pub mod message;
pub mod mirror;
pub mod names;
pub mod nats;
pub mod notify;
pub mod postgres;
pub mod relay;
pub mod sale;
pub mod sink;
pub mod source;
mod trail;
pub mod translate;
mod trust;
pub mod webhook;

pub use carry::{Carry, Told};
pub use duty::{Duty, NotReplayed, Replay, Rooms};
pub use figures::{Figures, SinkFigures};
pub use keeper::{Keeper, Whole};
pub use message::{Fact, Kind, Message, MessageId};
pub use names::{Nameless, Names, Pending};
pub use relay::{Pace, Relay};
pub use sink::{Filter, Sink, Trouble};
pub use translate::translate;
