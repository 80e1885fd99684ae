//! The engine from the outside: one file per promise.

mod answers;
mod boards;
mod durability;
mod following;
mod help;
mod sale;
mod waits;
