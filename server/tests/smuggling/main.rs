//! Hostile bytes: requests that parsers disagree about, links that lead away, clients and origins
//! that misbehave. The real binary stands before two origins that others wrote, nginx and Node.

mod boundaries;
mod corpus;
mod h2;
#[allow(dead_code)]
#[path = "../gate/house.rs"]
mod house;
#[allow(dead_code)]
#[path = "../serve/instance.rs"]
mod instance;
mod mutated;
mod node;
#[allow(dead_code)]
#[path = "../gate/origin.rs"]
mod origin;
mod outcomes;
#[allow(dead_code)]
#[path = "../proxies/part.rs"]
mod part;
mod redirects;
mod wire;
