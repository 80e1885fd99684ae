//! What the server says while it runs: log lines on standard error, spans for a collector.
//!
//! Lives here: where they go and in which form. Stays out: what is said, which is said where it
//! happens. Only targets of ours are heard: libraries log headers at their lowest level, and
//! headers hold secrets.

mod lines;
mod otlp;

pub use lines::Lines;
pub use otlp::Exporter;
