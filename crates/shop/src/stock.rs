//! The stock: which seat is free, held or sold, and the ledger of orders.
//!
//! Lives here: what a stock does, in words and types that both databases share. Each does a step
//! in one transaction; nothing about seats is remembered outside the database, so any number of
//! shops can sell from one stock. A hold is a session's claim on seats until a moment; it counts
//! only before that moment, whether somebody has swept it away or not.
//! The ledger has no constraint that forbids to sell a seat twice, on purpose: the transactions
//! do that, and the ledger is what they are judged by.
//! To add a database: a file, a variant, an arm in each call, a line in `tests/stock`.

mod postgres;
mod sqlite;

pub use postgres::Postgres;
pub use sqlite::Sqlite;

use std::fmt;

use crate::ledger::Order;
use crate::seat::Seat;

#[derive(Debug)]
pub enum Stock {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

/// The database said no, in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(pub String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// What became of a wish for seats: all of them, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reserved {
    Held,
    /// These belong to somebody else; nothing changed.
    Taken(Vec<Seat>),
}

/// What became of a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sold {
    /// Sold just now; `left` seats are not sold yet.
    Now { order: u64, seats: Vec<Seat>, left: u64 },
    /// This session has paid before; nothing was sold again.
    Before { order: u64, seats: Vec<Seat> },
    /// Nothing is held: it lapsed, or never was.
    NothingHeld,
}

/// Who buys, as the ledger keeps it.
#[derive(Clone, Copy, Debug)]
pub struct Buyer<'a> {
    /// The ticket of the pass.
    pub session: &'a str,
    /// The pass itself, so that the ledger can be audited later. A real shop keeps only its ticket.
    pub pass: &'a str,
    pub name: &'a str,
}

/// Seats of one session, held until a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    pub seats: Vec<Seat>,
    pub until_ms: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub seats: u64,
    pub held: u64,
    pub sold: u64,
}

impl Count {
    pub fn free(&self) -> u64 {
        self.seats.saturating_sub(self.held + self.sold)
    }
}

macro_rules! each {
    ($self:ident, $it:ident => $call:expr) => {
        match $self {
            Stock::Sqlite($it) => $call.await,
            Stock::Postgres($it) => $call.await,
        }
    };
}

impl Stock {
    /// Holds these seats for a session until a moment, instead of what it held before.
    pub async fn reserve(
        &self,
        session: &str,
        seats: &[Seat],
        now_ms: u64,
        until_ms: u64,
    ) -> Result<Reserved, Error> {
        each!(self, it => it.reserve(session, seats, now_ms, until_ms))
    }

    /// What a session holds now.
    pub async fn held(&self, session: &str, now_ms: u64) -> Result<Hold, Error> {
        each!(self, it => it.held(session, now_ms))
    }

    /// Gives back what a session holds.
    pub async fn give_back(&self, session: &str) -> Result<(), Error> {
        each!(self, it => it.give_back(session))
    }

    /// Sells what the session holds.
    pub async fn sell(&self, buyer: Buyer<'_>, now_ms: u64) -> Result<Sold, Error> {
        each!(self, it => it.sell(buyer, now_ms))
    }

    /// Frees what is held too long; says whose it was.
    pub async fn lapse(&self, now_ms: u64) -> Result<Vec<String>, Error> {
        each!(self, it => it.lapse(now_ms))
    }

    /// The seats that nobody can have now, of those between two (both included).
    pub async fn gone(&self, from: Seat, to: Seat, now_ms: u64) -> Result<Vec<Seat>, Error> {
        each!(self, it => it.gone(from, to, now_ms))
    }

    pub async fn count(&self, now_ms: u64) -> Result<Count, Error> {
        each!(self, it => it.count(now_ms))
    }

    /// Every order, oldest first.
    pub async fn orders(&self) -> Result<Vec<Order>, Error> {
        each!(self, it => it.orders())
    }

    /// Takes away what the stock put where others have things too.
    pub async fn clear_away(&self) -> Result<(), Error> {
        match self {
            Stock::Sqlite(_) => Ok(()),
            Stock::Postgres(it) => it.clear_away().await,
        }
    }
}
