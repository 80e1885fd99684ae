//! A waiting room as far as a shop can see it: signs passes and publishes keys.
//!
//! Every other path answers as the shop behind nginx would: with the ticket that nginx names.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use serde_json::{Value, json};

pub const ROOM: &str = "sale";
pub const TICKET: &str = "f6c27f05-d2af-f92a-5843-7f42f274da53";
pub const KEYS_PATH: &str = "/.well-known/jwks.json";

pub struct Issuer {
    pub keys_url: String,
    keys: Mutex<Vec<EcdsaKeyPair>>,
    seen: Arc<Seen>,
    signatures: Mutex<Vec<String>>,
}

#[derive(Default)]
struct Seen {
    jwks: Mutex<String>,
    fetches: AtomicU32,
    out_of_order: AtomicBool,
}

impl Issuer {
    pub fn start() -> Issuer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::new(Seen::default());
        let issuer = Issuer {
            keys_url: format!("http://{address}{KEYS_PATH}"),
            keys: Mutex::default(),
            seen: seen.clone(),
            signatures: Mutex::default(),
        };
        issuer.publish_another_key();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = seen.clone();
                std::thread::spawn(move || answer(stream, &seen));
            }
        });
        issuer
    }

    /// From now on passes are signed with a new key; older ones stay published.
    pub fn publish_another_key(&self) {
        let mut keys = self.keys.lock().expect("nobody panics here");
        keys.push(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key"));
        let mut published: Vec<Value> = keys
            .iter()
            .enumerate()
            .map(|(at, key)| {
                let point = key.public_key().as_ref();
                let (x, y) = (BASE64.encode(&point[1..33]), BASE64.encode(&point[33..65]));
                json!({"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256",
                    "kid": kid(at), "x": x, "y": y})
            })
            .collect();
        // A key of a kind that nobody knows yet must disturb nobody.
        published.push(json!({"kty": "PQC", "kid": "later", "alg": "ML-DSA-44", "pub": "AAAA"}));
        let jwks = json!({"keys": published}).to_string();
        *self.seen.jwks.lock().expect("nobody panics here") = jwks;
    }

    /// Whether the keys can be fetched.
    pub fn out_of_order(&self, out: bool) {
        self.seen.out_of_order.store(out, Ordering::SeqCst);
    }

    pub fn fetches(&self) -> u32 {
        self.seen.fetches.load(Ordering::SeqCst)
    }

    /// A pass for `ROOM` that is good for a minute.
    pub fn good(&self) -> String {
        self.pass(ROOM, 60)
    }

    /// A pass whose end is so many seconds from now.
    pub fn pass(&self, room: &str, ends_in_s: i64) -> String {
        let newest = self.keys.lock().expect("nobody panics here").len() - 1;
        self.signed(&kid(newest), "ES256", room, ends_in_s)
    }

    /// Signed with the newest key, whatever the header says.
    pub fn signed(&self, kid: &str, alg: &str, room: &str, ends_in_s: i64) -> String {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
        let now = i64::try_from(since.as_secs()).expect("it is before the end of time");
        let header = json!({"alg": alg, "typ": "JWT", "kid": kid});
        let exp = now + ends_in_s;
        let claims = json!({"sub": TICKET, "room": room, "iat": now.min(exp) - 60, "exp": exp});
        let part = |value: &Value| BASE64.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(&claims));
        let keys = self.keys.lock().expect("nobody panics here");
        let newest = keys.last().expect("there is one from the start");
        let made = newest.sign(&SystemRandom::new(), signed.as_bytes()).expect("a signature");
        let signature = BASE64.encode(made);
        self.signatures.lock().expect("nobody panics here").push(signature.clone());
        format!("{signed}.{signature}")
    }

    /// What must never stand in a log.
    pub fn signatures(&self) -> Vec<String> {
        self.signatures.lock().expect("nobody panics here").clone()
    }
}

fn kid(at: usize) -> String {
    format!("key-{at}")
}

fn answer(mut stream: TcpStream, seen: &Seen) -> Option<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let first = lines.next()?.ok()?;
    let mut ticket = String::new();
    for line in lines {
        let line = line.ok()?;
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("Waitroom-Ticket: ") {
            ticket = value.to_owned();
        }
    }
    let (status, kind, body) = if first.starts_with(&format!("GET {KEYS_PATH} ")) {
        seen.fetches.fetch_add(1, Ordering::SeqCst);
        if seen.out_of_order.load(Ordering::SeqCst) {
            ("503 Service Unavailable", "text/plain", String::new())
        } else {
            let jwks = seen.jwks.lock().expect("nobody panics here").clone();
            ("200 OK", "application/jwk-set+json\r\nCache-Control: public, max-age=300", jwks)
        }
    } else {
        ("200 OK", "text/plain", format!("Welcome, {ticket}.\n"))
    };
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nConnection: close\r\n");
    write!(stream, "{head}Content-Length: {length}\r\n\r\n{body}").ok()
}
