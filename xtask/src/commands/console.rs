//! `cargo xtask console`: builds the operator console (`crates/console/web`) for the binary.
//!
//! What Vite writes to `web/dist` is embedded by the next `cargo build`. Exactly the versions of
//! the lock file are installed, and only when they changed: the second run takes a second.

use std::fs;
use std::time::Duration;

use super::setup;
use crate::failure::{Failure, OrFail, Outcome};
use crate::shell::{Run, root};

const WEB: &str = "crates/console/web";
/// Vite needs this one or newer; the Node of older systems ends with a riddle.
const NODE_MAJOR_MIN: u32 = 20;
/// Twenty small packages from the registry; a slow one takes a minute.
const INSTALL_LIMIT: Duration = Duration::from_secs(5 * 60);
const BUILD_LIMIT: Duration = Duration::from_secs(3 * 60);

pub fn run() -> Outcome {
    setup::only(&["node", "npm"])?;
    let said = Run::new("node --version").read()?;
    if major(&said).is_none_or(|major| major < NODE_MAJOR_MIN) {
        let said = said.trim();
        return Err(Failure::new(format!(
            "this is Node {said}; the console is built with Node {NODE_MAJOR_MIN} or newer"
        )));
    }
    install()?;
    Run::new("npm run build --silent --prefix").arg(WEB).within(BUILD_LIMIT).run()?;
    eprintln!("console: built; the next `cargo build` puts it into the binary");
    Ok(())
}

/// What the lock file names, by its hashes, and nothing is written back. Not `npm ci`: that one
/// refuses a lock file that lacks the bundler's natives of other systems, and a registry that
/// mirrors only ours does not have them. Left out while the lock file is the same.
fn install() -> Outcome {
    let lock = fs::read(root().join(WEB).join("package-lock.json"))
        .or_fail(|| format!("read {WEB}/package-lock.json"))?;
    let note = root().join(WEB).join("node_modules/.installed-lock.json");
    if fs::read(&note).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    Run::new("npm install --no-save --no-audit --no-fund --prefix")
        .arg(WEB)
        .within(INSTALL_LIMIT)
        .run()?;
    fs::write(&note, lock).or_fail(|| format!("write {}", note.display()))
}

/// `v20.20.2` is 20.
fn major(version: &str) -> Option<u32> {
    version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_that_node_prints_is_read() {
        assert_eq!(major("v20.20.2\n"), Some(20));
        assert_eq!(major("v8"), Some(8));
        assert_eq!(major("20.1"), None);
    }
}
