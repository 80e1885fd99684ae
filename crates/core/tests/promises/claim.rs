//! The exchange of an admitted ticket for a pass.

use crate::script::check;

#[test]
fn a_claim_counts_until_the_moment_before_claim_by() {
    check(
        "
        room  claim_within=60s
         1s      join a*2  | joined a1..a2
         1s      tick      | admitted a1..a2 claim_by=61s
        60.999s  claim a1  | claimed a1 until=660.999s
        61s      claim a2  | refused claim_too_late claim_by=61s
        61s      tick      | no_show a2
        61s      claim a2  | refused wrong_status status=expired
    ",
    );
}

#[test]
fn a_repeated_claim_is_the_same_admission() {
    check(
        "
        room
         1s  join ana   | joined ana
         1s  tick       | admitted ana claim_by=91s
         2s  claim ana  | claimed ana until=602s
         9s  claim ana  | repeat ana until=602s
       601s  claim ana  | repeat ana until=602s
    ",
    );
}

#[test]
fn nobody_claims_before_their_turn() {
    check(
        "
        room  max_active=1
        1s  join a*2  | joined a1..a2
        1s  tick      | admitted a1 claim_by=91s
        1s  claim a2  | refused wrong_status status=waiting
    ",
    );
}

#[test]
fn who_is_over_claims_nothing() {
    check(
        "
        room
        1s  join a*4     | joined a1..a4
        1s  leave a1     | left a1
        1s  claim a1     | refused wrong_status status=left
        1s  tick         | admitted a2..a4 claim_by=91s
        1s  complete a2  | completed a2
        1s  claim a2     | refused wrong_status status=completed
        1s  revoke a3    | revoked a3
        1s  claim a3     | refused wrong_status status=revoked
    ",
    );
}

#[test]
fn a_ticket_of_another_lane_or_epoch_claims_nothing() {
    check(
        "
        room
        1s  join ana      | joined ana
        1s  tick          | admitted ana claim_by=91s
        1s  claim 9:0@1   | refused unknown_ticket
        1s  claim 0:0@2   | refused place_lost
        1s  claim 0:1@1   | refused place_lost
        1s  claim 0:0@1   | claimed ana until=601s
    ",
    );
}

#[test]
fn a_paused_room_honours_who_was_admitted() {
    check(
        "
        room
        1s  join ana   | joined ana
        1s  tick       | admitted ana claim_by=91s
        2s  pause jam  | paused jam
        3s  claim ana  | claimed ana until=603s
    ",
    );
}

#[test]
fn a_sale_that_is_over_honours_who_was_admitted() {
    check(
        "
        room
        1s  join ana      | joined ana
        1s  tick          | admitted ana claim_by=91s
        2s  sold_out gone | sale_ended sold_out closed=0
        3s  claim ana     | claimed ana until=603s
        4s  renew ana     | unchanged ana until=603s
    ",
    );
}

#[test]
fn a_changed_session_timeout_counts_from_the_next_claim() {
    check(
        "
        room  session_timeout=100s
        1s  join a*2                | joined a1..a2
        1s  tick                    | admitted a1..a2 claim_by=91s
        1s  claim a1                | claimed a1 until=101s
        2s  set session_timeout=50s | configured
        2s  claim a2                | claimed a2 until=52s
        2s  claim a1                | repeat a1 until=101s
    ",
    );
}
