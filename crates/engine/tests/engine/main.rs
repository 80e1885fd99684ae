//! The engine from the outside: one file per promise.

mod answers;
mod bad_days;
mod boards;
mod durability;
mod following;
mod help;
mod sale;
#[allow(dead_code, reason = "the outbox's tests use more of it")]
mod shy;
mod waits;
