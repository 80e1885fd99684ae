//! The outbox as a whole: real rooms, real logs, real buses.

mod checker;
mod duty;
mod golden;
mod house;
mod kafka;
mod nats;
mod notices;
mod parts;
mod poison;
mod relay;
mod webhook;
