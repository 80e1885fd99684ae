//! The JWT of the earlier interfaces.

use waitroom_core::{Holder, id::TicketId};
use waitroom_pass::{
    ADAPTER_TOKEN_LIFE_S, AdapterKey, AdapterToken, AdapterTokens, Alg, Form, Reading, SigningKey,
    WrongSecrets,
};
use waitroom_verifier::jws;

const NOW: u64 = 1_790_000_000;
const TICKET: TicketId = TicketId::from_bytes(*b"a ticket, by id.");
const SAID: AdapterToken = AdapterToken {
    id: TICKET,
    holder: Holder(2),
    issued_s: NOW,
    expires_s: NOW + ADAPTER_TOKEN_LIFE_S,
};

fn secret(id: u8) -> AdapterKey {
    AdapterKey::Secret(id, [id; 32])
}

fn tokens(keys: Vec<AdapterKey>) -> AdapterTokens {
    AdapterTokens::new(keys, ADAPTER_TOKEN_LIFE_S).expect("good keys")
}

fn write(tokens: &AdapterTokens, form: Form) -> String {
    tokens.write(form, "default", TICKET, Holder(2), NOW)
}

fn part(text: &str, index: usize) -> serde_json::Value {
    let part = text.split('.').nth(index).expect("three parts");
    serde_json::from_slice(&jws::decode(part).expect("base64url")).expect("JSON")
}

#[test]
fn a_token_has_the_claims_that_its_interface_knows() {
    let tokens = tokens(vec![secret(1)]);
    let queue = write(&tokens, Form::Queue);
    assert_eq!(part(&queue, 0), serde_json::json!({"alg": "HS256", "typ": "JWT", "kid": "h1"}));
    assert_eq!(
        part(&queue, 1),
        serde_json::json!({"position_id": TICKET.to_string(), "queue_id": "default",
            "iat": NOW, "exp": NOW + 300, "hld": 2})
    );
    assert_eq!(
        part(&write(&tokens, Form::Demo), 1),
        serde_json::json!({"position_id": TICKET.to_string(), "queue_id": "default",
            "issued_at": NOW * 1_000_000_000, "exp": NOW + 300, "hld": 2})
    );
}

#[test]
fn a_token_is_fresh_for_five_minutes_and_genuine_for_ever() {
    let keys = || vec![secret(1), AdapterKey::Rsa(SigningKey::generate(Alg::Rs256))];
    for tokens in [tokens(vec![secret(1)]), tokens(keys())] {
        for form in [Form::Queue, Form::Demo] {
            let text = write(&tokens, form);
            let read = |now| tokens.read(form, "default", &text, now);
            assert_eq!(read(NOW), Some(Reading::Fresh(SAID)));
            assert_eq!(read(NOW + 299), Some(Reading::Fresh(SAID)));
            assert_eq!(read(NOW + 300), Some(Reading::Expired(SAID)));
            assert_eq!(read(NOW + 1_000_000), Some(Reading::Expired(SAID)));
        }
    }
}

#[test]
fn a_token_means_nothing_in_another_room_or_another_interface() {
    let tokens = tokens(vec![secret(1)]);
    let text = write(&tokens, Form::Queue);
    assert_eq!(tokens.read(Form::Queue, "other", &text, NOW), None);
    assert_eq!(tokens.read(Form::Demo, "default", &text, NOW), None);
}

#[test]
fn keys_change_without_losing_anybody_even_from_hmac_to_rsa() {
    let rsa = SigningKey::generate(Alg::Rs256);
    let twin = SigningKey::from_pkcs8(&rsa.to_pkcs8()).expect("our own key");
    let before = tokens(vec![secret(1)]);
    let during = tokens(vec![secret(1), secret(2), AdapterKey::Rsa(rsa)]);
    let after = tokens(vec![AdapterKey::Rsa(twin)]);
    let old = write(&before, Form::Queue);
    let new = write(&during, Form::Queue);
    assert_eq!(part(&new, 0)["alg"], "RS256");
    assert!(during.read(Form::Queue, "default", &old, NOW).is_some());
    assert!(after.read(Form::Queue, "default", &new, NOW).is_some());
    assert_eq!(after.read(Form::Queue, "default", &old, NOW), None);
}

#[test]
fn the_secret_itself_signs_nothing() {
    let text = write(&tokens(vec![secret(1)]), Form::Queue);
    let (signed, signature) = text.rsplit_once('.').expect("three parts");
    let raw = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, &[1; 32]);
    let plain = jws::encode(aws_lc_rs::hmac::sign(&raw, signed.as_bytes()).as_ref());
    assert_ne!(plain, signature);
}

#[test]
fn keys_that_cannot_work_are_refused() {
    let new = |keys| AdapterTokens::new(keys, 300).err();
    assert_eq!(new(vec![]), Some(WrongSecrets::None));
    assert_eq!(new(vec![secret(1), secret(1)]), Some(WrongSecrets::SameKey));
    let ec = AdapterKey::Rsa(SigningKey::generate(Alg::Es256));
    assert_eq!(new(vec![ec]), Some(WrongSecrets::NotRsa));
}
