//! Forged ticket tokens, live tickets and checked passes.

use waitroom_core::{Holder, id::TicketId};
use waitroom_pass::{
    Binding, CheckedPasses, LiveRefused, LiveTickets, Pass, Presented, TicketTokens,
};

use crate::{
    NOW, ROOM, SEALED_EACH,
    mutate::{Dice, altered},
};

const KEYS: [(u8, [u8; 32]); 2] = [(1, [0x11; 32]), (2, [0x22; 32])];
const STRANGERS: [(u8, [u8; 32]); 2] = [(1, [0x33; 32]), (2, [0x44; 32])];

/// What an attacker has: a good text, another good one, one for another room, and one that he
/// signed himself with a key of his own.
struct Had {
    good: String,
    others: [String; 3],
}

fn none_of_them_is_read(had: &Had, seed: u64, mut reads: impl FnMut(&str) -> bool) {
    let mut dice = Dice::new(seed);
    for other in &had.others[1..] {
        assert!(!reads(other), "{other}");
    }
    for _ in 0..SEALED_EACH {
        let other = &had.others[dice.below(3)];
        let text = altered(&had.good, other, &mut dice);
        // By chance the mixture may be one of the foreign texts as a whole, or the other good
        // one; the first was looked at above, the second is no forgery.
        assert!(!reads(&text) || text == had.others[0], "{text}");
    }
}

fn ticket(n: u8) -> TicketId {
    TicketId::from_bytes([n; 16])
}

#[test]
fn no_forged_ticket_token_is_read() {
    let tokens = TicketTokens::new(&KEYS).expect("secrets");
    let stranger = TicketTokens::new(&STRANGERS).expect("secrets");
    let write = |by: &TicketTokens, room, n| by.write(room, ticket(n), Holder(0), 1).to_string();
    let good = write(&tokens, ROOM, 1);
    assert!(tokens.read(ROOM, &good).is_some());
    let others = [write(&tokens, ROOM, 2), write(&tokens, "other", 1), write(&stranger, ROOM, 1)];
    let had = Had { good, others };
    none_of_them_is_read(&had, 1, |text| tokens.read(ROOM, text).is_some());
}

#[test]
fn no_forged_live_ticket_is_taken() {
    let live = LiveTickets::new(&KEYS, 100).expect("secrets");
    let stranger = LiveTickets::new(&STRANGERS, 100).expect("secrets");
    let write = |by: &LiveTickets, room, n| by.write(room, ticket(n), Holder(0), NOW).to_string();
    let good = write(&live, ROOM, 1);
    let others = [write(&live, ROOM, 2), write(&live, "other", 1), write(&stranger, ROOM, 1)];
    let had = Had { good, others };
    // Not even "used before": a forgery says nothing about what was used.
    none_of_them_is_read(&had, 2, |text| live.take(ROOM, text, NOW) != Err(LiveRefused::NotOurs));
    assert!(live.take(ROOM, &had.good, NOW).is_ok());
}

#[test]
fn no_forged_checked_pass_is_read() {
    let checked = CheckedPasses::new(&KEYS).expect("secrets");
    let stranger = CheckedPasses::new(&STRANGERS).expect("secrets");
    let nobody = Presented::default();
    let write = |by: &CheckedPasses, room: &str, n| {
        let pass = Pass {
            ticket: ticket(n).to_string(),
            room: room.into(),
            issued_at: NOW,
            expires_at: NOW + 600,
            binding: Binding::default(),
            session_id: None,
            user_id: None,
            event_id: None,
        };
        by.write(&pass, &nobody, NOW + 60).expect("writable").to_string()
    };
    let good = write(&checked, ROOM, 1);
    assert!(checked.read(ROOM, &good, NOW, &nobody).is_some());
    let others = [write(&checked, ROOM, 2), write(&checked, "other", 1), write(&stranger, ROOM, 1)];
    let had = Had { good, others };
    none_of_them_is_read(&had, 3, |text| checked.read(ROOM, text, NOW, &nobody).is_some());
}
