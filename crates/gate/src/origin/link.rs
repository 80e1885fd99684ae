//! One connection to an origin, driven by whoever uses it.
//!
//! It speaks HTTP/1.1 by itself. hyper's client has a channel between whoever asks and whoever
//! drives the socket, which a request here, that does both, would pay for and not need. A head is
//! written as bytes, and an answer's head is read into the map that goes on to the visitor.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http::{Method, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::time::{Instant, Sleep, sleep_until};

use super::head::{self, Head};
use super::stream::Stream;
use super::upload::Upload;

/// Why a request got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// Nobody was there; nothing was sent.
    Connect,
    /// The connection ended before the answer began.
    Died { sent: bool },
    /// The answer broke off in its head.
    BrokeOff,
    /// No answer in time.
    Slow,
    /// The visitor's own body broke off.
    VisitorBroke,
    /// The visitor's own body did not come in time.
    VisitorSlow,
    /// What came back is no HTTP.
    Nonsense,
}

/// For the head of an answer and, mostly, all of a small body.
const READ_BYTES: usize = 4 * 1024;
/// For a body that is larger than what came with its head.
const BODY_READ_BYTES: usize = 32 * 1024;
/// 100 and 103 may come before an answer, a few times.
const INTERIM_MAX: usize = 16;

#[derive(Debug)]
pub struct Link {
    stream: Stream,
    /// Came and was not looked at yet.
    pub read: BytesMut,
    /// To be written, from `written` on, and `large` behind it.
    out: Vec<u8>,
    written: usize,
    large: Bytes,
    upload: Upload,
    chunked: bool,
    /// Of the visitor's body, so far.
    moved: u64,
    asked_at: Option<std::time::Instant>,
    /// Something of the present request went out.
    sent: bool,
    /// The origin takes nothing more.
    deaf: bool,
    /// It has carried a request before: the origin may be about to close it.
    pub used: bool,
    alarm: Alarm,
}

impl Link {
    pub fn new(stream: Stream) -> Link {
        Link {
            stream,
            read: BytesMut::new(),
            out: Vec::new(),
            written: 0,
            large: Bytes::new(),
            upload: Upload::Nothing,
            chunked: false,
            moved: 0,
            asked_at: None,
            sent: false,
            deaf: false,
            used: false,
            alarm: Alarm::default(),
        }
    }

    /// Whether everything was sent and all that came was taken, so that the next request will
    /// get the next answer.
    pub fn is_at_rest(&self) -> bool {
        self.read.is_empty() && !self.deaf && self.all_sent()
    }

    /// Whether another request can go over it: an origin that has closed it, or says something
    /// that nobody asked for, is found here. No call to the system while nothing came.
    pub fn is_still_good(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        self.poll_fill(&mut context, READ_BYTES).is_pending()
    }

    /// The socket, for an upgrade, with what came after the answer.
    pub fn into_parts(self) -> (Stream, Bytes) {
        (self.stream, self.read.freeze())
    }

    /// One request, until the head of its answer. `write` writes the request's head; `upload` is
    /// left where it was when nothing could be sent.
    pub async fn exchange(
        &mut self,
        method: &Method,
        write: impl FnOnce(&mut Vec<u8>),
        upload: &mut Upload,
        within: Duration,
    ) -> Result<Head, Failed> {
        self.out.clear();
        write(&mut self.out);
        (self.written, self.moved, self.sent) = (0, 0, false);
        self.asked_at = None;
        self.chunked = matches!(upload, Upload::Chunked(_));
        self.upload = std::mem::replace(upload, Upload::Nothing);
        let began = Instant::now();
        self.alarm.due(began + within);
        let answered = self.head(method, within).await;
        self.used = true;
        if matches!(answered, Err(Failed::Died { sent: false })) {
            *upload = std::mem::replace(&mut self.upload, Upload::Nothing);
        }
        answered
    }

    async fn head(&mut self, method: &Method, within: Duration) -> Result<Head, Failed> {
        let (mut seen, mut interim) = (0, 0);
        poll_fn(|context| {
            loop {
                self.poll_send(context)?;
                match self.poll_head(context, method) {
                    Poll::Ready(Ok(head)) if is_interim(head.status) && interim < INTERIM_MAX => {
                        interim += 1;
                    }
                    Poll::Ready(Ok(head)) if is_interim(head.status) => {
                        return Poll::Ready(Err(Failed::Nonsense));
                    }
                    Poll::Ready(answered) => return Poll::Ready(answered),
                    Poll::Pending => break,
                }
            }
            loop {
                ready!(self.alarm.poll(context));
                // While the visitor is still sending, the origin's time has not begun.
                if self.moved > seen {
                    seen = self.moved;
                    self.alarm.due(Instant::now() + within);
                } else if self.upload.is_nothing() || self.has_more_to_write() {
                    // It does not answer, or does not even read what it is sent.
                    return Poll::Ready(Err(Failed::Slow));
                } else {
                    return Poll::Ready(Err(Failed::VisitorSlow));
                }
            }
        })
        .await
    }

    fn poll_head(
        &mut self,
        context: &mut Context<'_>,
        method: &Method,
    ) -> Poll<Result<Head, Failed>> {
        loop {
            if !self.read.is_empty()
                && let Some(head) =
                    head::take(&mut self.read, method).map_err(|_| Failed::Nonsense)?
            {
                return Poll::Ready(Ok(head));
            }
            match ready!(self.poll_fill(context, READ_BYTES)) {
                Ok(1..) => {}
                Ok(0) | Err(_) if self.read.is_empty() => {
                    return Poll::Ready(Err(Failed::Died { sent: self.sent }));
                }
                Ok(0) | Err(_) => return Poll::Ready(Err(Failed::BrokeOff)),
            }
        }
    }

    /// Reads what there is; nothing is the end.
    fn poll_fill(
        &mut self,
        context: &mut Context<'_>,
        room: usize,
    ) -> Poll<std::io::Result<usize>> {
        if self.read.capacity() - self.read.len() < room / 4 {
            self.read.reserve(room);
        }
        pin!(self.stream.read_buf(&mut self.read)).poll(context)
    }

    /// More of a body, of which so much is expected.
    pub fn poll_more(
        &mut self,
        context: &mut Context<'_>,
        expected: u64,
    ) -> Poll<std::io::Result<usize>> {
        let room = usize::try_from(expected).unwrap_or(usize::MAX);
        self.poll_fill(context, room.clamp(READ_BYTES, BODY_READ_BYTES))
    }

    fn all_sent(&self) -> bool {
        self.written == self.out.len() && self.large.is_empty() && self.upload.is_nothing()
    }

    /// Sends what can be sent. Only the visitor's failure is one: an origin that takes nothing
    /// more may have answered already, and that is what counts.
    fn has_more_to_write(&self) -> bool {
        self.written < self.out.len() || !self.large.is_empty()
    }

    /// When the visitor's body had come whole, where there was one.
    pub fn asked_at(&self) -> Option<std::time::Instant> {
        self.asked_at
    }

    pub fn poll_send(&mut self, context: &mut Context<'_>) -> Result<(), Failed> {
        while !self.deaf && !self.all_sent() {
            if !self.has_more_to_write() {
                self.out.clear();
                self.written = 0;
                match self.upload.poll_next(context, &mut self.out) {
                    Poll::Ready(Ok((moved, large))) => {
                        self.moved += moved;
                        self.large = large;
                        if self.upload.is_nothing() {
                            self.asked_at = Some(std::time::Instant::now());
                        }
                    }
                    Poll::Ready(Err(_)) => {
                        self.deaf = true;
                        return Err(Failed::VisitorBroke);
                    }
                    Poll::Pending => break,
                }
            }
            let waiting = self.written < self.out.len();
            let bytes = if waiting { &self.out[self.written..] } else { &self.large[..] };
            if bytes.is_empty() {
                continue;
            }
            match Pin::new(&mut self.stream).poll_write(context, bytes) {
                Poll::Ready(Ok(written @ 1..)) => {
                    self.sent = true;
                    if waiting {
                        self.written += written;
                    } else {
                        self.large.advance(written);
                        if self.large.is_empty() {
                            self.out.clear();
                            self.out.extend_from_slice(Upload::behind_large(self.chunked));
                            self.written = 0;
                        }
                    }
                }
                Poll::Ready(Ok(0) | Err(_)) => self.deaf = true,
                Poll::Pending => break,
            }
        }
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.deaf |= matches!(flushed, Poll::Ready(Err(_)));
        Ok(())
    }

    /// From now on something must come within this time.
    pub fn patience(&mut self, within: Duration) {
        self.alarm.due(Instant::now() + within);
    }

    pub fn poll_patience(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.alarm.poll(context)
    }
}

/// Before the answer proper. A switch of protocols is an answer.
fn is_interim(status: StatusCode) -> bool {
    status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS
}

/// A time by which something must have happened. Mostly it has, and the next time is set: then
/// the timer is left as it is and looks again when it rings.
#[derive(Debug, Default)]
struct Alarm {
    at: Option<Instant>,
    rings: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    fn due(&mut self, at: Instant) {
        self.at = Some(at);
        if let Some(rings) = self.rings.as_mut().filter(|rings| rings.deadline() > at) {
            rings.as_mut().reset(at);
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.at else { return Poll::Pending };
        let rings = self.rings.get_or_insert_with(|| Box::pin(sleep_until(at)));
        loop {
            ready!(rings.as_mut().poll(context));
            if rings.deadline() >= at {
                return Poll::Ready(());
            }
            rings.as_mut().reset(at);
        }
    }
}
