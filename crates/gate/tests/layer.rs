//! The tower layer before a service that counts who came in.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::{SystemTime, UNIX_EPOCH};

use http::{Request, Response, StatusCode, header};
use tower_layer::Layer;
use tower_service::Service;
use waitroom_core::id::IdKey;
use waitroom_core::{Session, Timestamp};
use waitroom_gate::layer::{RoomLayer, Rules, Ticket};
use waitroom_pass::{Alg, PassClaims, Passes, Rotation};

const ROOM: &str = "spring";

#[derive(Clone, Default)]
struct Shop(Arc<AtomicUsize>);

impl Service<Request<()>> for Shop {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        self.0.fetch_add(1, Relaxed);
        let ticket = request.extensions().get::<Ticket>().expect("only visitors with one come in");
        ready(Ok(Response::new(ticket.0.to_string())))
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

/// A pass of this room that ends at this second, and its ticket.
fn pass(passes: &Passes, room: &str, expires_s: u64) -> (String, String) {
    let ids = IdKey::derive(&[7; 32]);
    let id = ids.name(0, 1, 5).expect("an id");
    let session = Session {
        issued_at: Timestamp((now_s() - 100) * 1_000),
        expires_at: Timestamp(expires_s * 1_000),
        pass_expires_at: Timestamp(expires_s * 1_000),
    };
    (passes.sign(&PassClaims::of(id, room, &session)), id.to_string())
}

#[tokio::test]
async fn a_service_behind_the_layer_sees_only_holders_of_a_pass() {
    let passes = Passes::generate(Alg::Es256, Rotation::default(), now_s() - 100);
    let shop = Shop::default();
    let rules = Rules {
        room: ROOM.to_owned(),
        verifier: passes.verifier(ROOM),
        wait_url: "https://queue.example/.waitroom/wait".to_owned(),
        dev: false,
    };
    let mut gated = RoomLayer::new(rules, [9; 32]).layer(shop.clone());
    let mut ask = async |headers: &[(&str, &str)]| {
        let mut request = Request::builder().uri("/checkout?a=b");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        gated.call(request.body(()).expect("a request")).await.expect("it cannot fail")
    };

    let (good, ticket) = pass(&passes, ROOM, now_s() + 60);
    for headers in [
        [("waitroom-pass", good.clone())],
        [("cookie", format!("a=b; __Host-wr-pass-{ROOM}={good}"))],
    ] {
        let got = ask(&headers.each_ref().map(|(name, value)| (*name, &**value))).await;
        assert_eq!((got.status(), got.body()), (StatusCode::OK, &ticket));
    }
    assert_eq!(shop.0.load(Relaxed), 2);

    let browser = ask(&[("accept", "text/html")]).await;
    assert_eq!(browser.status(), StatusCode::SEE_OTHER);
    assert_eq!(
        browser.headers()[header::LOCATION],
        "https://queue.example/.waitroom/wait?to=/checkout%3Fa%3Db"
    );
    assert_eq!(ask(&[("accept", "application/json")]).await.status(), StatusCode::UNAUTHORIZED);
    let (over, _) = pass(&passes, ROOM, now_s() - 60);
    let (foreign, _) = pass(&passes, "autumn", now_s() + 60);
    for worthless in [over, foreign] {
        let headers = [("accept", "application/json"), ("waitroom-pass", &*worthless)];
        assert_eq!(ask(&headers).await.status(), StatusCode::UNAUTHORIZED);
    }
    let other = Passes::generate(Alg::Es256, Rotation::default(), now_s() - 100);
    let (forged, _) = pass(&other, ROOM, now_s() + 60);
    let body = good.rsplit_once('.').expect("three parts").0;
    let signature = forged.rsplit_once('.').expect("three parts").1;
    let altered = format!("{body}.{signature}");
    assert_eq!(ask(&[("waitroom-pass", &altered)]).await.status(), StatusCode::FORBIDDEN);
    assert_eq!(shop.0.load(Relaxed), 2, "nobody else came in");
}
