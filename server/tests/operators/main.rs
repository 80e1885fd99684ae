//! The operators' side of the real binary: keys and roles, the audit, documents, live changes,
//! reload, and what happens when something breaks.
//!
//! One file per concern; `server.rs` starts a server, asks it, and runs our commands against it.
//! Of our crates only the route tables are used, so that a new route without a rule
//! fails here.

mod audit;
mod commands;
mod failures;
mod keys;
mod live;
mod matrix;
mod meddling;
mod reload;
mod rooms;
mod server;
mod unopened;
