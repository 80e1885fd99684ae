//! `GET /gate/check`: the same verdict for other proxies, which carry it out themselves.
//!
//! A proxy asks before it forwards: nginx by `auth_request`, Caddy by `forward_auth`, Traefik by
//! ForwardAuth, Envoy by `ext_authz` over HTTP. What the visitor asked for is told in headers, as
//! each of them does it, or follows the address (`/gate/check/the/path`, Envoy).
//! The room is the one of the site with that host, or the one in `?room=`.
//!
//! | verdict | `?as=status` (nginx) | `?as=redirect` (Caddy, Traefik, Envoy) | `?as=page` |
//! |---|---|---|---|
//! | pass, bypass | 200 | 200 | 200 |
//! | wait | 401, `Location` | 303 to the waiting page | the waiting page |
//! | refuse | 403 | 403 | as the gate answers |

use std::net::IpAddr;
use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use waitroom_store::RoomName;

use crate::BASE;
use crate::body::Body;
use crate::facts::Facts;
use crate::forward;
use crate::gate::{Gate, SiteGate};
use crate::render;
use crate::room::GateRoom;
use crate::site::Site;
use crate::target;
use crate::verdict::Verdict;

pub const PATH: &str = "/gate/check";

/// In what form a proxy can use "no".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum As {
    Status,
    Redirect,
    Page,
}

/// `rest` is where the visitor's own path begins, for those who append it.
pub fn check(gate: &Gate, head: &Parts, client: IpAddr, rest: usize) -> Response<Body> {
    let asked = Asked::of(head, rest);
    let facts = Facts {
        host: &asked.host,
        path: &asked.path,
        query: asked.query.as_deref(),
        method: &asked.method,
        headers: &head.headers,
        client,
        now_s: gate.desk.now_s(),
    };
    let own = |name: &str| waitroom_api::request::query(&head.uri, name);
    let form = match own("as") {
        Some("redirect") => As::Redirect,
        Some("page") => As::Page,
        _ => As::Status,
    };
    let at = match own("room").map(RoomName::parse) {
        Some(Ok(room)) => Some(for_room(gate, room)),
        Some(Err(_)) => None,
        None => gate.site(facts.host).cloned(),
    };
    let Some(at) = at else { return answer(StatusCode::FORBIDDEN, None) };
    let (room, verdict) = gate.judge(&at, &facts);
    let room = room.as_deref();
    match verdict {
        Verdict::Bypass(_) => answer(StatusCode::OK, room),
        Verdict::Pass(passed) => {
            let mut response = answer(StatusCode::OK, room);
            let headers = response.headers_mut();
            if let Ok(ticket) = HeaderValue::from_str(&passed.ticket.to_string()) {
                headers.insert(forward::TICKET, ticket);
            }
            let Some(room) = room else { return response };
            // Some proxies hand on only the first: the pass itself, when it came in the address.
            let moved = facts.query_value("wr_pass").filter(|_| passed.checked_now.is_some());
            let moved =
                moved.and_then(|it| gate.pass_cookie(room, it, passed.expires_s, facts.now_s));
            headers.extend(moved.map(|cookie| (header::SET_COOKIE, cookie)));
            for cookie in gate.inside(&at, room, &passed, &facts) {
                headers.append(header::SET_COOKIE, cookie);
            }
            response
        }
        Verdict::Wait(why) => match form {
            As::Page => render::wait(gate, &at, room, &facts, why),
            As::Status | As::Redirect => {
                let to = target::encode(&target::cleaned(facts.path, facts.query));
                let mut response = render::see_other(&format!("{BASE}/wait?to={to}"));
                if form == As::Status {
                    *response.status_mut() = StatusCode::UNAUTHORIZED;
                }
                response
            }
        },
        Verdict::Refuse(refusal) => match form {
            As::Page => render::refuse(gate, &at, room, &facts, &refusal),
            As::Status | As::Redirect => answer(StatusCode::FORBIDDEN, room),
        },
    }
}

/// Nothing but a status, and which room it was.
fn answer(status: StatusCode, room: Option<&GateRoom>) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let room = room.and_then(|room| HeaderValue::from_str(room.name()).ok());
    headers.extend(room.map(|room| (forward::ROOM, room)));
    response
}

/// A site that is nothing but a room, for a proxy that knows its rules itself.
fn for_room(gate: &Gate, room: RoomName) -> Arc<SiteGate> {
    gate.bare_site(Site::of_room(room))
}

/// What the visitor asked the other proxy for.
struct Asked {
    host: String,
    path: String,
    query: Option<String>,
    method: Method,
}

impl Asked {
    fn of(head: &Parts, rest: usize) -> Asked {
        let headers = &head.headers;
        let address = first(headers, &["x-original-uri", "x-original-url", "x-forwarded-uri"]);
        let own = head.uri.path();
        let appended = own.get(rest..).filter(|rest| rest.starts_with('/'));
        let (path, query) = match (address, appended) {
            (Some(address), _) => split(address),
            (None, Some(path)) => (path.to_owned(), head.uri.query().map(str::to_owned)),
            (None, None) => ("/".to_owned(), None),
        };
        let method = first(headers, &["x-original-method", "x-forwarded-method"]);
        let method = method.and_then(|it| Method::from_bytes(it.as_bytes()).ok());
        let host = first(headers, &["x-original-host", "x-forwarded-host", "host"]);
        let host = host.or(head.uri.host()).unwrap_or_default();
        let bare = match host.rsplit_once(':') {
            Some((bare, port)) if port.bytes().all(|it| it.is_ascii_digit()) => bare,
            _ => host,
        };
        Asked {
            host: bare.to_ascii_lowercase(),
            path,
            query,
            method: method.unwrap_or_else(|| head.method.clone()),
        }
    }
}

/// A path with its query, or a whole address (Traefik and some others send one).
fn split(address: &str) -> (String, Option<String>) {
    let path = match address.find("://") {
        Some(at) => {
            let after = &address[at + 3..];
            after.find('/').map_or("/", |at| &after[at..])
        }
        None => address,
    };
    let (path, query) = match path.split_once('?') {
        Some((path, query)) => (path, Some(query.to_owned())),
        None => (path, None),
    };
    (if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }, query)
}

fn first<'a>(headers: &'a HeaderMap, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| headers.get(*name)?.to_str().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(uri: &str, headers: &[(&str, &str)]) -> (String, String, Option<String>, Method) {
        let mut request = http::Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).expect("a request").into_parts();
        let Asked { host, path, query, method } = Asked::of(&head, PATH.len());
        (host, path, query, method)
    }

    #[test]
    fn every_proxy_s_way_of_asking_is_understood() {
        let shop = || "shop.example".to_owned();
        let nginx =
            [("host", "shop.example"), ("x-original-uri", "/a?b=c"), ("x-original-method", "POST")];
        let expected = (shop(), "/a".to_owned(), Some("b=c".to_owned()), Method::POST);
        assert_eq!(asked("/gate/check", &nginx), expected);
        let caddy = [
            ("host", "127.0.0.1:1"),
            ("x-forwarded-host", "Shop.Example:443"),
            ("x-forwarded-uri", "/a?b=c"),
            ("x-forwarded-method", "POST"),
        ];
        assert_eq!(asked("/gate/check?as=redirect", &caddy), expected);
        let envoy = [("host", "shop.example")];
        let expected = (shop(), "/a".to_owned(), Some("b=c".to_owned()), Method::GET);
        assert_eq!(asked("/gate/check/a?b=c", &envoy), expected);
        let whole = [("host", "x"), ("x-original-url", "https://shop.example/a?b=c")];
        assert_eq!(asked("/gate/check", &whole).1, "/a");
    }
}
