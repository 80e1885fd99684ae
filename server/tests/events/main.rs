//! The whole way round with the real binary and real buses, seen by foreign clients: a visitor
//! joins, the shop reads it on the bus, checks the pass, says that the checkout is over, and the
//! next one is let in. The shop is a Python program (`shop.py`) with the buses' own libraries.

#[path = "../serve/instance.rs"]
#[allow(dead_code, reason = "shared with another target, which uses the rest")]
mod instance;
#[path = "../../../crates/outbox/tests/outbox/parts.rs"]
#[allow(dead_code, reason = "shared with another target, which uses the rest")]
mod parts;

#[path = "../../../crates/outbox/tests/outbox/database.rs"]
#[allow(dead_code, reason = "shared with another target, which uses the rest")]
mod database;

mod notices;
mod rebuild;
mod round_trip;
mod shop;
mod webhook;
