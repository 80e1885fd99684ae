//! Somebody in a real Chromium stands in the demo's line, is let in and buys a seat.
//!
//! The steps are `browser.mjs`; Playwright and axe come from the parts of the pages' tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::play::Play;

#[test]
fn a_person_waits_moves_up_is_let_in_and_buys_a_seat() {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the server is in the repository");
    // A crowd that is still there when the person comes, and seats enough for all of them.
    let play = Play::start(&["--visitors", "60", "--seats", "450", "--quiet"]);
    let parts = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("browser-parts");
    let ran = Command::new("node")
        .arg(root.join("server/tests/demo/browser.mjs"))
        .env("PARTS_MODULE", root.join("crates/pages/browser/parts.mjs"))
        .env("WAITROOM_BROWSER_PARTS", parts)
        .env("DEMO_PUBLIC", format!("http://{}", play.public))
        .env("DEMO_SHOP", format!("http://{}", play.shop))
        .env("DEMO_ADMIN", format!("http://{}", play.admin))
        .env("DEMO_KEY", &play.key)
        .output()
        .expect("Node is needed for this test: cargo xtask setup");
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    let error = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}\n{error}");
    play.interrupt();
    let ended = play.end();
    assert_eq!(ended.exit, Some(0), "{ended:?}");
    assert_eq!(ended.report["orders_without_a_pass"], 0, "{ended:?}");
    assert!(
        ended.report["orders"].as_u64() >= Some(2),
        "theirs and the one with no script: {ended:?}"
    );
}
