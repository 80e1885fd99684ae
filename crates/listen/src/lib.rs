//! The front door: from a socket to a hyper service, and back to nothing in time.
//!
//! Lives here: binding, accepting, caps on connections, the PROXY header, TLS, telling HTTP/1
//! from HTTP/2, time-outs, draining, the client's address behind proxies, reading a body with a
//! limit. Every listener of the product goes through this one accept loop.
//! Stays out: routes, answers, what a request means. No crate of ours is known here.
//!
//! Time-outs are not kept by hyper. Its header timer costs an allocation and a timer entry for
//! each request, and cannot tell "has begun a request and is slow" from "keeps a connection for
//! later". Instead each connection has a [`line::Line`] that says in a few atomics where it
//! stands, and one sweep, a few times a second, reads them all and cuts who is late. A request
//! pays some loads and stores for it, an idle connection nothing.
//!
//! Start reading at [`Listener::serve`]; then `arrive.rs` (a socket becomes a conversation),
//! `talk.rs` (the conversation, and `quick.rs` its short way), `line.rs` and `sweep.rs` (its limits in time).
//! `docs/listen.md` lists every limit with its default and its reason.

mod arrive;
pub mod body;
mod client;
mod date;
mod drain;
mod endless;
mod error;
mod full;
mod io;
mod line;
mod listener;
mod net;
mod peer;
pub mod proxy;
mod quick;
mod seat;
mod settings;
mod stats;
mod sweep;
mod talk;
mod tls;
mod track;

pub use client::{client_address, client_behind};
pub use date::http_date;
pub use drain::Drain;
pub use endless::Endless;
pub use error::Error;
pub use io::{Io, Socket, Taken};
pub use listener::{Listener, Outcome};
pub use net::{Net, NetError, Nets};
pub use peer::{Peer, Protocol};
pub use quick::{Plain, Quick, Quickly};
pub use seat::Seat;
pub use settings::{Http2, Limits, Protocols, Settings, Timeouts};
pub use stats::{Counts, Stats};
pub use tls::{Tls, TlsError, TlsFiles};
