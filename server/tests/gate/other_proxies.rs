//! `/gate/check`: the same verdict for proxies that ask before they forward.

use crate::house::House;
use crate::instance::soon;

const ROOM: &str = "[rooms.default]\nrate = \"100/s\"\n";

#[test]
fn who_has_a_pass_may_go_on_and_who_has_none_is_sent_to_wait() {
    let house = House::serve(ROOM);
    let joined = house.join();
    let claimed = soon("the visitor's turn", || {
        let got = house.claim(&joined);
        (got.status == 200).then(|| got.json())
    });
    let pass = format!("Waitroom-Pass: {}", claimed["pass"].as_str().expect("a pass"));

    let nginx = ["-H", "X-Original-URI: /a?b=c", "-H", "X-Original-Method: GET"];
    let wait = house.get("/gate/check?room=default", &nginx);
    assert_eq!(wait.status, 401, "{wait:?}");
    let to = Some("/.waitroom/wait?to=/a%3Fb%3Dc");
    assert_eq!(wait.header("location").as_deref(), to);
    let caddy = ["-H", "X-Forwarded-Uri: /a?b=c", "-H", "X-Forwarded-Method: GET"];
    let wait = house.get("/gate/check?room=default&as=redirect", &caddy);
    assert_eq!((wait.status, wait.header("location").as_deref()), (303, to));
    let page = house.get("/gate/check?room=default&as=page", &caddy);
    assert!(page.status == 503 && page.body.contains("<h1"), "{page:?}");

    let passed = house.get("/gate/check?room=default", &[&nginx[..], &["-H", &pass]].concat());
    assert_eq!(passed.status, 200, "{passed:?}");
    assert_eq!(passed.header("waitroom-room").as_deref(), Some("default"));
    assert_eq!(passed.header("waitroom-ticket").as_deref(), joined["ticket"].as_str());
    let cookie = passed.header("set-cookie").expect("the checked pass");
    let cookie = format!("Cookie: {}", cookie.split(';').next().expect("a value"));
    let again = house.get("/gate/check/default/status/the/path", &["-H", &cookie]);
    assert_eq!(again.status, 200, "{again:?}");

    let forged = format!("{pass}x");
    assert_eq!(house.get("/gate/check?room=default", &["-H", &forged]).status, 403);
    assert_eq!(house.get("/gate/check?room=nobody", &nginx).status, 401, "no such room: wait");
    assert_eq!(house.get("/gate/check", &nginx).status, 403, "no site and no room");
}
