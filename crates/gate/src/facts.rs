//! What a verdict is made of: the request as far as it matters, and the time.

use std::net::IpAddr;

use http::header::AsHeaderName;
use http::{HeaderMap, HeaderName, Method};

/// Where a program shows its pass.
pub const PASS: HeaderName = HeaderName::from_static("waitroom-pass");
pub const STAFF: HeaderName = HeaderName::from_static("waitroom-staff");

/// One request. The same facts come from a request of our own listener, from another proxy's
/// question, and from a service that asks for itself.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Lower case, without a port.
    pub host: &'a str,
    pub path: &'a str,
    pub query: Option<&'a str>,
    pub method: &'a Method,
    pub headers: &'a HeaderMap,
    /// As far as trusted hops tell.
    pub client: IpAddr,
    pub now_s: u64,
}

impl<'a> Facts<'a> {
    pub fn header(&self, name: impl AsHeaderName) -> Option<&'a str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// One value of the query, as it stands there.
    pub fn query_value(&self, name: &str) -> Option<&'a str> {
        let pairs = self.query?.split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find_map(|(key, value)| (key == name).then_some(value))
    }

    /// Whether repeating the request does nothing more: it may be redirected, or tried again.
    pub fn only_looks(&self) -> bool {
        matches!(*self.method, Method::GET | Method::HEAD)
    }
}
