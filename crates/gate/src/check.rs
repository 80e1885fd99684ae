//! `GET /gate/check`: the same verdict for other proxies, which carry it out themselves.
//!
//! A proxy asks before it forwards: nginx by `auth_request`, Caddy by `forward_auth`, Traefik by
//! ForwardAuth, Envoy by `ext_authz` over HTTP (over gRPC: `authz.rs`). There are two ways to ask:
//!
//! - `/gate/check?room=ROOM&as=FORM`, and what the visitor asked for in headers (nginx, Caddy,
//!   Traefik). Without `room` the site with that host decides;
//! - `/gate/check/ROOM/FORM` with the visitor's own address behind it (Envoy). There the query is
//!   the visitor's and says nothing about the room; nor do headers, which may be the visitor's too.
//!
//! A visitor's headers reach us through most proxies. So where two of the headers that describe
//! the request contradict each other, one of them is a lie, and the answer is no.
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
pub enum As {
    Status,
    Redirect,
    Page,
}

impl As {
    /// A word that nobody knows is a mistake in a configuration: better seen than guessed at.
    pub fn of(word: Option<&str>) -> Option<As> {
        match word {
            None | Some("status") => Some(As::Status),
            Some("redirect") => Some(As::Redirect),
            Some("page") => Some(As::Page),
            Some(_) => None,
        }
    }
}

/// `rest` is where our own path ends.
pub fn check(gate: &Gate, head: &Parts, client: IpAddr, rest: usize) -> Response<Body> {
    match Question::of(head, rest) {
        Some(question) => answer(gate, &question, &head.headers, client),
        None => plain(StatusCode::FORBIDDEN, None),
    }
}

/// The verdict, in the form that was asked for.
pub fn answer(
    gate: &Gate,
    question: &Question,
    headers: &HeaderMap,
    client: IpAddr,
) -> Response<Body> {
    let Question { room, form, asked } = question;
    let form = *form;
    let facts = Facts {
        host: &asked.host,
        path: &asked.path,
        query: asked.query.as_deref(),
        method: &asked.method,
        headers,
        client,
        now_s: gate.desk.now_s(),
    };
    let at = match room {
        Some(room) => Some(for_room(gate, room.clone())),
        None => gate.site(facts.host).cloned(),
    };
    let Some(at) = at else { return plain(StatusCode::FORBIDDEN, None) };
    let (room, verdict) = gate.judge(&at, &facts);
    let room = room.as_deref();
    match verdict {
        Verdict::Bypass(_) => plain(StatusCode::OK, room),
        Verdict::Pass(passed) => {
            let mut response = plain(StatusCode::OK, room);
            let headers = response.headers_mut();
            if let Ok(ticket) = HeaderValue::from_str(&passed.ticket.to_string()) {
                headers.insert(forward::TICKET, ticket);
            }
            let Some(room) = room else { return response };
            let moved = facts.query_value("wr_pass").filter(|_| passed.checked_now.is_some());
            let moved =
                moved.and_then(|it| gate.pass_cookie(room, it, passed.expires_s, facts.now_s));
            let fresh = gate.inside(&at, room, &passed, &facts);
            // Proxies hand on the first of several cookies, or glue them into a broken one. So
            // there is one, the pass before the word that it was checked: that comes next time.
            let cookie = moved.or_else(|| fresh.into_iter().next());
            headers.extend(cookie.map(|cookie| (header::SET_COOKIE, cookie)));
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
            As::Status | As::Redirect => plain(StatusCode::FORBIDDEN, room),
        },
    }
}

/// Nothing but a status, and which room it was.
pub fn plain(status: StatusCode, room: Option<&GateRoom>) -> Response<Body> {
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

/// What a proxy wants to know, and in which form.
#[derive(Debug)]
pub struct Question {
    /// None: the room of the site with that host.
    pub room: Option<RoomName>,
    pub form: As,
    pub asked: Asked,
}

impl Question {
    /// `None` when it cannot be told what is asked.
    fn of(head: &Parts, rest: usize) -> Option<Question> {
        let behind = head.uri.path().get(rest..).unwrap_or_default();
        if behind.is_empty() {
            let own = |name: &str| waitroom_api::request::query(&head.uri, name);
            let room = own("room").map(RoomName::parse).transpose().ok()?;
            return Some(Question { room, form: As::of(own("as"))?, asked: Asked::told(head)? });
        }
        let (room, behind) = behind.strip_prefix('/')?.split_once('/')?;
        let (form, path) = behind.split_once('/').unwrap_or((behind, ""));
        let asked = Asked {
            host: bare(head.headers.get("host").map_or(Some(""), |it| it.to_str().ok())?),
            path: format!("/{path}"),
            query: head.uri.query().map(str::to_owned),
            method: head.method.clone(),
        };
        Some(Question { room: Some(RoomName::parse(room).ok()?), form: As::of(Some(form))?, asked })
    }
}

/// What the visitor asked the other proxy for.
#[derive(Debug)]
pub struct Asked {
    host: String,
    path: String,
    query: Option<String>,
    method: Method,
}

impl Asked {
    /// As a proxy says it outright.
    pub fn at(host: &str, address: &str, method: Method) -> Option<Asked> {
        let (path, query) = split(address);
        path.starts_with('/').then(|| Asked { host: bare(host), path, query, method })
    }

    /// As it is told in headers.
    fn told(head: &Parts) -> Option<Asked> {
        let headers = &head.headers;
        let address = agreed(headers, &["x-original-uri", "x-original-url", "x-forwarded-uri"])?;
        let (path, query) = address.map_or(("/".to_owned(), None), split);
        let method = agreed(headers, &["x-original-method", "x-forwarded-method"])?;
        let method = match method {
            Some(method) => Method::from_bytes(method.as_bytes()).ok()?,
            None => head.method.clone(),
        };
        let host = agreed(headers, &["x-original-host", "x-forwarded-host"])?;
        let host = match host {
            Some(host) => host,
            None => agreed(headers, &["host"])?.or(head.uri.host()).unwrap_or_default(),
        };
        Some(Asked { host: bare(host), path, query, method })
    }
}

/// Lower case, without a port.
fn bare(host: &str) -> String {
    let bare = match host.rsplit_once(':') {
        Some((bare, port)) if port.bytes().all(|it| it.is_ascii_digit()) => bare,
        _ => host,
    };
    bare.to_ascii_lowercase()
}

/// A path with its query, or a whole address (Traefik and some others send one).
fn split(address: &str) -> (String, Option<String>) {
    // Only what does not begin as a path can be a whole address: a visitor can write `://` into
    // a query, and would choose the path by it.
    let path = match address.find("://").filter(|_| !address.starts_with('/')) {
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

/// What these headers say, if any is there. `None` when they contradict each other.
fn agreed<'a>(headers: &'a HeaderMap, names: &[&str]) -> Option<Option<&'a str>> {
    let mut said = None;
    for value in names.iter().flat_map(|name| headers.get_all(*name)) {
        let value = value.to_str().ok()?;
        if *said.get_or_insert(value) != value {
            return None;
        }
    }
    Some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Told = (Option<String>, String, String, Option<String>, Method);

    fn asked(uri: &str, headers: &[(&str, &str)]) -> Option<Told> {
        let mut request = http::Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).expect("a request").into_parts();
        let Question { room, asked, .. } = Question::of(&head, PATH.len())?;
        let Asked { host, path, query, method } = asked;
        Some((room.map(|it| it.as_str().to_owned()), host, path, query, method))
    }

    #[test]
    fn every_proxy_s_way_of_asking_is_understood() {
        let told = |room: Option<&str>, method| {
            let query = Some("b=c".to_owned());
            Some((room.map(str::to_owned), "shop.example".into(), "/a".into(), query, method))
        };
        let nginx =
            [("host", "shop.example"), ("x-original-uri", "/a?b=c"), ("x-original-method", "POST")];
        assert_eq!(asked("/gate/check", &nginx), told(None, Method::POST));
        let caddy = [
            ("host", "127.0.0.1:1"),
            ("x-forwarded-host", "Shop.Example:443"),
            ("x-forwarded-uri", "/a?b=c"),
            ("x-forwarded-method", "POST"),
        ];
        let uri = "/gate/check?room=sale&as=redirect";
        assert_eq!(asked(uri, &caddy), told(Some("sale"), Method::POST));
        let envoy = [("host", "shop.example")];
        let uri = "/gate/check/sale/page/a?b=c";
        assert_eq!(asked(uri, &envoy), told(Some("sale"), Method::GET));
        let whole = [("host", "x"), ("x-original-url", "https://shop.example/a?b=c")];
        assert_eq!(asked("/gate/check", &whole).expect("told").2, "/a");
    }

    #[test]
    fn a_visitor_s_own_words_choose_neither_room_nor_address() {
        let lies = [("host", "a"), ("x-original-uri", "/free"), ("x-forwarded-host", "free")];
        let (room, host, path, ..) =
            asked("/gate/check/sale/page/a?room=free&as=status", &lies).expect("told");
        assert_eq!((room.as_deref(), &*host, &*path), (Some("sale"), "a", "/a"));
        for (one, other) in [
            (("x-forwarded-uri", "/a"), ("x-original-uri", "/free")),
            (("x-forwarded-uri", "/a"), ("x-original-url", "/free")),
            (("x-forwarded-uri", "/a"), ("x-forwarded-uri", "/free")),
            (("x-original-method", "POST"), ("x-forwarded-method", "GET")),
            (("x-forwarded-host", "a"), ("x-original-host", "free")),
        ] {
            assert_eq!(asked("/gate/check?room=sale", &[one, other]), None, "{one:?} {other:?}");
            assert_eq!(asked("/gate/check?room=sale", &[other, one]), None, "{other:?} {one:?}");
        }
        // A whole address in the query is no address of the request.
        let told = [("host", "a"), ("x-original-uri", "/checkout?next=http://a/assets/x")];
        assert_eq!(asked("/gate/check", &told).expect("told").2, "/checkout");
        for uri in ["/gate/check/", "/gate/check/sale", "/gate/check/sale/x/a", "/gate/check?as=x"]
        {
            assert_eq!(asked(uri, &[]), None, "{uri}");
        }
    }
}
