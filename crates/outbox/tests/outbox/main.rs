//! The outbox as a whole: real rooms, real logs, real buses.

mod checker;
#[path = "../../../redis/tests/common/cutter.rs"]
mod cutter;
mod database;
mod duty;
mod golden;
mod house;
mod kafka;
mod mirror;
mod nats;
mod notices;
mod parts;
mod pieces;
mod poison;
mod projection;
mod relay;
mod secured;
mod secured_kafka;
#[path = "../../../redis/tests/common/servers.rs"]
mod servers;
mod views;
mod webhook;
mod went_back;
