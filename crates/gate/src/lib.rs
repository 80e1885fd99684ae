//! A request meets a room: it passes, waits, is refused, or is none of the room's business.
//!
//! Lives here: the verdict, what is answered to those who wait, and the way of those who pass to
//! the origin and back. Stays out: who is let in when (`core`, through `api`), sockets (`listen`),
//! signatures (`pass`). The gate holds no queue: it looks at passes, and at the board for those
//! that ended early.
//!
//! | file | one idea |
//! |---|---|
//! | `verdict.rs` | facts in, [`Verdict`] out; no I/O, no clock |
//! | `render.rs` | the one place that turns a verdict into an answer |
//! | `front.rs` | the service of a listener: our own addresses, `/gate/check`, or the gate |
//! | `proxy.rs` | a passed request goes to the origin, an answer comes back |
//! | `origin/` | origins, their connections and their health |
//! | `wait.rs` | the page without JavaScript: joins, shows, claims |
//! | `check.rs` | the same verdict for other proxies |
//! | `authz.rs` | the same for Envoy, over gRPC |
//! | `remote/` | a gate before a room that another waitroom runs |
//! | `layer.rs` | the same verdict inside a Rust service |
//!
//! Start reading at [`front::Front`], then `verdict.rs`.

pub mod adaptive;
pub mod authz;
pub mod body;
pub mod check;
pub mod confirm;
mod cookies;
pub mod counts;
mod facts;
mod forward;
mod framing;
pub mod front;
pub mod gate;
mod glob;
pub mod layer;
mod looks;
mod negotiate;
pub mod origin;
pub mod page;
mod path;
mod proxy;
mod push;
mod reach;
pub mod remote;
mod render;
mod renewed;
mod room;
mod session;
pub mod site;
pub mod target;
mod tunnel;
pub mod upkeep;
pub mod verdict;
mod wait;

pub use facts::Facts;
pub use front::{Front, short_way};
pub use gate::{Gate, Secrets};
pub use room::{GateRoom, View};
pub use site::Site;
pub use verdict::Verdict;

/// Where our own addresses begin on a host that is otherwise the shop's.
pub const BASE: &str = "/.waitroom";
