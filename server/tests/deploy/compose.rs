//! The image's recipe by its linter, the compose file by the library that Compose itself reads it
//! with; its configuration on real Valkeys with the settings that it gives them, behind its
//! balancer.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::instance::{curl, soon};
use crate::part::{Part, deployed, folder, free_port};
use crate::servers::{Server, until};
use crate::tools::{compose, done, file, python, waitroom};

#[test]
fn the_recipe_of_the_image_is_without_complaints() {
    done(python("hadolint").args(["--failure-threshold", "style"]).arg(file("docker/Dockerfile")));
}

/// The compose file as Compose understands it.
fn project() -> Value {
    let folder = folder("compose");
    let text = deployed("docker/compose.yaml", &[]);
    // The library takes no variables from outside.
    let mut plain = String::new();
    for (at, part) in text.split("${").enumerate() {
        match part.split_once('}') {
            Some((_, rest)) if at > 0 => plain.extend(["secret", rest]),
            _ => plain.push_str(part),
        }
    }
    let file = folder.join("compose.yaml");
    std::fs::write(&file, plain).expect("a file");
    let said = done(compose().args(["-format", "json"]).arg(&file));
    let _ = std::fs::remove_dir_all(folder);
    serde_json::from_str(&said).expect("JSON was asked for")
}

#[test]
fn compose_understands_the_file_and_an_instance_has_time_to_drain() {
    let project = project();
    for name in ["waitroom-1", "waitroom-2", "waitroom-3"] {
        let instance = &project["services"][name];
        assert_eq!(instance["read_only"], true, "{name}");
        assert_eq!(instance["stop_grace_period"], "40s", "{name}");
        let given = instance["environment"].as_object().expect("variables");
        assert!(given.contains_key("WAITROOM_MASTER_KEY"), "{given:?}");
        let told = format!("{name}:7946");
        assert_eq!(given["WAITROOM_CLUSTER_ADVERTISE"], told.as_str(), "its own name");
    }
    let config = std::fs::read_to_string(file("docker/waitroom.toml")).expect("it is there");
    assert!(config.contains("drain = \"30s\""), "less than the grace period");
}

/// The settings that the compose file gives a Valkey.
fn settings(project: &Value, name: &str) -> Vec<String> {
    let command = project["services"][name]["command"].as_array().expect("a command");
    let words = command.iter().map(|word| word.as_str().expect("a word").to_owned());
    let mut words: Vec<String> = words.collect();
    assert_eq!(words.remove(0), "valkey-server");
    words
}

/// An instance that ends with the test.
struct Served(Child, String);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn its_configuration_starts_on_its_valkeys_and_is_reached_through_its_balancer() {
    let project = project();
    let words = settings(&project, "valkey");
    let primary = Server::start("valkey-server", &words.iter().map(|it| &**it).collect::<Vec<_>>());
    let mut words = settings(&project, "valkey-replica");
    let at = words.iter().position(|word| word == "--replicaof").expect("it follows");
    assert_eq!(words[at + 1..], ["valkey", "6379"]);
    words[at + 1] = "127.0.0.1".into();
    words[at + 2] = primary.port.to_string();
    let replica = Server::start("valkey-server", &words.iter().map(|it| &**it).collect::<Vec<_>>());
    until("the replica has all of it", || primary.is_followed());

    let data = folder("compose-data");
    let mut child = waitroom()
        .args(["serve", "--addresses-json", "--config"])
        .arg(file("docker/waitroom.toml"))
        .args(["--public", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--grpc", "127.0.0.1:0"])
        .env("WAITROOM_MASTER_KEY", "5a".repeat(32))
        .env("WAITROOM_ADMIN_KEY", "an-owner-of-compose")
        .env("WAITROOM_REDIS_URLS", primary.url())
        .env("WAITROOM_TRUST_PROXIES", "127.0.0.1")
        .env("WAITROOM_CLUSTER_LISTEN", "127.0.0.1:0")
        .arg("--data")
        .arg(&data)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary was built with this test");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("stdout is piped");
    let _ = BufReader::new(stdout).read_line(&mut line);
    let served = Served(child, line);
    let addresses: Value = serde_json::from_str(&served.1).expect("it says where it listens");
    let public = addresses["public"].as_str().expect("an address").to_owned();
    let admin = addresses["admin"].as_str().expect("an address").to_owned();

    // One instance is there; the two others are ports where nobody listens.
    let nobody = || format!("127.0.0.1:{}", free_port());
    let (port, admin_port, folder) = (free_port(), free_port(), folder("balancer"));
    let config = deployed(
        "docker/balancer.conf",
        &[
            ("waitroom-1:8080", &nobody()),
            ("waitroom-2:8080", &public),
            ("waitroom-3:8080", &nobody()),
            ("waitroom-1:8081", &nobody()),
            ("waitroom-2:8081", &admin),
            ("waitroom-3:8081", &nobody()),
            ("listen 8080", &format!("listen 127.0.0.1:{port}")),
            ("listen 8081", &format!("listen 127.0.0.1:{admin_port}")),
            // One process, so that it ends with the test; each more would have a socket of its own.
            ("worker_processes auto", "worker_processes 1"),
            ("/tmp/nginx.pid", &folder.join("nginx.pid").to_string_lossy()),
        ],
    );
    std::fs::write(folder.join("nginx.conf"), config).expect("a file");
    let mut nginx = Command::new("nginx");
    nginx.arg("-p").arg(&folder).args(["-c", "nginx.conf"]);
    nginx.args(["-g", "daemon off; master_process off;"]);
    let balancer = Part::run(nginx, port, folder);
    let url = |path: &str| format!("{}{path}", balancer.url());
    for _ in 0..10 {
        assert_eq!(curl(&[&url("/health/ready")]).status, 200, "the one that is there answers");
    }
    let join = |who: &str| {
        let from = format!("X-Forwarded-For: {who}");
        curl(&["-X", "POST", &url("/v1/rooms/default/join"), "-H", &from])
    };
    let joined = join("203.0.113.7");
    assert_eq!(joined.status, 201, "{joined:?}");
    let token = joined.json()["token"].as_str().expect("a token").to_owned();
    let bearer = format!("Authorization: Bearer {token}");
    let seen = soon("the place on a board", || {
        let seen = curl(&[&url("/v1/rooms/default/status"), "-H", &bearer]);
        Some(seen).filter(|it| it.status == 200)
    });
    assert!(seen.json()["status"].is_string(), "{seen:?}");
    let admin = format!("http://127.0.0.1:{admin_port}/admin/v1/rooms");
    let rooms = curl(&[&admin, "-H", "X-Api-Key: an-owner-of-compose"]);
    assert_eq!(rooms.status, 200, "{rooms:?}");
    drop((served, replica));
    let _ = std::fs::remove_dir_all(data);
}
