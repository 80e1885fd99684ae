//! Several real instances on one real Redis: one queue, whoever is asked; an owner that dies, is
//! frozen or cut off, or goes down in order.

mod crowd;
mod crowds;
#[path = "../../../crates/redis/tests/common/cutter.rs"]
mod cutter;
mod faults;
mod house;
#[path = "../serve/instance.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod instance;
mod one_queue;
mod partition;
#[path = "../../../crates/redis/tests/common/servers.rs"]
mod servers;
mod spreader;
mod strangers;
