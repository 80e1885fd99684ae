//! Somebody with a pass, and what the origin sees.

use crate::house::{House, JSON};
use crate::instance::curl;
use crate::origin::Origin;

#[test]
fn a_pass_in_the_address_moves_to_a_cookie_and_the_address_becomes_clean() {
    let origin = Origin::start();
    let house = House::protect(&origin.url(), &[]);
    let pass = house.visitor();
    let pass = pass.strip_prefix("Waitroom-Pass: ").expect("a pass");
    let got = house.get(&format!("/seen?a=1&wr_pass={pass}&b=2"), &[]);
    assert_eq!((got.status, got.header("location").as_deref()), (303, Some("/seen?a=1&b=2")));
    assert!(got.head.contains("wr-pass-default="), "{got:?}");
    let cookies: Vec<String> = got
        .head
        .lines()
        .filter_map(|line| line.strip_prefix("set-cookie: "))
        .map(|line| line.split(';').next().unwrap_or_default().to_owned())
        .collect();
    let checked = cookies.iter().find(|it| it.starts_with("wr-gate-")).expect("a gate's cookie");
    let jar = format!("Cookie: mine=1; {checked}");
    let seen = house.get("/seen?a=1", &["-H", &jar]);
    assert_eq!(seen.status, 200, "the gate's cookie alone will do: {seen:?}");
    assert!(seen.body.contains("mine=1") && !seen.body.contains("wr-gate"), "{seen:?}");
    assert_eq!(origin.asked(), 1);
}

#[test]
fn a_pass_that_was_altered_is_refused() {
    let house = House::protect(&Origin::start().url(), &[]);
    let pass = house.visitor();
    let mut forged = pass.clone();
    let at = forged.len() - 20;
    let other = if forged.as_bytes()[at] == b'A' { "B" } else { "A" };
    forged.replace_range(at..=at, other);
    let got = house.get("/", &[&["-H", forged.as_str()][..], &JSON].concat());
    assert_eq!((got.status, &got.json()["code"]), (403, &"pass_refused".into()), "{got:?}");
    let got = house.get("/", &["-H", "Cookie: wr-pass-default=garbage"]);
    assert_eq!(got.status, 503, "somebody's broken browser may wait: {got:?}");
    assert!(got.head.contains("wr-pass-default=; Path=/; Max-Age=0"), "{got:?}");
}

#[test]
fn the_origin_learns_who_asks_and_nothing_that_a_visitor_made_up() {
    let house = House::protect(&Origin::start().url(), &[]);
    let pass = house.visitor();
    let got = house.get(
        "/seen",
        &[
            "-H",
            &pass,
            "-H",
            "X-Forwarded-For: 203.0.113.7",
            "-H",
            "X-Forwarded-Proto: gopher",
            "-H",
            "Forwarded: for=6.6.6.6",
            "-H",
            "Waitroom-Ticket: mine",
            "-H",
            "Connection: keep-alive, X-Drop",
            "-H",
            "X-Drop: 1",
        ],
    );
    let body = got.body.to_ascii_lowercase();
    // The test comes from loopback, which development believes.
    assert!(body.contains("x-forwarded-for: 203.0.113.7\r\n"), "{body}");
    assert!(body.contains("x-forwarded-proto: http\r\n"), "{body}");
    assert!(!body.contains("6.6.6.6") && !body.contains("ticket: mine"), "{body}");
    assert!(!body.contains("x-drop"), "{body}");
    assert!(
        body.contains("waitroom-room: default") && body.contains("waitroom-ticket: "),
        "{body}"
    );
    assert!(body.contains(&format!("host: {}", house.address())), "{body}");
}

#[test]
fn bodies_go_both_ways_whole_in_either_framing() {
    let house = House::protect(&Origin::start().url(), &[]);
    let pass = house.visitor();
    let long = "x".repeat(300_000);
    let file = std::env::temp_dir().join(format!("waitroom-body-{}", std::process::id()));
    std::fs::write(&file, &long).expect("a file");
    let data = format!("@{}", file.display());
    let url = format!("{}/seen", house.url);
    for framing in ["Content-Type: text/plain", "Transfer-Encoding: chunked"] {
        let got = curl(&[&url, "-H", &pass, "-H", framing, "--data-binary", &data]);
        assert_eq!(got.status, 200, "{framing}");
        assert!(got.body.ends_with(&long), "{framing}: {} bytes", got.body.len());
    }
    let empty = curl(&["-X", "POST", &url, "-H", &pass]);
    assert!(empty.body.to_ascii_lowercase().contains("content-length: 0"), "{empty:?}");
    let _ = std::fs::remove_file(file);
}

#[test]
fn trailers_come_through_for_who_asked_for_them() {
    let house = House::protect(&Origin::start().url(), &[]);
    let pass = house.visitor();
    let got = house.get("/trailers", &["--raw", "-H", "TE: trailers", "-H", &pass]);
    assert!(got.body.to_ascii_lowercase().contains("x-sum: 42"), "{got:?}");
}

#[test]
fn http2_visitors_are_served_as_well() {
    let house = House::protect(&Origin::start().url(), &[]);
    let pass = house.visitor();
    let got = house.get("/seen?q", &["--http2-prior-knowledge", "-H", &pass]);
    assert_eq!(got.status, 200, "{got:?}");
    assert!(got.body.starts_with("GET /seen?q HTTP/1.1\r\n"), "{got:?}");
    assert!(got.body.contains(&format!("host: {}", house.address())), "{got:?}");
}

#[test]
fn what_is_between_gate_and_origin_stays_there() {
    let house = House::protect(&Origin::start().url(), &[]);
    let pass = house.visitor();
    let got = house.get("/hop", &["-H", &pass]);
    assert_eq!((got.status, got.header("x-inner"), got.header("keep-alive")), (200, None, None));
    let head = house.get("/seen", &["-I", "-H", &pass]);
    assert!(head.header("content-length").is_some_and(|it| it != "0"), "{head:?}");
}

#[test]
fn rules_say_what_is_protected_and_what_is_not_and_no_spelling_leads_around_them() {
    let origin = Origin::start();
    let config = format!(
        "[gate]\nwaiting_status = 429\n[rooms.shop]\nrate = \"10/s\"\n\
         [sites.shop]\norigins = [\"{}\"]\n\
         rules = [{{path = \"/checkout*\", room = \"shop\"}}, {{path = \"/assets/*\", room = \"shop\"}}]\n\
         bypass = [\"/assets/*\"]\n",
        origin.url()
    );
    let house = House::serve(&config);
    assert_eq!(house.get("/", &[]).status, 200, "no rule, no room");
    assert_eq!(house.get("/assets/a.css", &[]).status, 200);
    for path in [
        "/checkout",
        "/checkout/pay",
        "/%63heckout",
        "//checkout",
        "/assets/../checkout",
        "/assets/%2e%2e/checkout",
        "/x;/../checkout",
    ] {
        let got = house.get(path, &[]);
        assert_eq!(got.status, 429, "{path}: {got:?}");
    }
    let own = house.get("/.waitroom/health/live", &[]);
    assert_eq!((own.status, &*own.body), (200, "{\"status\":\"live\"}"));
}
