//! Why a pass was refused, in words that logs and metrics can count.

use std::fmt;

/// Why a pass does not let its bearer in. The codes are stable; a visitor needs none of them,
/// for every one of these leads to the waiting room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refused {
    /// More text than any pass of ours has. Refused before it is looked at.
    TooLong,
    /// Not three parts of canonical base64url, or a part is no JSON object with unique names.
    Malformed,
    /// The header's `typ` is not the one of a pass.
    TypeWrong,
    /// The header asks for an extension; we know none.
    CritUnknown,
    /// No key with this `kid`. Worth one fetch of the keys, at most every few seconds.
    KeyUnknown,
    /// The header's `alg` is not the one of the key that `kid` names.
    AlgWrong,
    SignatureWrong,
    /// Signed by us, yet a claim is missing, of the wrong type or out of range.
    ClaimsWrong,
    RoomOther,
    /// Issued further in the future than clocks may differ.
    NotYet,
    Expired,
    /// The pass is bound to something that the request did not show.
    BindingMissing,
    /// The pass is bound to another browser or network.
    BindingWrong,
}

impl Refused {
    pub const ALL: [Refused; 13] = [
        Refused::TooLong,
        Refused::Malformed,
        Refused::TypeWrong,
        Refused::CritUnknown,
        Refused::KeyUnknown,
        Refused::AlgWrong,
        Refused::SignatureWrong,
        Refused::ClaimsWrong,
        Refused::RoomOther,
        Refused::NotYet,
        Refused::Expired,
        Refused::BindingMissing,
        Refused::BindingWrong,
    ];

    /// The stable name, for logs, metrics and the vectors.
    pub const fn code(self) -> &'static str {
        match self {
            Refused::TooLong => "too_long",
            Refused::Malformed => "malformed",
            Refused::TypeWrong => "type_wrong",
            Refused::CritUnknown => "crit_unknown",
            Refused::KeyUnknown => "key_unknown",
            Refused::AlgWrong => "alg_wrong",
            Refused::SignatureWrong => "signature_wrong",
            Refused::ClaimsWrong => "claims_wrong",
            Refused::RoomOther => "room_other",
            Refused::NotYet => "not_yet",
            Refused::Expired => "expired",
            Refused::BindingMissing => "binding_missing",
            Refused::BindingWrong => "binding_wrong",
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the pass was refused: {}", self.code())
    }
}

impl std::error::Error for Refused {}
