//! Inside: sessions, their renewal and their ends.

use crate::script::check;

#[test]
fn a_session_ends_when_its_time_is_over_and_not_before() {
    check(
        "
        room  session_timeout=100s
          1s      join ana   | joined ana
          1s      tick       | admitted ana claim_by=91s
          2s      claim ana  | claimed ana until=102s
        101.999s  tick       | nothing
        102s      tick       | session_over ana
        102s      inside     | 0
        102s      renew ana  | refused wrong_status status=expired
    ",
    );
}

#[test]
fn the_slot_of_a_session_that_ran_out_waits_for_slow_clocks() {
    check(
        "
        room  session_timeout=100s pass_leeway=5s max_active=1
          1s  join a*2  | joined a1..a2
          1s  tick      | admitted a1 claim_by=91s
          2s  claim a1  | claimed a1 until=102s
        102s  tick      | session_over a1 held=107s
        106s  tick      | nothing
        107s  tick      | released a1, admitted a2 claim_by=197s
    ",
    );
}

#[test]
fn activity_renews_a_session() {
    check(
        "
        room  session_timeout=100s
         1s  join ana   | joined ana
         1s  tick       | admitted ana claim_by=91s
         2s  claim ana  | claimed ana until=102s
        50s  renew ana  | renewed ana until=150s
       102s  tick       | nothing
       150s  tick       | session_over ana
    ",
    );
}

#[test]
fn the_log_hears_of_activity_only_when_a_tenth_is_gained() {
    check(
        "
        room  session_timeout=100s
         1s      join ana   | joined ana
         1s      tick       | admitted ana claim_by=91s
         2s      claim ana  | claimed ana until=102s
        11.999s  renew ana  | unchanged ana until=102s
        12s      renew ana  | renewed ana until=112s
        12s      renew ana  | unchanged ana until=112s
    ",
    );
}

#[test]
fn nothing_renews_a_session_where_renewal_is_off() {
    check(
        "
        room  session_timeout=100s session_renewal=no
         1s  join ana   | joined ana
         1s  tick       | admitted ana claim_by=91s
         2s  claim ana  | claimed ana until=102s
        50s  renew ana  | unchanged ana until=102s
       102s  tick       | session_over ana
    ",
    );
}

#[test]
fn short_passes_are_renewed_within_a_session_that_is_not() {
    check(
        "
        room  session_timeout=100s session_renewal=no pass_life=10s
         1s  join ana    | joined ana
         1s  tick        | admitted ana claim_by=91s
         2s  claim ana   | claimed ana until=102s pass=12s
        10s  renew ana   | renewed ana until=102s pass=20s
        98s  renew ana   | renewed ana until=102s
       102s  renew ana   | refused wrong_status status=expired
    ",
    );
}

#[test]
fn a_session_is_renewed_until_the_moment_before_its_end() {
    check(
        "
        room  session_timeout=100s
          1s      join a*2  | joined a1..a2
          1s      tick      | admitted a1..a2 claim_by=91s
          2s      claim a1  | claimed a1 until=102s
          2s      claim a2  | claimed a2 until=102s
        101.999s  renew a1  | renewed a1 until=201.999s
        102s      renew a2  | refused wrong_status status=expired
    ",
    );
}

#[test]
fn a_renewal_never_makes_a_session_shorter() {
    check(
        "
        room  session_timeout=100s
         1s  join ana                 | joined ana
         1s  tick                     | admitted ana claim_by=91s
         2s  claim ana                | claimed ana until=102s
         3s  set session_timeout=10s  | configured
         3s  renew ana                | unchanged ana until=102s
        92s  renew ana                | unchanged ana until=102s
        99s  renew ana                | renewed ana until=109s
    ",
    );
}

#[test]
fn only_who_is_inside_renews() {
    check(
        "
        room  max_active=1
        1s  join a*2  | joined a1..a2
        1s  tick      | admitted a1 claim_by=91s
        1s  renew a1  | refused wrong_status status=admitted
        1s  renew a2  | refused wrong_status status=waiting
    ",
    );
}

#[test]
fn a_checkout_ends_a_session_in_four_ways() {
    check(
        "
        room
        1s  join a*4             | joined a1..a4
        1s  tick                 | admitted a1..a4 claim_by=91s
        2s  claim a1             | claimed a1 until=602s
        2s  claim a2             | claimed a2 until=602s
        2s  claim a3             | claimed a3 until=602s
        2s  claim a4             | claimed a4 until=602s
        3s  complete a1          | completed a1 held=602s
        3s  checkout_fails a2    | checkout_failed a2 held=602s
        3s  checkout_expires a3  | checkout_expired a3 held=602s
        3s  revoke a4            | revoked a4 held=602s
        3s  counts               | joined=4 completed=1 expired=2 revoked=1 admissions=4
        3s  inside               | 4
    ",
    );
}

#[test]
fn an_end_counts_once_and_the_first_one_counts() {
    check(
        "
        room
        1s  join ana             | joined ana
        1s  tick                 | admitted ana claim_by=91s
        1s  claim ana            | claimed ana until=601s
        2s  checkout_fails ana   | checkout_failed ana held=601s
        3s  complete ana         | over ana expired
        3s  revoke ana           | over ana expired
        3s  leave ana            | over ana expired
    ",
    );
}

#[test]
fn no_checkout_ends_for_somebody_who_is_not_in_it() {
    check(
        "
        room  max_active=1
        1s  join a*2             | joined a1..a2
        1s  tick                 | admitted a1 claim_by=91s
        1s  checkout_fails a1    | refused wrong_status status=admitted
        1s  checkout_expires a1  | refused wrong_status status=admitted
        1s  complete a2          | refused wrong_status status=waiting
        1s  checkout_fails a2    | refused wrong_status status=waiting
        1s  complete a1          | completed a1
    ",
    );
}

#[test]
fn an_operator_revokes_whoever_lives() {
    check(
        "
        room  max_active=1
        1s  join a*3      | joined a1..a3
        1s  tick          | admitted a1 claim_by=91s
        1s  revoke a1     | revoked a1
        1s  revoke a2     | revoked a2
        1s  position a3   | a3=1
        1s  tick          | admitted a3 claim_by=91s
    ",
    );
}
