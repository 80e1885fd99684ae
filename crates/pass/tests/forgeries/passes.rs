//! Forged passes: changed at random, with signatures from elsewhere, and by every attack known.

use std::collections::BTreeMap;

use waitroom_core::{Session, Timestamp, id::TicketId};
use waitroom_pass::{Alg, PassClaims, Passes, Presented, Refused, Rotation, SigningKey, Verifier};
use waitroom_verifier::jws;

use crate::{
    NOW, PASS_ATTACK_ROUNDS_EACH, PASS_ATTACKS_MIN, PASS_MUTATIONS_EACH, PASS_SIGNATURES_EACH,
    ROOM,
    mutate::{Dice, altered},
    pass_attacks::{Attacker, attacks},
};

fn claims(n: u64, room: &str) -> PassClaims {
    let session = Session {
        issued_at: Timestamp(NOW * 1000),
        expires_at: Timestamp((NOW + 600) * 1000),
        pass_expires_at: Timestamp((NOW + 600) * 1000),
    };
    let mut id = [0; 16];
    id[..8].copy_from_slice(&n.to_be_bytes());
    PassClaims::of(TicketId::from_bytes(id), room, &session)
}

/// Keys of all algorithms are published, as in the middle of a rotation from one to another:
/// the widest field for confusion. The first signs.
fn published(alg: Alg) -> (Passes, Verifier) {
    let passes = Passes::generate(alg, Rotation::default(), NOW);
    for other in Alg::ALL {
        passes.rotate(SigningKey::generate(other), NOW).expect("room for another");
    }
    let verifier = passes.verifier(ROOM);
    (passes, verifier)
}

fn refused(verifier: &Verifier, text: &str) -> Refused {
    match verifier.verify(text, NOW, &Presented::default()) {
        Ok(pass) => panic!("accepted: {text}\n{pass:?}"),
        Err(refused) => refused,
    }
}

#[test]
fn no_pass_altered_at_random_is_accepted() {
    for alg in Alg::ALL {
        let (passes, verifier) = published(alg);
        let good = passes.sign(&claims(1, ROOM));
        let foreign = passes.sign(&claims(1, "other"));
        assert!(verifier.verify(&good, NOW, &Presented::default()).is_ok());
        assert_eq!(refused(&verifier, &foreign), Refused::RoomOther);
        // Six of seven letters are in the payload and the signature; changes there would all
        // reach the signature. Those are made below, in a number that time allows; here the
        // header is changed as well, which is found out early.
        let header_len = good.find('.').expect("three parts");
        let mut dice = Dice::new(alg as u64 + 10);
        let mut seen = BTreeMap::<Refused, usize>::new();
        for _ in 0..PASS_MUTATIONS_EACH {
            let header = altered(&good[..header_len], &foreign[..header_len], &mut dice);
            let rest = match dice.below(2) {
                0 => good[header_len..].to_owned(),
                _ => altered(&good[header_len..], &foreign[header_len..], &mut dice),
            };
            *seen.entry(refused(&verifier, &format!("{header}{rest}"))).or_default() += 1;
        }
        assert!(seen[&Refused::Malformed] > 0 && seen[&Refused::KeyUnknown] > 0, "{seen:?}");
    }
}

#[test]
fn no_signature_from_elsewhere_is_accepted() {
    for alg in Alg::ALL {
        let (passes, verifier) = published(alg);
        let good = passes.sign(&claims(0, ROOM));
        let (_, signature) = good.rsplit_once('.').expect("three parts");
        let signature = jws::decode(signature).expect("base64url");
        let thief = Passes::generate(alg, Rotation::default(), NOW);
        let header = good.split('.').next().expect("three parts");
        let mut dice = Dice::new(alg as u64 + 20);
        for n in 1..=PASS_SIGNATURES_EACH as u64 {
            let forged = match n % 4 {
                // A bit of the signature, a bit of the claims, the signature of other words, and
                // somebody else's signature. RSA signs so slowly that the last is made rarely.
                0 => {
                    let mut altered = signature.clone();
                    let at = dice.below(altered.len());
                    altered[at] ^= 1 << dice.below(8);
                    replaced(&good, 2, &altered)
                }
                1 => {
                    let payload = good.split('.').nth(1).expect("three parts");
                    let mut payload = jws::decode(payload).expect("base64url");
                    let at = dice.below(payload.len());
                    payload[at] ^= 1 << dice.below(8);
                    replaced(&good, 1, &payload)
                }
                2 if alg != Alg::Rs256 || n % 64 == 2 => {
                    let stolen = thief.sign(&claims(n, ROOM));
                    format!("{header}{}", &stolen[stolen.find('.').expect("three parts")..])
                }
                _ => {
                    let words = serde_json::to_vec(&claims(n, ROOM)).expect("JSON");
                    replaced(&good, 1, &words)
                }
            };
            assert_eq!(refused(&verifier, &forged), Refused::SignatureWrong, "{forged}");
        }
    }
}

#[test]
fn no_attack_of_the_book_is_accepted() {
    for alg in Alg::ALL {
        let (passes, verifier) = published(alg);
        let key = SigningKey::from_pkcs8(&passes.stored()[0].pkcs8).expect("our own key");
        assert_eq!(key.kid(), passes.signer());
        let jwks = passes.jwks();
        let attacker = Attacker::new(&key, &jwks);
        let mut dice = Dice::new(alg as u64 + 30);
        let mut seen = BTreeMap::<Refused, usize>::new();
        for round in 0..PASS_ATTACK_ROUNDS_EACH {
            let attacks = attacks(&attacker, &claims(round as u64, ROOM), &mut dice);
            assert!(attacks.len() >= PASS_ATTACKS_MIN, "{}", attacks.len());
            for attack in attacks {
                let found = refused(&verifier, &attack.text);
                assert_eq!(found, attack.expected, "{}: {}", attack.name, attack.text);
                *seen.entry(found).or_default() += 1;
            }
        }
        for expected in [
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
        ] {
            assert!(seen.contains_key(&expected), "no attack for {expected:?}");
        }
    }
}

fn replaced(text: &str, index: usize, bytes: &[u8]) -> String {
    let mut parts: Vec<_> = text.split('.').map(str::to_owned).collect();
    parts[index] = jws::encode(bytes);
    parts.join(".")
}
