//! What the waiting visitor sees: one small document with everything in it.
//!
//! Lives here: the waiting page and its states, the privacy page, words in many languages, a
//! room's own theme and template, the content security policy.
//! Stays out: sockets, rooms, decisions. A page is a function of what its caller knows; the
//! script in it (`pages/page.js`) talks to the visitor API and to nothing else.
//! Promise: whatever visitors, operators and shops write is shown as text. No script but ours
//! runs, and no theme or template hides what a waiting person must know.
//! Start reading at [`waiting`].

mod address;
mod answer;
mod assemble;
mod colour;
mod escape;
mod number;
mod plural;
mod preview;
mod privacy;
mod push;
mod shown;
mod template;
mod theme;
mod words;

pub use answer::Answer;
pub use preview::{STATES, preview};
pub use privacy::privacy;
pub use push::{PUSH_WORKER_POLICY, push_worker};
pub use shown::{By, Draw, Notice, Schedule, Waiting, notice, waiting};
pub use template::Template;
pub use theme::{Mistake, Theme};

/// A finished document, and what must be sent with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub html: String,
    /// For the header `Content-Security-Policy`: our script and style by their hashes, our own
    /// host to talk to, nothing else.
    pub content_security_policy: String,
    /// For the header `Content-Language`.
    pub language: &'static str,
}

/// The languages that pages speak: tag and what the language calls itself.
pub fn languages() -> impl Iterator<Item = (&'static str, &'static str)> {
    words::all().iter().map(|words| (words.tag, words.name.as_str()))
}

/// How a browser would see this, for tests that compare it with what browsers say.
#[doc(hidden)]
pub mod compared {
    pub use crate::number::{number, span};
    pub use crate::plural::{category, needed};
    pub use crate::words::{Text, Words, all, choose, fill};
}
