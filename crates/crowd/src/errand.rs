//! What visitors do inside, where there is more to do than to stay a while.
//!
//! The crowd knows the waiting room and no site. Whoever has a site behind it says what people do
//! there: the demo's buy seats. Without an errand a visitor stays for a while and completes.

use std::fmt;
use std::pin::Pin;

/// Somebody who was let in.
#[derive(Clone, Debug)]
pub struct Guest {
    pub who: u64,
    pub pass: String,
    /// Random, the same for the same seed and visitor.
    pub luck: u64,
    /// The address that this visitor claims, if addresses are claimed.
    pub address: Option<String>,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// The site has told the room that this visitor is done.
    Completed,
    /// Nothing came of it; the visitor says goodbye.
    Leaves,
    /// The visitor just goes away.
    Vanishes,
}

pub type Doing<'a> = Pin<Box<dyn Future<Output = Done> + Send + 'a>>;

pub trait Errand: fmt::Debug + Send + Sync {
    fn run(&self, guest: Guest) -> Doing<'_>;
}
