//! Web Push: a message through the service of the visitor's browser, which cannot read it.
//!
//! RFC 8291 says how it is sealed for the browser (ECDH on P-256, HKDF, AES-128-GCM), RFC 8188 how
//! that is framed, RFC 8292 how we say who we are (VAPID: a JWT signed with ES256).
//! The endpoint is an address that a visitor names, so it is reached as a webhook is: public
//! addresses only, https only, no redirects.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::agreement::{self, ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey};
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::Sha256;
use waitroom_store::Clock;

use super::{NotSent, Notice};
use crate::webhook::{Answer, Line, Manners, Post, Reach, SystemResolver};

/// What a browser gives a page that may push to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    pub endpoint: String,
    pub keys: Keys,
    /// Browsers write it beside; it says nothing that we go by.
    #[serde(default, rename = "expirationTime", skip_serializing)]
    expiration_time: Option<serde_json::Value>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    pub p256dh: String,
    pub auth: String,
}

/// Endpoints of the large services have some two hundred letters.
const ENDPOINT_BYTES_MAX: usize = 1_024;
/// An uncompressed point.
const POINT: usize = 65;
const AUTH: usize = 16;
/// One record holds any message of ours.
const RECORD: u32 = 4_096;
/// How long the service keeps it for a browser that is away. Later it would be a lie.
const TTL_S: u64 = 15 * 60;
/// How long a signature says who we are.
const VAPID_S: u64 = 12 * 3_600;

impl Subscription {
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let url = self.endpoint.parse::<Uri>().ok();
        let fits = |url: &Uri| {
            let scheme = matches!(url.scheme_str(), Some("https" | "http"));
            scheme && url.authority().is_some_and(|it| !it.as_str().contains('@'))
        };
        if self.endpoint.len() > ENDPOINT_BYTES_MAX || !url.as_ref().is_some_and(fits) {
            return Err("no endpoint of a push service");
        }
        self.opened().map(|_| ()).ok_or("keys that no browser has")
    }

    fn opened(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        // Some libraries pad.
        let read = |text: &str| URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok();
        let (point, auth) = (read(&self.keys.p256dh)?, read(&self.keys.auth)?);
        (point.len() == POINT && point[0] == 4 && auth.len() == AUTH).then_some((point, auth))
    }
}

/// The key by which push services know us.
pub struct PushKey(EcdsaKeyPair);

impl std::fmt::Debug for PushKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PushKey(…)")
    }
}

impl PushKey {
    /// A fresh one, as it is kept.
    pub fn generate() -> Vec<u8> {
        let random = SystemRandom::new();
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
        made.expect("the operating system always has randomness to give").as_ref().to_vec()
    }

    pub fn read(kept: &[u8]) -> Option<PushKey> {
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, kept).ok().map(PushKey)
    }

    /// As a page hands it to the browser (`applicationServerKey`).
    pub fn public(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0.public_key().as_ref())
    }

    fn vapid(&self, endpoint: &Uri, subject: &str, now_s: u64) -> Option<String> {
        let audience = format!("{}://{}", endpoint.scheme_str()?, endpoint.authority()?);
        let claims = json!({ "aud": audience, "exp": now_s + VAPID_S, "sub": subject });
        let head = URL_SAFE_NO_PAD.encode(r#"{"typ":"JWT","alg":"ES256"}"#);
        let signed = format!("{head}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
        let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes()).ok()?;
        let signature = URL_SAFE_NO_PAD.encode(signature.as_ref());
        Some(format!("vapid t={signed}.{signature}, k={}", self.public()))
    }
}

pub struct Push {
    pub key: PushKey,
    /// Whom a push service writes to when something is wrong: `mailto:` or `https:`.
    pub subject: String,
    pub reach: Reach,
    pub within: Duration,
    pub clock: Arc<dyn Clock>,
}

impl Push {
    pub(super) async fn send(&self, to: &Subscription, notice: &Notice) -> Result<(), NotSent> {
        let url: Uri = to.endpoint.parse().map_err(|_| NotSent::Never)?;
        let manners = Manners { reach: self.reach, within: self.within, ca: None };
        let line = Line::to(&url, manners, Arc::new(SystemResolver)).map_err(|_| NotSent::Never)?;
        let said = json!({
            "room": notice.room.as_str(),
            "title": notice.subject(),
            "body": notice.text(),
            "url": notice.link,
        });
        let body = seal(to, said.to_string().as_bytes()).ok_or(NotSent::Never)?;
        let now_s = self.clock.wall_ms() / 1_000;
        let vapid = self.key.vapid(&url, &self.subject, now_s).ok_or(NotSent::Never)?;
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("authorization", vapid.as_str()),
            ("content-encoding", "aes128gcm"),
            ("content-type", "application/octet-stream"),
            ("ttl", &TTL_S.to_string()),
            ("urgency", "high"),
        ] {
            let value = HeaderValue::from_str(value).map_err(|_| NotSent::Never)?;
            headers.insert(HeaderName::from_static(name), value);
        }
        match line.post(headers, Bytes::from(body)).await {
            Ok(Answer { status: 200..=299, .. }) => Ok(()),
            // The browser has taken it back, or the service does not know it.
            Ok(Answer { status: 400 | 403 | 404 | 410 | 413, .. }) => Err(NotSent::Never),
            _ => Err(NotSent::Later),
        }
    }
}

impl std::fmt::Debug for Push {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Push")
    }
}

/// One sealed record, with everything that the browser needs to open it before it.
fn seal(to: &Subscription, plain: &[u8]) -> Option<Vec<u8>> {
    let (theirs, auth) = to.opened()?;
    let random = SystemRandom::new();
    let private = EphemeralPrivateKey::generate(&ECDH_P256, &random).ok()?;
    let ours = private.compute_public_key().ok()?;
    let peer = UnparsedPublicKey::new(&ECDH_P256, &theirs);
    let secret =
        agreement::agree_ephemeral(private, peer, (), |secret| Ok(secret.to_vec())).ok()?;
    let shared = mac(&auth, &[&secret]);
    let info = [b"WebPush: info\0", &theirs[..], ours.as_ref(), &[1]].concat();
    let input = mac(&shared, &[&info]);
    let mut salt = [0; 16];
    random.fill(&mut salt).ok()?;
    let key = mac(&salt, &[&input]);
    let content_key = mac(&key, &[b"Content-Encoding: aes128gcm\0\x01"]);
    let nonce = mac(&key, &[b"Content-Encoding: nonce\0\x01"]);
    let cipher = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &content_key[..16]).ok()?);
    // The last record ends with a two.
    let mut sealed = [plain, &[2]].concat();
    let nonce = Nonce::try_assume_unique_for_key(&nonce[..12]).ok()?;
    cipher.seal_in_place_append_tag(nonce, Aad::empty(), &mut sealed).ok()?;
    let head = [&salt[..], &RECORD.to_be_bytes(), &[POINT as u8], ours.as_ref()].concat();
    Some([head, sealed].concat())
}

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).expect("any length is a key");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}
