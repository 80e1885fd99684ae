//! The core of waitroom: a room decides, and the same events make the same room.
//!
//! Lives here: the queue as a bitmap, tickets, lanes, admission, the draw, the board, the bytes
//! of events and snapshots. Stays out: clocks, sockets, files, async, randomness, threads.
//! Start reading at [`Room::decide`].

pub mod bitmap;
pub mod chunked;
pub mod command;
pub mod draw;
pub mod estimate;
pub mod event;
pub mod fingerprints;
pub mod id;
pub mod permutation;
pub mod reply;
pub mod settings;
pub mod units;
pub mod when;

pub mod codec;

mod admit;
mod board;
mod bucket;
mod bytes;
mod claim;
mod configure;
mod deadlines;
mod draw_room;
mod end;
mod forget;
mod hand_over;
mod hold;
mod join;
mod lane;
mod line;
mod open;
mod public_board;
mod record;
mod room;
mod schedule;
mod sight;
mod slots;
mod snapshot;
mod state;
mod tick;
mod window;

pub use admit::ADMIT_NOW_MAX;
pub use board::{Board, View};
pub use bytes::Damaged;
pub use command::{Actor, Block, Command, EndHow, FinishCause, Hold, Join};
pub use draw_room::{DrawJob, PreparedDraw};
pub use event::{AdmitWhy, Ending, Entry, Event, Joined, Session, What};
pub use forget::KEY_MEMORY;
pub use lane::{Counts, Note};
pub use public_board::{PublicBoard, PublicLane, Stretch};
pub use record::Status;
pub use reply::{DrawRefusal, Fresh, Refusal, Reply};
pub use room::Room;
pub use settings::{Invalid, Settings};
pub use sight::Standing;
pub use state::{Commitment, DrawState, Finish, Phase, Revealed, State};
pub use units::{
    Epoch, Holder, Identity, JoinKey, LaneId, Millis, Number, Order, Presented, Ticket, Timestamp,
};
