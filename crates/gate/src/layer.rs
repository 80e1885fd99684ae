//! The same verdict inside a Rust service: a `tower` layer that lets only holders of a pass in.
//!
//! The service needs the public keys of the waiting room and nothing else of it: passes are
//! checked offline. Sessions that ended early are known only at the gate; here a pass counts
//! until it ends, so keep passes short (`pass_life`).

use std::future::{Future, Ready, ready};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{SystemTime, UNIX_EPOCH};

use http::{HeaderValue, Request, Response, StatusCode, header};
use tower_layer::Layer;
use tower_service::Service;
use waitroom_pass::{CheckedPasses, Verifier};

use crate::facts::Facts;
use crate::negotiate::{Wants, wants};
use crate::target;
use crate::verdict::{self, Papers, Stand, Verdict};

/// What a service is told about the room before it.
#[derive(Debug)]
pub struct Rules {
    pub room: String,
    /// The room's public keys; [`Verifier::update`] when they change.
    pub verifier: Verifier,
    /// Where somebody without a pass is sent, such as `https://queue.shop.example/.waitroom/wait`.
    pub wait_url: String,
    /// Plain HTTP: cookies without `__Host-`.
    pub dev: bool,
}

/// Puts a room before a service.
#[derive(Clone, Debug)]
pub struct RoomLayer {
    rules: Arc<Rules>,
    checked: Arc<CheckedPasses>,
}

impl RoomLayer {
    /// `secret` is for cookies of this service alone; the same on all its instances.
    pub fn new(rules: Rules, secret: [u8; 32]) -> RoomLayer {
        let checked = CheckedPasses::new(&[(1, secret)]);
        let checked = Arc::new(checked.expect("one key of one generation is a good set"));
        RoomLayer { rules: Arc::new(rules), checked }
    }
}

impl<S> Layer<S> for RoomLayer {
    type Service = Gated<S>;

    fn layer(&self, inner: S) -> Gated<S> {
        Gated { inner, layer: self.clone() }
    }
}

/// A service behind a room.
#[derive(Clone, Debug)]
pub struct Gated<S> {
    inner: S,
    layer: RoomLayer,
}

/// The ticket of somebody inside, among the extensions of a request that passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(pub waitroom_core::id::TicketId);

/// The service's own answer, or the one to somebody without a pass.
#[derive(Debug)]
pub enum Answer<F, T, E> {
    Inner(F),
    Outside(Ready<Result<T, E>>),
}

impl<F, T, E> Future for Answer<F, T, E>
where
    F: Future<Output = Result<T, E>> + Unpin,
    T: Unpin,
    E: Unpin,
{
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Answer::Inner(inner) => Pin::new(inner).poll(context),
            Answer::Outside(outside) => Pin::new(outside).poll(context),
        }
    }
}

impl<S, B, R> Service<Request<B>> for Gated<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Unpin,
    S::Error: Unpin,
    R: Default + Unpin,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Answer<S::Future, Response<R>, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        match self.layer.judge(&request, now.as_secs()) {
            Ok(ticket) => {
                request.extensions_mut().insert(ticket);
                Answer::Inner(self.inner.call(request))
            }
            Err(response) => Answer::Outside(ready(Ok(response.map(|()| R::default())))),
        }
    }
}

impl RoomLayer {
    fn judge<B>(&self, request: &Request<B>, now_s: u64) -> Result<Ticket, Response<()>> {
        let Rules { room, verifier, wait_url, dev } = &*self.rules;
        let facts = Facts {
            host: "",
            path: request.uri().path(),
            query: request.uri().query(),
            method: request.method(),
            headers: request.headers(),
            // A pass that is bound to an address cannot be checked by who does not know it.
            client: IpAddr::from([0, 0, 0, 0]),
            now_s,
        };
        let checked = &*self.checked;
        let papers = Papers { room, verifier, checked, staff: None, dev: *dev };
        match verdict::judge(&papers, &facts, |_| Stand::Inside(None)) {
            Verdict::Pass(passed) => Ok(Ticket(passed.ticket)),
            Verdict::Refuse(_) => Err(bare(StatusCode::FORBIDDEN)),
            Verdict::Wait(_) | Verdict::Bypass(_) if wants(&facts) == Wants::Page => {
                let to = target::encode(&target::cleaned(facts.path, facts.query));
                let mut response = bare(StatusCode::SEE_OTHER);
                let sign = if wait_url.contains('?') { '&' } else { '?' };
                if let Ok(to) = HeaderValue::from_str(&format!("{wait_url}{sign}to={to}")) {
                    response.headers_mut().insert(header::LOCATION, to);
                }
                Err(response)
            }
            Verdict::Wait(_) | Verdict::Bypass(_) => Err(bare(StatusCode::UNAUTHORIZED)),
        }
    }
}

fn bare(status: StatusCode) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
