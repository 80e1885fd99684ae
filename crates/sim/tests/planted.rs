//! Every promise has bugs planted for it, and its checker finds each of them.
//!
//! A bug that its checker misses in all these seeds is a checker that cannot fail.

use waitroom_sim::world::{Bug, run, run_whole};

/// More than enough: most bugs show in the first seed that has the right kind of room.
const SEEDS: u64 = 60;

fn seed_that_shows(promise: u8, bug: Bug) -> Option<u64> {
    (0..SEEDS).find(|seed| {
        let outcomes = run(*seed, Some(bug));
        outcomes.violations.iter().any(|it| it.promise == promise)
    })
}

#[test]
fn every_planted_bug_is_found_by_its_checker() {
    let found: Vec<(u8, Bug, Option<u64>)> = std::thread::scope(|scope| {
        let halves = Bug::ALL.chunks(Bug::ALL.len().div_ceil(2)).map(|bugs| {
            scope.spawn(|| {
                bugs.iter()
                    .map(|(promise, bug)| (*promise, *bug, seed_that_shows(*promise, *bug)))
                    .collect::<Vec<_>>()
            })
        });
        let halves: Vec<_> = halves.collect();
        halves.into_iter().flat_map(|half| half.join().expect("runs do not panic")).collect()
    });
    for (promise, bug, seed) in &found {
        match seed {
            Some(seed) => println!("promise {promise:>2}  {bug:?} found with seed {seed}"),
            None => println!("promise {promise:>2}  {bug:?} NOT FOUND in {SEEDS} seeds"),
        }
    }
    let missed: Vec<_> = found.iter().filter(|it| it.2.is_none()).collect();
    assert!(missed.is_empty(), "checkers that miss their bugs: {missed:?}");
}

#[test]
fn every_promise_has_two_bugs_planted() {
    for promise in 1..=15 {
        let bugs = Bug::ALL.iter().filter(|(it, _)| *it == promise).count();
        assert!(bugs >= 2, "promise {promise} has {bugs}");
    }
}

#[test]
fn a_seed_replays_exactly() {
    for seed in [4, 5] {
        assert_eq!(run(seed, None).trace(), run(seed, None).trace(), "seed {seed}");
    }
}

/// Each in a thread of its own, beside another run: what a seed does is not what its neighbours do.
#[test]
fn a_run_of_whole_instances_replays_letter_for_letter() {
    let traces = |seeds: [u64; 6]| seeds.map(|seed| run_whole(seed).trace());
    let runs = std::thread::scope(|scope| {
        let first = scope.spawn(|| traces([0, 1, 2, 3, 4, 5]));
        let again = scope.spawn(|| {
            let mut again = traces([5, 4, 3, 2, 1, 0]);
            again.reverse();
            again
        });
        [first, again].map(|run| run.join().expect("runs do not panic"))
    });
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0][0], runs[0][1], "another seed is another run");
}
