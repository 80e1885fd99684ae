//! The engine from the outside: one file per promise.

mod answers;
mod bad_days;
mod boards;
mod durability;
mod following;
mod help;
mod sale;
mod shy;
mod waits;
