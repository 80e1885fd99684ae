//! Planted bugs for promise 7.

use crate::story::{Story, what_of};
use crate::{caught, clean, passes};
use waitroom_core::draw::{self, LaneCount};
use waitroom_core::permutation::Permutation;
use waitroom_core::settings::DrawSettings;
use waitroom_core::{Actor, LaneId, Number, Ticket, What};

const SEED: [u8; 32] = [5; 32];

struct Drawn {
    story: Story,
    committed: u64,
    closed: u64,
    drawn: u64,
    /// Those who take part, in the order in which they are to be served.
    order: Vec<Ticket>,
}

/// Eight people take part in a draw, three come later.
fn a_draw() -> Drawn {
    let mut story = Story::closed(|settings| settings.draw = Some(DrawSettings { beacon: None }));
    let commitment = draw::commitment(&SEED);
    let beacon = Some("round 7".to_owned());
    let committed = story.push(What::DrawCommitted { commitment, sealed_seed: Vec::new(), beacon });
    story.push(What::DoorsOpened);
    for client in 0..8 {
        story.join(client);
    }
    let closed = story.push(What::DrawClosed { counts: vec![(LaneId(0), 8), (LaneId(1), 0)] });
    for client in 8..11 {
        story.join(client);
    }
    let chain = story.history.log[closed as usize - 1].chain;
    let beacon = Some(b"beacon".to_vec());
    let counts = [LaneCount { lane: 0, count: 8 }, LaneCount { lane: 1, count: 0 }];
    let key = draw::final_key(&SEED, &counts, &chain, beacon.as_deref());
    let permutation = Permutation::new(draw::lane_key(&key, 0), 8);
    let order = (0..8).map(|order| Ticket::new(0, permutation.inverse(order))).collect();
    let by = Actor::default();
    let drawn = story.push(What::Drawn { seed: SEED, chain, beacon, waived: false, by });
    story.wait(1_000);
    Drawn { story, committed, closed, drawn, order }
}

#[test]
fn a_draw_as_published_passes_with_people_leaving_and_coming_later() {
    let Drawn { mut story, order, .. } = a_draw();
    story.lapse(order[3]);
    for ticket in order.iter().enumerate().filter(|(i, _)| *i != 3).map(|(_, ticket)| *ticket) {
        story.admit(ticket);
    }
    for number in 8..11 {
        story.admit(Ticket::new(0, number));
    }
    clean(&story.told());
}

#[test]
fn two_neighbours_in_the_order_that_are_swapped_are_caught() {
    for at in 0..7 {
        let Drawn { mut story, mut order, .. } = a_draw();
        order.swap(at, at + 1);
        for ticket in order {
            story.admit(ticket);
        }
        caught(7, &story.told());
    }
}

#[test]
fn admitting_by_number_instead_of_by_order_is_caught() {
    let Drawn { mut story, order, .. } = a_draw();
    assert!(!order.is_sorted(), "the seed of this test shuffles");
    for number in 0..8 {
        story.admit(Ticket::new(0, number));
    }
    caught(7, &story.told());
}

#[test]
fn who_came_after_the_close_does_not_pass_the_last_of_the_draw() {
    let Drawn { mut story, order, .. } = a_draw();
    for ticket in &order[..7] {
        story.admit(*ticket);
    }
    clean(&story.history_for_now());
    story.admit(Ticket::new(0, 8));
    caught(7, &story.told());
}

#[test]
fn a_count_that_is_one_off_is_caught() {
    for published in [7, 9] {
        let Drawn { mut story, closed, .. } = a_draw();
        let counts = vec![(LaneId(0), published), (LaneId(1), 0)];
        *what_of(&mut story.history, closed) = What::DrawClosed { counts };
        caught(7, &story.told());
    }
}

#[test]
fn a_lane_that_is_left_out_or_named_twice_is_caught() {
    for counts in
        [vec![], vec![(LaneId(0), 8), (LaneId(0), 8)], vec![(LaneId(1), 1), (LaneId(0), 8)]]
    {
        let Drawn { mut story, closed, .. } = a_draw();
        *what_of(&mut story.history, closed) = What::DrawClosed { counts };
        caught(7, &story.told());
    }
}

#[test]
fn another_seed_than_the_committed_one_is_caught() {
    let Drawn { mut story, committed, .. } = a_draw();
    let What::DrawCommitted { commitment, .. } = what_of(&mut story.history, committed) else {
        panic!()
    };
    commitment[31] ^= 1;
    caught(7, &story.told());
}

#[test]
fn the_chain_of_the_batch_after_the_close_is_caught() {
    let Drawn { mut story, closed, drawn, .. } = a_draw();
    let next = story.history.log[closed as usize].chain;
    let What::Drawn { chain, .. } = what_of(&mut story.history, drawn) else { panic!() };
    *chain = next;
    caught(7, &story.told());
}

#[test]
fn a_beacon_goes_in_if_one_was_named_or_an_operator_waived_it() {
    for (named, used, waived, fine) in [
        (true, true, false, true),
        (true, false, true, true),
        (false, false, false, true),
        (true, false, false, false),
        (true, true, true, false),
        (false, true, false, false),
        (false, false, true, false),
    ] {
        let Drawn { mut story, committed, drawn, .. } = a_draw();
        if let What::DrawCommitted { beacon, .. } = what_of(&mut story.history, committed) {
            *beacon = named.then(|| "round 7".to_owned());
        }
        if let What::Drawn { beacon, waived: flag, .. } = what_of(&mut story.history, drawn) {
            *beacon = used.then(|| b"beacon".to_vec());
            *flag = waived;
        }
        let history = story.told();
        if fine { passes(7, &history) } else { caught(7, &history) }
    }
}

#[test]
fn a_draw_that_is_made_again_or_was_never_closed_is_caught() {
    let Drawn { mut story, drawn, .. } = a_draw();
    let again = story.history.log[drawn as usize - 1].event.what.clone();
    story.push(again);
    caught(7, &story.told());

    let Drawn { mut story, closed, .. } = a_draw();
    *what_of(&mut story.history, closed) = What::DoorsOpened;
    caught(7, &story.told());

    let Drawn { mut story, committed, .. } = a_draw();
    *what_of(&mut story.history, committed) = What::DoorsOpened;
    caught(7, &story.told());
}

#[test]
fn an_admission_one_event_before_the_draw_is_caught() {
    let Drawn { mut story, order, drawn, .. } = a_draw();
    story.admit(order[0]);
    let mut history = story.told();
    clean(&history);
    let last = history.log.len() - 1;
    let (a, b) = (history.log[drawn as usize - 1].event.clone(), history.log[last].event.clone());
    history.log[drawn as usize - 1].event = b;
    history.log[last].event = a;
    caught(7, &history);
}

/// Sixteen people in one shuffle window, and the order in which they are served.
fn a_window() -> (Story, Vec<Ticket>) {
    let mut story = Story::new(|settings| settings.shuffle_window = 16);
    for client in 0..20 {
        story.join(client);
    }
    story.push(What::Sealed { lane: LaneId(0), start: Number(0), len: 16, seed: [3; 16] });
    let permutation = Permutation::new(draw::window_key(&[3; 16], 0, 0), 16);
    let order = (0..16).map(|order| Ticket::new(0, permutation.inverse(order))).collect();
    (story, order)
}

#[test]
fn a_shuffle_window_is_served_in_its_published_order() {
    let (mut story, order) = a_window();
    for ticket in &order {
        story.admit(*ticket);
    }
    clean(&story.history_for_now());
    // The seventeenth has no order yet.
    story.admit(Ticket::new(0, 16));
    caught(7, &story.told());

    let (mut story, mut order) = a_window();
    order.swap(14, 15);
    for ticket in order {
        story.admit(ticket);
    }
    caught(7, &story.told());
}

#[test]
fn a_window_that_is_one_too_long_or_begins_one_off_is_caught() {
    for (start, len, fine) in
        [(16, 4, true), (16, 5, false), (15, 4, false), (17, 3, false), (16, 0, false)]
    {
        let (mut story, _) = a_window();
        let start = Number(start);
        story.push(What::Sealed { lane: LaneId(0), start, len, seed: [4; 16] });
        let history = story.told();
        if fine { passes(7, &history) } else { caught(7, &history) }
    }
}
