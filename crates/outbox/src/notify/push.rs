//! Web Push: a message through the service of the visitor's browser, which cannot read it.
//!
//! RFC 8291 says how it is sealed for the browser (ECDH on P-256, HKDF, AES-128-GCM), RFC 8188 how
//! that is framed, RFC 8292 how we say who we are (VAPID: a JWT signed with ES256).
//! The endpoint is an address that a visitor names, so it must be of a service that is listed
//! ([`PushHosts`]), and is reached as a webhook is: public addresses only, https only, no redirects.

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
/// One record holds any message of ours, and services take no more than this.
const RECORD: u32 = 4_096;
/// What is left of it for the message: without the head (salt, sizes, key), the tag and the last byte.
const PLAIN_MAX: usize = RECORD as usize - (16 + 4 + 1 + POINT) - 16 - 1;
/// Letters of a room's title that are said. No browser shows more.
const TITLE_MAX: usize = 120;
/// How long the service keeps it for a browser that is away. Later it would be a lie.
const TTL_S: u64 = 15 * 60;
/// How long a signature says who we are.
const VAPID_S: u64 = 12 * 3_600;

impl Subscription {
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let url = self.endpoint.parse::<Uri>().ok();
        let fits = |url: &Uri| {
            let scheme = matches!(url.scheme_str(), Some("https" | "http"));
            scheme
                && url.host().is_some()
                && url.authority().is_some_and(|it| !it.as_str().contains('@'))
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

/// The services that are pushed through. Whoever could name any address would have us call it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushHosts(Vec<String>);

impl PushHosts {
    /// Each is a name, a name with `*.` for anything before it, or a name with a port: a service of
    /// one's own, which may be of this network and without TLS.
    pub fn new(hosts: impl IntoIterator<Item = String>) -> PushHosts {
        PushHosts(hosts.into_iter().map(|host| host.to_ascii_lowercase()).collect())
    }

    /// How the endpoint may be reached; none when it is of no service that is listed.
    fn reach(&self, endpoint: &Uri) -> Option<Reach> {
        let host = endpoint.host()?.to_ascii_lowercase();
        let own = endpoint.port_u16().map(|port| format!("{host}:{port}"));
        if own.is_some_and(|own| self.0.contains(&own)) {
            return Some(Reach::Anywhere);
        }
        let usual = endpoint.scheme_str() == Some("https")
            && endpoint.port_u16().is_none_or(|port| port == 443);
        let listed = |known: &String| match known.strip_prefix('*') {
            Some(end) => host.len() > end.len() && host.ends_with(end),
            None => host == *known,
        };
        (usual && self.0.iter().any(listed)).then_some(Reach::Public)
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
    pub hosts: PushHosts,
    pub within: Duration,
    pub clock: Arc<dyn Clock>,
}

impl Push {
    /// Whether it is of a service that is listed.
    pub(super) fn knows(&self, to: &Subscription) -> bool {
        to.endpoint.parse::<Uri>().is_ok_and(|url| self.hosts.reach(&url).is_some())
    }

    pub(super) async fn send(&self, to: &Subscription, notice: &Notice) -> Result<(), NotSent> {
        let url: Uri = to.endpoint.parse().map_err(|_| NotSent::Never)?;
        let reach = self.hosts.reach(&url).ok_or(NotSent::Never)?;
        let manners = Manners { reach, within: self.within, ca: None };
        let line = Line::to(&url, manners, Arc::new(SystemResolver)).map_err(|_| NotSent::Never)?;
        let body = seal(to, message(notice).as_bytes()).ok_or(NotSent::Never)?;
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

/// In English for whoever shows it as it is; `name` and `ahead` for who says it themselves.
fn message(notice: &Notice) -> String {
    let title = notice.title.chars().take(TITLE_MAX).collect();
    let notice = Notice { title, ..notice.clone() };
    let said = |url: &str| {
        let said = json!({
            "room": notice.room.as_str(),
            "title": notice.subject(),
            "body": notice.line(),
            "url": url,
            "name": notice.title,
            "ahead": notice.ahead,
        });
        said.to_string()
    };
    // Without an address the page is found all the same: the worker knows where it was asked.
    Some(said(&notice.link)).filter(|it| it.len() <= PLAIN_MAX).unwrap_or_else(|| said(""))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_fits_into_one_record_whatever_the_room_is_called() {
        let room = waitroom_store::RoomName::parse(&"r".repeat(40)).expect("a name");
        let link = format!("https://shop.example/{}", "x".repeat(2_000));
        for letter in ["a", "\u{1}", "\"", "🎫"] {
            for link in ["https://shop.example/", &link, &"\"".repeat(2_048)] {
                let (title, link) = (letter.repeat(2_048 / letter.len()), link.to_owned());
                let ticket = String::new();
                let notice = Notice { room: room.clone(), title, ahead: Some(1), link, ticket };
                let said = message(&notice);
                assert!(said.len() <= PLAIN_MAX, "{}", said.len());
                let said: serde_json::Value = serde_json::from_str(&said).expect("whole");
                assert_eq!(said["ahead"], 1);
                let kept = said["url"] == notice.link;
                assert_eq!(kept, !notice.link.contains('"'), "left out only where it must be");
            }
        }
    }

    #[test]
    fn only_listed_services_are_called_and_only_as_they_are() {
        let hosts = ["fcm.example", "*.push.example", "127.0.0.1:9000"].map(str::to_owned);
        let hosts = PushHosts::new(hosts);
        let reach = |url: &str| hosts.reach(&url.parse().expect("an address"));
        for good in
            ["https://fcm.example/a", "https://FCM.example:443/", "https://a.b.push.example/"]
        {
            assert_eq!(reach(good), Some(Reach::Public), "{good}");
        }
        assert_eq!(reach("http://127.0.0.1:9000/p"), Some(Reach::Anywhere));
        for bad in [
            "https://other.example/",
            "http://fcm.example/",
            "https://fcm.example:8443/",
            "https://push.example/",
            "https://.push.example/",
            "https://evilpush.example/",
            "https://fcm.example.evil/",
            "http://127.0.0.1:9001/",
            "http://169.254.169.254/latest",
        ] {
            assert_eq!(reach(bad), None, "{bad}");
        }
    }
}
