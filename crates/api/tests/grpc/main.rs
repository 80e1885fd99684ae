//! The gRPC interface over real connections, with a room behind it.

mod answers;
mod credentials;
mod deadlines;
mod house;
mod papers;
mod passes;
mod refusals;
mod standard;
mod streams;
