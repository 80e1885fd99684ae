//! Origins that fail, and rooms that cannot be asked: each has a stated outcome.

use std::process::Command;

use crate::house::{House, JSON};
use crate::instance::soon;
use crate::origin::Origin;

const SHORT: &str = "[gate]\nanswer_timeout = \"2s\"\nidle_timeout = \"2s\"\n";

#[test]
fn an_origin_that_fails_before_its_answer_is_told_by_its_own_code() {
    let origin = Origin::start();
    let house = House::protect_with(&origin.url(), SHORT, &[]);
    let pass = house.visitor();
    let told = |path: &str| {
        let got = house.get(path, &[&["-H", pass.as_str()][..], &JSON].concat());
        (got.status, got.json()["code"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(told("/never"), (502, "origin_broken".into()));
    assert_eq!(told("/nonsense"), (502, "origin_broken".into()));
    assert_eq!(told("/slow"), (504, "origin_slow".into()));
    assert_eq!(told("/h2c"), (502, "origin_broken".into()), "nobody asked for another protocol");
    let page = house.get("/never", &["-H", &pass]);
    assert_eq!(
        (page.status, page.header("content-type").as_deref()),
        (502, Some("text/html; charset=utf-8"))
    );
    let gone = House::protect("http://127.0.0.1:9", &[]);
    let pass = gone.visitor();
    let got = gone.get("/", &[&["-H", pass.as_str()][..], &JSON].concat());
    assert_eq!((got.status, &got.json()["code"]), (502, &"origin_down".into()));
}

#[test]
fn half_an_answer_never_looks_whole() {
    let house = House::protect_with(&Origin::start().url(), SHORT, &[]);
    let pass = house.visitor();
    for path in ["/half", "/half-chunked", "/silent"] {
        let out = Command::new("curl")
            .args(["-sS", "--max-time", "20", "-H", &pass, &format!("{}{path}", house.url)])
            .output()
            .expect("curl is needed for this test: apt-get install curl");
        assert!(!out.status.success(), "{path}: curl took it for a whole answer");
    }
    assert_eq!(house.get("/seen", &["-H", &pass]).status, 200, "and the gate goes on");
}

#[test]
fn a_connection_that_died_while_it_waited_costs_nobody_a_request_that_can_be_repeated() {
    let origin = Origin::start();
    let house = House::protect(&origin.url(), &[]);
    let pass = house.visitor();
    for round in 0..3 {
        let got = house.get("/tired", &["-H", &pass]);
        assert_eq!(got.status, 200, "round {round}: {got:?}");
    }
    // Not so one that does something: once sent, it is never sent again.
    let before = origin.asked();
    let posted =
        house.get("/tired", &[&["-X", "POST", "-d", "x", "-H", pass.as_str()][..], &JSON].concat());
    assert_eq!(posted.json()["code"], "origin_broken", "{posted:?}");
    assert_eq!(origin.asked(), before + 1);
}

#[test]
fn of_several_origins_the_living_ones_serve() {
    let living = Origin::start();
    let config = format!(
        "[rooms.default]\nrate = \"100/s\"\n[sites.shop]\nroom = \"default\"\n\
         origins = [\"http://127.0.0.1:9\", \"{}\"]\n",
        living.url()
    );
    let house = House::serve(&config);
    let pass = house.visitor();
    for _ in 0..10 {
        assert_eq!(house.get("/seen", &["-H", &pass]).status, 200);
    }
}

#[test]
fn a_site_whose_room_cannot_be_asked_fails_as_it_was_told() {
    let origin = Origin::start();
    // The room that the site names was never made.
    let site = |more: &str| {
        format!("[sites.shop]\norigins = [\"{}\"]\nroom = \"missing\"\n{more}", origin.url())
    };
    let closed = House::serve(&site(""));
    let got = closed.get("/", &JSON);
    assert_eq!((got.status, &got.json()["code"]), (503, &"unavailable".into()));
    assert_eq!(origin.asked(), 0);
    let open = House::serve(&site("fail = \"open\"\nfail_open_per_second = 5\n"));
    // More than a second's worth; within three seconds at most four windows are touched.
    let began = std::time::Instant::now();
    let came = (0..40).filter(|_| open.get("/seen", &[]).status == 200).count();
    let windows = began.elapsed().as_secs() as usize + 2;
    assert!(came >= 5 && came <= 5 * windows, "{came} in {windows} windows");
    soon("the cap opens again", || (open.get("/seen", &[]).status == 200).then_some(()));
}

#[test]
fn one_request_more_than_allowed_is_told_to_come_back() {
    let origin = Origin::start();
    let house = House::protect_with(&origin.url(), "[gate]\nin_flight_max = 1\n", &[]);
    let pass = house.visitor();
    let (url, header) = (format!("{}/held", house.url), pass.clone());
    let held = origin.hold();
    let before = origin.asked();
    let first = std::thread::spawn(move || crate::instance::curl(&[&url, "-H", &header]));
    // Whoever asked earlier would take the only place from the first.
    soon("the first is with the origin", || (origin.asked() > before).then_some(()));
    let got = house.get("/seen", &[&["-H", pass.as_str()][..], &JSON].concat());
    assert_eq!((got.status, &got.json()["code"]), (503, &"origin_busy".into()));
    drop(held);
    assert_eq!(first.join().expect("curl ends").status, 200);
    soon("room again", || (house.get("/seen", &["-H", &pass]).status == 200).then_some(()));
}

#[test]
fn a_visitor_who_sends_slowly_is_told_so_and_not_that_the_origin_is_slow() {
    use std::io::{Read, Write};
    let house = House::protect_with(&Origin::start().url(), SHORT, &[]);
    let pass = house.visitor();
    let mut stream = std::net::TcpStream::connect(house.address()).expect("the gate listens");
    stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).expect("a time-out");
    let host = house.address();
    write!(
        stream,
        "POST /seen HTTP/1.1\r\nHost: {host}\r\n{pass}\r\nContent-Length: 100\r\n\
         Accept: application/json\r\nConnection: close\r\n\r\nhalf"
    )
    .expect("sent");
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("body_too_slow"), "{answer}");
}

/// From now on the files of this process may grow to this size only, or to any.
fn files_may_grow_to(house: &House, bytes: &str) {
    let set = Command::new("prlimit")
        .args(["--pid", &house.child.id().to_string(), &format!("--fsize={bytes}:")])
        .status()
        .expect("prlimit is needed for this test: apt-get install util-linux");
    assert!(set.success());
}

#[test]
fn while_the_room_cannot_write_those_inside_stay_and_nobody_new_comes_but_by_the_cap() {
    for open in [false, true] {
        let origin = Origin::start();
        let fail = if open { "fail = \"open\"\nfail_open_per_second = 3\n" } else { "" };
        let house = House::serve(&format!(
            "[rooms.default]\nrate = \"100/s\"\n[sites.shop]\nroom = \"default\"\n\
             origins = [\"{}\"]\n{fail}",
            origin.url()
        ));
        let pass = house.visitor();
        files_may_grow_to(&house, "1");
        // Whoever joins makes the room write, and find out that it cannot.
        let url = format!("{}/.waitroom/v1/rooms/default/join", house.url);
        soon("joins are refused", || {
            (crate::instance::curl(&["-X", "POST", &url]).status >= 500).then_some(())
        });
        assert_eq!(house.get("/seen", &["-H", &pass]).status, 200, "those inside stay");
        let forged = format!("{}x", pass);
        let refused = house.get("/seen", &[&["-H", forged.as_str()][..], &JSON].concat());
        assert_eq!(refused.json()["code"], "pass_refused", "a forged pass is none in both");
        if open {
            soon("somebody comes in without", || {
                (house.get("/a", &[]).status == 200).then_some(())
            });
            let began = std::time::Instant::now();
            let came = (0..30).filter(|_| house.get("/a", &[]).status == 200).count();
            let windows = began.elapsed().as_secs() as usize + 2;
            assert!(came <= 3 * windows, "{came} in {windows} windows");
        } else {
            let before = origin.asked();
            for _ in 0..30 {
                assert_eq!(house.get("/a", &[]).status, 503);
            }
            assert_eq!(origin.asked(), before);
        }
        files_may_grow_to(&house, "unlimited");
        soon("the room writes again", || {
            let joined = crate::instance::curl(&["-X", "POST", &url]);
            (joined.status == 201).then_some(())
        });
        soon("and everybody waits again", || (house.get("/a", &[]).status == 503).then_some(()));
    }
}
