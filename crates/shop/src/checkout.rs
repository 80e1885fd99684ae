//! How a checkout ended, for whoever wants to hear of it.
//!
//! This is the seam through which results leave the shop: `waitroom demo --bus` publishes them
//! (`CHECKOUT_COMPLETED`, `CHECKOUT_FAILED`, `CHECKOUT_EXPIRED`). To publish them elsewhere:
//! implement [`Hears`] and hand it to the shop.

use std::fmt;

use crate::seat::Seat;

/// One checkout, ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkout {
    /// The ticket of the pass: the name of this visit, the same for the room and for the shop.
    pub session: String,
    pub ended: Ended,
    pub at_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    Completed {
        order: u64,
        seats: Vec<Seat>,
    },
    /// The card was declined. The seats stay reserved until the reservation lapses.
    Failed,
    /// The reservation lapsed before anybody paid.
    Expired,
}

impl Ended {
    /// As the events of a bus are called.
    pub fn name(&self) -> &'static str {
        match self {
            Ended::Completed { .. } => "CHECKOUT_COMPLETED",
            Ended::Failed => "CHECKOUT_FAILED",
            Ended::Expired => "CHECKOUT_EXPIRED",
        }
    }
}

/// Hears of every checkout that ended, once, after the stock has it. Must not wait: a request is
/// answered behind it.
pub trait Hears: fmt::Debug + Send + Sync {
    fn ended(&self, checkout: &Checkout);
}

/// Nobody listens.
#[derive(Clone, Copy, Debug)]
pub struct Nobody;

impl Hears for Nobody {
    fn ended(&self, _checkout: &Checkout) {}
}
