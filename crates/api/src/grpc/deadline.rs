//! Deadlines: `grpc-timeout` is the client's word for how long it will listen.
//!
//! Kept around the whole call, headers to last message, so that no method has to think of it: a
//! unary call that is late and a stream that is still open both end with DEADLINE_EXCEEDED, and
//! what they were doing is dropped. An answer that is there when it is asked for costs no timer.

use std::convert::Infallible;
use std::future::{self, Future};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};
use tonic::{Code, Status};
use waitroom_watch::span::Within;

use crate::desk::{Desk, Pending};
use crate::metrics::Watched;

/// What an hour or more is cut to: tokio's timers end after some years, and no call lasts a day.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);

/// When the client stops listening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline(Instant);

impl Deadline {
    /// The deadline of a call; none when the client waits for ever. One that cannot be read is
    /// refused: going on without it would break the client's word to somebody else.
    pub fn of(headers: &HeaderMap) -> Result<Option<Deadline>, Status> {
        let Some(value) = headers.get("grpc-timeout") else { return Ok(None) };
        let Some(timeout) = parse(value.as_bytes()) else {
            return Err(Status::invalid_argument(
                "bad_request - grpc-timeout is at most eight digits and one of H M S m u n",
            ));
        };
        Ok(Some(Deadline(Instant::now() + timeout.min(LONGEST))))
    }

    fn alarm(self) -> Alarm {
        Alarm { at: self.0, timer: None }
    }
}

fn parse(text: &[u8]) -> Option<Duration> {
    let (unit, digits) = text.split_last()?;
    if !(1..=8).contains(&digits.len()) {
        return None;
    }
    let count = digits.iter().try_fold(0u64, |count, digit| {
        digit.is_ascii_digit().then(|| count * 10 + u64::from(digit - b'0'))
    })?;
    Some(match unit {
        b'H' => Duration::from_secs(count * 3_600),
        b'M' => Duration::from_secs(count * 60),
        b'S' => Duration::from_secs(count),
        b'm' => Duration::from_millis(count),
        b'u' => Duration::from_micros(count),
        b'n' => Duration::from_nanos(count),
        _ => return None,
    })
}

/// A timer that is only made when somebody has to wait.
#[derive(Debug)]
pub struct Alarm {
    at: Instant,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    pub fn within(time: Duration) -> Alarm {
        Alarm { at: Instant::now() + time, timer: None }
    }

    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let at = self.at;
        self.timer.get_or_insert_with(|| Box::pin(sleep_until(at))).as_mut().poll(context)
    }
}

/// Ready when there is a deadline and it has passed.
fn rings(alarm: &mut Option<Alarm>, context: &mut Context<'_>) -> Poll<()> {
    alarm.as_mut().map_or(Poll::Pending, |alarm| alarm.poll(context))
}

fn too_late() -> Status {
    Status::deadline_exceeded("deadline - the call's own deadline has passed")
}

/// The HTTP status that means what a call's own status does: a failure that is known before the
/// first message stands in the headers.
fn class(headers: &HeaderMap) -> u16 {
    let code = headers.get("grpc-status").map(|code| Code::from_bytes(code.as_bytes()));
    match code {
        None | Some(Code::Ok) => 200,
        Some(
            Code::Unknown
            | Code::DeadlineExceeded
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss,
        ) => 500,
        Some(_) => 400,
    }
}

/// The answer to a call, or that it came too late.
pub struct Answering {
    answer: Pending<'static, Result<Response<tonic::body::Body>, Infallible>>,
    alarm: Option<Alarm>,
    watched: Option<(Watched, Arc<Desk>)>,
}

impl Answering {
    pub(super) fn new(
        answer: Pending<'static, Result<Response<tonic::body::Body>, Infallible>>,
        deadline: Option<Deadline>,
    ) -> Answering {
        Answering { answer, alarm: deadline.map(Deadline::alarm), watched: None }
    }

    /// Counts the answer when it is there.
    pub(super) fn watched(mut self, watched: Watched, desk: Arc<Desk>) -> Answering {
        if let Some(context) = watched.context() {
            self.answer = Box::pin(Within::new(context, self.answer));
        }
        self.watched = Some((watched, desk));
        self
    }

    pub(super) fn refused(status: Status) -> Answering {
        let answer = Box::pin(future::ready(Ok(status.into_http())));
        Answering { answer, alarm: None, watched: None }
    }
}

impl std::fmt::Debug for Answering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answering").field("alarm", &self.alarm).finish_non_exhaustive()
    }
}

impl Future for Answering {
    type Output = Result<Response<UntilThen>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let me = self.get_mut();
        let response = match me.answer.as_mut().poll(context) {
            Poll::Ready(Ok(response)) => response,
            Poll::Pending => {
                ready!(rings(&mut me.alarm, context));
                too_late().into_http()
            }
        };
        if let Some((watched, desk)) = me.watched.take() {
            watched.end(&desk, class(response.headers()), None);
        }
        let alarm = me.alarm.take();
        Poll::Ready(Ok(response.map(|body| UntilThen { body, alarm, over: false })))
    }
}

/// The messages of an answer, until the deadline.
#[derive(Debug)]
pub struct UntilThen {
    body: tonic::body::Body,
    alarm: Option<Alarm>,
    over: bool,
}

impl Body for UntilThen {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let me = self.get_mut();
        if me.over {
            return Poll::Ready(None);
        }
        let frame = Pin::new(&mut me.body).poll_frame(context);
        if frame.is_ready() {
            return frame;
        }
        ready!(rings(&mut me.alarm, context));
        me.over = true;
        // Whatever was working on the next message stops here.
        me.body = tonic::body::Body::empty();
        let mut trailers = HeaderMap::new();
        let told = too_late().add_header(&mut trailers);
        Poll::Ready(Some(told.map(|()| Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.alarm.is_some() { SizeHint::default() } else { self.body.size_hint() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_unit_of_the_protocol_is_understood() {
        for (text, time) in [
            ("2H", Duration::from_secs(7_200)),
            ("3M", Duration::from_secs(180)),
            ("99999999S", Duration::from_secs(99_999_999)),
            ("250m", Duration::from_millis(250)),
            ("7u", Duration::from_micros(7)),
            ("0n", Duration::ZERO),
        ] {
            assert_eq!(parse(text.as_bytes()), Some(time), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused_and_not_taken_for_none() {
        for text in ["", "S", "5", "5x", "-5S", "1.5S", "123456789S", "5 S", "5SS"] {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-timeout", text.parse().expect("a header value"));
            let refused = Deadline::of(&headers).expect_err(text);
            assert_eq!(refused.code(), tonic::Code::InvalidArgument, "{text}");
        }
        assert_eq!(Deadline::of(&HeaderMap::new()).expect("none is fine"), None);
    }

    proptest! {
        #[test]
        fn no_header_makes_it_panic_or_wait_for_more_than_a_day(text in "[ -~]{0,12}|[0-9]{1,8}[HMSmun]") {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-timeout", text.parse().expect("printable ASCII is a header value"));
            if let Ok(Some(Deadline(at))) = Deadline::of(&headers) {
                prop_assert!(at <= Instant::now() + LONGEST);
            }
        }
    }
}
