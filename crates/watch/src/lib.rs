//! Counting what happens, and following one request on its way.
//!
//! Lives here: counters and histograms that cost a hot path one or two relaxed additions
//! ([`Counter`], [`Histogram`]), the text that Prometheus reads ([`Page`]), and spans ([`span`]).
//! Stays out: what is counted, and where spans are sent. No crate of ours is known here, and no
//! other dependency: every part of the product may count.
//!
//! The text is written by hand because almost nothing that we tell is kept by a registry: lengths
//! and totals of rooms are read from the published board, connections from the listener's own
//! counters, when somebody asks. A registry of labelled families would cost each request a lock and
//! a hash to find its own counter again; here a route's counter is a field.

mod count;
mod page;
pub mod span;

pub use count::{Counter, Histogram, Picture, Scale};
pub use page::{Family, Kind, Page};
