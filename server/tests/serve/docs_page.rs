//! `GET /docs` on the operators' listener, in a real browser.

use crate::instance::{Instance, curl};
use crate::site::Browser;

#[test]
fn the_page_of_the_api_shows_every_route_and_every_shape_to_anybody() {
    let server = Instance::start();
    let address = format!("{}/docs", server.admin);
    let got = curl(&[&address]);
    assert_eq!(got.status, 200);
    assert_eq!(got.header("content-type").as_deref(), Some("text/html; charset=utf-8"));
    let policy = got.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    assert_eq!(curl(&["-X", "POST", &address]).status, 405);

    let document = server.get("/openapi.json", &[]).json();
    let page = Browser::page_of(&address);
    let mut count = 0;
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("an item") {
            let id = operation["operationId"].as_str().expect("an id");
            assert!(
                page.contains(&format!("<article id=\"{id}\">")),
                "{method} {path} is not shown"
            );
            count += 1;
        }
    }
    for name in document["components"]["schemas"].as_object().expect("shapes").keys() {
        assert!(page.contains(&format!("<article id=\"{name}\">")), "{name} is not shown");
        count += 1;
    }
    assert_eq!(page.matches("<article").count(), count, "nothing is shown twice");
    server.stop();
}
