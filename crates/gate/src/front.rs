//! The service of a listener on which everything is at once: our own addresses, the question of
//! other proxies, and the gate.
//!
//! | address | who answers |
//! |---|---|
//! | `/.waitroom/wait` | the page without JavaScript |
//! | `/.waitroom/push/worker.js` | the service worker of pages whose room pushes |
//! | `/.waitroom/gate/check`, and `/gate/check` where no site is | the verdict for other proxies |
//! | `/.waitroom/…` | the visitor API, as on its own listener, without the prefix |
//! | anything else on a host of a site | the gate |
//! | anything else | the visitor API |

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, Uri, header};
use hyper::body::Incoming;
use hyper::service::Service;
use waitroom_api::binding::SameHost;
use waitroom_api::metrics::Timed as ApiAnswer;
use waitroom_api::public::Public;
use waitroom_api::quick::ShortWay;
use waitroom_api::{Code, Problem};
use waitroom_listen::{Nets, Peer, client_address};

use crate::body::Body;
use crate::facts::Facts;
use crate::framing::{self, Addressed};
use crate::gate::{Gate, SiteGate};
use crate::negotiate::Taste;
use crate::proxy::Going;
use crate::remote::{self, Caller};
use crate::verdict::Verdict;
use crate::{BASE, check, push, render, target, wait};

/// Answers the requests of one connection.
#[derive(Clone, Debug)]
pub struct Front {
    gate: Arc<Gate>,
    public: Public,
    peer: IpAddr,
    tls: bool,
    trusted: Arc<Nets>,
}

/// Ready at once, the API's, or boxed.
pub enum Answer {
    Now(Ready<Result<Response<Body>, Infallible>>),
    Api(ApiAnswer),
    Later(Pin<Box<dyn Future<Output = Response<Body>> + Send>>),
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Answer")
    }
}

impl Future for Answer {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Answer::Now(answer) => Pin::new(answer).poll(context),
            Answer::Api(answer) => {
                Pin::new(answer).poll(context).map_ok(|answer| answer.map(Body::Api))
            }
            Answer::Later(answer) => answer.as_mut().poll(context).map(Ok),
        }
    }
}

fn now(response: Response<Body>) -> Answer {
    Answer::Now(ready(Ok(response)))
}

/// The visitor API's short way on a listener of ours; none where what is asked under our own prefix
/// may be meant for a room that is run elsewhere.
pub fn short_way(gate: &Gate, trusted: Arc<Nets>) -> Option<ShortWay> {
    if gate.sites.iter().any(|at| at.remote.is_some()) {
        return None;
    }
    // On a host of a site, any address but our own is the site's.
    let bases: &[&str] = if gate.sites.is_empty() { &["", BASE] } else { &[BASE] };
    Some(ShortWay::new(gate.desk.clone(), trusted, bases))
}

impl Front {
    pub fn new(gate: Arc<Gate>, peer: &Peer, trusted: Arc<Nets>) -> Front {
        let public = Public::new(gate.desk.clone(), peer, trusted.clone());
        Front { gate, public, peer: peer.socket.ip(), tls: peer.tls, trusted }
    }

    /// Whether the visitor came over TLS, here or at a proxy that we believe.
    fn https(&self, head: &Parts) -> bool {
        let told = || head.headers.get("x-forwarded-proto").is_some_and(|it| it == "https");
        self.tls || (self.trusted.contains(self.peer) && told())
    }

    fn own(&self, head: Parts, body: Incoming) -> Answer {
        if self.gate.sites.iter().any(|at| at.remote.is_some())
            && let Ok(to) = framing::check(&head)
            && let Some(at) = self.gate.site(&to.host).filter(|at| at.remote.is_some())
        {
            let (gate, at, caller) = (self.gate.clone(), at.clone(), self.caller(&head));
            return Answer::Later(Box::pin(async move {
                let remote = at.remote.as_ref().expect("it was looked for");
                remote::own(gate, remote, to, head, body, caller).await
            }));
        }
        let path = head.uri.path();
        match &path[BASE.len()..] {
            "/wait" => {
                let client = client_address(self.peer, &head.headers, &self.trusted);
                let gate = self.gate.clone();
                Answer::Later(Box::pin(async move { wait::wait(&gate, &head, client).await }))
            }
            push::PATH => now(push::worker(&head)),
            rest if rest.starts_with(check::PATH) => self.check(&head, BASE.len()),
            _ => {
                let mut head = head;
                match without_base(&head.uri) {
                    Some(uri) => head.uri = uri,
                    None => return now(bad_request(&head, "the address cannot be read")),
                }
                if !self.gate.sites.is_empty() {
                    head.extensions.insert(SameHost);
                }
                Answer::Api(self.public.call(Request::from_parts(head, body)))
            }
        }
    }

    fn caller(&self, head: &Parts) -> Caller {
        let client = client_address(self.peer, &head.headers, &self.trusted);
        Caller { client, https: self.https(head) }
    }

    fn check(&self, head: &Parts, base: usize) -> Answer {
        let client = client_address(self.peer, &head.headers, &self.trusted);
        now(check::check(&self.gate, head, client, base + check::PATH.len()))
    }

    fn gated(&self, at: &Arc<SiteGate>, to: Addressed, head: Parts, body: Incoming) -> Answer {
        if at.remote.is_some() {
            let caller = self.caller(&head);
            let visit = remote::visit(self.gate.clone(), at.clone(), to, head, body, caller);
            return Answer::Later(Box::pin(visit));
        }
        let client = client_address(self.peer, &head.headers, &self.trusted);
        let facts = Facts {
            host: &to.host,
            path: head.uri.path(),
            query: head.uri.query(),
            method: &head.method,
            headers: &head.headers,
            client,
            now_s: self.gate.desk.now_s(),
        };
        let (room, verdict) = self.gate.judge(at, &facts);
        let room_ref = room.as_deref();
        if let Some(moved) = moved_to_cookie(&self.gate, at, room_ref, &facts, &verdict) {
            return now(moved);
        }
        let (visitor, fresh) = match verdict {
            Verdict::Wait(why) => {
                return now(render::wait(&self.gate, at, room_ref, &facts, why));
            }
            Verdict::Refuse(refusal) => {
                return now(render::refuse(&self.gate, at, room_ref, &facts, &refusal));
            }
            Verdict::Bypass(_) => (None, Vec::new()),
            Verdict::Pass(passed) => {
                let fresh = match room_ref {
                    Some(room) => self.gate.inside(at, room, &passed, &facts),
                    None => Vec::new(),
                };
                (room.map(|room| (room, passed.ticket)), fresh)
            }
        };
        let https = self.https(&head);
        let (gate, at, authority) = (self.gate.clone(), at.clone(), to.authority);
        let (elsewhere, ours) = (None, false);
        let going =
            Going { gate, at, visitor, fresh, head, client, https, authority, elsewhere, ours };
        Answer::Later(Box::pin(going.go(body)))
    }
}

/// A pass or a staff pass in the address moves to a cookie, and the address becomes clean: it
/// would be copied, kept in histories and sent on to others.
fn moved_to_cookie(
    gate: &Gate,
    at: &SiteGate,
    room: Option<&crate::room::GateRoom>,
    facts: &Facts<'_>,
    verdict: &Verdict,
) -> Option<Response<Body>> {
    let (pass, staff) = (facts.query_value("wr_pass"), facts.query_value("wr_staff"));
    if !facts.only_looks() || (pass.is_none() && staff.is_none()) {
        return None;
    }
    let mut response = render::see_other(&target::cleaned(facts.path, facts.query));
    let room = room?;
    let headers = response.headers_mut();
    if let (Some(text), Verdict::Pass(passed)) = (pass, verdict) {
        if passed.checked_now.is_some() {
            let cookie = gate.pass_cookie(room, text, passed.expires_s, facts.now_s);
            headers.extend(cookie.map(|cookie| (header::SET_COOKIE, cookie)));
        }
        for cookie in gate.inside(at, room, passed, facts) {
            headers.append(header::SET_COOKIE, cookie);
        }
    }
    if let Some(cookie) = staff.and_then(|it| gate.staff_cookie(room.name(), it, facts.now_s)) {
        headers.append(header::SET_COOKIE, cookie);
    }
    Some(response)
}

impl Service<Request<Incoming>> for Front {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn call(&self, request: Request<Incoming>) -> Answer {
        let path = request.uri().path();
        if path.strip_prefix(BASE).is_some_and(|rest| rest.starts_with('/')) {
            let (head, body) = request.into_parts();
            return self.own(head, body);
        }
        if self.gate.sites.is_empty() {
            if path.starts_with(check::PATH) {
                return self.check(&request.into_parts().0, 0);
            }
            return Answer::Api(self.public.call(request));
        }
        let (head, body) = request.into_parts();
        let to = match framing::check(&head) {
            Ok(to) => to,
            Err(why) => return now(bad_request(&head, why)),
        };
        match self.gate.site(&to.host) {
            Some(at) if !at.site.origins.is_empty() => self.gated(at, to, head, body),
            _ if head.uri.path().starts_with(check::PATH) => self.check(&head, 0),
            _ => Answer::Api(self.public.call(Request::from_parts(head, body))),
        }
    }
}

/// Refused for its shape. The connection ends with it: what follows on it cannot be trusted to
/// begin where we think it does.
fn bad_request(head: &Parts, why: &str) -> Response<Body> {
    let facts = Facts {
        host: "",
        path: head.uri.path(),
        query: None,
        method: &head.method,
        headers: &head.headers,
        client: IpAddr::from([0, 0, 0, 0]),
        now_s: 0,
    };
    let mut response = render::trouble(&Taste::of(&facts), Problem::new(Code::BadRequest, why));
    if head.version < http::Version::HTTP_2 {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The address without our prefix.
fn without_base(uri: &Uri) -> Option<Uri> {
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path.get(BASE.len()..)?.parse().ok()?);
    Uri::from_parts(parts).ok()
}
