//! nginx asks by `auth_request`.

use std::process::Command;

use crate::house::House;
use crate::part::{Part, deployed, folder, free_port};
use crate::promises::{Alone, only_holders_come_in};

/// nginx with this configuration inside `http`. `listen 80` becomes a free port.
pub fn run(site: &str) -> Part {
    let (folder, port) = (folder("nginx"), free_port());
    let site = site.replace("listen 80;", &format!("listen 127.0.0.1:{port};"));
    std::fs::write(folder.join("site.conf"), site).expect("a file");
    // One process in the foreground, so that it ends with the test.
    let main = "daemon off; master_process off; pid nginx.pid; error_log stderr;\n\
         events { worker_connections 1024; }\n\
         http { access_log off; client_body_temp_path body; proxy_temp_path proxy;\n\
         fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;\n\
         include site.conf; }\n";
    std::fs::write(folder.join("nginx.conf"), main).expect("a file");
    let mut command = Command::new("nginx");
    command.arg("-p").arg(&folder).args(["-c", "nginx.conf"]);
    Part::run(command, port, folder)
}

fn start(room: &str, house: &House, shop: &str) -> Part {
    let gate = house.address();
    let room = format!("room={room}");
    let changes = [("127.0.0.1:8080", gate), ("127.0.0.1:3000", shop), ("room=default", &*room)];
    run(&deployed("nginx/waitroom.conf", &changes))
}

#[test]
fn nginx_lets_in_only_who_holds_a_pass() {
    only_holders_come_in(start, Alone::NobodyComesIn { status: 500 });
}
