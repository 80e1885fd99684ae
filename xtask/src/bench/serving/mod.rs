//! Servers as children of the benchmark: ours, and those that it is held against.
//!
//! Each is started on a core of its own choice, says where it listens, and is ended by its id
//! when its value goes. Data lies on a real disk.

pub mod ask;
pub mod child;
pub mod crowd;
pub mod nginx;
pub mod peer;
pub mod waitroom;

pub use child::Child;
pub use waitroom::Waitroom;
