//! The conversation: hyper serves the connection, we give it its limits and its end.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::Service;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use pin_project_lite::pin_project;

use crate::endless::{self, Aside};
use crate::io::Io;
use crate::line::{Line, Order, Stage};
use crate::peer::{Peer, Protocol};
use crate::quick::{self, Left, Quick};
use crate::settings::Settings;
use crate::stats::{Stats, one_more};
use crate::track::{Answer, Tracked};

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How hyper is set up; the same for all connections of a listener.
#[derive(Debug)]
pub(crate) struct Manner {
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
    headers_max: usize,
    quick: Option<Arc<dyn Quick>>,
    stats: Arc<Stats>,
}

impl Manner {
    pub(crate) fn new(
        settings: &Settings,
        quick: Option<Arc<dyn Quick>>,
        stats: Arc<Stats>,
    ) -> Manner {
        let mut http1 = http1::Builder::new();
        http1
            // The sweep keeps time; hyper's timer would cost every request. Writes are vectored, as
            // hyper does by itself: flattening copies a shared page for each slow client.
            .header_read_timeout(None)
            // Otherwise every request that has to wait for the disk costs one more read, to see
            // whether its client is gone. One that is gone is found by the next write.
            .half_close(true)
            .max_header_size(settings.header_bytes_max)
            .max_buf_size(settings.buffer_bytes());
        if settings.headers_max != HYPER_HEADERS {
            http1.max_headers(settings.headers_max);
        }
        let limits = &settings.http2;
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2
            .timer(TokioTimer::new())
            .max_concurrent_streams(limits.concurrent_streams_max)
            .max_pending_accept_reset_streams(limits.pending_reset_streams_max)
            .max_local_error_reset_streams(limits.local_reset_streams_max)
            .initial_stream_window_size(limits.stream_window_bytes)
            .initial_connection_window_size(limits.connection_window_bytes)
            .max_send_buf_size(limits.send_buffer_bytes)
            .max_header_list_size(u32::try_from(settings.header_bytes_max).unwrap_or(u32::MAX))
            .keep_alive_interval(limits.ping_every)
            .keep_alive_timeout(limits.ping_timeout);
        Manner { http1, http2, headers_max: settings.headers_max, quick, stats }
    }

    /// Serves the connection to its end: the client's, the service's, or by order.
    pub(crate) async fn converse<S, B>(&self, io: Io, peer: &Peer, line: Arc<Line>, service: S)
    where
        S: Service<Request<Incoming>, Response = Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let headers_max = self.headers_max;
        let ended = match peer.protocol {
            Protocol::Http1 => {
                let aside = Arc::new(Aside::empty());
                let line_too = line.clone();
                let aside_too = Some(aside.clone());
                let service = Tracked { service, line: line_too, headers_max, aside: aside_too };
                self.http1(io, peer, &line, service, &aside).await
            }
            Protocol::Http2 => {
                let line_too = line.clone();
                let service = Tracked { service, line: line_too, headers_max, aside: None };
                self.http2(io, &line, service).await
            }
        };
        if ended.is_err() {
            one_more(&self.stats.failed_http);
        }
    }

    async fn http1<S, B>(
        &self,
        mut io: Io,
        peer: &Peer,
        line: &Arc<Line>,
        mut service: Tracked<S, B>,
        aside: &Aside<Answer<B>>,
    ) -> hyper::Result<()>
    where
        S: Service<Request<Incoming>, Response = Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        loop {
            if let Some(quick) = &self.quick {
                match quick::serve(&**quick, &mut io, peer, line).await {
                    Left::Over => return Ok(()),
                    Left::ToHyper => {}
                    Left::ToPark if self.sleep(&io, line).await == Woken::ToFinish => {
                        return Ok(());
                    }
                    Left::ToPark => {
                        line.set_parked(false);
                        continue;
                    }
                }
            }
            // Boxed: so that a parked connection's task is small, and an HTTP/2 one not larger.
            let mut talk = Box::new(self.http1.serve_connection(io, service).with_upgrades());
            let mut told = false;
            let ended = poll_fn(|cx| {
                let mut polled = Pin::new(&mut *talk).poll(cx);
                // Told after a poll, not before: a request that has arrived is served.
                if polled.is_pending() && !told && line.order() >= Order::Finish {
                    told = true;
                    Pin::new(&mut *talk).graceful_shutdown();
                    polled = Pin::new(&mut *talk).poll(cx);
                }
                if polled.is_pending() && line.asked_to_park() {
                    if line.is_at_rest() {
                        return Poll::Ready(Turn::Park);
                    }
                    line.set_parked(false);
                }
                match aside.take() {
                    Some(response) => Poll::Ready(Turn::Endless(response)),
                    None => polled.map(Turn::Over),
                }
            });
            let endless = match ended.await {
                Turn::Over(ended) => return ended,
                Turn::Park => None,
                Turn::Endless(response) => Some(response),
            };
            // hyper was between requests, with every answer written, and its last read found
            // nothing: the socket, the service and what it may have read ahead are all there is.
            let parts = talk.into_parts().expect("a connection that is not over is not upgraded");
            (io, service) = (parts.io, parts.service);
            if let Some(response) = endless {
                drop((service, parts.read_buf));
                // A client that leaves a stream has done nothing wrong.
                let _ = endless::write(io, response).await;
                return Ok(());
            }
            let more = io.put_back(&parts.read_buf);
            drop(parts.read_buf);
            if !more && self.sleep(&io, line).await == Woken::ToFinish {
                return Ok(());
            }
            line.set_parked(false);
        }
    }

    /// Holds nothing but the socket until there is something to read, or an order.
    async fn sleep(&self, io: &Io, line: &Line) -> Woken {
        line.set_parked(true);
        one_more(&self.stats.parked);
        poll_fn(|cx| match io.poll_readable(cx) {
            Poll::Ready(()) => Poll::Ready(Woken::ToRead),
            Poll::Pending if line.order() >= Order::Finish => Poll::Ready(Woken::ToFinish),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    async fn http2<S, B>(&self, io: Io, line: &Line, service: Tracked<S, B>) -> hyper::Result<()>
    where
        S: Service<Request<Incoming>, Response = Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        line.set_multiplexed();
        let mut talk = Box::pin(self.http2.serve_connection(io, service));
        let mut told = false;
        poll_fn(|cx| {
            if !told && line.order() >= Order::Finish {
                told = true;
                talk.as_mut().graceful_shutdown();
            }
            talk.as_mut().poll(cx)
        })
        .await
    }
}

/// Why hyper no longer has the connection.
enum Turn<B> {
    Over(hyper::Result<()>),
    Park,
    Endless(Response<Answer<B>>),
}

/// Why a parked connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Woken {
    ToRead,
    ToFinish,
}

/// What hyper keeps on the stack; asking for the same number would make it allocate.
const HYPER_HEADERS: usize = 100;

pin_project! {
    /// A connection's task: whatever it is at, it ends when it is cut.
    pub(crate) struct Cuttable<F> {
        #[pin]
        inner: F,
        line: Arc<Line>,
        woken: bool,
    }
}

impl<F> Cuttable<F> {
    pub(crate) fn new(line: Arc<Line>, inner: F) -> Cuttable<F> {
        Cuttable { inner, line, woken: false }
    }
}

impl<F: Future<Output = ()>> Future for Cuttable<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let me = self.project();
        if !*me.woken {
            *me.woken = true;
            me.line.keep_waker(cx.waker());
        }
        if me.line.order() == Order::Cut {
            return Poll::Ready(());
        }
        let polled = me.inner.poll(cx);
        let unheard = matches!(me.line.stage().0, Stage::Handshake | Stage::Greeting);
        if unheard && me.line.order() >= Order::Finish {
            // Nothing was said yet, so there is nothing to finish.
            return Poll::Ready(());
        }
        polled
    }
}
