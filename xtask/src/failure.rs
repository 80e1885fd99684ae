//! Why a chore stopped: one text for the person at the terminal.
//!
//! Nobody handles these errors in code, so they have no kinds; they do have to name the
//! attempt and the next step, which is why there is no blanket conversion from `io::Error`.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(String);

/// What a chore returns.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

/// Adds the attempt to a cause: `File::open(p).or_fail(|| format!("open {p}"))`.
pub trait OrFail<T> {
    fn or_fail<S: fmt::Display>(self, attempt: impl FnOnce() -> S) -> Outcome<T>;
}

impl<T, E: fmt::Display> OrFail<T> for Result<T, E> {
    fn or_fail<S: fmt::Display>(self, attempt: impl FnOnce() -> S) -> Outcome<T> {
        self.map_err(|cause| Failure(format!("cannot {}: {cause}", attempt())))
    }
}
