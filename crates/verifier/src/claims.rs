//! What a pass says, read strictly.

use serde::{Deserialize, de::IgnoredAny};

use crate::{Binding, Refused, json};

/// The last second of the year 9999. Beyond it a number is no time but somebody's mistake, most
/// often milliseconds.
const TIME_MAX_S: u64 = 253_402_300_799;

/// A pass that was found good. Times are seconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// The ticket's id: a name for this visit, to be used in orders and support, no credential.
    pub ticket: String,
    pub room: String,
    pub issued_at: u64,
    pub expires_at: u64,
    /// What it is bound to; already checked.
    pub binding: Binding,
    /// Only in the checkout tokens of the gRPC interface.
    pub session_id: Option<String>,
    pub user_id: Option<String>,
    pub event_id: Option<String>,
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
    room: String,
    iat: u64,
    exp: u64,
    #[serde(default, deserialize_with = "json::present")]
    bnd: Option<BindingObject>,
    #[serde(default, deserialize_with = "json::present")]
    session_id: Option<String>,
    #[serde(default, deserialize_with = "json::present")]
    user_id: Option<String>,
    #[serde(default, deserialize_with = "json::present")]
    event_id: Option<String>,
    /// We never sign these two. Should one turn up, it narrows whom or when the pass is for in
    /// a way that this reader would miss.
    #[serde(default, deserialize_with = "json::present")]
    aud: Option<IgnoredAny>,
    #[serde(default, deserialize_with = "json::present")]
    nbf: Option<IgnoredAny>,
}

/// An object and not an array of its values, which a derived reader would also take.
#[derive(Deserialize)]
#[serde(try_from = "serde_json::Map<String, serde_json::Value>")]
struct BindingObject(Binding);

impl TryFrom<serde_json::Map<String, serde_json::Value>> for BindingObject {
    type Error = serde_json::Error;

    fn try_from(map: serde_json::Map<String, serde_json::Value>) -> Result<Self, Self::Error> {
        serde_json::from_value(map.into()).map(BindingObject)
    }
}

impl Pass {
    /// Reads the payload of a pass whose signature is good. Says nothing about room or time.
    pub(crate) fn read(payload: &[u8]) -> Result<Pass, Refused> {
        let claims: Claims = json::object(payload).ok_or(Refused::ClaimsWrong)?;
        let binding = claims.bnd.map(|bound| bound.0).unwrap_or_default();
        let times_fit = claims.iat < claims.exp && claims.exp <= TIME_MAX_S;
        let binding_fits = binding.ip.is_some() == binding.ip_bits.is_some();
        let for_somebody_else = claims.aud.is_some() || claims.nbf.is_some();
        if !is_ticket(&claims.sub) || !times_fit || !binding_fits || for_somebody_else {
            return Err(Refused::ClaimsWrong);
        }
        Ok(Pass {
            ticket: claims.sub,
            room: claims.room,
            issued_at: claims.iat,
            expires_at: claims.exp,
            binding,
            session_id: claims.session_id,
            user_id: claims.user_id,
            event_id: claims.event_id,
        })
    }
}

/// The printed form of a ticket id in lower case, the one that we write: origins use it as a
/// key, and a second spelling would be a second visitor to them.
fn is_ticket(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        r#"{"sub":"f6c27f05-d2af-f92a-5843-7f42f274da53","room":"a","iat":10,"exp":20}"#;

    fn with(more: &str) -> String {
        format!("{},{more}}}", GOOD.trim_end_matches('}'))
    }

    #[test]
    fn the_four_claims_make_a_pass_and_unknown_ones_do_no_harm() {
        let pass = Pass::read(GOOD.as_bytes()).expect("a good pass");
        assert_eq!((pass.issued_at, pass.expires_at), (10, 20));
        assert_eq!(Pass::read(with(r#""later":{"a":[1]}"#).as_bytes()), Ok(pass));
    }

    #[test]
    fn a_claim_missing_doubled_wrongly_typed_or_out_of_range_is_refused() {
        let swaps = [
            (r#""iat":10,"#, ""),
            (r#","exp":20"#, ""),
            (r#""room":"a","#, ""),
            (r#""exp":20"#, r#""exp":20,"exp":30"#),
            (r#""exp":20"#, r#""exp":"20""#),
            (r#""exp":20"#, r#""exp":20.5"#),
            (r#""exp":20"#, r#""exp":2e1"#),
            (r#""exp":20"#, r#""exp":-20"#),
            (r#""exp":20"#, r#""exp":true"#),
            (r#""exp":20"#, r#""exp":10"#),
            (r#""exp":20"#, r#""exp":1790000000000"#),
            (r#""iat":10"#, r#""iat":null"#),
            (r#""room":"a""#, r#""room":["a"]"#),
            ("f6c27f05", "F6C27F05"),
            ("f6c27f05-", "f6c27f05"),
            ("f6c27f05-d", "f6c27f050-"),
        ];
        for (from, to) in swaps {
            assert!(GOOD.contains(from), "{from}");
            let text = GOOD.replace(from, to);
            assert_eq!(Pass::read(text.as_bytes()), Err(Refused::ClaimsWrong), "{text}");
        }
    }

    #[test]
    fn a_binding_that_this_reader_does_not_know_is_refused_and_not_skipped() {
        for more in [
            r#""bnd":{"retina":"AAAA"}"#,
            r#""bnd":{"ip":"AAAA"}"#,
            r#""bnd":{"ip_bits":24}"#,
            r#""bnd":{"ip":"AAAA","ip_bits":300}"#,
            r#""bnd":{"nonce":null}"#,
            r#""bnd":["AAAA"]"#,
            r#""bnd":null"#,
            r#""aud":"elsewhere""#,
            r#""nbf":5"#,
            r#""user_id":7"#,
        ] {
            let text = with(more);
            assert_eq!(Pass::read(text.as_bytes()), Err(Refused::ClaimsWrong), "{text}");
        }
        assert!(Pass::read(with(r#""bnd":{"nonce":"AAAA"}"#).as_bytes()).is_ok());
    }
}
