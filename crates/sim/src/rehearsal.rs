//! The rehearsal: a whole sale under virtual time, so that an operator knows beforehand.
//!
//! Lives here: the model of the crowd and the sale, what is measured, and how it is told (a
//! summary for the terminal, JSON, and an HTML report).
//! Stays out: deciding. Every place, admission and refusal comes from the room itself.
//! Promise: the same plan and seed make the same outcome, but for the time it took.
//! Start reading at [`rehearse`].

mod arrivals;
mod asks;
mod calendar;
mod crowd;
mod desk;
mod drive;
mod fairness;
pub mod human;
pub mod outcome;
pub mod plan;
mod report;
mod series;
mod summary;
mod waits;

pub use arrivals::parse_csv;
pub use drive::{Progress, rehearse, rehearse_measured};
pub use outcome::Outcome;
pub use plan::{Lane, OutOfBounds, Patience, Plan, Shape};
pub use report::{chart, report};
pub use summary::summary;
