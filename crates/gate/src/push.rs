//! `GET /.waitroom/push/worker.js?lang=TAG`: the service worker that shows a notice by Web Push.
//!
//! A worker may be registered for addresses below its own and for no others, and below
//! `/.waitroom/push/` there is no page: it can stand between no visitor and the site. So it is never
//! sent with `Service-Worker-Allowed`. The query also holds where the page was (`to`), which the
//! script reads by itself.

use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Response, header};
use waitroom_api::{Code, Problem};
use waitroom_pages::{PUSH_WORKER_POLICY, push_worker};

use crate::body::Body;

pub const PATH: &str = "/push/worker.js";

pub fn worker(head: &Parts) -> Response<Body> {
    if !matches!(head.method, Method::GET | Method::HEAD) {
        let problem = Problem::new(Code::MethodNotAllowed, "use GET");
        return problem.into_response().map(Body::Api);
    }
    let mut pairs = head.uri.query().unwrap_or_default().split('&');
    let language = pairs.find_map(|pair| pair.strip_prefix("lang=")).unwrap_or_default();
    let mut response = Response::new(Body::full(push_worker(language)));
    for (name, value) in [
        (header::CONTENT_TYPE, "text/javascript; charset=utf-8"),
        // Looked for anew each time: a worker that was mended must reach those who have the old one.
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, PUSH_WORKER_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
