//! The outbox as a whole: real rooms, real logs, real buses.

mod checker;
#[path = "../../../redis/tests/common/cutter.rs"]
mod cutter;
mod database;
mod duty;
mod golden;
mod house;
mod kafka;
mod lease;
mod mirror;
mod nats;
mod nats_replicas;
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
#[allow(dead_code, reason = "the engine's tests use more of it")]
#[path = "../../../engine/tests/engine/shy.rs"]
mod shy;
mod views;
mod webhook;
mod went_back;
