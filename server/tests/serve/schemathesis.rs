//! The OpenAPI document against the real server, by a tool that tries to break it.

use std::path::PathBuf;
use std::process::Command;

use crate::instance::{Instance, KEY};

const VERSION: &str = "4.32.5";

/// Schemathesis in a virtual environment of its own, made once.
fn schemathesis() -> PathBuf {
    let venv = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("schemathesis-{VERSION}"));
    let program = venv.join("bin/schemathesis");
    if !program.exists() {
        let run = |command: &mut Command| {
            let done = command.output().expect("Python 3 is needed for this test");
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        };
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv));
        let wanted = format!("schemathesis=={VERSION}");
        run(Command::new(venv.join("bin/pip")).args(["install", "-q", &wanted]));
    }
    program
}

#[test]
fn schemathesis_finds_no_answer_that_the_document_does_not_describe() {
    let program = schemathesis();
    // Limits off, or most answers would be 429.
    let server = Instance::with(&[
        ("WAITROOM_LIMITS_JOIN", "none"),
        ("WAITROOM_LIMITS_STATUS", "none"),
        ("WAITROOM_LIMITS_HEARTBEAT", "none"),
        ("WAITROOM_LIMITS_SESSION", "none"),
    ]);
    let joined = server.join(1);
    let bearer = format!("Authorization: Bearer {}", joined["token"].as_str().expect("a token"));
    let key = format!("X-Api-Key: {KEY}");
    let schema = format!("{}/openapi.json", server.public);
    // Rules between the keys of a room's document are no business of a schema, so a document that
    // fits the schema may still be refused; and whatever is asked without a key is 401 there.
    let rules = "ignored_auth,positive_data_acceptance";
    for (url, header, scope, unchecked) in [
        (&server.public, &bearer, "--exclude-path-regex=/admin/|/live$|/stream$", "ignored_auth"),
        (&server.admin, &key, "--include-path-regex=/admin/", rules),
    ] {
        // It keeps what it found in the folder it runs in.
        let out = Command::new(&program)
            .current_dir(env!("CARGO_TARGET_TMPDIR"))
            .args(["run", &schema, "--url", url, "-H", header, scope])
            .args(["--seed", "1", "--max-examples", "20", "--phases", "examples,coverage,fuzzing"])
            .args(["--exclude-checks", unchecked, "--no-color", "--workers", "1"])
            .output()
            .expect("schemathesis runs");
        let said = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success(), "{said}\n{}", String::from_utf8_lossy(&out.stderr));
    }
}
