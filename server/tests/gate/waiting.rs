//! Somebody without a pass.

use crate::house::{House, JSON};
use crate::instance::{curl, soon};
use crate::origin::Origin;

#[test]
fn a_stranger_gets_the_page_in_place_which_a_cache_may_keep_for_a_second() {
    let origin = Origin::start();
    let house = House::protect(&origin.url(), &[]);
    let got = house.get("/some/page?x=1", &[]);
    assert_eq!(got.status, 503, "{got:?}");
    assert_eq!(got.header("cache-control").as_deref(), Some("public, max-age=1"));
    assert_eq!(got.header("set-cookie"), None);
    assert!(got.header("vary").is_some_and(|vary| vary.contains("Cookie")), "{got:?}");
    assert!(got.body.contains("url=/.waitroom/wait?to=/some/page%3Fx%3D1"), "{got:?}");
    assert_eq!(origin.asked(), 0, "the origin hears nothing of it");
}

#[test]
fn a_program_gets_a_document_that_says_where_to_join() {
    let house = House::protect(&Origin::start().url(), &[]);
    let got = house.get("/api/orders", &JSON);
    assert_eq!(got.header("content-type").as_deref(), Some("application/problem+json"));
    let document = got.json();
    assert_eq!(document["code"], "pass_required");
    assert_eq!(document["join"], "/.waitroom/v1/rooms/default/join");
    let posted = house.get("/api/orders", &["-X", "POST", "-d", "{}", "-H", "Accept: */*"]);
    assert_eq!(posted.json()["code"], "pass_required");
    assert_eq!(posted.header("cache-control").as_deref(), Some("no-store"));
    let picture = house.get("/a.png", &["-H", "Accept: image/avif,image/webp"]);
    assert_eq!((picture.status, &*picture.body), (503, ""));
}

#[test]
fn without_javascript_a_browser_joins_waits_and_enters_by_itself() {
    let origin = Origin::start();
    let house = House::protect(&origin.url(), &["--queue-all", "--rate", "60/min"]);
    let jar = std::env::temp_dir().join(format!("waitroom-jar-{}", std::process::id()));
    let jar = jar.to_str().expect("a path");
    let url = format!("{}/.waitroom/wait?to=/seen", house.url);
    let keeps = ["-c", jar, "-b", jar];
    let first = curl(&[&[url.as_str()][..], &keeps].concat());
    assert_eq!(first.status, 303, "it is tried whether cookies come back: {first:?}");
    let again = format!("{}{}", house.url, first.header("location").expect("a place"));
    let mut waited = 0;
    let entered = soon("the visitor's turn", || {
        let got = curl(&[&[again.as_str()][..], &keeps].concat());
        if got.status == 200 {
            waited += 1;
            let again = got.body.split("<noscript>").find(|it| it.contains("http-equiv"));
            assert!(again.is_some_and(|it| it.contains("/.waitroom/wait?to=")), "{got:?}");
            assert!(got.body.contains("1<"), "the place is on the page: {got:?}");
            return None;
        }
        Some(got)
    });
    assert!(waited > 0, "there was something to see on the way");
    assert_eq!((entered.status, entered.header("location").as_deref()), (303, Some("/seen")));
    let seen = curl(&[&[&*format!("{}/seen", house.url)][..], &keeps].concat());
    assert_eq!(seen.status, 200, "{seen:?}");
    assert!(!seen.body.contains("wr-ticket") && !seen.body.contains("wr-gate"), "{seen:?}");
    let _ = std::fs::remove_file(jar);
}

#[test]
fn a_browser_that_keeps_no_cookies_takes_no_place() {
    let house = House::protect(&Origin::start().url(), &[]);
    let first = house.get("/.waitroom/wait?to=/", &[]);
    let second = house.get(&first.header("location").expect("a place"), &[]);
    assert_eq!(second.status, 400, "{second:?}");
    assert!(second.body.contains("cookie"), "{second:?}");
    let rooms = house.operate("GET", "/admin/v1/rooms/default", "");
    assert!(!rooms.body.contains("\"joined\":1"), "{rooms:?}");
}

#[test]
fn no_link_leads_to_a_stranger() {
    let house = House::protect(&Origin::start().url(), &[]);
    let pass = house.visitor();
    let pass = pass.strip_prefix("Waitroom-Pass: ").expect("a pass");
    for to in [
        "https://evil.example/",
        "//evil.example/",
        "/%5Cevil.example",
        "%2F%2Fevil.example",
        "/%09/evil.example",
        "javascript:alert(1)",
        "https:evil.example",
        "///evil.example",
    ] {
        let got = house.get(&format!("/.waitroom/wait?to={to}"), &[]);
        let went = got.header("location").unwrap_or_default();
        assert!(went.starts_with('/') && !went.starts_with("//"), "{to}: {went}");
        assert!(!went.contains("\\"), "{to}: {went}");
    }
    for path in ["//evil.example/", "///evil.example", "/\\evil.example"] {
        let got = house.get(&format!("{path}?wr_pass={pass}"), &[]);
        let went = got.header("location").unwrap_or_default();
        let local = went.starts_with('/') && !went.starts_with("//") && !went.contains('\\');
        assert!(local || got.status == 400, "{path}: {went} {got:?}");
    }
}

#[test]
fn a_staff_pass_goes_by_is_counted_and_ends_with_its_room() {
    let origin = Origin::start();
    let house = House::protect(&origin.url(), &["--queue-all"]);
    let made = house.operate("POST", "/admin/v1/rooms/default/staff-pass", "");
    assert_eq!(made.status, 201, "{made:?}");
    let staff = made.json()["staff_pass"].as_str().expect("a text").to_owned();
    let got = house.get("/seen", &["-H", &format!("Waitroom-Staff: {staff}")]);
    assert_eq!(got.status, 200, "{got:?}");
    assert!(!got.body.contains(&staff), "the origin does not see it");
    let link = made.json()["link"].as_str().expect("a link").to_owned();
    let moved = house.get(&link, &[]);
    assert_eq!((moved.status, moved.header("location").as_deref()), (303, Some("/")));
    assert!(moved.head.contains("wr-staff-default="), "{moved:?}");
    let mut forged = staff.clone();
    forged.replace_range(10..11, if &staff[10..11] == "A" { "B" } else { "A" });
    let forged = format!("Waitroom-Staff: {forged}");
    assert_eq!(house.get("/seen", &["-H", &forged]).status, 503);
    let report = house.operate("GET", "/admin/v1/gate", "").json();
    assert!(report["sites"][0]["counts"]["bypass_staff"].as_u64() >= Some(1), "{report}");
}

#[test]
fn crawlers_wait_like_everybody_unless_the_site_would_rather_be_found() {
    let origin = Origin::start();
    let site = |more: &str| {
        format!(
            "[rooms.default]\nrate = \"100/s\"\n[sites.shop]\nroom = \"default\"\norigins = [\"{}\"]\n{more}",
            origin.url()
        )
    };
    let crawler = ["-H", "User-Agent: Mozilla/5.0 (compatible; Googlebot/2.1)"];
    assert_eq!(House::serve(&site("")).get("/seen", &crawler).status, 503);
    let found = House::serve(&site("crawlers = \"pass\"\n"));
    assert_eq!(found.get("/seen", &crawler).status, 200);
    assert_eq!(found.get("/seen", &["-H", "User-Agent: Mozilla/5.0"]).status, 503);
    // Looking is what crawlers are let in for.
    let posted = found.get("/seen", &[&crawler[..], &["-X", "POST", "-d", "x"]].concat());
    assert_eq!(posted.status, 503);
    assert_eq!(origin.asked(), 1);
    let report = found.operate("GET", "/admin/v1/gate", "").json();
    assert_eq!(report["sites"][0]["counts"]["bypass_crawler"], 1, "and no bypass goes unseen");
}

#[test]
fn a_browser_gets_the_page_packed_and_who_cannot_unpack_it_gets_it_plain() {
    let house = House::protect(&Origin::start().url(), &["--queue-all"]);
    let plain = house.get("/sale", &[]);
    assert_eq!(plain.header("content-encoding"), None);
    let packed = house.get("/sale", &["-H", "Accept-Encoding: gzip, br", "--compressed"]);
    assert_eq!(packed.header("content-encoding").as_deref(), Some("gzip"));
    assert_eq!(packed.status, 503);
    assert!(packed.body.contains("</html>"), "curl unpacked it: {packed:?}");
    let length: usize =
        packed.header("content-length").and_then(|it| it.parse().ok()).expect("one");
    assert!(length < 15 * 1024, "{length} bytes");
    assert!(packed.header("vary").is_some_and(|vary| vary.contains("Accept-Encoding")));
}

#[test]
fn plain_http_before_a_site_makes_nobody_an_operator() {
    let house = House::protect(&Origin::start().url(), &["--queue-all", "--rate", "60/min"]);
    let url = format!("{}/.waitroom", house.url);
    let joined = crate::instance::curl(&["-X", "POST", &format!("{url}/v1/rooms/default/join")]);
    assert_eq!(joined.status, 201, "{joined:?}");
    let allowed = crate::instance::curl(&["-X", "POST", &format!("{url}/admin/allow?n=5")]);
    assert_eq!((allowed.status, &allowed.json()["code"]), (401, &"api_key_missing".into()));
}
