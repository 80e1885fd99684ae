//! `cargo xtask sim`: runs seeds, compares with the model, judges by the promises.
//!
//! A failing seed is printed with the commit and replays exactly with `--seed S`.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use waitroom_sim::world::{Bug, Totals, Weather, run, run_whole};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = arguments.iter().position(|it| it == name)?;
        arguments.get(at + 1)?.parse::<u64>().ok()
    };
    let known = ["--seeds", "--seed", "--first", "--bug", "--machines", "--twice"];
    let known = |it: &String| known.contains(&it.as_str());
    let twice = arguments.iter().any(|it| it == "--twice");
    let whole = arguments.iter().any(|it| it == "--machines");
    let odd = arguments.iter().find(|it| it.starts_with('-') && !known(it));
    if odd.is_some() || (value("--seeds").is_none() && value("--seed").is_none()) {
        eprintln!("usage: sim --seeds N [--first S]   runs N seeds");
        eprintln!("       sim --seed S                replays one");
        eprintln!("       … --machines                whole instances in all, not in every fifth");
        eprintln!("       … --twice                   each seed twice, and both runs are the same");
        eprintln!("       sim --seeds N --bug NAME    which of N seeds show a planted bug");
        return ExitCode::from(64);
    }
    if let Some(at) = arguments.iter().position(|it| it == "--bug") {
        return find(arguments.get(at + 1), value("--seeds").unwrap_or(0));
    }
    let (first, seeds) = match value("--seed") {
        Some(seed) => (seed, 1),
        None => (value("--first").unwrap_or(0), value("--seeds").unwrap_or(0)),
    };
    let started = Instant::now();
    let next = AtomicU64::new(first);
    let sum = Mutex::new((Totals::default(), Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + seeds {
                        return;
                    }
                    let (totals, failed) = judge(seed, whole, twice);
                    let mut sum = sum.lock().expect("a judge does not panic");
                    sum.0.add(&totals);
                    sum.1.extend(failed);
                }
            });
        }
    });
    let (totals, mut failed) = sum.into_inner().expect("a judge does not panic");
    failed.sort();
    println!("{seeds} seeds in {:.1?}", started.elapsed());
    print!("{totals}");
    for (seed, said) in failed.iter().take(10) {
        println!("seed {seed} failed at commit {}: {said}", commit());
        let machines = if whole { " --machines" } else { "" };
        println!("  replay: cargo xtask sim --seed {seed}{machines}");
    }
    let is_whole = |seed: &u64| whole || Weather::of(*seed, None) == Weather::Machines;
    let of_whole = (first..first + seeds).filter(is_whole).count() as u64;
    let quiet = if seeds >= 100 { totals.too_quiet(seeds, of_whole) } else { Vec::new() };
    for (name, seen, floor) in &quiet {
        println!("too quiet: {seen} {name}, expected at least {floor}");
    }
    println!("{} passed, {} failed", seeds - failed.len() as u64, failed.len());
    if failed.is_empty() && quiet.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Which seeds show a bug that is planted in them, and to which promises.
fn find(name: Option<&String>, seeds: u64) -> ExitCode {
    let named = |bug: &Bug| name.is_some_and(|name| format!("{bug:?}") == *name);
    let Some(bug) = Bug::ALL.iter().map(|(_, bug)| *bug).find(named) else {
        let all: Vec<String> = Bug::ALL.iter().map(|(_, bug)| format!("{bug:?}")).collect();
        eprintln!("there is no such bug; there are {}", all.join(", "));
        return ExitCode::from(64);
    };
    for seed in 0..seeds {
        let started = Instant::now();
        let found = run(seed, Some(bug)).violations;
        let promises: BTreeSet<u8> = found.iter().map(|it| it.promise).collect();
        let first = found.first().map_or("nothing is wrong", |it| &it.said);
        println!("seed {seed} in {:.1?}: promises {promises:?}; {first}", started.elapsed());
    }
    ExitCode::SUCCESS
}

/// One seed: its totals, and what is wrong with it. A panic is a failure like any other.
fn judge(seed: u64, whole: bool, twice: bool) -> (Totals, Option<(u64, String)>) {
    let once = || if whole { run_whole(seed) } else { run(seed, None) };
    match std::panic::catch_unwind(once) {
        Err(_) => (Totals::default(), Some((seed, "it panicked, see above".into()))),
        Ok(outcomes) => {
            let broken = outcomes.violations.first().map(|it| {
                let more = outcomes.violations.len() - 1;
                format!("promise {} is broken: {} (and {more} more)", it.promise, it.said)
            });
            let differs = || {
                let (first, again) = (outcomes.trace(), once().trace());
                (first != again).then(|| format!("it does not repeat: {first}, then {again}"))
            };
            let said = outcomes.difference.clone().or(broken);
            let said = said.or_else(|| twice.then(differs).flatten());
            (outcomes.totals, said.map(|said| (seed, said)))
        }
    }
}

fn commit() -> String {
    let asked = std::process::Command::new("git").args(["rev-parse", "--short", "HEAD"]).output();
    let said = asked.ok().map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned());
    said.filter(|it| !it.is_empty()).unwrap_or_else(|| "unknown".into())
}
