//! Checking a log from outside: the chain is recomputed from what is read, trusting nothing else.
//!
//! Lives here: [`chain`], for `waitroom verify`, for audits and for tests.
//! Stays out: what the payloads say.

use std::fmt;

use crate::{
    contract::Store,
    error::Error,
    log::{Appended, Chain, Head},
    name::RoomName,
};

/// What a whole log's chain came to, or where it breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrokenChain {
    /// The batch after this head does not follow from what is before it.
    After(Head),
    /// The log holds together, but its end is not what the store says it is.
    Tip {
        computed: Appended,
        told: Appended,
    },
    Store(Error),
}

impl fmt::Display for BrokenChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BrokenChain::After(head) => write!(f, "the chain breaks after event {head}"),
            BrokenChain::Tip { computed, told } => write!(
                f,
                "the log ends at event {} with chain {}, the store says {} with {}",
                computed.head, computed.chain, told.head, told.chain
            ),
            BrokenChain::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BrokenChain {}

/// Recomputes the chain of a room's log from its beginning. Of a trimmed log the first batch still
/// there is taken as given, and everything after it is checked.
pub async fn chain<S: Store>(store: &S, room: &RoomName) -> Result<Appended, BrokenChain> {
    const STEP: usize = 4 << 20;
    let broken = BrokenChain::Store;
    let told = store.tip(room).await.map_err(broken)?;
    let trimmed_to = store.trimmed_to(room).await.map_err(broken)?;
    let mut at = Appended { head: trimmed_to, chain: Chain::START };
    let mut given = trimmed_to > Head::EMPTY;
    while at.head < told.head {
        let batches = store.read(room, at.head, STEP).await.map_err(broken)?;
        if batches.is_empty() {
            return Err(BrokenChain::After(at.head));
        }
        for stored in batches {
            if given {
                given = false;
                at = Appended { head: stored.head, chain: stored.chain };
                continue;
            }
            let chain = at.chain.next(room, &stored.link(), &stored.payload);
            if stored.after != at.head || stored.chain != chain {
                return Err(BrokenChain::After(at.head));
            }
            at = Appended { head: stored.head, chain };
        }
    }
    // Somebody may have appended meanwhile; what the store told must be on the way.
    if at.head == told.head && at.chain != told.chain && !given {
        return Err(BrokenChain::Tip { computed: at, told });
    }
    Ok(at)
}
