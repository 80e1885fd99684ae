//! Planted bugs for promise 12.

use crate::story::Story;
use crate::{caught, clean};
use waitroom_sim::history::{Chance, History};

fn look(change: impl FnOnce(&mut Chance)) -> History {
    let mut history = Story::new(|_| {}).told();
    let chance = history.chances.last_mut().expect("a story ends with a look");
    (chance.waiting, chance.slots_free, chance.tokens, chance.admits) = (1, 1, 1, true);
    chance.overdue_slots = 0;
    change(chance);
    history
}

#[test]
fn one_waiting_with_one_slot_and_one_token_is_caught() {
    caught(12, &look(|_| {}));
}

#[test]
fn without_anybody_waiting_a_slot_a_token_or_the_right_to_admit_nothing_sticks() {
    clean(&look(|chance| chance.waiting = 0));
    clean(&look(|chance| chance.slots_free = 0));
    clean(&look(|chance| chance.tokens = 0));
    clean(&look(|chance| chance.admits = false));
}

#[test]
fn one_slot_whose_time_has_passed_is_caught_even_when_nobody_waits() {
    caught(12, &look(|chance| (chance.waiting, chance.overdue_slots) = (0, 1)));
}
