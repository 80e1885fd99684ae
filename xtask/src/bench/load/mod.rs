//! The load: many kept-alive connections on one thread, each asking again as soon as it is
//! answered.
//!
//! Lives here: the loop over sockets, the reading of answers, the requests as bytes. Stays out:
//! which server stands at the other end; all of them get the very same bytes from the very same
//! loop, so the load takes the same share for each.
//! One thread and `epoll`, because the load has one core and must outrun a server that has
//! another. No pipelining: a connection has at most one request on its way.

pub mod answer;
pub mod calls;
pub mod drive;
pub mod h2;
pub mod poll;
pub mod requests;
pub mod round;
pub mod socket;

pub use drive::Drive;
pub use requests::Requests;
pub use round::Round;
