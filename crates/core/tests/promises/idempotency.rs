//! A join that is repeated with its key is the same join.

use crate::script::{World, check};

#[test]
fn the_same_key_is_the_same_ticket() {
    check(
        "
        room  max_active=1
        1s  join ana key=k1   | joined ana
        1s  join ana key=k1   | repeat ana
        1s  tick              | admitted ana claim_by=91s
        1s  join ana key=k1   | repeat ana
        1s  claim ana         | claimed ana until=601s
        1s  join ana key=k1   | repeat ana
        1s  complete ana      | completed ana held=601s
        1s  join ana key=k1   | repeat ana
    ",
    );
}

#[test]
fn another_key_is_another_ticket() {
    check(
        "
        room
        1s  join ana key=k1   | joined ana
        1s  join bo key=k2    | joined bo
    ",
    );
}

#[test]
fn a_key_with_another_body_is_a_misuse() {
    check(
        "
        room
        1s  join ana key=k1 body=b1   | joined ana
        1s  join bo key=k1 body=b2    | refused key_reused
        1s  join bo key=k1 body=b1    | repeat ana
    ",
    );
}

#[test]
fn a_key_counts_before_an_identity() {
    check(
        "
        room
        1s  join ana key=k1 id=ann   | joined ana
        1s  join bo  key=k2 id=bob   | joined bo
        1s  join x   key=k1 id=bob   | repeat ana
    ",
    );
}

#[test]
fn a_repeat_by_identity_does_not_bind_its_key() {
    check(
        "
        room  rate=none
        1s  join ana id=ann          | joined ana
        1s  join x id=ann key=k1     | repeat ana
        1s  leave ana                | left ana
        1s  join y id=ann key=k1     | joined y
        1s  join z id=ann key=k1     | repeat y
    ",
    );
}

#[test]
fn a_key_leads_to_where_its_ticket_was_moved() {
    check(
        "
        room  rate=none lanes=1:1
        1s  join ana key=k1           | joined ana
        1s  move ana lane=1 to=ana2   | moved ana to=ana2 lane=1
        1s  join x key=k1             | repeat ana2
    ",
    );
}

#[test]
fn a_repeat_after_a_hand_over_carries_the_newest_holder() {
    check(
        "
        room  rate=none
        1s  join ana key=k1           | joined ana
        1s  hand_over ana to=phone    | handed_over ana holder=1
        1s  leave ana                 | refused moved_elsewhere
        1s  join again key=k1         | repeat ana
        1s  leave again               | left ana
    ",
    );
}

#[test]
fn a_key_whose_ticket_is_forgotten_is_free_again() {
    check(
        "
        room  rate=none memory=600s
          1s  join ana key=k1 body=b1   | joined ana
          2s  leave ana                 | left ana
        601s  join x key=k1 body=b1     | repeat ana
        602s  join new key=k1 body=b2   | joined new
        602s  join y key=k1 body=b2     | repeat new
        602s  join z key=k1 body=b1     | refused key_reused
    ",
    );
}

#[test]
fn keys_are_remembered_for_ten_minutes_at_least_and_go_in_blocks() {
    let mut world = World::room("rate=none memory=10000s");
    for i in 0..2048 {
        world.line(&format!("1s join n{i} key=key{i}"));
    }
    assert_eq!(world.line("2s join late key=late"), "joined late");
    assert_eq!(world.line("2s next"), "601s");
    assert_eq!(world.line("600.999s tick"), "nothing");
    assert_eq!(world.line("600.999s join x key=key7"), "repeat n7");
    assert_eq!(world.line("601s tick"), "forgot_keys 0:0");
    assert_eq!(world.line("601s next"), "never");
    assert_eq!(world.line("601s join x key=key7"), "joined x");
    assert_eq!(world.line("601s join y key=late"), "repeat late");
    world.replays_to_the_same();
}
