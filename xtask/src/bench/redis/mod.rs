//! A real redis-server for comparison: [`server`] runs it, [`resp`] talks to it.

pub mod resp;
pub mod server;
