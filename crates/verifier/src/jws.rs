//! The outside of a signed token: three parts, a header, a signature. Nothing is believed here.
//!
//! Lives here: the strict reading of the compact form (RFC 7515) that passes, adapter tokens and
//! join tokens share. Stays out: keys and claims. Whoever reads a token takes its [`Outside`],
//! finds a key by what *he* knows about it, holds the header's `alg` against the key's, checks
//! the signature over [`Outside::signed`], and only then opens the payload.
//!
//! Stricter than the RFC, so that one token has one spelling: base64url without padding and
//! without stray bits, a name occurs once, `crit` is refused altogether.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, de::IgnoredAny};

use crate::{Refused, json};

/// Longest token that is looked at. Passes have 300 to 800 bytes; with a cookie's name and
/// attributes this still fits what browsers keep (4,096).
pub const BYTES_MAX: usize = 4096;

/// A token taken apart, with a header that parses and nothing verified yet.
#[derive(Debug)]
pub struct Outside<'a> {
    pub header: Header,
    /// What the signature is over: header and payload as they stand in the text.
    pub signed: &'a [u8],
    pub signature: Vec<u8>,
    payload: &'a str,
}

/// The members of a header that we act on. Others are ignored, as the RFC asks; keys or
/// addresses of keys in a header are among the ignored.
#[derive(Debug, Deserialize)]
pub struct Header {
    pub alg: String,
    #[serde(default, deserialize_with = "json::present")]
    pub typ: Option<String>,
    #[serde(default, deserialize_with = "json::present")]
    pub kid: Option<String>,
    #[serde(default, deserialize_with = "json::present")]
    crit: Option<IgnoredAny>,
    #[serde(default, deserialize_with = "json::present")]
    b64: Option<IgnoredAny>,
}

impl<'a> Outside<'a> {
    /// Takes the text apart. Costs about a microsecond, whoever sent it.
    pub fn read(text: &'a str) -> Result<Self, Refused> {
        if text.len() > BYTES_MAX {
            return Err(Refused::TooLong);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(Refused::Malformed)?;
        let (header, payload) = signed.split_once('.').ok_or(Refused::Malformed)?;
        // A dot left in the payload is no letter of base64url and would fail later; said here
        // so that a five-part token never gets as far as a key.
        if payload.contains('.') {
            return Err(Refused::Malformed);
        }
        let header = decode(header).ok_or(Refused::Malformed)?;
        let header: Header = json::object(&header).ok_or(Refused::Malformed)?;
        if header.crit.is_some() || header.b64.is_some() {
            return Err(Refused::CritUnknown);
        }
        let signature = decode(signature).ok_or(Refused::Malformed)?;
        Ok(Outside { header, signed: signed.as_bytes(), signature, payload })
    }

    /// The payload's bytes. Call it after the signature was found good.
    pub fn payload(&self) -> Result<Vec<u8>, Refused> {
        decode(self.payload).ok_or(Refused::Malformed)
    }
}

/// Base64url as our tokens have it: no padding, no stray bits, no line breaks.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

pub fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(header: &str) -> String {
        format!("{}.{}.{}", encode(header.as_bytes()), encode(b"{}"), encode(b"sig"))
    }

    #[test]
    fn a_plain_token_comes_apart() {
        let text = token(r#"{"alg":"ES256","typ":"JWT","kid":"k","jku":"https://evil.example"}"#);
        let outside = Outside::read(&text).expect("well formed");
        assert_eq!(outside.header.alg, "ES256");
        assert_eq!(outside.header.typ.as_deref(), Some("JWT"));
        assert_eq!(outside.header.kid.as_deref(), Some("k"));
        assert_eq!(outside.signature, b"sig");
        assert_eq!(outside.payload().expect("base64url"), b"{}");
        assert_eq!(outside.signed, text.rsplit_once('.').expect("three parts").0.as_bytes());
    }

    #[test]
    fn anything_but_three_canonical_parts_is_malformed() {
        let good = token(r#"{"alg":"ES256"}"#);
        let (head, tail) = good.split_once('.').expect("three parts");
        for text in [
            "",
            ".",
            "..",
            "a.b",
            head,
            &format!("{good}."),
            &format!(".{good}"),
            &format!("{good}.x.y"),
            &format!("{head}=.{tail}"),
            &format!("{head}\n.{tail}"),
            &format!(" {good}"),
            &format!("{good} "),
            &format!("{good}="),
            &good.replace("c2ln", "c2lnA"),
            // "c2lnAB" would decode to the same bytes as "c2lnAA" in a lenient reader.
            &good.replace("c2ln", "c2lnAB"),
        ] {
            assert_eq!(Outside::read(text).err(), Some(Refused::Malformed), "{text:?}");
        }
    }

    #[test]
    fn extensions_are_refused_and_not_skipped() {
        for header in [
            r#"{"alg":"ES256","crit":["exp"]}"#,
            r#"{"alg":"ES256","crit":[]}"#,
            r#"{"alg":"ES256","b64":false}"#,
        ] {
            assert_eq!(Outside::read(&token(header)).err(), Some(Refused::CritUnknown), "{header}");
        }
    }

    #[test]
    fn a_header_has_every_name_once_and_of_its_type() {
        for header in [
            r#"{"typ":"JWT"}"#,
            r#"{"alg":null}"#,
            r#"{"alg":["ES256"]}"#,
            r#"{"alg":"ES256","alg":"none"}"#,
            r#"{"alg":"ES256","kid":7}"#,
            r#"["ES256","JWT","k"]"#,
        ] {
            assert_eq!(Outside::read(&token(header)).err(), Some(Refused::Malformed), "{header}");
        }
    }

    #[test]
    fn a_long_text_is_refused_by_its_length_alone() {
        let long = "a".repeat(BYTES_MAX + 1);
        assert_eq!(Outside::read(&long).err(), Some(Refused::TooLong));
    }
}
