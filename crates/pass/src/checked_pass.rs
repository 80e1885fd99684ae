//! The gate's cookie: this pass was checked here a moment ago.
//!
//! The signature of a pass costs tens of microseconds to check. A gate does it once, writes
//! this, and goes on with it for a short while: the same facts under an HMAC of ours.
//!
//! ```text
//! wc1_ base64url( key id 1 | ticket id 16 | exp, seconds 4 | checked until, seconds 4
//!                 | what is bound 1 | IP bits 1 | binding digest 16 | MAC 16 )
//! ```
//!
//! A bound pass gives a bound cookie: the digest covers the very values that were shown, so the
//! cookie moves to another browser no better than the pass.

use std::net::IpAddr;

use aws_lc_rs::{
    constant_time::verify_slices_are_equal,
    digest::{Context, SHA256},
};
use waitroom_core::id::TicketId;
use waitroom_verifier::{Pass, Presented};

use crate::{
    sealed::{Sealed, TokenText},
    secrets::WrongSecrets,
};

const BODY: usize = 43;

const NONCE: u8 = 1;
const IP: u8 = 2;
const USER_AGENT: u8 = 4;

/// A pass that was checked before, as its cookie says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckedPass {
    pub ticket: TicketId,
    /// The end of the pass itself.
    pub expires_s: u32,
    /// When the pass must be checked again.
    pub checked_until_s: u32,
}

/// Writes and reads the gate's cookies.
#[derive(Debug)]
pub struct CheckedPasses(Sealed<BODY>);

impl CheckedPasses {
    /// Secrets with their ids, oldest first: the last one signs, all check.
    pub fn new(keys: &[(u8, [u8; 32])]) -> Result<Self, WrongSecrets> {
        Sealed::new("wc1_", "checked-pass", keys).map(CheckedPasses)
    }

    /// For a pass that was found good with `presented` just now. `None` when it cannot be said
    /// in the cookie's few bytes, or when something the pass is bound to was not looked at:
    /// then the pass itself is checked every time.
    pub fn write(
        &self,
        pass: &Pass,
        presented: &Presented<'_>,
        checked_until_s: u64,
    ) -> Option<TokenText> {
        let ticket = TicketId::parse(&pass.ticket).ok()?;
        let expires_s = u32::try_from(pass.expires_at).ok()?;
        let until_s = u32::try_from(checked_until_s.min(pass.expires_at)).ok()?;
        let binding = &pass.binding;
        let parts = [(&binding.nonce, NONCE), (&binding.ip, IP), (&binding.ua, USER_AGENT)];
        let bound =
            parts.iter().filter(|(part, _)| part.is_some()).fold(0, |all, (_, bit)| all | bit);
        let ip_bits = binding.ip_bits.unwrap_or(0);
        let mut body = [0; BODY];
        body[1..17].copy_from_slice(&ticket.to_bytes());
        body[17..21].copy_from_slice(&expires_s.to_be_bytes());
        body[21..25].copy_from_slice(&until_s.to_be_bytes());
        body[25] = bound;
        body[26] = ip_bits;
        body[27..].copy_from_slice(&digest(bound, ip_bits, presented)?);
        Some(self.0.write(&pass.room, body))
    }

    /// The checked pass, if this is our cookie for this room, still in time and shown by whom
    /// the pass is bound to. On `None` the pass itself decides.
    pub fn read(
        &self,
        room: &str,
        text: &str,
        now_s: u64,
        presented: &Presented<'_>,
    ) -> Option<CheckedPass> {
        let body = self.0.read(room, text)?;
        let checked = CheckedPass {
            ticket: TicketId::from_bytes(body[1..17].try_into().expect("sixteen bytes")),
            expires_s: u32::from_be_bytes(body[17..21].try_into().expect("four bytes")),
            checked_until_s: u32::from_be_bytes(body[21..25].try_into().expect("four bytes")),
        };
        if now_s >= u64::from(checked.checked_until_s) {
            return None;
        }
        let shown = digest(body[25], body[26], presented)?;
        verify_slices_are_equal(&shown, &body[27..]).ok()?;
        Some(checked)
    }
}

/// Over what is bound and nothing else. `None` when it was not shown. The MAC makes this
/// unforgeable; the digest need only tell values apart.
fn digest(bound: u8, ip_bits: u8, presented: &Presented<'_>) -> Option<[u8; 16]> {
    if bound == 0 {
        return Some([0; 16]);
    }
    let mut hash = Context::new(&SHA256);
    let mut part = |value: &[u8]| {
        hash.update(&(value.len() as u64).to_be_bytes());
        hash.update(value);
    };
    if bound & NONCE != 0 {
        part(presented.nonce?.as_bytes());
    }
    if bound & IP != 0 {
        match presented.ip?.to_canonical() {
            IpAddr::V4(v4) => {
                let cut = 32 - u32::from(ip_bits.min(32));
                let network = v4.to_bits().checked_shr(cut).unwrap_or(0);
                part(&network.to_be_bytes());
            }
            IpAddr::V6(v6) => {
                let cut = 128 - u32::from(ip_bits.min(128));
                let network = v6.to_bits().checked_shr(cut).unwrap_or(0);
                part(&network.to_be_bytes());
            }
        }
    }
    if bound & USER_AGENT != 0 {
        part(presented.user_agent?.as_bytes());
    }
    Some(hash.finish().as_ref()[..16].try_into().expect("a digest is longer than our cut of it"))
}
