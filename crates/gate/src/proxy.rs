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

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Response, StatusCode, Uri, header};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use waitroom_api::{Code, Problem};
use waitroom_core::id::TicketId;

use crate::body::Body;
use crate::counts::one_more;
use crate::facts::Facts;
use crate::forward::{Framing, Hop, Outgoing};
use crate::gate::{Gate, SiteGate};
use crate::negotiate::Taste;
use crate::origin::{Failed, Head, InFlight, Origin, OriginBody, Taken, Upload};
use crate::remote::Elsewhere;
use crate::render;
use crate::room::GateRoom;
use crate::session;
use crate::target;
use crate::tunnel::{self, Inside, Tunnel};

/// A request that may go to the origin.
#[derive(Debug)]
pub struct Going {
    pub gate: Arc<Gate>,
    pub at: Arc<SiteGate>,
    /// Whom it is of, when somebody inside asks; none for a bypass.
    pub visitor: Option<(Arc<GateRoom>, TicketId)>,
    /// Cookies for the answer.
    pub fresh: Vec<HeaderValue>,
    pub head: Parts,
    pub client: IpAddr,
    pub https: bool,
    /// The host that the visitor asked for.
    pub authority: String,
    /// Somebody inside a room that is elsewhere.
    pub elsewhere: Option<Elsewhere>,
    /// Whether the origin is a waitroom, which reads what is for us.
    pub ours: bool,
}

/// Tries for one request: the first, and one more.
const TRIES: usize = 2;

impl Going {
    pub async fn go(mut self, body: Incoming) -> Response<Body> {
        let Some(entered) = self.at.origins.enter() else {
            one_more(&self.at.counts.origin_busy);
            return self.trouble(Code::OriginBusy, "many people are inside; try again in a moment");
        };
        let upgrade = wanted_upgrade(&mut self.head);
        let began = Instant::now();
        let answered = self.ask(Upload::of(body), upgrade.is_some()).await;
        self.note(began, &answered);
        match answered {
            Ok((answer, taken)) => self.answer(answer, taken, entered, upgrade).await,
            Err(failed) => self.failed(failed),
        }
    }

    /// What this says of the origin. A visitor who sends slowly, or goes, says nothing of it: or
    /// anybody could bring the pace down with a few slow uploads.
    fn note(&self, began: Instant, answered: &Result<(Head, Taken), Failed>) {
        let (fine, asked_at) = match answered {
            Ok((answer, taken)) => (!answer.status.is_server_error(), taken.link.asked_at()),
            Err(Failed::VisitorSlow | Failed::VisitorBroke) => return,
            Err(_) => (false, None),
        };
        let took = asked_at.unwrap_or(began).elapsed();
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.at.signals.note(ms, fine);
        self.at.counts.origin(ms, fine);
    }

    /// Sends it, and once more where that is safe.
    async fn ask(&self, mut upload: Upload, upgrade: bool) -> Result<(Head, Taken), Failed> {
        let origins = &self.at.origins;
        let manners = &origins.manners;
        let method = &self.head.method;
        let path = origin_path(&self.head.uri);
        let framing = match &upload {
            Upload::Nothing => Framing::NoBody,
            Upload::Sized(_, bytes) => Framing::Length(*bytes),
            Upload::Chunked(_) => Framing::Chunked,
        };
        let bare = upload.is_nothing() && is_idempotent(method);
        let mut failed_at: Option<Arc<Origin>> = None;
        let mut failed = Failed::Connect;
        for attempt in 1..=TRIES.max(origins.all.len().min(3)) {
            let now_ms = self.gate.desk.clock.now_ms();
            let Some(origin) = origins.choose(failed_at.as_ref(), now_ms) else { break };
            // The second time on a connection of its own: others that waited may be dead too.
            let waiting = if attempt == 1 { origin.waiting() } else { None };
            let taken = match waiting {
                Some(taken) => Ok(taken),
                None => origin.connected(manners.connect_timeout).await,
            };
            let mut taken = match taken {
                Ok(taken) => taken,
                Err(why) => {
                    origin.health.failed(now_ms);
                    (failed, failed_at) = (why, Some(origin));
                    continue;
                }
            };
            let host = match manners.keep_host {
                true => self.authority.as_bytes(),
                false => origin.host_header.as_bytes(),
            };
            let request = Outgoing {
                method,
                path: &path,
                headers: &self.head.headers,
                hop: Hop { client: self.client, https: self.https, authority: &self.authority },
                host,
                upgrade,
                inside: self.inside(),
                framing,
                ours: self.ours,
            };
            let had_waited = taken.link.used;
            let write = |out: &mut Vec<u8>| request.write(out);
            let link = &mut taken.link;
            match link.exchange(method, write, &mut upload, manners.answer_timeout).await {
                Ok(answer) => {
                    origin.health.worked();
                    return Ok((answer, taken));
                }
                Err(why) => {
                    // Whoever hangs up on a fresh connection is not well; one that had waited may
                    // have been closed for its age.
                    let unwell = match why {
                        Failed::Slow | Failed::Nonsense | Failed::BrokeOff => true,
                        Failed::Died { .. } => !had_waited,
                        _ => false,
                    };
                    if unwell {
                        origin.health.failed(now_ms);
                    }
                    failed = why;
                    let again = match why {
                        Failed::Died { sent } => !sent || (bare && had_waited),
                        _ => false,
                    };
                    if !again {
                        break;
                    }
                    one_more(&self.at.counts.retried);
                }
            }
        }
        Err(failed)
    }

    /// By which right it goes, as the origin is told.
    fn inside(&self) -> Option<(TicketId, &str)> {
        let here = self.visitor.as_ref().map(|(room, ticket)| (*ticket, room.name()));
        here.or(self.elsewhere.as_ref().map(|who| (who.ticket, who.room.as_str())))
    }

    async fn answer(
        self,
        mut answer: Head,
        taken: Taken,
        entered: InFlight,
        upgrade: Option<OnUpgrade>,
    ) -> Response<Body> {
        let said = match self.ours {
            true => session::Said::default(),
            false => session::said(&mut answer.headers),
        };
        if answer.status == StatusCode::SWITCHING_PROTOCOLS {
            let Some(visitor) = upgrade else {
                return self
                    .trouble(Code::OriginBroken, "it switched to a protocol nobody asked for");
            };
            one_more(&self.at.counts.tunnels);
            let tunnel = Tunnel { taken, entered, visitor };
            let inside = match (self.visitor, self.elsewhere) {
                (Some((room, ticket)), _) => Inside::Here(self.at, room, ticket),
                (None, Some(who)) => Inside::Elsewhere(self.gate.clone(), self.at, who),
                (None, None) => Inside::Anybody,
            };
            tokio::spawn(tunnel::run(tunnel, inside, self.gate.desk.draining.subscribe()));
            return response(answer, Body::empty());
        }
        for cookie in &self.fresh {
            answer.headers.append(header::SET_COOKIE, cookie.clone());
        }
        if said != session::Said::default() {
            self.obey(said, &mut answer.headers).await;
        }
        let idle = self.at.origins.manners.idle_timeout;
        let mut body = OriginBody::new(&answer, taken, entered, idle);
        let body = match body.whole() {
            Some(bytes) => Body::Whole(bytes),
            None => Body::Origin(Box::new(body)),
        };
        response(answer, body)
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

    fn failed(&self, failed: Failed) -> Response<Body> {
        one_more(&self.at.counts.origin_failed);
        match failed {
            Failed::Connect => self.trouble(Code::OriginDown, "it does not take connections"),
            Failed::Slow => self.trouble(Code::OriginSlow, "try again in a moment"),
            Failed::Died { .. } => {
                self.trouble(Code::OriginBroken, "its connection ended before it answered")
            }
            Failed::BrokeOff => self.trouble(Code::OriginBroken, "its answer broke off"),
            Failed::Nonsense => self.trouble(Code::OriginBroken, "what it answered is no HTTP"),
            Failed::VisitorBroke => self.trouble(Code::BadRequest, "the body broke off"),
            Failed::VisitorSlow => self.trouble(Code::BodyTooSlow, "send it faster"),
        }
    }

    fn trouble(&self, code: Code, detail: &str) -> Response<Body> {
        let facts = Facts {
            host: "",
            path: self.head.uri.path(),
            query: None,
            method: &self.head.method,
            headers: &self.head.headers,
            client: self.client,
            now_s: 0,
        };
        render::trouble(&Taste::of(&facts), Problem::new(code, detail))
    }
}

fn response(head: Head, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers;
    response
}

/// The visitor's side of a WebSocket, if that is what is asked for. Anything else that wants to
/// switch protocols goes on as an ordinary request.
fn wanted_upgrade(head: &mut Parts) -> Option<OnUpgrade> {
    let named = head.headers.get(header::UPGRADE)?;
    let fits = head.method == Method::GET
        && head.version == http::Version::HTTP_11
        && named.as_bytes().eq_ignore_ascii_case(b"websocket");
    head.extensions.remove::<OnUpgrade>().filter(|_| fits)
}

/// The path and query, without what was ours, and without a host.
fn origin_path(uri: &Uri) -> Cow<'_, str> {
    let ours = |query: &str| query.contains("wr_pass=") || query.contains("wr_staff=");
    if uri.query().is_some_and(ours) {
        return target::cleaned(uri.path(), uri.query()).into();
    }
    match uri.path_and_query().map_or("/", PathAndQuery::as_str) {
        // `http://host?x` has no path, and a request line must have one.
        bare if !bare.starts_with('/') && bare != "*" => format!("/{bare}").into(),
        path => path.into(),
    }
}

fn is_idempotent(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::PUT | Method::DELETE)
}
