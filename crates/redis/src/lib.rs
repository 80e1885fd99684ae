//! Remembers in Redis: the contract of the store on Redis 6.2 and later, Valkey and Dragonfly, as
//! one server, with Sentinel, or as a Cluster.
//!
//! Lives here: [`RedisStore`], and everything that knows the `redis` crate; no other crate of ours
//! does. Redis remembers, Rust decides: the scripts (`scripts/*.lua`) append if head and lease are
//! current, and look at nothing else. All keys of a room share a hash tag and are declared.
//! Stays out: what a batch means, who should own a room, and how long a lease lasts.
//!
//! How an append travels: `store.rs` puts it into a line when it is called (`line.rs`); the line
//! sends all that gathered meanwhile as one pipeline, with one `WAIT` at its end, to the server that
//! has the room (`place.rs` knows which), over a connection of its own (`wire.rs`).
//! What a room keeps besides its log (cursors, snapshots, floors) is changed by looking, deciding
//! and swapping (`kept.rs`): the log goes on meanwhile.
//! Start reading at [`RedisStore`], then `scripts/append.lua`.

mod adopt;
mod ask;
mod fitness;
mod follow;
mod group;
mod inner;
mod kept;
mod keys;
mod known;
mod line;
mod now;
mod options;
mod place;
mod record;
mod script;
mod snapshots;
mod store;
mod trouble;
mod value;
mod wire;

pub use fitness::{Fitness, Unfit};
pub use options::{Level, Login, Options, Time, Tls, Where};
pub use store::{OpenError, RedisStore};
