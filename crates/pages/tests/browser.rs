//! The waiting page in a real Chromium, against the real server: `browser/tests.mjs` says what is
//! promised. It needs Node, npm and Chromium, and a built `waitroom`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The server's program: named in the environment, or built beside this test's own.
fn waitroom() -> PathBuf {
    if let Some(named) = std::env::var_os("WAITROOM_BIN") {
        return named.into();
    }
    let built = Path::new(env!("CARGO_BIN_EXE_render-page")).with_file_name("waitroom");
    assert!(
        built.exists(),
        "the page is tested against the real server, which is not built: run `cargo build -p \
         waitroom`, or name a program in WAITROOM_BIN ({} is not there)",
        built.display()
    );
    built
}

#[test]
fn the_page_keeps_its_promises_in_a_browser() {
    let parts = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser-parts");
    let out = Command::new("node")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/browser/tests.mjs"))
        .env("WAITROOM_BIN", waitroom())
        .env("RENDER_PAGE", env!("CARGO_BIN_EXE_render-page"))
        .env("WAITROOM_BROWSER_PARTS", parts)
        .output()
        .expect("Node is needed for this test: apt-get install nodejs npm");
    let said = String::from_utf8_lossy(&out.stdout);
    println!("{said}");
    let error = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{said}\n{error}");
}
