//! Short texts that only we check: a prefix, then base64url of a body and its MAC.
//!
//! The body has a fixed size for each kind and begins with the id of the key. The MAC is
//! HMAC-SHA-256 over body and room, cut to 128 bits, under a key of this kind only
//! (`secrets.rs`). Since the body's size is fixed, where it ends and the room begins is never in
//! doubt. The room is not in the text: whoever reads it knows which room he stands for, and a
//! text of another room simply fails.
//!
//! Reading allocates nothing and costs about half a microsecond: this is on every request.

use std::{fmt, ops::Deref};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::Mac;

use crate::secrets::{Keyed, Secrets, WrongSecrets};

/// A forger has one chance in 2¹²⁸ a try, and tries cost him a request each.
const MAC_LEN: usize = 16;
const PREFIX_LEN: usize = 4;

/// Longest body of any kind, and what body and MAC come to in base64url.
const BODY_MAX: usize = 48;
const TEXT_MAX: usize = PREFIX_LEN + (BODY_MAX + MAC_LEN).div_ceil(3) * 4;

/// A token as text, on the stack. A bearer secret: `Display` writes it out, `Debug` does not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenText {
    bytes: [u8; TEXT_MAX],
    len: usize,
}

impl TokenText {
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.bytes[..self.len]).expect("prefix and base64url are ASCII")
    }
}

impl Deref for TokenText {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for TokenText {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for TokenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Debug output ends up in logs.
impl fmt::Debug for TokenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenText({}…)", &self.as_str()[..PREFIX_LEN])
    }
}

/// Writes and reads the texts of one kind. `BODY` counts the key id and all that follows it.
#[derive(Debug)]
pub(crate) struct Sealed<const BODY: usize> {
    prefix: &'static str,
    secrets: Secrets,
}

impl<const BODY: usize> Sealed<BODY> {
    pub(crate) fn new(
        prefix: &'static str,
        purpose: &str,
        keys: &[(u8, [u8; 32])],
    ) -> Result<Self, WrongSecrets> {
        const { assert!(BODY >= 1 && BODY <= BODY_MAX) };
        assert_eq!(prefix.len(), PREFIX_LEN, "all kinds have a prefix of the same length");
        Ok(Sealed { prefix, secrets: Secrets::for_purpose(purpose, keys)? })
    }

    /// Seals `body`, whose first byte is overwritten with the id of the key that signs.
    pub(crate) fn write(&self, room: &str, mut body: [u8; BODY]) -> TokenText {
        let (id, key) = self.secrets.newest();
        body[0] = id;
        let mut raw = [0; BODY_MAX + MAC_LEN];
        raw[..BODY].copy_from_slice(&body);
        raw[BODY..BODY + MAC_LEN].copy_from_slice(&mac(key, &body, room));
        let mut text = TokenText { bytes: [0; TEXT_MAX], len: 0 };
        text.bytes[..PREFIX_LEN].copy_from_slice(self.prefix.as_bytes());
        let written = URL_SAFE_NO_PAD
            .encode_slice(&raw[..BODY + MAC_LEN], &mut text.bytes[PREFIX_LEN..])
            .expect("the buffer was sized for the longest body");
        text.len = PREFIX_LEN + written;
        text
    }

    /// Whether the secret of this id is the one that signs.
    pub(crate) fn is_newest(&self, id: u8) -> bool {
        self.secrets.newest().0 == id
    }

    /// The body, if we sealed it for this room.
    pub(crate) fn read(&self, room: &str, text: &str) -> Option<[u8; BODY]> {
        let coded = text.strip_prefix(self.prefix)?;
        if coded.len() != ((BODY + MAC_LEN) * 8).div_ceil(6) {
            return None;
        }
        // The decoder wants room for whole groups of four letters.
        let mut raw = [0; BODY_MAX + MAC_LEN + 3];
        let found = URL_SAFE_NO_PAD.decode_slice(coded, &mut raw).ok()?;
        if found != BODY + MAC_LEN {
            return None;
        }
        let body: [u8; BODY] = raw[..BODY].try_into().expect("cut to size");
        let key = self.secrets.get(body[0])?;
        let wanted = mac(key, &body, room);
        verify_slices_are_equal(&wanted, &raw[BODY..BODY + MAC_LEN]).ok()?;
        Some(body)
    }
}

fn mac(key: &Keyed, body: &[u8], room: &str) -> [u8; MAC_LEN] {
    let tag = key.clone().chain_update(body).chain_update(room.as_bytes()).finalize();
    tag.into_bytes()[..MAC_LEN].try_into().expect("a tag is longer than our cut of it")
}
