//! The operator console: a page in the browser, from the binary. Whoever opens it sees a form that
//! asks for an API key; everything it shows it asks of `/admin/v1` with that key.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, header};

use crate::body::Body;
use crate::visitor::{Answering, not_found, wrong_method};

/// The answer to a path below `/console`.
pub fn answer(method: &Method, path: &str, headers: &HeaderMap) -> Answering {
    if method != Method::GET && method != Method::HEAD {
        return wrong_method("GET");
    }
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|it| it.to_str().ok());
    let Some(asset) = waitroom_console::serve(path, accepted.unwrap_or_default()) else {
        return not_found();
    };
    let mut response = Response::new(Body::full(Bytes::from_static(asset.body)));
    let headers = response.headers_mut();
    let mut say = |name, value| headers.insert(name, HeaderValue::from_static(value));
    say(header::CONTENT_TYPE, asset.content_type);
    say(header::CACHE_CONTROL, asset.cache_control);
    say(header::CONTENT_SECURITY_POLICY, asset.csp);
    say(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    say(header::REFERRER_POLICY, "no-referrer");
    say(header::VARY, "Accept-Encoding");
    if let Some(encoding) = asset.content_encoding {
        say(header::CONTENT_ENCODING, encoding);
    }
    Answering::Now(response)
}
