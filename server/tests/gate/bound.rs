//! Passes that are tied to whom they were given, and copies of them.

use serde_json::Value;

use crate::house::{House, JSON};
use crate::instance::{Got, curl, soon};
use crate::origin::Origin;

/// Claims as a page does: by cookie, with the script's header, and whatever else the browser says.
fn claim_by_cookie(house: &House, ticket: &Value, more: &[&str]) -> Got {
    let url = format!("{}/.waitroom/v1/rooms/default/claim", house.url);
    let jar = format!("Cookie: wr-ticket-default={}", ticket["token"].as_str().expect("a token"));
    soon("the visitor's turn", || {
        let asked = ["-X", "POST", &url, "-H", &jar, "-H", "Waitroom-Request: 1"];
        let got = curl(&[&asked[..], more].concat());
        (got.status == 200).then_some(got)
    })
}

fn pass_of(got: &Got) -> String {
    got.json()["pass"].as_str().expect("a pass").to_owned()
}

fn cookie_of(got: &Got) -> String {
    let set = got.header("set-cookie").expect("a cookie comes with the pass");
    assert!(set.contains("HttpOnly") && set.contains("SameSite=Lax"), "{set}");
    set.split(';').next().expect("a value").to_owned()
}

#[test]
fn an_address_with_a_pass_in_it_is_no_way_in_for_another_browser() {
    let house = House::protect(&Origin::start().url(), &[]);
    let ticket = house.join();
    let got = claim_by_cookie(&house, &ticket, &[]);
    let (pass, cookie) = (pass_of(&got), cookie_of(&got));
    assert!(cookie.starts_with("wr-bind-default="), "{cookie}");
    let address = format!("/seen?wr_pass={pass}");
    for jar in ["a=b", "wr-bind-default=AAAAAAAAAAAAAAAAAAAAAA"] {
        let stolen = house.get(&address, &["-H", &format!("Cookie: {jar}")]);
        assert_eq!(stolen.header("set-cookie"), None, "{jar}: nothing to go on with: {stolen:?}");
        let pass = format!("Cookie: {jar}; wr-pass-default={pass}");
        let waits = house.get("/seen", &[&["-H", pass.as_str()][..], &JSON].concat());
        assert_eq!(waits.status, 503, "{jar}: one waits like everybody: {waits:?}");
    }
    let jar = format!("Cookie: {cookie}");
    let mine = house.get(&address, &["-H", &jar]);
    assert_eq!((mine.status, mine.header("location").as_deref()), (303, Some("/seen")), "{mine:?}");
    // And on it goes with the gate's own cookie, which is tied as well.
    let checked = mine.head.lines().find_map(|line| line.strip_prefix("set-cookie: wr-gate-"));
    let checked = checked.and_then(|it| it.split(';').next()).expect("a gate's cookie");
    let both = format!("Cookie: {cookie}; wr-gate-{checked}");
    assert_eq!(house.get("/seen", &["-H", &both]).status, 200);
    let alone = format!("Cookie: wr-gate-{checked}");
    assert_eq!(house.get("/seen", &["-H", &alone]).status, 503);
    // A repeat of the claim is tied to the same cookie, so that both passes are good.
    let jar = format!("Cookie: {cookie}; wr-ticket-default={}", ticket["token"].as_str().unwrap());
    let url = format!("{}/.waitroom/v1/rooms/default/claim", house.url);
    let again = curl(&["-X", "POST", &url, "-H", &jar, "-H", "Waitroom-Request: 1"]);
    assert_eq!(cookie_of(&again), cookie);
}

#[test]
fn a_script_that_keeps_its_own_token_gets_a_pass_without_a_cookie() {
    let house = House::protect(&Origin::start().url(), &[]);
    let pass = house.visitor();
    assert_eq!(house.get("/seen", &["-H", &pass]).status, 200);
}

#[test]
fn a_pass_that_is_bound_to_address_and_agent_goes_nowhere_else_and_stays_so_when_renewed() {
    let config = "[pass]\nbinding = [\"address\", \"agent\"]\n";
    let house = House::protect_with(&Origin::start().url(), config, &[]);
    let ticket = house.join();
    let here = ["-A", "Browser/1", "-H", "X-Forwarded-For: 203.0.113.9"];
    let got = claim_by_cookie(&house, &ticket, &here);
    assert_eq!(got.header("set-cookie"), None, "nothing is tied to a cookie");
    let pass = pass_of(&got);
    let url = format!("{}/.waitroom/v1/sessions/{}/activity", house.url, text(&got, "ticket"));
    // The shop's server says that the session goes on: it sees neither, and needs not.
    let renewed = curl(&["-X", "POST", &url, "-H", &format!("Waitroom-Pass: {pass}")]);
    for pass in [pass, pass_of(&renewed)] {
        let pass = format!("Waitroom-Pass: {pass}");
        let from = |agent: &str, address: &str| {
            let address = format!("X-Forwarded-For: {address}");
            house.get("/seen", &["-H", &pass, "-A", agent, "-H", &address]).status
        };
        assert_eq!(from("Browser/1", "203.0.113.9"), 200);
        assert_eq!(from("Browser/1", "203.0.113.200"), 200, "the same network");
        assert_eq!(from("Browser/1", "203.0.114.9"), 503);
        assert_eq!(from("Browser/2", "203.0.113.9"), 503);
    }
}

fn text(got: &Got, field: &str) -> String {
    got.json()[field].as_str().expect("a text").to_owned()
}
