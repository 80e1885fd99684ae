//! Ticket ids: what they promise, against a second implementation and hostile hands.

use proptest::prelude::*;
use serde_json::Value;
use waitroom_core::id::{
    CodeError, EPOCH_MAX, IdKey, NUMBER_MAX, Named, OutOfRange, ParseError, SupportCode, TicketId,
};

const OURS: [u8; 32] = [1; 32];
const THEIRS: [u8; 32] = [2; 32];

#[test]
fn ids_and_support_codes_are_those_of_the_second_implementation() {
    let vectors = vectors();
    let good = vectors["good"].as_array().expect("a list");
    assert!(good.len() >= 10);
    for vector in good {
        let key = key_of(vector);
        let named = Named {
            lane: vector["lane"].as_u64().expect("a lane").try_into().expect("a lane"),
            epoch: vector["epoch"].as_u64().expect("an epoch").try_into().expect("an epoch"),
            number: vector["number"].as_u64().expect("a number"),
        };
        let id = key.name(named.lane, named.epoch, named.number).expect("in range");
        assert_eq!(id.to_string(), vector["id"], "{vector}");
        assert_eq!(key.read(&id), Some(named), "{vector}");
        assert_eq!(id.support_code().to_string(), vector["support_code"], "{vector}");
    }
}

#[test]
fn the_worked_example_in_the_document_is_true() {
    let document = include_str!("../../../docs/ticket-id.md");
    let secret = std::array::from_fn(|at| at as u8);
    let id = IdKey::derive(&secret).name(7, 3, 123456).expect("in range");
    assert!(document.contains(&format!("    id           {id}\n")), "{id}");
    let code = id.support_code();
    assert!(document.contains(&format!("check 29: {code}\n")), "{code}");
}

#[test]
fn what_another_hand_wrote_is_refused() {
    for vector in vectors()["refused"].as_array().expect("a list") {
        let id = TicketId::parse(vector["id"].as_str().expect("a text")).expect("well formed");
        assert_eq!(key_of(vector).read(&id), None, "{vector}");
    }
}

#[test]
fn only_the_printed_form_is_read() {
    for vector in vectors()["malformed"].as_array().expect("a list") {
        let text = vector["text"].as_str().expect("a text");
        assert!(TicketId::parse(text).is_err(), "{vector}");
    }
    let id = "0123456789abcdef".repeat(2);
    assert_eq!(TicketId::parse(&id), Err(ParseError::Length { found: 32 }));
    let id = "01234567-89ab-cdef-0123-456789abcdef";
    assert_eq!(TicketId::parse(&id.replace("-c", "+c")), Err(ParseError::Hyphen { at: 13 }));
    assert_eq!(TicketId::parse(&id.replace("0123-", "012/-")), Err(ParseError::Digit { at: 22 }));
}

#[test]
fn an_id_says_where_its_bytes_are() {
    let id = TicketId::parse("01234567-89ab-CDEF-0123-456789abcdef").expect("well formed");
    let half = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef];
    assert_eq!(id.to_bytes()[..8], half);
    assert_eq!(id.to_bytes()[8..], half);
    assert_eq!(id.to_string(), "01234567-89ab-cdef-0123-456789abcdef");
    assert_eq!(serde_json::to_value(id).expect("a text"), id.to_string());
    assert_eq!(serde_json::from_value::<TicketId>(id.to_string().into()).expect("an id"), id);
    assert!(serde_json::from_str::<TicketId>("\"0\"").is_err());
}

#[test]
fn a_number_too_large_is_refused_rather_than_wrapped() {
    let key = IdKey::derive(&OURS);
    let (epoch, number) = (EPOCH_MAX + 1, NUMBER_MAX + 1);
    assert_eq!(key.name(0, epoch, 0), Err(OutOfRange::Epoch { epoch }));
    assert_eq!(key.name(0, 0, number), Err(OutOfRange::Number { number }));
    assert_eq!(key.name(0, u32::MAX, 0), Err(OutOfRange::Epoch { epoch: u32::MAX }));
    assert_eq!(key.name(0, 0, u64::MAX), Err(OutOfRange::Number { number: u64::MAX }));
    assert!(key.name(u8::MAX, EPOCH_MAX, NUMBER_MAX).is_ok());
    assert_eq!(
        OutOfRange::Number { number }.to_string(),
        "ticket number 1099511627776 is above 1099511627775"
    );
}

#[test]
fn debug_output_keeps_the_key_to_itself() {
    assert_eq!(format!("{:?}", IdKey::derive(&OURS)), "IdKey(..)");
}

#[test]
fn a_support_code_may_be_written_as_people_write() {
    for vector in vectors()["support_code_spellings"].as_array().expect("a list") {
        let read = SupportCode::parse(vector["text"].as_str().expect("a text"));
        assert_eq!(read.expect("a code").to_string(), vector["code"], "{vector}");
    }
}

#[test]
fn a_wrong_support_code_says_what_is_wrong() {
    for vector in vectors()["support_code_bad"].as_array().expect("a list") {
        let error = match SupportCode::parse(vector["text"].as_str().expect("a text")) {
            Ok(code) => panic!("{vector} was read as {code}"),
            Err(CodeError::Length { .. }) => "length",
            Err(CodeError::Letter { .. }) => "letter",
            Err(CodeError::Misread) => "misread",
        };
        assert_eq!(error, vector["error"], "{vector}");
    }
}

#[test]
fn every_misheard_character_and_every_swap_in_a_support_code_is_noticed() {
    let alphabet: Vec<char> = "0123456789ABCDEFGHJKMNPQRSTVWXYZ".chars().collect();
    let key = IdKey::derive(&OURS);
    for number in 0..50 {
        let code = key.name(0, 1, number).expect("in range").support_code().to_string();
        let code: Vec<char> = code.chars().filter(|&letter| letter != '-').collect();
        let refused = |letters: &[char]| {
            let text: String = letters.iter().collect();
            assert_eq!(SupportCode::parse(&text), Err(CodeError::Misread), "{text}");
        };
        for at in 0..code.len() {
            for &letter in alphabet.iter().filter(|&&letter| letter != code[at]) {
                let mut misheard = code.clone();
                misheard[at] = letter;
                refused(&misheard);
            }
            for other in (0..at).filter(|&other| code[other] != code[at]) {
                let mut swapped = code.clone();
                swapped.swap(at, other);
                refused(&swapped);
            }
        }
    }
}

proptest! {
    #[test]
    fn a_room_reads_what_it_wrote(
        lane in any::<u8>(),
        epoch in 0..=EPOCH_MAX,
        number in 0..=NUMBER_MAX,
    ) {
        let key = IdKey::derive(&OURS);
        let id = key.name(lane, epoch, number).expect("in range");
        prop_assert_eq!(key.read(&id), Some(Named { lane, epoch, number }));
    }

    /// One in 2⁵⁶ altered ids would pass; these are 128 of them a case.
    #[test]
    fn an_id_with_any_bit_flipped_is_refused(lane in any::<u8>(), number in 0..=NUMBER_MAX) {
        let key = IdKey::derive(&OURS);
        let id = key.name(lane, 1, number).expect("in range");
        for bit in 0..128 {
            let flipped = u128::from_be_bytes(id.to_bytes()) ^ 1u128 << bit;
            prop_assert_eq!(key.read(&TicketId::from_bytes(flipped.to_be_bytes())), None);
        }
    }

    #[test]
    fn an_id_of_another_room_is_refused(
        lane in any::<u8>(),
        epoch in 0..=EPOCH_MAX,
        number in 0..=NUMBER_MAX,
    ) {
        let id = IdKey::derive(&THEIRS).name(lane, epoch, number).expect("in range");
        prop_assert_eq!(IdKey::derive(&OURS).read(&id), None);
    }

    #[test]
    fn a_guess_is_refused(bytes in any::<[u8; 16]>()) {
        prop_assert_eq!(IdKey::derive(&OURS).read(&TicketId::from_bytes(bytes)), None);
    }

    #[test]
    fn the_printed_form_of_any_bytes_is_read_back_in_either_case(bytes in any::<[u8; 16]>()) {
        let id = TicketId::from_bytes(bytes);
        prop_assert_eq!(TicketId::parse(&id.to_string()), Ok(id));
        prop_assert_eq!(TicketId::parse(&id.to_string().to_uppercase()), Ok(id));
        prop_assert_eq!(id.to_string().to_lowercase(), id.to_string());
    }

    /// Whatever is read back prints as what was given: no second spelling slips through.
    #[test]
    fn hostile_text_is_read_only_if_it_is_the_printed_form(
        text in "[0-9a-fA-F]{8}[-0]?[0-9a-fA-Fg]{4}-[0-9a-fA-F]{4}-.{4}-[0-9a-fA-F]{11,13}",
    ) {
        if let Ok(id) = TicketId::parse(&text) {
            prop_assert_eq!(id.to_string(), text.to_lowercase());
        }
    }

    #[test]
    fn no_text_whatever_makes_the_readers_panic(text in any::<String>()) {
        let _ = TicketId::parse(&text);
        let _ = SupportCode::parse(&text);
    }

    #[test]
    fn the_support_code_of_any_id_is_read_back(bytes in any::<[u8; 16]>()) {
        let code = TicketId::from_bytes(bytes).support_code();
        prop_assert_eq!(SupportCode::parse(&code.to_string()), Ok(code));
    }
}

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../../docs/vectors/ticket-id.json")).expect("JSON")
}

fn key_of(vector: &Value) -> IdKey {
    let text = vector["secret"].as_str().expect("a secret");
    let mut secret = [0; 32];
    for (at, byte) in secret.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("hexadecimal");
    }
    IdKey::derive(&secret)
}
