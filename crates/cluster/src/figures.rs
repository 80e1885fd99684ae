//! What the cluster counts at this instance, for operators.

use waitroom_watch::Counter;

/// Since the start of this instance.
#[derive(Debug, Default)]
pub struct Figures {
    /// Requests sent on to owners, and messages in which they went.
    pub sent_on: Counter,
    pub parcels: Counter,
    /// Requests that others sent here.
    pub taken_in: Counter,
    /// Sent on, and no answer came.
    pub unknown: Counter,
    /// Sent on a second time, because nothing had been done the first.
    pub retried: Counter,
    /// Rooms that this instance began to own, and those it handed over in order.
    pub takeovers: Counter,
    pub handovers: Counter,
}
