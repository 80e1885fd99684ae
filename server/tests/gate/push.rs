//! The worker of pages whose room pushes: where it is, and what it may do there.

use crate::house::House;
use crate::origin::Origin;

const PUSHES: &str =
    "[notify]\nrooms = [\"default\"]\npush_subject = \"mailto:ops@shop.example\"\n";
const BROWSER: [&str; 4] = ["-H", "Accept: text/html", "-H", "Accept-Language: en"];

#[test]
fn the_worker_is_a_script_of_a_scope_without_pages_that_is_looked_for_anew() {
    let origin = Origin::start();
    let house = House::protect_with(&origin.url(), PUSHES, &["--queue-all", "--rate", "1/h"]);
    let got = house.get("/.waitroom/push/worker.js?lang=de&to=%2Fseats", &[]);
    assert_eq!(got.status, 200, "{got:?}");
    for (name, value) in [
        ("content-type", "text/javascript; charset=utf-8"),
        ("cache-control", "no-cache"),
        ("content-security-policy", "default-src 'none'"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert_eq!(got.header(name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(got.header("service-worker-allowed"), None, "its folder is all that it gets");
    assert!(got.body.contains("Sie sind bald dran"), "{got:?}");
    let posted = house.get("/.waitroom/push/worker.js", &["-X", "POST"]);
    assert_eq!(posted.status, 405, "{posted:?}");
    assert_eq!(house.get("/.waitroom/push/other.js", &[]).status, 404);
    assert_eq!(origin.asked(), 0, "the site hears nothing of it");
}

#[test]
fn a_page_allows_a_worker_only_where_its_room_pushes() {
    let page = |config: &str| {
        let house =
            House::protect_with(&Origin::start().url(), config, &["--queue-all", "--rate", "1/h"]);
        let got = house.get("/", &BROWSER);
        let policy = got.header("content-security-policy").expect("a policy");
        (got.body, policy)
    };
    let (pushes, policy) = page(PUSHES);
    assert!(pushes.contains("value=\"push\"") && pushes.contains("/push/worker.js"), "{pushes}");
    assert!(policy.ends_with("; worker-src 'self'"), "{policy}");
    let (other, policy) = page("");
    assert!(!other.contains("worker.js") && !other.contains("serviceWorker"), "{other}");
    assert!(!policy.contains("worker-src"), "{policy}");
}
