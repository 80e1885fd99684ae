//! Fuzz targets: what must hold for any bytes at all.
//!
//! Lives here: the targets, as plain functions that panic when something is wrong. Two things
//! drive them: `tests/kept.rs` on any toolchain (the kept corpus, and some seconds of changes to
//! it; part of CI), and `libfuzzer/` with a nightly toolchain (`cargo xtask long fuzz`), whose
//! finds are kept in `corpus/`.
//! To add a target: a function here, a row in [`TARGETS`], a file in `libfuzzer/fuzz_targets/`, a
//! first example in `corpus/NAME/`.

use std::sync::OnceLock;

use waitroom_core::id::{IdKey, TicketId};
use waitroom_core::{Holder, Session, Settings, Timestamp};
use waitroom_listen::proxy::{self, Parsed};
use waitroom_pass::{
    AdapterKey, AdapterTokens, Alg, Form, JoinKey, JoinTokens, LiveTickets, PassClaims, Passes,
    Presented, Rotation, SigningKey, TicketTokens, Verifier,
};

pub type Target = fn(&[u8]);

pub const TARGETS: &[(&str, Target)] = &[
    ("tokens", tokens),
    ("ids", ids),
    ("documents", documents),
    ("proxy", proxy_header),
    ("frames", frames),
];

const ROOM: &str = "spring-sale";
const NOW_S: u64 = 1_800_000_000;

struct Keys {
    tickets: TicketTokens,
    live: LiveTickets,
    adapter: AdapterTokens,
    join: JoinTokens,
    passes: Verifier,
    good: Vec<String>,
}

/// Texts that are genuine. Keys are made by chance, so whatever else is accepted was forged.
fn keys() -> &'static Keys {
    static KEYS: OnceLock<Keys> = OnceLock::new();
    KEYS.get_or_init(|| {
        let secret = |fill: u8| [(1, [fill; 32])];
        let good = "one key is a good set";
        let tickets = TicketTokens::new(&secret(1)).expect(good);
        let live = LiveTickets::new(&secret(2), 1_000).expect(good);
        let adapter = AdapterTokens::new(vec![AdapterKey::Secret(1, [3; 32])], 300).expect(good);
        let join = JoinTokens::new(vec![JoinKey::secret(&[4; 32]).expect("32 bytes")]);
        let passes = Passes::new(SigningKey::generate(Alg::EdDsa), Rotation::default(), NOW_S);
        let id = IdKey::derive(&[5; 32]).name(0, 1, 42).expect("in range");
        let session = Session {
            issued_at: Timestamp(NOW_S * 1_000),
            expires_at: Timestamp((NOW_S + 600) * 1_000),
            pass_expires_at: Timestamp((NOW_S + 600) * 1_000),
        };
        let good = vec![
            tickets.write(ROOM, id, Holder(0), NOW_S as u32).to_string(),
            adapter.write(Form::Queue, ROOM, id, Holder(0), NOW_S),
            adapter.write(Form::Demo, ROOM, id, Holder(0), NOW_S),
            passes.sign(&PassClaims::of(id, ROOM, &session)),
        ];
        Keys { tickets, live, adapter, join, passes: passes.verifier(ROOM), good }
    })
}

/// The first byte chooses a genuine text to change (or none), the rest says how: pairs of place
/// and byte. Nothing but the genuine texts themselves is ever accepted.
pub fn tokens(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else { return };
    let keys = keys();
    let chosen = keys.good.get(usize::from(*choice) % (keys.good.len() + 1));
    let text = match chosen {
        None => String::from_utf8_lossy(rest).into_owned(),
        Some(good) => {
            let mut bytes = good.clone().into_bytes();
            for change in rest.chunks_exact(3) {
                let place = usize::from(u16::from_be_bytes([change[0], change[1]]));
                let place = place % bytes.len();
                bytes[place] = change[2];
            }
            String::from_utf8_lossy(&bytes).into_owned()
        }
    };
    let genuine = keys.good.contains(&text);
    let accepted = [
        keys.tickets.read(ROOM, &text).is_some(),
        keys.live.take(ROOM, &text, NOW_S * 1_000).is_ok(),
        keys.adapter.read(Form::Queue, ROOM, &text, NOW_S).is_some(),
        keys.adapter.read(Form::Demo, ROOM, &text, NOW_S).is_some(),
        keys.join.read(ROOM, &text, NOW_S).is_ok(),
        keys.passes.verify(&text, NOW_S, &Presented::default()).is_ok(),
    ];
    let count = accepted.iter().filter(|it| **it).count();
    assert_eq!(count, usize::from(genuine), "{text:?} was accepted as {accepted:?}");
}

/// A text that is an id prints as itself; an id that a room did not write is none of its.
pub fn ids(data: &[u8]) {
    if let Some(id) = std::str::from_utf8(data).ok().and_then(|text| TicketId::parse(text).ok()) {
        let text = std::str::from_utf8(data).expect("it was one a line ago");
        assert_eq!(id.to_string(), text.to_ascii_lowercase());
        assert_eq!(TicketId::parse(&id.to_string()), Ok(id));
    }
    let Ok(bytes) = <[u8; 16]>::try_from(data) else { return };
    let key = IdKey::derive(&[9; 32]);
    let id = TicketId::from_bytes(bytes);
    if let Some(named) = key.read(&id) {
        assert_eq!(key.name(named.lane, named.epoch, named.number), Ok(id), "one ticket, one id");
    }
}

/// Any JSON is a room's document or a list of mistakes; a document says again what it said.
pub fn documents(data: &[u8]) {
    let Ok(value) = serde_json::from_slice(data) else { return };
    match waitroom_api::document::from_json(&value, &Settings::default()) {
        Ok(settings) => {
            let again = waitroom_api::document::to_json(&settings);
            let read = waitroom_api::document::from_json(&again, &Settings::default());
            assert_eq!(read, Ok(settings), "what is written reads back");
        }
        Err(mistakes) => assert!(!mistakes.is_empty(), "a refusal says why"),
    }
    let _: Result<waitroom_api::visitor::join::JoinBody, _> = serde_json::from_value(value);
}

/// A PROXY header is found whole or not at all, however it arrives.
pub fn proxy_header(data: &[u8]) {
    if let Parsed::Header(len, _) = proxy::parse(data) {
        assert!(len <= data.len(), "it does not end behind what came");
        for cut in 0..len {
            let part = proxy::parse(&data[..cut]);
            assert!(matches!(part, Parsed::Incomplete), "{cut} of {len} bytes are not yet whole");
        }
    }
}

/// WebSocket frames of clients: taken whole, never more than came.
pub fn frames(data: &[u8]) {
    let mut buffer = data.to_vec();
    while let Ok(Some(_)) = waitroom_api::live::take_frame(&mut buffer) {
        assert!(buffer.len() < data.len(), "a frame that was taken is gone");
    }
    assert!(data.ends_with(&buffer), "what is left is the end of what came");
}
