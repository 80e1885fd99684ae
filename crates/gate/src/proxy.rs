//! A passed request goes to the origin, and its answer comes back.
//!
//! | what happens | what the visitor gets |
//! |---|---|
//! | no origin can be reached | 502 `origin_down` |
//! | as many requests there as allowed | 503 `origin_busy`, come back |
//! | no answer in time | 504 `origin_slow` |
//! | the visitor's own body does not come in time, or breaks off | 408 `body_too_slow`, 400 |
//! | the connection dies before the answer | once more on a new one if nothing can be done twice, else 502 `origin_broken` |
//! | the answer is no HTTP | 502 `origin_broken` |
//! | the answer breaks off, or falls silent, in its middle | the connection is cut: half an answer never looks whole |
//!
//! A request is tried again only when it was never sent, or when it is a bare GET, HEAD, OPTIONS,
//! PUT or DELETE and a connection that had waited died under it.

use std::sync::Arc;
use std::time::Instant;

use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use waitroom_api::{Code, Problem};
use waitroom_core::id::TicketId;

use crate::body::Body;
use crate::counts::one_more;
use crate::forward::{self, Hop};
use crate::gate::{Gate, SiteGate};
use crate::negotiate::Taste;
use crate::origin::{Failed, InFlight, Link, Origin, OriginBody, Upload};
use crate::render;
use crate::room::GateRoom;
use crate::session;
use crate::target;
use crate::tunnel::{self, Tunnel};

/// A request that may go to the origin.
#[derive(Debug)]
pub struct Going {
    pub gate: Arc<Gate>,
    pub at: Arc<SiteGate>,
    /// Whom it is of, when somebody inside asks; none for a bypass.
    pub visitor: Option<(Arc<GateRoom>, TicketId)>,
    /// Cookies for the answer.
    pub fresh: Vec<HeaderValue>,
    pub taste: Taste,
}

/// Tries for one request: the first, and one more.
const TRIES: usize = 2;

impl Going {
    pub async fn go(self, mut head: Parts, body: Incoming, hop: Hop<'_>) -> Response<Body> {
        let Some(entered) = self.at.origins.enter() else {
            one_more(&self.at.counts.origin_busy);
            return self.trouble(Code::OriginBusy, "many people are inside; try again in a moment");
        };
        let upgrade = wanted_upgrade(&mut head);
        forward::to_origin(&mut head.headers, &hop, upgrade.is_some());
        if let Some((room, ticket)) = &self.visitor {
            put(&mut head, forward::TICKET, &ticket.to_string());
            put(&mut head, forward::ROOM, room.name());
        }
        let Some(uri) = origin_form(&head.uri) else {
            return self.trouble(Code::BadRequest, "the address cannot be read");
        };
        head.uri = uri;
        head.version = http::Version::HTTP_11;
        if self.at.origins.manners.keep_host {
            put(&mut head, header::HOST, hop.authority);
        }
        let upload = if body.is_end_stream() {
            // A length of nothing is a length: some origins ask for one.
            if matches!(head.method, Method::POST | Method::PUT | Method::PATCH) {
                head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
            }
            Upload::Nothing
        } else {
            Upload::Stream { body, moved: Arc::default() }
        };
        let began = Instant::now();
        let answered = self.ask(Request::from_parts(head, upload)).await;
        self.at.signals.note(
            u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            answered.as_ref().is_ok_and(|(answer, ..)| !answer.status().is_server_error()),
        );
        match answered {
            Ok((answer, link, origin)) => self.answer(answer, link, origin, entered, upgrade).await,
            Err(failed) => self.failed(&failed),
        }
    }

    /// Sends it, and once more where that is safe.
    async fn ask(
        &self,
        request: Request<Upload>,
    ) -> Result<(Response<Incoming>, Link, Arc<Origin>), Failed> {
        let origins = &self.at.origins;
        let bare = matches!(request.body(), Upload::Nothing) && is_idempotent(request.method());
        let mut request = Some(request);
        let mut failed_at: Option<Arc<Origin>> = None;
        let mut failed = Failed::Connect;
        for attempt in 1..=TRIES.max(origins.all.len().min(3)) {
            let Some(mut sending) = request.take() else { break };
            let now_ms = self.gate.desk.clock.now_ms();
            let Some(origin) = origins.choose(failed_at.as_ref(), now_ms) else { break };
            // The second time on a connection of its own: others that waited may be dead too.
            let waiting = if attempt == 1 { origin.waiting_link() } else { None };
            let link = match waiting {
                Some(link) => Ok(link),
                None => origin.new_link(origins.manners.connect_timeout).await,
            };
            let mut link = match link {
                Ok(link) => link,
                Err(why) => {
                    origin.health.failed(now_ms);
                    (failed, failed_at, request) = (why, Some(origin), Some(sending));
                    continue;
                }
            };
            if !origins.manners.keep_host {
                sending.headers_mut().insert(header::HOST, origin.host_header.clone());
            }
            let again = (bare && link.used).then(|| copy(&sending));
            match link.exchange(sending, origins.manners.answer_timeout).await {
                Ok(answer) => {
                    origin.health.worked();
                    return Ok((answer, link, origin));
                }
                Err(why) => {
                    origin.give_back(None);
                    if matches!(why, Failed::Slow | Failed::Nonsense) {
                        origin.health.failed(now_ms);
                    }
                    (request, failed) = match why {
                        Failed::Died { unsent } => {
                            let again = unsent.map(|it| *it).or(again);
                            (again, Failed::Died { unsent: None })
                        }
                        why => (None, why),
                    };
                    if request.is_some() {
                        one_more(&self.at.counts.retried);
                    }
                }
            }
        }
        Err(failed)
    }

    async fn answer(
        self,
        answer: Response<Incoming>,
        link: Link,
        origin: Arc<Origin>,
        entered: InFlight,
        upgrade: Option<OnUpgrade>,
    ) -> Response<Body> {
        let (mut head, incoming) = answer.into_parts();
        let switched = head.status == StatusCode::SWITCHING_PROTOCOLS;
        let said = session::said(&mut head.headers);
        if switched {
            let Some(visitor) = upgrade else {
                origin.give_back(None);
                return self
                    .trouble(Code::OriginBroken, "it switched to a protocol nobody asked for");
            };
            let upstream = hyper::upgrade::on(Response::from_parts(head.clone(), incoming));
            one_more(&self.at.counts.tunnels);
            let tunnel = Tunnel { link, origin, entered, visitor, upstream };
            let inside = self.visitor.clone();
            tokio::spawn(tunnel::run(tunnel, inside, self.gate.desk.draining.subscribe()));
            forward::to_visitor(&mut head.headers, true);
            head.extensions.clear();
            return Response::from_parts(head, Body::empty());
        }
        forward::to_visitor(&mut head.headers, false);
        for cookie in &self.fresh {
            head.headers.append(header::SET_COOKIE, cookie.clone());
        }
        if said != session::Said::default() {
            self.obey(said, &mut head.headers).await;
        }
        let idle = self.at.origins.manners.idle_timeout;
        let body = OriginBody::new(incoming, link, origin, entered, idle);
        head.version = http::Version::HTTP_11;
        Response::from_parts(head, Body::Origin(Box::new(body)))
    }

    /// Does what the origin says, before the visitor hears anything: the next in line should not
    /// wait for a slow reader.
    async fn obey(&self, said: session::Said, headers: &mut http::HeaderMap) {
        let Some((room, ticket)) = &self.visitor else { return };
        let ended = crate::upkeep::obey(room, *ticket, said).await;
        if ended {
            one_more(&self.at.counts.sessions_ended_by_origin);
            for cookie in self.gate.forget(room.name()) {
                headers.append(header::SET_COOKIE, cookie);
            }
        }
    }

    fn failed(&self, failed: &Failed) -> Response<Body> {
        one_more(&self.at.counts.origin_failed);
        match failed {
            Failed::Connect => self.trouble(Code::OriginDown, "it does not take connections"),
            Failed::Slow => self.trouble(Code::OriginSlow, "try again in a moment"),
            Failed::Died { .. } => {
                self.trouble(Code::OriginBroken, "its connection ended before it answered")
            }
            Failed::Nonsense => self.trouble(Code::OriginBroken, "what it answered is no HTTP"),
            Failed::VisitorBroke => self.trouble(Code::BadRequest, "the body broke off"),
            Failed::VisitorSlow => self.trouble(Code::BodyTooSlow, "send it faster"),
        }
    }

    fn trouble(&self, code: Code, detail: &str) -> Response<Body> {
        render::trouble(&self.taste, Problem::new(code, detail))
    }
}

/// The visitor's side of a WebSocket, if that is what is asked for. Anything else that wants to
/// switch protocols goes on as an ordinary request.
fn wanted_upgrade(head: &mut Parts) -> Option<OnUpgrade> {
    let upgrade = head.extensions.remove::<OnUpgrade>();
    let named = head.headers.get(header::UPGRADE)?;
    let fits = head.method == Method::GET
        && head.version == http::Version::HTTP_11
        && named.as_bytes().eq_ignore_ascii_case(b"websocket");
    upgrade.filter(|_| fits)
}

/// The path and query, without what was ours, and without a host.
fn origin_form(uri: &Uri) -> Option<Uri> {
    let ours = |query: &str| query.contains("wr_pass=") || query.contains("wr_staff=");
    if uri.query().is_some_and(ours) {
        return target::cleaned(uri.path(), uri.query()).parse().ok();
    }
    if uri.authority().is_none() {
        return Some(uri.clone());
    }
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    path.parse().ok()
}

fn is_idempotent(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::PUT | Method::DELETE)
}

/// A request without a body, once more.
fn copy(request: &Request<Upload>) -> Request<Upload> {
    let mut copy = Request::new(Upload::Nothing);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    copy
}

fn put(head: &mut Parts, name: http::HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        head.headers.insert(name, value);
    }
}
