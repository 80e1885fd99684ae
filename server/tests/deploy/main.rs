//! What `deploy/` hands out for running it: linted by the linters that its formats have, held
//! against the binary (flags, variables, keys, ports, addresses), and, as far as no container and
//! no cluster are needed for it, run. Only addresses are changed.

mod compose;
#[allow(dead_code, reason = "other tests use more of it")]
#[path = "../serve/instance.rs"]
mod instance;
mod kubernetes;
mod names;
#[allow(dead_code, reason = "other tests use more of it")]
#[path = "../proxies/part.rs"]
mod part;
#[path = "../../../crates/redis/tests/common/servers.rs"]
mod servers;
mod systemd;
mod tools;
