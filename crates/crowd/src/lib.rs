//! A crowd for a waiting room, and a judge of what it saw.
//!
//! Lives here: visitors over real sockets ([`run`]), what they saw ([`history`]), the report of a
//! run ([`report`]), and the checkers that hold a history against the promises ([`judge`]).
//! Stays out: the server. The crowd knows it only by its wire, so that it can be wrong about
//! nothing but what a client can be wrong about.

pub mod history;
pub mod judge;
pub mod report;

mod arrivals;
mod clock;
mod errand;
mod facts;
mod operator;
mod outcome;
mod plan;
mod rng;
mod run;
mod spot;
mod tally;
mod visitor;
mod wire;
mod world;

pub use arrivals::Shape;
pub use errand::{Doing, Done, Errand, Guest};
pub use outcome::{Calls, Live, Moment, Outcome, People, Told, Waited};
pub use plan::{ApiKey, Channel, Mix, Operator, Plan, Remote};
pub use run::{Failed, Progress, run, run_until};
pub use wire::Target;
