//! The earlier interfaces, from the outside: a server on a real socket, and clients that know
//! nothing but the contract.

mod demo;
mod errors;
mod help;
mod operators;
mod own;
mod positions;
mod quick;
mod root;
mod sessions;
mod socket;
