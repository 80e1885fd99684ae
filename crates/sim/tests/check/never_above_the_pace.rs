//! Planted bugs for promise 5.

use crate::story::Story;
use crate::{caught, clean, passes};
use waitroom_core::settings::{NoShow, Rate};
use waitroom_core::{Actor, AdmitWhy, Entry, Hold, Millis, Settings, What};
use waitroom_sim::history::History;

fn ten_a_second(burst: u32) -> impl FnOnce(&mut Settings) {
    move |settings| {
        settings.rate = Some(Rate { count: 10, per: Millis(1_000) });
        settings.burst = Some(burst);
    }
}

/// A room whose bucket is as full as it gets.
fn saved_up(burst: u32) -> Story {
    let mut story = Story::new(ten_a_second(burst));
    story.wait(60_000);
    story
}

fn admit(story: &mut Story, count: usize) {
    for _ in 0..count {
        let ticket = story.join(1);
        story.admit(ticket);
    }
}

#[test]
fn a_burst_passes_and_one_more_in_the_same_moment_is_caught() {
    let mut story = saved_up(3);
    admit(&mut story, 3);
    clean(&story.history_for_now());
    admit(&mut story, 1);
    caught(5, &story.told());
}

#[test]
fn a_window_exactly_at_the_bound_passes_and_one_millisecond_less_is_caught() {
    for (ms, fine) in [(100, true), (99, false)] {
        let mut story = saved_up(3);
        admit(&mut story, 3);
        story.wait(ms);
        admit(&mut story, 1);
        let history = story.told();
        if fine { clean(&history) } else { caught(5, &history) }
    }
}

#[test]
fn one_too_many_in_a_long_window_of_many_admissions_is_caught() {
    for (last_ms, fine) in [(100, true), (99, false)] {
        let mut story = saved_up(2);
        admit(&mut story, 2);
        for (ms, count) in [(250, 2), (50, 0), (50, 1), (30, 0), (70, 1)] {
            story.wait(ms);
            admit(&mut story, count);
        }
        story.wait(last_ms);
        admit(&mut story, 1);
        let history = story.told();
        if fine { clean(&history) } else { caught(5, &history) }
    }
}

#[test]
fn without_a_burst_it_is_one_ticks_worth_and_at_least_one() {
    for (tick, burst) in [(200, 2), (500, 5), (20, 1)] {
        let mut story = Story::new(|settings| {
            settings.rate = Some(Rate { count: 10, per: Millis(1_000) });
            (settings.burst, settings.tick) = (None, Millis(tick));
        });
        story.wait(60_000);
        admit(&mut story, burst);
        clean(&story.history_for_now());
        admit(&mut story, 1);
        caught(5, &story.told());
    }
}

#[test]
fn straight_admissions_cost_a_token_and_an_operators_do_not() {
    for (why, fine) in [(AdmitWhy::Straight, false), (AdmitWhy::Manual, true)] {
        let mut story = saved_up(1);
        admit(&mut story, 1);
        let ticket = story.join(1);
        if why == AdmitWhy::Manual {
            story.push(What::AdmittedNow { asked: 1, granted: 1, by: Actor::default() });
        }
        let entry = Entry::MustClaim { by: story.now };
        story.admit_by(ticket, why, entry);
        let history = story.told();
        if fine { clean(&history) } else { caught(5, &history) }
    }
}

#[test]
fn a_room_without_a_rate_admits_nobody_by_itself() {
    let mut story = Story::new(|settings| settings.rate = None);
    admit(&mut story, 1);
    caught(5, &story.told());
}

/// An admission that nobody claims, then one more.
fn a_no_show(no_show: NoShow, then: usize) -> History {
    let mut story = saved_up(1);
    story.configure(|settings| settings.no_show = no_show);
    let ticket = story.join(1);
    story.admit(ticket);
    story.no_show(ticket);
    admit(&mut story, then);
    story.told()
}

#[test]
fn a_no_show_gives_its_token_back_once_and_only_where_settings_say_so() {
    clean(&a_no_show(NoShow::Return, 1));
    caught(5, &a_no_show(NoShow::Return, 2));
    clean(&a_no_show(NoShow::Keep, 0));
    caught(5, &a_no_show(NoShow::Keep, 1));
}

#[test]
fn a_no_show_that_is_told_twice_gives_one_token() {
    let mut story = saved_up(2);
    story.configure(|settings| settings.no_show = NoShow::Return);
    let ticket = story.join(1);
    story.admit(ticket);
    admit(&mut story, 1);
    story.no_show(ticket);
    story.no_show(ticket);
    admit(&mut story, 1);
    passes(5, &story.history_for_now());
    admit(&mut story, 1);
    caught(5, &story.told());
}

#[test]
fn a_token_that_comes_back_to_a_full_bucket_is_lost() {
    let mut story = saved_up(2);
    story.configure(|settings| settings.no_show = NoShow::Return);
    let ticket = story.join(1);
    story.admit(ticket);
    story.wait(60_000);
    story.no_show(ticket);
    admit(&mut story, 2);
    clean(&story.history_for_now());
    admit(&mut story, 1);
    caught(5, &story.told());
}

/// What happens between saving up and admitting; 100 ms later there is one token and no more.
fn after(event: impl Fn(&mut Story)) {
    let mut story = saved_up(5);
    event(&mut story);
    story.wait(99);
    let early = &mut story.clone();
    admit(early, 1);
    caught(5, &early.history_for_now());
    story.wait(1);
    admit(&mut story, 1);
    passes(5, &story.history_for_now());
    admit(&mut story, 1);
    caught(5, &story.told());
}

#[test]
fn a_restart_a_pause_and_a_reopening_leave_no_burst_to_catch_up_with() {
    after(Story::reopen_by_another_owner);
    after(|story| {
        let hold = Hold::Paused { reason: "a moment".into() };
        story.push(What::Held { hold, by: Actor::default() });
        story.wait(60_000);
        story.push(What::Resumed { by: Actor::default() });
    });
    after(|story| {
        story.push(What::Reopened { by: Actor::default() });
    });
    after(|story| {
        story.push(What::SaleStarted);
    });
}

#[test]
fn a_live_change_keeps_what_was_saved_up_to_the_new_burst() {
    // From 5 saved to a burst of 3, and from 2 saved to a burst of 3.
    for (old, kept) in [(5, 3), (2, 2)] {
        let mut story = saved_up(old);
        story.configure(|settings| {
            settings.rate = Some(Rate { count: 7, per: Millis(60_000) });
            settings.burst = Some(3);
        });
        admit(&mut story, kept);
        clean(&story.history_for_now());
        admit(&mut story, 1);
        caught(5, &story.told());
    }
}

#[test]
fn a_window_over_a_live_change_counts_each_rate_for_its_part() {
    // Half a token at ten a second, the other half at one a second.
    for (ms, fine) in [(500, true), (499, false)] {
        let mut story = saved_up(1);
        admit(&mut story, 1);
        story.wait(50);
        story.configure(|settings| settings.rate = Some(Rate { count: 1, per: Millis(1_000) }));
        story.wait(ms);
        admit(&mut story, 1);
        let history = story.told();
        if fine { clean(&history) } else { caught(5, &history) }
    }
}

#[test]
fn a_rate_that_comes_after_none_begins_with_nothing() {
    let mut story = saved_up(5);
    story.configure(|settings| settings.rate = None);
    story.wait(60_000);
    story.configure(ten_a_second(5));
    passes(5, &story.history_for_now());
    admit(&mut story, 1);
    caught(5, &story.told());
}
