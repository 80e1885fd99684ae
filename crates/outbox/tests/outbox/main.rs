//! The outbox as a whole: real rooms, real logs, real buses.

mod checker;
mod database;
mod duty;
mod golden;
mod house;
mod kafka;
mod mirror;
mod nats;
mod parts;
mod pieces;
mod poison;
mod projection;
mod relay;
mod views;
