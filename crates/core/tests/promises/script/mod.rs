//! Promises written as scripts: a room line, then `TIME command | what happens`.
//!
//! ```text
//! room  max_active=1 claim_within=60s
//!  1s   join ana   | joined ana
//!  1s   join bo    | joined bo
//!  1s   tick       | admitted ana claim_by=61s
//! 61s   tick       | no_show ana, admitted bo claim_by=121s
//! 62s   claim ana  | refused wrong_status status=expired
//! ```
//!
//! Lives here: `check` and how a difference is shown. `world.rs` runs one line against the core and
//! is the only place that touches its API; `words.rs` turns events and replies into words;
//! `witness.rs` watches every event of every script for what must always hold; `bare.rs` is a room
//! without it, for large crowds.
//! A line without `|` is there to set the scene: anything may come of it but a refusal.
//! Right of the `|` stand the events, or the answer where there are none.
//! To add a command: an arm in `World::run`, and its event or reply in `words.rs`.

mod bare;
mod settings;
pub mod witness;
mod words;
pub mod world;

pub use bare::Bare;
pub use settings::apply;
pub use world::{T0, World};

/// Runs a script and compares. On a difference the whole script is printed with what really
/// happens, so that a test is brought up to date by copy and paste once the change was judged.
#[track_caller]
pub fn check(script: &str) -> World {
    let mut world = World::empty();
    let mut seen = String::new();
    let mut differences = String::new();
    for line in script.lines().filter(|line| !line.trim().is_empty()) {
        let (asked, expected) = match line.split_once('|') {
            Some((asked, expected)) => (asked, Some(expected.trim())),
            None => (line, None),
        };
        if asked.trim().starts_with('#') {
            seen.push_str(&format!("{line}\n"));
            continue;
        }
        let actual = world.line(asked.trim());
        match expected {
            Some(expected) => {
                seen.push_str(&format!("{asked}| {actual}\n"));
                if expected != actual {
                    let asked = asked.trim();
                    differences.push_str(&format!(
                        "  {asked}\n    expected | {expected}\n    actual   | {actual}\n"
                    ));
                }
            }
            None => {
                seen.push_str(&format!("{line}\n"));
                assert!(!actual.starts_with("refused"), "{line}: sets the scene, but: {actual}");
            }
        }
    }
    if !differences.is_empty() {
        panic!("the room does otherwise:\n{differences}\nto copy, if that is right:\n{seen}");
    }
    world.replays_to_the_same();
    world
}
