//! A request's message on its way in, which must not take for ever.
//!
//! tonic waits for a message as long as its stream is open, and a client could keep a stream open
//! with pings alone. The clock starts when a piece is waited for; a message that came together
//! with its headers, which is nearly every one, costs no timer.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tonic::Status;

use super::deadline::Alarm;
use super::refusal::refused;
use crate::problem::{Code, Problem};

#[derive(Debug)]
pub struct Arriving {
    body: Incoming,
    within: Duration,
    alarm: Option<Alarm>,
}

impl Arriving {
    pub fn new(body: Incoming, within: Duration) -> Arriving {
        Arriving { body, within, alarm: None }
    }
}

impl Body for Arriving {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let me = self.get_mut();
        if let Poll::Ready(frame) = Pin::new(&mut me.body).poll_frame(context) {
            me.alarm = None;
            let broken = |_| Status::cancelled("the request broke off");
            return Poll::Ready(frame.map(|frame| frame.map_err(broken)));
        }
        let within = me.within;
        ready!(me.alarm.get_or_insert_with(|| Alarm::within(within)).poll(context));
        let late = Problem::new(Code::BodyTooSlow, "send the message with its headers");
        Poll::Ready(Some(Err(refused(late))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
