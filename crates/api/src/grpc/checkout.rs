//! Checkout tokens: the pass of a session, with the claims that clients of this contract read.
//!
//! A signature costs tens of microseconds, with RS256 a millisecond, and a client may go on asking
//! for a session that is ready. So a token is signed once and kept: in a table of fixed size, where
//! a newcomer takes the place of whoever had it. A token that was pushed out is signed again, with
//! the same claims, because they follow from the session alone.

use std::sync::{Mutex, PoisonError};

use waitroom_core::id::TicketId;
use waitroom_core::{Session, State};
use waitroom_pass::PassClaims;

use crate::answer::Sight;
use crate::desk::{Desk, RoomDesk};
use crate::visitor::claim::enter_url;

/// Sessions that become ready and are asked about within the same few seconds; about half a
/// kilobyte each.
const KEPT: usize = 4_096;

#[derive(Debug)]
pub struct Checkouts {
    kept: Box<[Mutex<Option<Kept>>]>,
}

struct Kept {
    id: TicketId,
    session: Session,
    /// The key that signed. After a rotation, or when a key is withdrawn, it is another.
    signer: String,
    token: String,
}

/// Tokens are bearer secrets, and debug output ends up in logs.
impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").field("id", &self.id).finish_non_exhaustive()
    }
}

/// What a client needs to go to the checkout.
#[derive(Default)]
pub struct Checkout {
    pub token: String,
    pub url: String,
}

impl Checkouts {
    pub fn new() -> Checkouts {
        Checkouts { kept: (0..KEPT).map(|_| Mutex::new(None)).collect() }
    }

    /// The token and the way in; empty for a ticket that is not inside.
    pub fn of(&self, desk: &Desk, room: &RoomDesk, state: &State, sight: &Sight) -> Checkout {
        let Some(session) = sight.view.session else { return Checkout::default() };
        let token = self.token(desk, room, state, sight, session);
        let target = state.settings().map_or("", |settings| settings.target_url.as_str());
        Checkout { url: enter_url(target, &token), token }
    }

    fn token(
        &self,
        desk: &Desk,
        room: &RoomDesk,
        state: &State,
        sight: &Sight,
        session: Session,
    ) -> String {
        let (id, signer) = (sight.id, desk.signatures.passes.signer());
        // Ids are encrypted blocks: any of their bits spread evenly.
        let place = u128::from_be_bytes(id.to_bytes()) as usize % KEPT;
        let kept = || self.kept[place].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = &*kept()
            && (found.id, found.session) == (id, session)
            && found.signer == signer
        {
            return found.token.clone();
        }
        // Signed outside the lock: neighbours in the table do not wait for it.
        let note = state.note(sight.view.ticket);
        let sealed = note.as_ref().and_then(|note| note.sealed_user.as_deref());
        let user = sealed.and_then(|sealed| room.open_user(sealed));
        let claims = PassClaims::of(id, room.name().as_str(), &session).checkout(user);
        let token = desk.signatures.passes.sign(&claims);
        *kept() = Some(Kept { id, session, signer, token: token.clone() });
        token
    }
}
