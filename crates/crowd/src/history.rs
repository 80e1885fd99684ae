//! What visitors and operators saw, call by call: the file that `check-history` judges.
//!
//! Lives here: the shape of a line ([`Header`], [`Call`]), the thread that writes them
//! ([`Recorder`]) and the reader ([`read`]). `docs/history.md` says the same for those who write
//! such files with other tools.
//! Stays out: what a line means for a promise; see `judge`.

mod line;
mod reading;
mod writing;

pub use line::{Call, Got, Header, Line, Pace, RoomFacts, Sent, Verb};
pub use reading::{Trouble, read};
pub use writing::{Recorder, Unwritten, Writing};
