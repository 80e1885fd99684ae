//! A site behind the gate: the real binary before an origin that does as it is told, talked to by
//! curl and by plain bytes. One file per concern.

mod adaptive;
mod bound;
mod elsewhere;
mod failing;
mod house;
#[allow(dead_code)]
#[path = "../serve/instance.rs"]
mod instance;
mod origin;
mod origins;
mod other_proxies;
mod passing;
mod push;
mod real;
mod sessions;
mod socket;
mod themes;
mod waiting;
