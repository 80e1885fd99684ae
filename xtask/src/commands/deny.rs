//! The CI step `deny`: licences, sources and bans of our dependencies, by cargo-deny.
//!
//! Known vulnerabilities need a database that lives on a git host. Where that cannot be
//! reached the check is left out, loudly: a silent gap would read as a clean bill.

use std::time::Duration;

use super::tool::{Profile, Tool};
use crate::failure::Outcome;
use crate::shell::Run;

const CARGO_DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2", profile: Profile::Debug };

/// A database that takes longer to fetch is as good as out of reach.
const FETCH_LIMIT: Duration = Duration::from_secs(60);

pub fn run() -> Outcome {
    let deny = CARGO_DENY.path()?.to_string_lossy().into_owned();
    let deny = |words: &str| Run::new(&deny).args(words.split(' '));
    deny("check bans licenses sources").run()?;
    match deny("fetch db").within(FETCH_LIMIT).run() {
        Ok(()) => deny("check --disable-fetch advisories").run(),
        Err(failure) => {
            eprintln!("\n{BAR}\nWARNING: advisories were NOT checked: {failure}\n{BAR}\n");
            Ok(())
        }
    }
}

const BAR: &str =
    "********************************************************************************";
