//! An origin's answer on its way to the visitor: drives the connection it comes from, and gives
//! the connection back at the end.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep};

use super::{InFlight, Link, Origin};

#[derive(Debug)]
pub struct OriginBody {
    incoming: Incoming,
    /// Until the answer is whole.
    link: Option<Link>,
    origin: Arc<Origin>,
    entered: Option<InFlight>,
    idle_timeout: Duration,
    /// Runs while nothing comes.
    patience: Option<Pin<Box<Sleep>>>,
}

type Error = Box<dyn std::error::Error + Send + Sync>;

impl OriginBody {
    pub fn new(
        incoming: Incoming,
        link: Link,
        origin: Arc<Origin>,
        entered: InFlight,
        idle_timeout: Duration,
    ) -> OriginBody {
        let mut body = OriginBody {
            incoming,
            link: Some(link),
            origin,
            entered: Some(entered),
            idle_timeout,
            patience: None,
        };
        if body.incoming.is_end_stream() {
            body.finish(true);
        }
        body
    }

    /// No more will come. Of a whole answer the connection is kept, if it can be used again.
    fn finish(&mut self, whole: bool) {
        if let Some(mut link) = self.link.take() {
            let good = whole && link.is_still_good();
            self.origin.give_back(good.then_some(link));
        }
        self.entered = None;
        self.patience = None;
    }

    fn frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let polled = Pin::new(&mut self.incoming).poll_frame(context);
        if polled.is_ready() {
            return polled.map(|it| it.map(|it| it.map_err(Into::into)));
        }
        let Some(link) = &mut self.link else { return Poll::Pending };
        link.drive(context);
        let polled = Pin::new(&mut self.incoming).poll_frame(context);
        polled.map(|it| it.map(|it| it.map_err(Into::into)))
    }
}

impl Body for OriginBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let me = self.get_mut();
        match me.frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                // A body of known length is not asked again after its last piece.
                if me.incoming.is_end_stream() {
                    me.finish(true);
                } else if let Some(patience) = &mut me.patience {
                    patience.as_mut().reset(Instant::now() + me.idle_timeout);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(None) => {
                me.finish(true);
                Poll::Ready(None)
            }
            Poll::Ready(Some(Err(error))) => {
                me.finish(false);
                Poll::Ready(Some(Err(error)))
            }
            Poll::Pending => {
                let idle = me.idle_timeout;
                let patience = me.patience.get_or_insert_with(|| Box::pin(sleep(idle)));
                if patience.as_mut().poll(context).is_ready() {
                    me.finish(false);
                    return Poll::Ready(Some(Err("the origin fell silent in mid-answer".into())));
                }
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

impl Drop for OriginBody {
    fn drop(&mut self) {
        let whole = self.incoming.is_end_stream();
        self.finish(whole);
    }
}
