//! The wire, as a client sees it: sockets, HTTP, live channels, gRPC, and what answers say.
//!
//! Lives here: how to talk. Stays out: whom to be; see `visitor`.

mod answer;
mod http;
mod rpc;
mod socket;
mod stream;
mod target;

pub use answer::{Answer, Problem, Ticket};
pub use http::{Ask, Pool, Reply, Unheard};
pub use rpc::{Rpc, proto, refusal, status_name};
pub use socket::Socket;
pub use stream::{Message, Stream};
pub use target::{Sources, Target};
