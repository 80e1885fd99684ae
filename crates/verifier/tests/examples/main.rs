//! The examples for those who check passes themselves, run with their real runtimes: over every
//! vector, and as a shop on a socket.
//!
//! Lives here: one test per language, and what is known to differ between them. Stays out: our
//! server; the keys and passes of the shops are made here, by the clock on the wall.
//! The runtimes are Debian packages (`cargo xtask setup`), libraries come from their registries
//! once and are kept under `target/tools`. What is missing fails its test: an example that is
//! not run is a claim.
//! To add a language: a folder in `examples/pass-check/`, a row here, its packages in
//! `xtask/src/commands/setup.rs`.

mod issuer;
mod request;
mod shop;
mod vectors;
mod workshop;

use std::process::Command;

use issuer::Issuer;
use shop::Shop;
use workshop::Workshop;

/// JSON readers that take the last of two equal names. Only we could sign such a pass.
const HEADER_TWICE: &str = "alg twice in the header";
const CLAIM_TWICE: &str = "exp twice";
/// A second spelling of a good signature, which the standard allows.
const HIGH_S: &str = "the other spelling of the signature: n - s in place of s";

/// What an example is known to let through, to the letter: its README says the same.
struct Known {
    accepts: &'static [&'static str],
    /// Whether it can check Ed25519; if not, every such pass must be refused.
    eddsa: bool,
}

#[test]
fn the_node_example_keeps_the_rules() {
    let made = Workshop::of("node", &[&["npm", "ci", "--silent", "--no-audit", "--no-fund"]]);
    let known = Known { accepts: &[HEADER_TWICE, CLAIM_TWICE, HIGH_S], eddsa: true };
    vectors::judge(&made.say(&["node", "vectors.js", vectors::PATH]), &known);
    shop_keeps_the_rules(&made, |command| command.args(["node", "server.js"]));
}

#[test]
fn the_python_example_keeps_the_rules() {
    let python = "venv/bin/python3";
    let made = Workshop::of(
        "python",
        &[
            &["python3", "-m", "venv", "venv"],
            &[python, "-m", "pip", "install", "--quiet", "-r", "requirements.txt"],
        ],
    );
    let known = Known { accepts: &[HIGH_S], eddsa: true };
    vectors::judge(&made.say(&[python, "vectors.py", vectors::PATH]), &known);
    shop_keeps_the_rules(&made, |command| command.args([python, "server.py"]));
}

#[test]
fn the_go_example_keeps_the_rules() {
    let made = Workshop::of("go", &[&["go", "build", "-o", "shop", "."]]);
    let known = Known { accepts: &[CLAIM_TWICE, HIGH_S], eddsa: true };
    vectors::judge(&made.say(&["./shop", "vectors", vectors::PATH]), &known);
    shop_keeps_the_rules(&made, |command| command.arg("./shop"));
}

#[test]
fn the_java_example_keeps_the_rules() {
    let made = Workshop::of("java", &[&["mvn", "--quiet", "--batch-mode", "compile"]]);
    let java = ["java", "-XX:TieredStopAtLevel=1", "-cp", "target/classes:target/lib/*"];
    let known = Known { accepts: &[HIGH_S], eddsa: true };
    let over_vectors = [&java[..], &["example.Vectors", vectors::PATH]].concat();
    vectors::judge(&made.say(&over_vectors), &known);
    shop_keeps_the_rules(&made, |command| command.args(java).arg("example.Shop"));
}

#[test]
fn the_php_example_keeps_the_rules() {
    let made = Workshop::of("php", &[&["php", "-l", "index.php"]]);
    let known = Known { accepts: &[HEADER_TWICE, CLAIM_TWICE, HIGH_S], eddsa: true };
    vectors::judge(&made.say(&["php", "vectors.php", vectors::PATH]), &known);
    shop_keeps_the_rules(&made, |command| {
        let address = format!("127.0.0.1:{}", shop::port_of(command));
        let kept = made.scratch().join("keys.json");
        command.env("WAITROOM_KEYS_FILE", kept).args(["php", "-S", &address, "index.php"])
    });
}

#[test]
fn the_nginx_example_keeps_the_rules() {
    let made = Workshop::of("nginx", &[&["nginx", "-v"]]);
    let known = Known { accepts: &[HEADER_TWICE, CLAIM_TWICE, HIGH_S], eddsa: false };
    // Its cache of keys is on disk: a folder for each run, or one run has the keys of another.
    let temp = format!(" {}/", made.scratch().display());
    // nginx is asked over a socket for what the others print.
    let port = shop::free_port();
    let listen = format!("listen 127.0.0.1:{port};");
    let file = format!("$waitroom_vectors {};", vectors::PATH);
    let swaps = [
        ("listen 127.0.0.1:3000;", listen.as_str()),
        ("$waitroom_vectors passes.json;", &file),
        (" temp/", &temp),
    ];
    let over_vectors = made.rewritten("vectors.conf", &swaps);
    let judge = Shop::open(&made, port, |command| nginx(command, &over_vectors));
    vectors::judge(&judge.get("/", &[]).body, &known);
    drop(judge);

    shop_keeps_the_rules(&made, |command| nginx_shop(&made, &temp, command));
    // Another waiting room, the same cache and the same key ids: its own keys count.
    let issuer = Issuer::start();
    let shop = Shop::open_with_keys(&made, &issuer, |it| nginx_shop(&made, &temp, it));
    shop::lets_a_pass_in_by_header_and_by_cookie(&shop, &issuer);
}

fn nginx_shop<'a>(made: &Workshop, temp: &str, command: &'a mut Command) -> &'a mut Command {
    let keys = shop::variable(command, "WAITROOM_KEYS");
    let origin = keys.strip_suffix(issuer::KEYS_PATH).expect("the keys are at a known path");
    let listen = format!("listen 127.0.0.1:{};", shop::port_of(command));
    let conf = made.rewritten(
        "nginx.conf",
        &[
            ("listen 127.0.0.1:3000;", &listen),
            ("$waitroom_room spring-sale;", &format!("$waitroom_room {};", issuer::ROOM)),
            ("https://wait.example.org/;", &format!("{};", shop::PAGE)),
            ("http://127.0.0.1:8080/.well-known/jwks.json;", &format!("{keys};")),
            ("http://127.0.0.1:8000;", &format!("{origin};")),
            (" temp/", temp),
        ],
    );
    nginx(command, &conf)
}

fn nginx<'a>(command: &'a mut Command, conf: &str) -> &'a mut Command {
    let alone = "daemon off; master_process off;";
    command.args(["nginx", "-e", "stderr", "-p", ".", "-c", conf, "-g", alone])
}

/// One shop on a socket, from opening to an outage of its keys.
fn shop_keeps_the_rules(made: &Workshop, start: impl FnOnce(&mut Command) -> &mut Command) {
    let issuer = Issuer::start();
    let shop = Shop::open_with_keys(made, &issuer, start);
    shop::sends_people_without_a_pass_to_wait(&shop);
    shop::lets_a_pass_in_by_header_and_by_cookie(&shop, &issuer);
    shop::moves_a_pass_from_the_address_to_the_cookie(&shop, &issuer);
    shop::refuses_what_is_not_a_pass_for_here_and_now(&shop, &issuer);
    shop::asks_for_keys_seldom_and_finds_a_new_one(&shop, &issuer);
    shop::keeps_its_keys_when_they_cannot_be_had(&shop, &issuer);
    let logged = shop.close();
    // PHP's own server is for development and prints every address; its README warns of that.
    if made.language != "php" {
        for secret in issuer.signatures() {
            assert!(!logged.contains(&secret), "{}: a pass stands in the log", made.language);
        }
    }
}
