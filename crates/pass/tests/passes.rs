//! Passes: signed by us, checked by everybody.

use waitroom_core::{Session, Timestamp, id::TicketId};
use waitroom_pass::{
    Alg, Binding, IpPrefix, KeyError, PassClaims, Passes, Presented, Refused, RotateError,
    Rotation, Rules, SigningKey, StoredKey, Unseen, Verifier,
};

const NOW: u64 = 1_790_000_000;
const TICKET: TicketId = TicketId::from_bytes(*b"a ticket, by id.");
const ROTATION: Rotation = Rotation { publish_for_s: 100, pass_life_max_s: 600, leeway_s: 5 };

fn claims() -> PassClaims {
    let session = Session {
        issued_at: Timestamp(NOW * 1000 + 999),
        expires_at: Timestamp((NOW + 600) * 1000 + 999),
        pass_expires_at: Timestamp((NOW + 300) * 1000 + 999),
    };
    PassClaims::of(TICKET, "sale", &session)
}

fn payload(pass: &str) -> serde_json::Value {
    let part = pass.split('.').nth(1).expect("three parts");
    let bytes = waitroom_verifier::jws::decode(part).expect("base64url");
    serde_json::from_slice(&bytes).expect("JSON")
}

#[test]
fn a_pass_of_every_algorithm_is_checked_by_its_published_key() {
    for alg in Alg::ALL {
        let passes = Passes::generate(alg, ROTATION, NOW);
        let verifier = Verifier::new(&passes.jwks(), "sale").expect("a key set");
        let pass = verifier.verify(&passes.sign(&claims()), NOW, &Presented::default());
        let pass = pass.expect("a good pass");
        assert_eq!(pass.ticket, TICKET.to_string());
        assert_eq!((pass.issued_at, pass.expires_at), (NOW, NOW + 300));
    }
}

#[test]
fn a_foreign_library_takes_our_passes_too() {
    for (alg, theirs) in [
        (Alg::Es256, jsonwebtoken::Algorithm::ES256),
        (Alg::Rs256, jsonwebtoken::Algorithm::RS256),
        (Alg::EdDsa, jsonwebtoken::Algorithm::EdDSA),
    ] {
        let passes = Passes::generate(alg, ROTATION, NOW);
        let set: jsonwebtoken::jwk::JwkSet = serde_json::from_str(&passes.jwks()).expect("a set");
        let pass = passes.sign(&claims());
        let kid = jsonwebtoken::decode_header(&pass).expect("a header").kid.expect("a kid");
        let jwk = set.find(&kid).expect("published");
        let thumbprint = jwk.thumbprint(jsonwebtoken::jwk::ThumbprintHash::SHA256);
        assert_eq!(thumbprint.expect("a thumbprint"), kid, "RFC 7638 as others understand it");
        let key = jsonwebtoken::DecodingKey::from_jwk(jwk).expect("a key");
        let mut rules = jsonwebtoken::Validation::new(theirs);
        rules.validate_exp = false;
        let read = jsonwebtoken::decode::<serde_json::Value>(&pass, &key, &rules);
        assert_eq!(read.expect("a good token").claims, payload(&pass));
    }
}

#[test]
fn a_pass_says_four_things_and_a_repeat_says_the_same() {
    let passes = Passes::generate(Alg::Es256, ROTATION, NOW);
    let first = passes.sign(&claims());
    let expected = serde_json::json!({
        "sub": TICKET.to_string(), "room": "sale", "iat": NOW, "exp": NOW + 300
    });
    assert_eq!(payload(&first), expected);
    let again = passes.sign(&claims());
    assert_eq!(first.rsplit_once('.').expect("parts").0, again.rsplit_once('.').expect("parts").0);
}

#[test]
fn a_checkout_token_is_a_pass_with_three_more_claims() {
    let passes = Passes::generate(Alg::EdDsa, ROTATION, NOW);
    let token = passes.sign(&claims().checkout(Some("user-7".into())));
    let pass = passes.verifier("sale").verify(&token, NOW, &Presented::default());
    let pass = pass.expect("a good pass");
    assert_eq!(pass.session_id, Some(TICKET.to_string()));
    assert_eq!(pass.event_id.as_deref(), Some("sale"));
    assert_eq!(pass.user_id.as_deref(), Some("user-7"));
}

#[test]
fn a_pass_is_for_its_room_and_its_time() {
    let passes = Passes::generate(Alg::EdDsa, ROTATION, NOW);
    let text = passes.sign(&claims());
    let at =
        |room: &str, now| passes.verifier(room).verify(&text, now, &Presented::default()).err();
    assert_eq!(at("sale", NOW + 299), None);
    assert_eq!(at("sale", NOW + 300), Some(Refused::Expired));
    assert_eq!(at("sale", NOW - 300), None, "clocks differ");
    assert_eq!(at("sale", NOW - 301), Some(Refused::NotYet));
    assert_eq!(at("other", NOW), Some(Refused::RoomOther));
    let patient = passes.verifier("sale").with_rules(Rules::of_room("sale").leeway_s(5));
    assert!(patient.verify(&text, NOW + 304, &Presented::default()).is_ok());
    let late = patient.verify(&text, NOW + 305, &Presented::default());
    assert_eq!(late.err(), Some(Refused::Expired));
}

#[test]
fn a_bound_pass_is_for_its_browser() {
    let ticket = TICKET.to_string();
    let ip = "192.0.2.7".parse().expect("an address");
    let binding = Binding::default()
        .to_nonce(&ticket, "n")
        .to_ip(&ticket, ip, IpPrefix::default())
        .to_user_agent(&ticket, "ua");
    let passes = Passes::generate(Alg::EdDsa, ROTATION, NOW);
    let text = passes.sign(&claims().bound(binding));
    let verifier = passes.verifier("sale");
    let shown = Presented { nonce: Some("n"), ip: Some(ip), user_agent: Some("ua") };
    assert!(verifier.verify(&text, NOW, &shown).is_ok());
    let refused = |presented| verifier.verify(&text, NOW, &presented).err();
    assert_eq!(refused(Presented { nonce: None, ..shown }), Some(Refused::BindingMissing));
    assert_eq!(refused(Presented { nonce: Some("m"), ..shown }), Some(Refused::BindingWrong));
    let unseen = Rules::of_room("sale").unseen(Unseen { nonce: true, ..Unseen::default() });
    let elsewhere = verifier.clone().with_rules(unseen);
    assert!(elsewhere.verify(&text, NOW, &Presented { nonce: None, ..shown }).is_ok());
    let other = Presented { nonce: None, user_agent: Some("other"), ..shown };
    assert_eq!(elsewhere.verify(&text, NOW, &other).err(), Some(Refused::BindingWrong));
}

#[test]
fn of_the_two_spellings_of_an_ecdsa_signature_only_ours_is_taken() {
    let passes = Passes::generate(Alg::Es256, ROTATION, NOW);
    for _ in 0..20 {
        let text = passes.sign(&claims());
        assert!(passes.verifier("sale").verify(&text, NOW, &Presented::default()).is_ok());
        let (signed, signature) = text.rsplit_once('.').expect("three parts");
        let mut signature = waitroom_verifier::jws::decode(signature).expect("base64url");
        let s = signature[32..].to_vec();
        signature[32..].copy_from_slice(&order_minus(&s));
        let other = format!("{signed}.{}", waitroom_verifier::jws::encode(&signature));
        let refused = passes.verifier("sale").verify(&other, NOW, &Presented::default());
        assert_eq!(refused.err(), Some(Refused::SignatureWrong));
        // The other spelling is a good signature to everybody else: that is the point.
        let set: jsonwebtoken::jwk::JwkSet = serde_json::from_str(&passes.jwks()).expect("a set");
        let key = jsonwebtoken::DecodingKey::from_jwk(&set.keys[0]).expect("a key");
        let mut rules = jsonwebtoken::Validation::new(jsonwebtoken::Algorithm::ES256);
        rules.validate_exp = false;
        assert!(jsonwebtoken::decode::<serde_json::Value>(&other, &key, &rules).is_ok());
    }
}

/// n − s for the order n of P-256, by halves of 128 bits.
fn order_minus(s: &[u8]) -> Vec<u8> {
    let half = |bytes: &[u8]| u128::from_be_bytes(bytes.try_into().expect("sixteen bytes"));
    let (high, low) = (half(&s[..16]), half(&s[16..]));
    let (low, borrow) = 0xbce6faada7179e84f3b9cac2fc632551u128.overflowing_sub(low);
    let high = 0xffffffff00000000ffffffffffffffffu128 - high - u128::from(borrow);
    [high.to_be_bytes(), low.to_be_bytes()].concat()
}

#[test]
fn a_new_key_is_published_before_it_signs_and_an_old_one_outlives_its_passes() {
    let passes = Passes::generate(Alg::Es256, ROTATION, NOW);
    let first = passes.signer();
    let old_set = Verifier::new(&passes.jwks(), "sale").expect("a key set");
    passes.rotate(SigningKey::generate(Alg::EdDsa), NOW + 10).expect("room for another");
    let new_set = Verifier::new(&passes.jwks(), "sale").expect("a key set");
    assert_eq!(passes.signer(), first);
    assert!(!passes.advance(NOW + 109));
    assert!(old_set.verify(&passes.sign(&claims()), NOW, &Presented::default()).is_ok());
    assert!(passes.advance(NOW + 110));
    assert_ne!(passes.signer(), first);
    let text = passes.sign(&claims());
    assert!(new_set.verify(&text, NOW, &Presented::default()).is_ok());
    let stale = old_set.verify(&text, NOW, &Presented::default());
    assert_eq!(stale.err(), Some(Refused::KeyUnknown));
    old_set.update(&passes.jwks()).expect("a key set");
    assert!(old_set.verify(&text, NOW, &Presented::default()).is_ok());
    assert_eq!(passes.stored().len(), 2);
    assert!(!passes.advance(NOW + 110 + 600 + 60 + 4));
    assert!(passes.advance(NOW + 110 + 600 + 60 + 5));
    assert_eq!(passes.stored().len(), 1);
    assert!(!passes.jwks().contains(&first));
}

#[test]
fn a_clock_that_steps_back_undoes_nothing() {
    let passes = Passes::generate(Alg::EdDsa, ROTATION, NOW);
    passes.rotate(SigningKey::generate(Alg::EdDsa), NOW).expect("room for another");
    assert!(passes.advance(NOW + 100));
    let signer = passes.signer();
    assert!(!passes.advance(0));
    assert_eq!(passes.signer(), signer);
    passes.rotate(SigningKey::generate(Alg::EdDsa), 0).expect("room for another");
    assert_eq!(passes.stored().last().map(|key| key.signs_from_s), Some(NOW + 200));
}

#[test]
fn keys_come_back_after_a_restart_with_their_names_and_turns() {
    for alg in Alg::ALL {
        let passes = Passes::generate(alg, ROTATION, NOW);
        let text = passes.sign(&claims());
        passes.rotate(SigningKey::generate(alg), NOW + 10).expect("room for another");
        let mut stored = passes.stored();
        stored.reverse();
        let bytes: Vec<_> = stored.iter().map(StoredKey::to_bytes).collect();
        let stored: Vec<_> =
            bytes.iter().map(|b| StoredKey::from_bytes(b).expect("our own")).collect();
        let again = Passes::load(&stored, ROTATION, NOW + 20).expect("good keys").expect("some");
        assert_eq!(again.jwks(), passes.jwks());
        assert_eq!(again.signer(), passes.signer());
        assert!(again.verifier("sale").verify(&text, NOW + 20, &Presented::default()).is_ok());
        let later = Passes::load(&stored, ROTATION, NOW + 110).expect("good keys").expect("some");
        assert_ne!(later.signer(), passes.signer());
    }
    assert!(Passes::load(&[], ROTATION, NOW).expect("nothing to go wrong").is_none());
    let broken = StoredKey { pkcs8: vec![1, 2, 3], signs_from_s: NOW };
    assert_eq!(Passes::load(&[broken], ROTATION, NOW).err(), Some(KeyError::Unusable));
}

#[test]
fn a_withdrawn_key_counts_for_nothing_at_once() {
    let passes = Passes::generate(Alg::EdDsa, ROTATION, NOW);
    let text = passes.sign(&claims());
    let verifier = passes.verifier("sale");
    let kid = passes.signer();
    assert_eq!(passes.withdraw(&kid), Err(RotateError::LastKey));
    passes.rotate(SigningKey::generate(Alg::EdDsa), NOW).expect("room for another");
    assert_eq!(passes.withdraw("nobody"), Err(RotateError::Unknown));
    passes.withdraw(&kid).expect("one of two");
    let refused = verifier.verify(&text, NOW, &Presented::default());
    assert_eq!(refused.err(), Some(Refused::KeyUnknown));
    assert!(verifier.verify(&passes.sign(&claims()), NOW, &Presented::default()).is_ok());
}

#[test]
fn rotating_without_end_is_refused_and_so_is_the_same_key_twice() {
    let key = SigningKey::generate(Alg::EdDsa);
    let twin = SigningKey::from_pkcs8(&key.to_pkcs8()).expect("our own key");
    let passes = Passes::new(key, ROTATION, NOW);
    assert_eq!(passes.rotate(twin, NOW), Err(RotateError::KnownAlready));
    for _ in 1..16 {
        passes.rotate(SigningKey::generate(Alg::EdDsa), NOW).expect("room for another");
    }
    let one_more = passes.rotate(SigningKey::generate(Alg::EdDsa), NOW);
    assert_eq!(one_more, Err(RotateError::TooManyKeys));
}

#[test]
fn a_key_goes_through_a_pem_file_and_stays_the_same() {
    for alg in Alg::ALL {
        let key = SigningKey::generate(alg);
        let again = SigningKey::from_pem(&key.to_pem()).expect("our own file");
        assert_eq!((again.kid(), again.alg()), (key.kid(), alg));
        let said = format!("{key:?}");
        assert!(said.contains(key.kid()) && said.len() < 80, "{said}");
    }
    let label = "CERTIFICATE".to_owned();
    let file = SigningKey::generate(Alg::EdDsa).to_pem().replace("PRIVATE KEY", &label);
    assert_eq!(SigningKey::from_pem(&file).err(), Some(KeyError::Label { found: label }));
    assert_eq!(SigningKey::from_pem("nothing").err(), Some(KeyError::NotPem));
}
