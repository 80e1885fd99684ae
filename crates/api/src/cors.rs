//! Which pages of other sites may talk to a room.

use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use waitroom_core::Settings;

use crate::body::Body;
use crate::problem::{Code, Problem};

/// How long a browser remembers a preflight: ten minutes, so that a change of the room's settings
/// reaches everyone soon.
const PREFLIGHT_S: u64 = 600;

/// What the `Origin` of a request means for its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No page of another site is involved.
    NotAsked,
    Allowed(HeaderValue),
    Refused,
}

pub fn judge(headers: &HeaderMap, settings: Option<&Settings>) -> Verdict {
    let Some(origin) = headers.get(header::ORIGIN) else { return Verdict::NotAsked };
    if same_origin(headers, origin) {
        return Verdict::NotAsked;
    }
    let allowed = settings.is_some_and(|settings| {
        let listed = |it: &String| it == "*" || it.as_bytes() == origin.as_bytes();
        settings.allowed_origins.iter().any(listed)
    });
    if allowed { Verdict::Allowed(origin.clone()) } else { Verdict::Refused }
}

/// A page of this very host. The scheme is the proxy's to know, so only host and port count.
fn same_origin(headers: &HeaderMap, origin: &HeaderValue) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    matches!((host, origin), (Some(host), Some((_, origin))) if origin.eq_ignore_ascii_case(host))
}

/// The headers that let the page read the answer.
pub fn allow(response: &mut Response<Body>, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    let yes = HeaderValue::from_static("true");
    headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, yes);
    let exposed = HeaderValue::from_static("retry-after, etag, x-queue-token");
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    headers.append(header::VARY, HeaderValue::from_static("origin"));
}

/// The answer to a browser that asks first.
pub fn preflight(verdict: Verdict) -> Response<Body> {
    let Verdict::Allowed(origin) = verdict else {
        return refused().into_response();
    };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    allow(&mut response, origin);
    let headers = response.headers_mut();
    let methods = HeaderValue::from_static("GET, POST, DELETE");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    let names = HeaderValue::from_static(
        "authorization, content-type, idempotency-key, if-none-match, waitroom-request, waitroom-pass",
    );
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from(PREFLIGHT_S));
    response
}

pub fn refused() -> Problem {
    Problem::new(Code::OriginRefused, "add the page's origin to the room's allowed_origins")
}

pub fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}
