//! Caddy asks by `forward_auth`.

use std::process::Command;

use crate::house::House;
use crate::part::{Part, deployed, folder, free_port};
use crate::promises::{Alone, only_holders_come_in};

fn start(room: &str, house: &House, shop: &str) -> Part {
    let gate = house.address();
    let (folder, port) = (folder("caddy"), free_port());
    let room = format!("room={room}");
    let site = deployed(
        "caddy/Caddyfile",
        &[
            ("\n:80 {", &*format!("\nhttp://127.0.0.1:{port} {{")),
            ("127.0.0.1:8080", gate),
            ("127.0.0.1:3000", shop),
            ("room=default", &*room),
        ],
    );
    let file = folder.join("Caddyfile");
    let own = format!(
        "{{\n\tadmin off\n\tauto_https off\n\tstorage file_system {}\n}}\n",
        folder.join("storage").display()
    );
    std::fs::write(&file, own + &site).expect("a file");
    let mut command = Command::new("caddy");
    command.args(["run", "--adapter", "caddyfile", "--config"]).arg(&file).env("HOME", &folder);
    Part::run(command, port, folder)
}

#[test]
fn caddy_lets_in_only_who_holds_a_pass() {
    only_holders_come_in(start, Alone::NobodyComesIn { status: 502 });
}
