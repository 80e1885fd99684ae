//! `examples/web-client` in a real browser against the real server, by WebSocket and by asking.

use serde_json::Value;

use crate::instance::{Instance, SOON, soon};
use crate::site::{Browser, Site};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/web-client");

/// Tells the test what the visitor sees; the example itself is served as it is.
const OBSERVER: &str = r#"<script>
const report = async text => {
  const answer = await fetch("/report", {method: "POST", body: text});
  if (await answer.text() === "reload") location.reload();
};
report("loaded");
let last = "";
setInterval(() => {
  const seen = ["position", "news"].map(id => document.getElementById(id).textContent).join("|");
  if (seen !== last) { last = seen; report("sees " + seen); } else report("still");
}, 50);
addEventListener("error", event => report("error " + event.message));
addEventListener("unhandledrejection", event => report("error " + event.reason));
</script>"#;

#[test]
fn a_page_shows_its_position_from_the_board_keeps_its_place_over_a_reload_and_comes_in() {
    waits_and_comes_in("");
}

#[test]
fn a_page_that_gets_no_websocket_asks_and_comes_in_all_the_same() {
    waits_and_comes_in("<script>window.WebSocket = undefined</script>");
}

fn waits_and_comes_in(hindrance: &str) {
    let (server, site) = (Instance::start(), Site::open());
    let room = format!(
        r#"{{"queue_all":true,"rate":null,"allowed_origins":["{0}"],"target_url":"{0}/shop?a=1"}}"#,
        site.origin
    );
    assert_eq!(server.operate("PUT", "/admin/v1/rooms/web", &room).status, 201);
    let ahead: Vec<String> = (1..=3)
        .map(|who| {
            let from = format!("X-Forwarded-For: 10.9.0.{who}");
            let got = server.post("/v1/rooms/web/join", &["-H", &from]);
            got.json()["token"].as_str().expect("a token").to_owned()
        })
        .collect();
    let file =
        |name: &str| std::fs::read_to_string(format!("{EXAMPLE}/{name}")).expect("it is there");
    let (from, page) =
        ("data-server=\"http://127.0.0.1:8080\" data-room=\"default\"", file("index.html"));
    assert!(page.contains(from), "the page says where the waiting room is");
    let page = page.replace(from, &format!("data-server=\"{}\" data-room=\"web\"", server.public));
    let page = page.replacen("<main>", &format!("{hindrance}{OBSERVER}<main>"), 1);
    site.put("/", page);
    site.put("/waitroom.js", file("waitroom.js"));
    site.put("/favicon.ico", String::new());
    let _browser = Browser::visit(&site.origin);

    site.hear("sees 4|", SOON * 3);
    // Somebody in the middle leaves: the page works that out from the board.
    let bearer = format!("Authorization: Bearer {}", ahead[1]);
    assert_eq!(server.post("/v1/rooms/web/leave", &["-H", &bearer]).status, 200);
    site.hear("sees 3|", SOON);
    server.operate("POST", "/admin/v1/rooms/web/pause", r#"{"reason":"a lorry is late"}"#);
    site.hear("sees 3|Paused: a lorry is late", SOON);
    server.operate("POST", "/admin/v1/rooms/web/resume", "");
    server.operate("POST", "/admin/v1/rooms/web/admit", r#"{"count":1}"#);
    site.hear("sees 2|", SOON);

    site.reload_the_page();
    site.hear("loaded", SOON);
    site.hear("sees 2|", SOON);
    let stands = server.operate("GET", "/admin/v1/rooms/web", "").json();
    assert_eq!(stands["waiting"], 2, "one page is one place, over a reload as well: {stands}");

    server.operate("POST", "/admin/v1/rooms/web/admit", r#"{"count":2}"#);
    let address = site.hear("/shop?a=1&wr_pass=", SOON);
    let pass = address.strip_prefix("/shop?a=1&wr_pass=").expect("it begins so");
    assert_eq!(pass.split('.').count(), 3, "{pass}");
    // Operators see what the newest board shows, which may be a fifth of a second old.
    soon("the claim on the operators' side", || {
        let stands: Value = server.operate("GET", "/admin/v1/rooms/web", "").json();
        (stands["active"] == 1).then_some(())
    });
    server.stop();
}
