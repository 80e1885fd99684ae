//! Finished tickets are remembered for a while, then forgotten, a block at a time.

use crate::script::{World, check};

/// Tickets are dropped in blocks of this many.
const BLOCK: usize = 2048;

#[test]
fn a_finished_ticket_is_remembered_until_the_moment_before() {
    check(
        "
        room  rate=none memory=600s
          1s      join ana   | joined ana
          2s      leave ana  | left ana
        601.999s  leave ana  | over ana left
        602s      leave ana  | refused forgotten
        602s      claim ana  | refused forgotten
        602s      revoke ana | refused forgotten
    ",
    );
}

#[test]
fn who_lives_is_never_forgotten() {
    check(
        "
        room  rate=none memory=600s
           1s  join ana      | joined ana
        9999h  position ana  | ana=1
        9999h  leave ana     | left ana
    ",
    );
}

#[test]
fn a_longer_memory_counts_for_those_who_are_gone_too() {
    check(
        "
        room  rate=none memory=600s
          1s  join ana          | joined ana
          2s  leave ana         | left ana
        602s  leave ana         | refused forgotten
        603s  set memory=1000s  | configured
        603s  leave ana         | over ana left
    ",
    );
}

#[test]
fn a_block_goes_when_its_last_ticket_was_remembered_long_enough() {
    let mut world = World::room("rate=none memory=600s");
    world.line(&format!("1s join a*{BLOCK}"));
    world.line(&format!("10s lapse a1..a{}", BLOCK - 100));
    world.line(&format!("20s lapse a{}..a{}", BLOCK - 99, BLOCK - 1));
    assert_eq!(world.line("700s tick"), "nothing");
    world.line(&format!("800s leave a{BLOCK}"));
    assert_eq!(world.line("800s next"), "1400s");
    assert_eq!(world.line("1399.999s tick"), "nothing");
    assert_eq!(world.line("1400s tick"), "forgot_tickets 0:0");
    assert_eq!(world.line("1400s next"), "never");
    assert_eq!(world.line("1400s claim a1"), "refused forgotten");
    assert_eq!(world.line("1400s join bo"), "joined bo");
    assert_eq!(world.ticket("bo").number.0, BLOCK as u64);
    assert_eq!(world.line("1400s position bo"), "bo=1");
    world.replays_to_the_same();
}

#[test]
fn a_block_that_is_not_full_stays() {
    let mut world = World::room("rate=none memory=600s");
    world.line(&format!("1s join a*{}", BLOCK - 1));
    world.line("2s lapse a1..a2000");
    world.line(&format!("2s lapse a2001..a{}", BLOCK - 1));
    assert_eq!(world.line("9999s tick"), "nothing");
    world.line("9999s join bo");
    assert_eq!(world.line("9999s leave bo"), "left bo");
    assert_eq!(world.line("10598.999s tick"), "nothing");
    assert_eq!(world.line("10599s tick"), "forgot_tickets 0:0");
}

#[test]
fn a_block_stays_while_one_of_it_holds_a_slot() {
    let mut world = World::room("memory=600s session_timeout=5000s max_active=1");
    world.line(&format!("1s join a*{BLOCK}"));
    assert_eq!(world.line("1s tick"), "admitted a1 claim_by=91s");
    assert_eq!(world.line("2s claim a1"), "claimed a1 until=5002s");
    world.line("3s lapse a2..a2000");
    world.line(&format!("3s lapse a2001..a{BLOCK}"));
    assert_eq!(world.line("9s complete a1"), "completed a1 held=5002s");
    assert_eq!(world.line("5000s tick"), "nothing");
    assert_eq!(world.line("5002s tick"), "released a1");
    assert_eq!(world.line("5602s tick"), "forgot_tickets 0:0");
}

#[test]
fn blocks_go_in_any_order_and_the_room_goes_on() {
    let mut world = World::room("rate=none memory=600s");
    world.line(&format!("1s join a*{}", 2 * BLOCK));
    world.line(&format!("2s lapse a{}..a{}", BLOCK + 1, BLOCK + 2000));
    world.line(&format!("2s lapse a{}..a{}", BLOCK + 2001, 2 * BLOCK));
    assert_eq!(world.line("602s tick"), "forgot_tickets 0:1");
    assert_eq!(world.line(&format!("602s claim a{}", BLOCK + 5)), "refused forgotten");
    assert_eq!(world.line(&format!("602s position a{BLOCK}")), format!("a{BLOCK}={BLOCK}"));
    world.line("603s lapse a1..a2000");
    world.line(&format!("603s lapse a2001..a{BLOCK}"));
    assert_eq!(world.line("1203s tick"), "forgot_tickets 0:0");
    assert_eq!(world.line("1203s join bo"), "joined bo");
    assert_eq!(world.line("1203s position bo"), "bo=1");
    world.replays_to_the_same();
}

#[test]
fn the_id_of_a_forgotten_ticket_stays_forgotten_over_epochs() {
    let mut world = World::room("rate=none memory=600s");
    world.line(&format!("1s join a*{BLOCK}"));
    world.line("2s lapse a1..a2000");
    world.line(&format!("2s lapse a2001..a{BLOCK}"));
    world.line("3s open 2");
    assert_eq!(world.line("3s join bo"), "joined bo");
    assert_eq!(world.line("602s tick"), "forgot_tickets 0:0");
    assert_eq!(world.line("602s claim a1"), "refused forgotten");
    assert_eq!(world.line("602s leave bo"), "left bo");
    // Whoever tells of it later, such as an outbox that was behind, still needs its name.
    let named = world.room.state().named(world.ticket("a1"));
    assert_eq!(named.map(|it| it.epoch), Some(waitroom_core::Epoch(1)));
}

#[test]
fn those_whom_the_end_closed_are_forgotten_too() {
    let mut world = World::room("rate=none memory=600s");
    world.line(&format!("1s join a*{BLOCK}"));
    world.line("9s finish");
    assert_eq!(world.line("608.999s tick"), "nothing");
    assert_eq!(world.line("609s tick"), "forgot_tickets 0:0");
}

#[test]
fn those_whom_an_end_closed_keep_no_later_block_alive() {
    let mut world = World::room("rate=none memory=600s");
    world.line("1s join a*10");
    world.line("2s finish");
    world.line("3s reopen");
    world.line(&format!("4s join b*{}", BLOCK - 10));
    world.line("5s lapse b1..b2000");
    world.line(&format!("5s lapse b2001..b{}", BLOCK - 10));
    assert_eq!(world.line("605s tick"), "forgot_tickets 0:0");
    world.replays_to_the_same();
}

#[test]
fn a_moved_ticket_leads_on_as_long_as_the_new_one_is_remembered() {
    let mut world = World::room("rate=none memory=600s lanes=1:1");
    world.line(&format!("1s join a*{BLOCK}"));
    assert_eq!(world.line("2s move a1 lane=1 to=new"), "moved a1 to=new lane=1");
    world.line("2s lapse a2..a2000");
    world.line(&format!("2s lapse a2001..a{BLOCK}"));
    assert_eq!(world.line("601s hand_over a1 to=x service"), "handed_over new holder=1");
    assert_eq!(world.line("602s tick"), "forgot_tickets 0:0");
    // The block of the old ticket is gone, the person is not.
    assert_eq!(world.line("602s leave a2"), "refused forgotten");
    assert_eq!(world.line("602s leave a1"), "refused moved_elsewhere");
    assert_eq!(world.line("602s hand_over a1 to=y service"), "handed_over new holder=2");
    assert_eq!(world.line("603s leave a1 service"), "left new");
    assert_eq!(world.line("1202s leave a1 service"), "over new left");
    assert_eq!(world.line("1203s leave a1 service"), "refused forgotten");
    world.replays_to_the_same();
}

#[test]
fn a_moved_ticket_leads_nowhere_when_the_block_of_the_new_one_is_gone() {
    let mut world = World::room("rate=none memory=600s lanes=1:1");
    world.line("1s join ana");
    assert_eq!(world.line("1s move ana lane=1 to=new"), "moved ana to=new lane=1");
    world.line(&format!("1s join b*{} lane=1", BLOCK - 1));
    world.line("2s leave new");
    world.line("2s lapse b1..b2000");
    world.line(&format!("2s lapse b2001..b{}", BLOCK - 1));
    assert_eq!(world.line("602s tick"), "forgot_tickets 1:0");
    assert_eq!(world.line("602s leave ana"), "refused forgotten");
    assert_eq!(world.line("602s leave new"), "refused forgotten");
    world.replays_to_the_same();
}

#[test]
fn a_ticket_moved_in_an_old_epoch_is_found_when_that_epoch_has_no_numbers_left() {
    let mut world = World::room("rate=none memory=600s lanes=1:1");
    world.line(&format!("1s join a*{BLOCK}"));
    assert_eq!(world.line("2s move a1 lane=1 to=new"), "moved a1 to=new lane=1");
    world.line("2s lapse a2..a2000");
    world.line(&format!("2s lapse a2001..a{BLOCK}"));
    world.line("3s open 2");
    world.line("3s join bo");
    assert_eq!(world.line("602s tick"), "forgot_tickets 0:0");
    assert_eq!(world.line("602s leave 0:0@2"), "refused forgotten");
    assert_eq!(world.line("602s leave a1"), "left new");
}

#[test]
fn forgotten_is_said_before_anything_about_the_holder() {
    check(
        "
        room  rate=none memory=600s
          1s  join ana                 | joined ana
          1s  hand_over ana to=phone   | handed_over ana holder=1
          2s  leave phone              | left ana
        601s  leave ana                | refused moved_elsewhere
        602s  leave ana                | refused forgotten
        602s  leave phone              | refused forgotten
    ",
    );
}

#[test]
fn a_person_whose_ticket_was_dropped_joins_anew() {
    let mut world = World::room("rate=none memory=600s");
    world.line("1s join ana id=ann");
    world.line(&format!("1s join a*{}", BLOCK - 1));
    world.line("2s leave ana");
    world.line("2s lapse a1..a2000");
    world.line(&format!("2s lapse a2001..a{}", BLOCK - 1));
    assert_eq!(world.line("602s tick"), "forgot_tickets 0:0");
    assert_eq!(world.line("602s join two id=ann"), "joined two");
    assert_eq!(world.line("602s join three id=ann"), "repeat two");
    world.replays_to_the_same();
}

#[test]
fn keys_of_a_dropped_block_go_with_it() {
    let mut world = World::room("rate=none memory=600s");
    for i in 0..BLOCK {
        world.line(&format!("1s join n{i} key=key{i}"));
        world.line(&format!("1s leave n{i}"));
    }
    assert_eq!(world.line("601s tick"), "forgot_tickets 0:0");
    assert_eq!(world.line("601s next"), "never");
    assert_eq!(world.line("601s join x key=key7"), "joined x");
    world.replays_to_the_same();
}

#[test]
fn a_forgotten_person_leaves_nothing_behind() {
    let mut world = World::room("rate=none memory=600s returning=20%/60s");
    world.line("1s join ana id=ann");
    world.line(&format!("1s join a*{}", BLOCK - 1));
    world.line("2s leave ana");
    // Comes back without a name, which uses up the credit of the ticket but not its identity.
    assert_eq!(world.line("3s join x holding=ana"), "joined x lane=returning returns=ana");
    world.line("3s lapse a1..a2000");
    world.line(&format!("3s lapse a2001..a{}", BLOCK - 1));
    let known =
        |world: &World| format!("{:?}", world.room).contains("identities: Fingerprints { len: 1");
    assert!(known(&world));
    assert_eq!(world.line("603s tick"), "forgot_tickets 0:0");
    assert!(!known(&world), "the table still points at a ticket that is gone");
}
