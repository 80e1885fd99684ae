//! Who calls: a service with an API key, one with a client certificate, or a developer.
//!
//! Every RPC but health acts for tickets and hands out passes, so it takes the role of an
//! operator. A key that came is always judged, and a wrong one is refused whatever else would
//! have let the caller in: a typing error must not turn into somebody else's rights.

use http::HeaderMap;
use waitroom_listen::Peer;

use crate::caller::Role;
use crate::desk::Desk;
use crate::problem::{Code, Problem};

/// What a connection is worth before a key was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A stranger: every call needs a key.
    Stranger,
    /// Showed a certificate of the listener's `client_ca`, which is there for just this.
    Certified,
    /// On this machine, in development mode.
    Developer,
}

impl Standing {
    pub fn of(peer: &Peer, dev: bool) -> Standing {
        if peer.client_cert.is_some() {
            return Standing::Certified;
        }
        // Behind a PROXY header the visitor's address counts, and the proxy's too: a public
        // balancer on this machine does not make its clients developers.
        let here = peer.socket.ip().is_loopback() && peer.via.is_none();
        if dev && here { Standing::Developer } else { Standing::Stranger }
    }

    /// Lets a call pass, or says why not.
    pub fn admit(self, desk: &Desk, headers: &HeaderMap) -> Result<(), Problem> {
        if KEYS.iter().any(|name| headers.contains_key(*name)) {
            return match desk.require(headers, Role::Operator) {
                // Something came that does not even look like a key, such as a ticket token.
                Err(problem) if problem.code == Code::ApiKeyMissing => {
                    Err(Problem::new(Code::ApiKeyInvalid, "this is not an API key"))
                }
                judged => judged.map(|_| ()),
            };
        }
        match self {
            Standing::Certified | Standing::Developer => Ok(()),
            Standing::Stranger => {
                let detail = "send one as `authorization: Bearer KEY` or `x-api-key: KEY`";
                Err(Problem::new(Code::ApiKeyMissing, detail))
            }
        }
    }
}

/// Where a key may stand; the last is the earlier systems' name for it.
const KEYS: [&str; 3] = ["authorization", "x-api-key", "x-admin-key"];
