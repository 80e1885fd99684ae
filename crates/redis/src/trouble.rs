//! What can go wrong between us and a server, told by what is true afterwards.

use waitroom_store::{AppendError, Error};

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing was done: no server could be asked, or it is on its way to be one that can.
    Away(String),
    /// It was sent, and may have been done or not.
    Unknown(String),
    /// A server said no. Nothing was done.
    Refused(String),
    /// What the server has is not what we wrote.
    Damaged(String),
}

impl Trouble {
    /// For an append: who could not be asked has written nothing.
    pub fn of_append(self) -> AppendError {
        match self {
            Trouble::Away(why) => AppendError::Refused { why: format!("Redis is away: {why}") },
            Trouble::Refused(why) => AppendError::Refused { why },
            Trouble::Unknown(why) | Trouble::Damaged(why) => AppendError::Unknown { why },
        }
    }

    /// For a request that changes nothing: not knowing is not being told.
    pub fn of_look(self) -> Error {
        match self {
            Trouble::Away(why) | Trouble::Unknown(why) | Trouble::Refused(why) => {
                Error::Unavailable { why }
            }
            Trouble::Damaged(why) => Error::Damaged { why },
        }
    }
}

/// For a request that changes something.
impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Error {
        match trouble {
            Trouble::Away(why) => Error::Unavailable { why },
            Trouble::Unknown(why) => Error::Unknown { why },
            Trouble::Refused(why) => Error::Refused { why },
            Trouble::Damaged(why) => Error::Damaged { why },
        }
    }
}
