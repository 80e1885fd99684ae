//! The visitor API itself, where time has to pass.

use crate::help::{Site, bearer, text};

const JOIN: &str = "/v1/rooms/default/join";
const HEARTBEAT: &str = "/v1/rooms/default/heartbeat";

#[tokio::test]
async fn a_heartbeat_gives_a_fresh_token_when_the_old_one_has_aged() {
    let site = Site::open().await;
    let joined = site.post(JOIN, &[], "").await.expect(201);
    let token = bearer(&joined["token"]);
    let auth = [("Authorization", token.as_str())];
    site.pass_s(590).await;
    let young = site.post(HEARTBEAT, &auth, "").await;
    assert_eq!(young.expect(200)["token"], joined["token"], "young enough to go on with");
    site.pass_s(15).await;
    let aged = site.post(HEARTBEAT, &auth, "").await;
    let fresh = aged.expect(200);
    assert_ne!(fresh["token"], joined["token"]);
    assert_eq!(fresh["ticket"], joined["ticket"]);
    assert_eq!(aged.header("set-cookie"), None, "who keeps the token needs no cookie");
    // Both are good for as long as the ticket.
    for token in [token, bearer(&fresh["token"])] {
        site.post(HEARTBEAT, &[("Authorization", &token)], "").await.expect(200);
    }
}

#[tokio::test]
async fn a_token_that_came_in_a_cookie_is_renewed_there() {
    let site = Site::open().await;
    let joined = site.post(JOIN, &[], "").await.expect(201);
    let cookie = format!("__Host-wr-ticket-default={}", text(&joined, "token"));
    let by_cookie = [("Cookie", cookie.as_str()), ("Waitroom-Request", "1")];
    site.pass_s(601).await;
    let reply = site.post(HEARTBEAT, &by_cookie, "").await;
    let fresh = reply.expect(200);
    let set = reply.header("set-cookie").expect("a cookie").to_owned();
    let kept = format!("__Host-wr-ticket-default={}; ", text(&fresh, "token"));
    assert!(set.starts_with(&kept), "{set}");
}
