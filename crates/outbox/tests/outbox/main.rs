//! The outbox as a whole: real rooms, real logs, real buses.

mod checker;
#[path = "../../../redis/tests/common/cutter.rs"]
mod cutter;
mod duty;
mod golden;
mod house;
mod kafka;
mod nats;
mod notices;
mod parts;
mod poison;
mod relay;
#[path = "../../../redis/tests/common/servers.rs"]
mod servers;
mod went_back;
mod webhook;
