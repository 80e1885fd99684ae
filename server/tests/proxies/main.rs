//! Real proxies before a real origin, which ask the real binary, with the configurations that
//! `deploy/` hands out: only their addresses are changed. One file per proxy; what each must keep
//! is in `promises.rs`.

mod cache;
mod caddy;
mod envoy;
mod haproxy;
#[allow(dead_code)]
#[path = "../gate/house.rs"]
mod house;
#[allow(dead_code)]
#[path = "../serve/instance.rs"]
mod instance;
mod nginx;
#[allow(dead_code)]
#[path = "../gate/origin.rs"]
mod origin;
mod part;
mod promises;
