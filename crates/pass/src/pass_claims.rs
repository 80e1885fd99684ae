//! What a pass says. A function of the event that started or renewed the session, and of nothing
//! else: a repeated claim says the same again.

use serde::Serialize;
use waitroom_core::{Session, id::TicketId};
use waitroom_verifier::Binding;

/// The claims of a pass. No personal data, unless the interface that asked for it demands it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PassClaims {
    #[serde(rename = "sub")]
    pub ticket: TicketId,
    pub room: String,
    #[serde(rename = "iat")]
    pub issued_s: u64,
    #[serde(rename = "exp")]
    pub expires_s: u64,
    #[serde(rename = "bnd", skip_serializing_if = "Binding::is_empty")]
    pub binding: Binding,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
}

impl PassClaims {
    /// The pass of this session. Both times are cut to whole seconds, so the pass never ends
    /// later than the slot that is held for it.
    pub fn of(ticket: TicketId, room: &str, session: &Session) -> Self {
        PassClaims {
            ticket,
            room: room.to_owned(),
            issued_s: session.issued_at.0 / 1000,
            expires_s: session.pass_expires_at.0 / 1000,
            binding: Binding::default(),
            session_id: None,
            user_id: None,
            event_id: None,
        }
    }

    /// Bound to what `binding` says. Make it with this ticket's printed id.
    pub fn bound(mut self, binding: Binding) -> Self {
        self.binding = binding;
        self
    }

    /// As the checkout token of the gRPC interface.
    pub fn checkout(mut self, user_id: Option<String>) -> Self {
        self.session_id = Some(self.ticket.to_string());
        self.event_id = Some(self.room.clone());
        self.user_id = user_id;
        self
    }
}
