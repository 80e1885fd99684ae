//! The ticket token: proof of holding a place in line. It lives as long as the ticket.
//!
//! ```text
//! wt1_ base64url( key id 1 | ticket id 16 | holder 1 | issued, seconds 4 | MAC 16 )
//! ```

use waitroom_core::{Holder, id::TicketId};

use crate::{
    sealed::{Sealed, TokenText},
    secrets::WrongSecrets,
};

const BODY: usize = 22;

/// What a genuine ticket token says. Whether the ticket lives, and whether this holder is still
/// its holder, is for the room to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TicketToken {
    pub id: TicketId,
    pub holder: Holder,
    /// Seconds since the Unix epoch; 32 bits last until 2106.
    pub issued_s: u32,
    /// Signed with the secret that signs now; otherwise it should be replaced while it is good.
    pub newest: bool,
}

/// Writes and reads ticket tokens.
#[derive(Debug)]
pub struct TicketTokens(Sealed<BODY>);

impl TicketTokens {
    /// Secrets with their ids, oldest first: the last one signs, all check.
    pub fn new(keys: &[(u8, [u8; 32])]) -> Result<Self, WrongSecrets> {
        Sealed::new("wt1_", "ticket-token", keys).map(TicketTokens)
    }

    pub fn write(&self, room: &str, id: TicketId, holder: Holder, issued_s: u32) -> TokenText {
        let mut body = [0; BODY];
        body[1..17].copy_from_slice(&id.to_bytes());
        body[17] = holder.0;
        body[18..].copy_from_slice(&issued_s.to_be_bytes());
        self.0.write(room, body)
    }

    /// What the token says, or `None` when we did not write it for this room. Allocates nothing.
    pub fn read(&self, room: &str, text: &str) -> Option<TicketToken> {
        let body = self.0.read(room, text)?;
        let newest = self.0.is_newest(body[0]);
        Some(TicketToken {
            newest,
            id: TicketId::from_bytes(body[1..17].try_into().expect("sixteen bytes")),
            holder: Holder(body[17]),
            issued_s: u32::from_be_bytes(body[18..].try_into().expect("four bytes")),
        })
    }
}
