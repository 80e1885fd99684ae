//! Everyone talks to the queue here: visitors, services, operators.
//!
//! Lives here: HTTP, WebSocket, SSE and gRPC in, commands and looks out; JSON; who may ask what;
//! how often. Stays out: what a room decides (`core`), durability (`engine`, `store`), signatures
//! (`pass`), sockets and time-outs (`listen`).
//! Only this crate knows JSON shapes and HTTP codes. Start reading at [`Desk`], which all
//! interfaces share, then [`visitor`].

pub mod adapters;
pub mod admin;
pub mod answer;
pub mod binding;
pub mod body;
pub mod caller;
pub mod cookies;
pub mod desk;
pub mod document;
pub mod facts;
pub mod grpc;
pub mod health;
pub mod limits;
pub mod live;
pub mod metrics;
pub mod openapi;
pub mod openapi_page;
pub mod problem;
pub mod public;
pub mod quick;
pub mod request;
pub mod unopened;
pub mod visitor;

mod cors;
mod pace;
mod pulse;
mod told;
mod written;

pub use desk::{Desk, Installation, RoomDesk};
pub use problem::{Code, Problem};
