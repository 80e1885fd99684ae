//! Tokens: who holds which place, and who was let in.
//!
//! Lives here: every text that waitroom signs or checks.
//!
//! | text | who checks it | made of | file |
//! |---|---|---|---|
//! | ticket token `wt1_…` | we | HMAC | `ticket_token.rs` |
//! | live ticket `wl1_…`, single use | we | HMAC | `live_ticket.rs`, `used.rs` |
//! | checked pass `wc1_…`, a gate's cookie | we | HMAC | `checked_pass.rs` |
//! | staff pass `wf1_…` | we | HMAC | `staff_pass.rs` |
//! | adapter token, for the earlier interfaces | we | JWT, HS256 or RS256 | `adapter_token.rs` |
//! | pass | everybody | JWT, ES256, RS256 or EdDSA | `passes.rs`, `pass_claims.rs` |
//! | join token | we, signed by the shop | JWT | `join_token.rs` |
//!
//! Stays out: clocks (time is an argument), where keys are kept (they come in and go out as
//! bytes for the caller to seal), HTTP. How a pass is checked is in `waitroom-verifier`, which
//! others use without us.
//! Promise: nothing here accepts a text that was altered, forged, or made for another room.
//!
//! To add another HMAC text, write a file like `ticket_token.rs` on top of `sealed.rs`, with a
//! purpose and a prefix of its own.

mod adapter_token;
mod checked_pass;
mod join_token;
mod jwt;
mod live_ticket;
mod pass_claims;
mod passes;
mod pem;
mod schedule;
mod sealed;
mod secrets;
mod signing_key;
mod staff_pass;
mod ticket_token;
mod used;

pub use adapter_token::{
    ADAPTER_TOKEN_LIFE_S, AdapterKey, AdapterToken, AdapterTokens, Form, Reading,
};
pub use checked_pass::{CheckedPass, CheckedPasses};
pub use join_token::{JoinClaims, JoinKey, JoinLane, JoinRefused, JoinTokens};
pub use live_ticket::{
    LIVE_TICKET_LIFE_MS, LiveRefused, LiveTicket, LiveTickets, Mark as LiveMark,
};
pub use pass_claims::PassClaims;
pub use passes::{Passes, RotateError, StoredKey};
pub use schedule::Rotation;
pub use sealed::TokenText;
pub use secrets::WrongSecrets;
pub use signing_key::{KeyError, SigningKey};
pub use staff_pass::{StaffPass, StaffPasses};
pub use ticket_token::{TicketToken, TicketTokens};
pub use waitroom_verifier::{
    Alg, Binding, IpPrefix, Pass, Presented, Refused, Rules, Unseen, Verifier,
};
