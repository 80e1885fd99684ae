//! The checkout token is a pass that everyone can check.

use base64::Engine as _;
use waitroom_core::Settings;

use crate::house::{House, by_hand};

fn claims(token: &str) -> serde_json::Value {
    let body = token.split('.').nth(1).expect("three parts");
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(body).expect("base64");
    serde_json::from_slice(&bytes).expect("JSON")
}

async fn ready(house: &House, settings: Settings) -> (String, String) {
    let room = house.room("sale", settings).await;
    let client = house.client().await;
    let ana = client.join("ana@example.com", "sale").await.expect("a place");
    house.admit(&room, 1).await;
    let told = client.status(&ana.session_id).await.expect("told");
    (ana.session_id, told.checkout_token)
}

#[tokio::test]
async fn it_says_who_may_enter_where_and_until_when() {
    let house = House::open().await;
    let (session_id, token) = ready(&house, by_hand()).await;
    let claims = claims(&token);
    assert_eq!(claims["session_id"], session_id);
    assert_eq!(claims["user_id"], "ana@example.com");
    assert_eq!(claims["event_id"], "sale");
    let (iat, exp) = (claims["iat"].as_u64(), claims["exp"].as_u64());
    assert_eq!(exp.zip(iat).map(|(exp, iat)| exp - iat), Some(600));
    let room = house.desk.room("sale").expect("there");
    let unseen = waitroom_pass::Presented::default();
    let checked = room.verifier().verify(&token, house.desk.now_s(), &unseen).expect("it is good");
    assert_eq!(checked.ticket, session_id);
    house.stop().await;
}

#[tokio::test]
async fn a_room_that_keeps_no_names_puts_none_in() {
    let house = House::open().await;
    let (_, token) = ready(&house, Settings { keep_user_id: false, ..by_hand() }).await;
    assert_eq!(claims(&token).get("user_id"), None);
    house.stop().await;
}

#[tokio::test]
async fn asking_again_signs_nothing_anew_and_a_new_key_does() {
    let house = House::open().await;
    let (session_id, token) = ready(&house, by_hand()).await;
    let client = house.client().await;
    let again = client.status(&session_id).await.expect("told");
    assert_eq!(again.checkout_token, token, "ES256 never gives the same signature twice");
    let passes = &house.desk.signatures.passes;
    let old = passes.signer();
    let key = waitroom_pass::SigningKey::generate(waitroom_pass::Alg::Es256);
    passes.rotate(key, house.desk.now_s()).expect("a second key");
    passes.withdraw(&old).expect("the first goes");
    let anew = client.status(&session_id).await.expect("told").checkout_token;
    assert_ne!(anew, token);
    assert_eq!(claims(&anew), claims(&token), "the claims follow from the session alone");
    house.stop().await;
}
