//! The whole system on one thread, from one seed, and the checkers that judge it.
//!
//! Lives here: the simulator (`world`), the reference model, the history of a run, a checker for
//! each promise, and the rehearsal of a sale. Stays out: anything that the product needs to run.

pub mod check;
pub mod history;
pub mod model;
pub mod rehearsal;
pub mod rng;
#[cfg(feature = "world")]
pub mod world;
