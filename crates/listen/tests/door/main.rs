//! The front door against guests of every kind, over real sockets.

mod bodies;
mod caps;
mod drain;
mod endless;
mod http1;
mod http2;
mod proxy;
mod quick;
mod support;
mod time;
mod tls;
mod upgrade;
