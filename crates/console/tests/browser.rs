//! The console in real Chromium against the real server; the tests are `browser/tests/*.mjs`.
//!
//! Lives here: finding the parts, and failing with the command that brings a missing one.

use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn the_console_keeps_its_promises_in_a_real_browser() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let browser = here.join("browser");
    assert!(
        here.join("web/dist/index.html").is_file(),
        "the console is not built; run: cargo xtask console"
    );
    let server = server();
    assert!(
        server.is_file(),
        "no server at {}; run: cargo build -p waitroom, or set WAITROOM_BIN",
        server.display()
    );
    if !browser.join("node_modules/playwright-core").is_dir() {
        let installed = Command::new("npm")
            .args(["ci", "--no-audit", "--no-fund"])
            .current_dir(&browser)
            .status()
            .expect("npm is needed for this test: cargo xtask setup");
        assert!(installed.success(), "npm ci in {} ended with {installed}", browser.display());
    }
    let ran = Command::new("node")
        .arg("tests.mjs")
        .current_dir(&browser)
        .env("WAITROOM_BIN", &server)
        .output()
        .expect("node is needed for this test: cargo xtask setup");
    assert!(
        ran.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr)
    );
}

/// Beside the folder of the tests (`target/debug/deps`), unless somebody says another.
fn server() -> PathBuf {
    if let Some(named) = std::env::var_os("WAITROOM_BIN") {
        return named.into();
    }
    let test = std::env::current_exe().expect("a running program has a path");
    let deps = test.parent().expect("it lies in a folder");
    deps.parent().expect("deps lies in the profile's folder").join("waitroom")
}
