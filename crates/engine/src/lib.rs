//! Runs rooms: one writer each, many readers, nothing told before it is durable.
//!
//! Lives here: queues, batches, room time, liveness, boards, recovery; tokio.
//! Stays out: what a room decides (`core`), how bytes are kept (`store`), who asks (`api`).
//! Start reading at [`writer`], which has no I/O, then `task`, which gives it some.

pub mod clock;
pub mod draw_keeper;
pub mod figures;
pub mod liveness;
pub mod peers;
pub mod recover;
pub mod writer;

mod caught;
mod config;
mod engine;
mod error;
mod handle;
mod task;
mod waits;

pub use config::{Config, Vault};
pub use engine::{Engine, silent, sweep};
pub use error::{OpenError, Unanswered};
pub use handle::{
    Answer, Answers, Beacon, BoardGuard, COMMANDS_MAX, Commands, OutlookGuard, RoomHandle,
    Submitted,
};
pub use liveness::{Heard, Mark};
pub use peers::{Answering, Peers, Stance};
pub use waits::{Judged, Onlooker, Outlook};
