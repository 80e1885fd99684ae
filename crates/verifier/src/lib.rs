//! Checks passes: the one thing an origin adds to know who was let in.
//!
//! Lives here: the strict reading of a pass against the public keys of a waiting room, and its
//! binding to a browser. Stays out: signing, fetching the keys, clocks. The caller brings the
//! document of `/.well-known/jwks.json` and the time, so every answer can be repeated in a test.
//! Promise: what this accepts was signed by a published key for this room, unaltered to the
//! last bit, and is in force. It depends on nothing else of ours.
//!
//! ```
//! use waitroom_verifier::{Presented, Refused, Verifier};
//! # let jwks = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","kid":"a",
//! #   "x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
//! # let (pass, now) = ("not.a.pass", 1_790_000_000);
//! let verifier = Verifier::new(jwks, "spring-sale").expect("the keys as they were fetched");
//! match verifier.verify(pass, now, &Presented::default()) {
//!     Ok(pass) => println!("{} is inside until {}", pass.ticket, pass.expires_at),
//!     Err(Refused::KeyUnknown) => println!("fetch the keys again, call `update`, try once more"),
//!     Err(refused) => println!("to the waiting room: {}", refused.code()),
//! }
//! ```
//!
//! Start reading at [`Verifier::verify`]. `docs/passes.md` tells the same to those who write
//! their own, `docs/vectors/passes.json` lets them check it.

pub mod binding;
mod claims;
pub mod json;
pub mod jws;
mod keys;
pub mod low_s;
mod refused;
mod verifier;

pub use binding::{Binding, IpPrefix, Presented};
pub use claims::Pass;
pub use keys::{Alg, KeySet, PublicKey, WrongKeys};
pub use refused::Refused;
pub use verifier::{Keys, Rules, TYP, Unseen, Verifier};
