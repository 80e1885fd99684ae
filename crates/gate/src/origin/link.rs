//! One connection to an origin, driven by whoever uses it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;

use crate::forward;

/// What a request brings to the origin: nothing, or the visitor's body as it comes.
#[derive(Debug)]
pub enum Upload {
    Nothing,
    Stream {
        body: Incoming,
        /// Bytes so far: whoever waits for an answer can tell a slow upload from a slow origin.
        moved: Arc<AtomicU64>,
    },
}

/// Set in the count of an upload that is complete.
const ALL_SENT: u64 = 1 << 63;

impl Body for Upload {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            Upload::Nothing => Poll::Ready(None),
            Upload::Stream { body, moved } => {
                let polled = Pin::new(&mut *body).poll_frame(context);
                match &polled {
                    Poll::Ready(Some(Ok(frame))) => {
                        let bytes = frame.data_ref().map_or(1, |data| data.len() as u64);
                        moved.fetch_add(bytes, Relaxed);
                        // A body of known length is not asked again after its last piece.
                        if body.is_end_stream() {
                            moved.fetch_or(ALL_SENT, Relaxed);
                        }
                    }
                    Poll::Ready(None) => {
                        moved.fetch_or(ALL_SENT, Relaxed);
                    }
                    _ => {}
                }
                polled.map_ok(|frame| match frame.into_trailers() {
                    Ok(mut trailers) => {
                        forward::trailers_to_origin(&mut trailers);
                        Frame::trailers(trailers)
                    }
                    Err(frame) => frame,
                })
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Upload::Nothing => true,
            Upload::Stream { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Upload::Nothing => SizeHint::with_exact(0),
            Upload::Stream { body, .. } => body.size_hint(),
        }
    }
}

/// Why a request got no answer.
#[derive(Debug)]
pub enum Failed {
    /// Nobody was there; nothing was sent.
    Connect,
    /// The connection ended before the answer began. The request comes back when it was not
    /// even sent.
    Died { unsent: Option<Box<Request<Upload>>> },
    /// No answer in time.
    Slow,
    /// The visitor's own body broke off.
    VisitorBroke,
    /// The visitor's own body did not come in time.
    VisitorSlow,
    /// What came back is no HTTP.
    Nonsense,
}

/// hyper's connection; its own name cannot be said outside hyper.
type Driver = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>;

pub struct Link {
    sender: SendRequest<Upload>,
    driver: Driver,
    /// The driver has come to its end and must not be polled again.
    over: bool,
    /// It has carried a request before: the origin may be about to close it.
    pub used: bool,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("over", &self.over).field("used", &self.used).finish()
    }
}

impl Link {
    pub fn new(
        sender: SendRequest<Upload>,
        driver: impl Future<Output = hyper::Result<()>> + Send + 'static,
    ) -> Link {
        Link { sender, driver: Box::pin(driver), over: false, used: false }
    }

    /// Lets the connection do what it can.
    pub fn drive(&mut self, context: &mut Context<'_>) {
        if !self.over {
            self.over = self.driver.as_mut().poll(context).is_ready();
        }
    }

    /// Whether another request can go over it: looks at the socket, which tells of an end.
    pub fn is_still_good(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        !self.over && self.sender.is_ready()
    }

    /// To its end, for an upgrade.
    pub async fn run_out(mut self) {
        poll_fn(|context| {
            self.drive(context);
            if self.over { Poll::Ready(()) } else { Poll::Pending }
        })
        .await
    }

    /// One request, until the head of its answer.
    pub async fn exchange(
        &mut self,
        request: Request<Upload>,
        within: Duration,
    ) -> Result<Response<Incoming>, Failed> {
        let moved = match request.body() {
            Upload::Stream { moved, .. } => Some(moved.clone()),
            Upload::Nothing => None,
        };
        let mut answer = pin!(self.sender.try_send_request(request));
        self.used = true;
        let (driver, over) = (&mut self.driver, &mut self.over);
        let mut answered = pin!(poll_fn(move |context| {
            // The driver first: it takes the request out of the channel and writes it.
            if !*over {
                *over = driver.as_mut().poll(context).is_ready();
            }
            answer.as_mut().poll(context)
        }));
        let mut seen = 0;
        loop {
            let Ok(answered) = tokio::time::timeout(within, answered.as_mut()).await else {
                match moved.as_ref().map(|moved| moved.load(Relaxed)) {
                    // The visitor is still sending: the origin's time has not begun.
                    Some(now) if now > seen => {
                        seen = now;
                        continue;
                    }
                    Some(now) if now & ALL_SENT == 0 => return Err(Failed::VisitorSlow),
                    _ => return Err(Failed::Slow),
                }
            };
            return answered.map_err(|mut failed| {
                let unsent = failed.take_message().map(Box::new);
                let error = failed.error();
                if error.is_parse() || error.is_parse_too_large() {
                    Failed::Nonsense
                } else if error.is_user() {
                    Failed::VisitorBroke
                } else {
                    Failed::Died { unsent }
                }
            });
        }
    }
}
