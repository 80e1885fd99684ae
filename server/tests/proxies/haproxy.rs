//! HAProxy asks nobody: it checks passes with our public key.

use std::path::Path;
use std::process::Command;

use crate::house::House;
use crate::part::{Part, deployed, folder, free_port};
use crate::promises::{Alone, only_holders_come_in};

fn start(room: &str, house: &House, shop: &str) -> Part {
    let gate = house.address();
    let (folder, port) = (folder("haproxy"), free_port());
    let key = folder.join("waitroom.pem");
    let fetch = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/haproxy/fetch-key");
    let fetched = Command::new("python3")
        .arg(fetch)
        .arg(format!("http://{gate}"))
        .arg(&key)
        .output()
        .expect("Python 3 is needed for this test");
    assert!(fetched.status.success(), "{}", String::from_utf8_lossy(&fetched.stderr));
    let config = deployed(
        "haproxy/haproxy.cfg",
        &[
            ("bind :80\n", &*format!("bind 127.0.0.1:{port}\n")),
            ("/etc/haproxy/waitroom.pem", key.to_str().expect("a path")),
            ("127.0.0.1:8080", gate),
            ("127.0.0.1:3000", shop),
            // Over plain HTTP the cookie has no prefix.
            ("__Host-wr-pass-default", &*format!("wr-pass-{room}")),
            ("-m str default", &*format!("-m str {room}")),
            ("Waitroom-Room default", &*format!("Waitroom-Room {room}")),
        ],
    );
    let file = folder.join("haproxy.cfg");
    std::fs::write(&file, config).expect("a file");
    let mut command = Command::new("haproxy");
    command.args(["-db", "-f"]).arg(&file);
    Part::run(command, port, folder)
}

#[test]
fn haproxy_lets_in_only_who_holds_a_pass_and_asks_nobody() {
    only_holders_come_in(start, Alone::HoldersComeIn);
}
