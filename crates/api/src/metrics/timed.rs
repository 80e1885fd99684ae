//! An answer on its way out: how long it took, what it was, and the span of whoever follows it.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use http::{HeaderMap, Response};
use waitroom_watch::span;

use super::routes::{Door, RouteId};
use crate::body::Body;
use crate::desk::Desk;
use crate::problem::Code;
use crate::public::Answer;
use crate::visitor::Answering;

/// A request that is being answered.
#[derive(Debug)]
pub(crate) struct Watched {
    since: Instant,
    route: RouteId,
    span: Option<span::Open>,
}

impl Watched {
    pub fn begin(
        door: Door,
        method: &str,
        path: &str,
        query: Option<&str>,
        headers: &HeaderMap,
    ) -> Watched {
        let route = RouteId::of(door, method, path, query);
        let parent = || span::parse(headers.get("traceparent")?.to_str().ok()?);
        let name = || match door {
            // Admin routes say their method themselves.
            Door::Public => format!("{method} {}", route.name()),
            Door::Admin | Door::Grpc => route.name(),
        };
        let span = if span::is_on() { span::begin(name, parent()) } else { None };
        Watched { since: Instant::now(), route, span }
    }

    pub fn context(&self) -> Option<span::Context> {
        self.span.as_ref().map(span::Open::context)
    }

    /// Routes, which may send a command on the way, as a part of the span.
    pub fn during<T>(&self, routing: impl FnOnce() -> T) -> T {
        match self.context() {
            Some(context) => span::within(context, routing),
            None => routing(),
        }
    }

    /// The answer is there: counts it, and ends the span.
    pub fn end(self, desk: &Desk, status: u16, problem: Option<Code>) {
        let micros = self.since.elapsed().as_micros() as u64;
        desk.metrics.answered(self.route, status, micros);
        if let Some(code) = problem {
            desk.metrics.problem(code);
        }
        let Some(mut span) = self.span else { return };
        span.note("http.route", self.route.name().as_str());
        span.note("http.response.status_code", u64::from(status));
        span.note("waitroom.listener", self.route.door());
        if let Some(code) = problem {
            span.note("waitroom.problem", code.text());
        }
        // What the caller did wrong is the caller's failure, not ours.
        if status >= 500 {
            span.fail();
        }
        span.end();
    }

    fn end_with(self, desk: &Desk, response: &Response<Body>) {
        let problem = response.extensions().get::<Code>().copied();
        self.end(desk, response.status().as_u16(), problem);
    }
}

/// An answer that is counted when it is there.
#[derive(Debug)]
pub struct Timed {
    answer: Answer,
    watched: Option<(Watched, Arc<Desk>)>,
}

impl Timed {
    /// What is answered at once is counted at once.
    pub(crate) fn of(watched: Watched, desk: &Arc<Desk>, answering: Answering) -> Timed {
        match answering {
            Answering::Now(response) => {
                watched.end_with(desk, &response);
                Timed { answer: Answering::Now(response).into(), watched: None }
            }
            Answering::Later(answer) => {
                let answer = match watched.context() {
                    Some(context) => Box::pin(span::Within::new(context, answer)) as _,
                    None => answer,
                };
                let answer = Answer::Later(answer);
                Timed { answer, watched: Some((watched, desk.clone())) }
            }
        }
    }
}

impl Future for Timed {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let me = self.get_mut();
        let polled = Pin::new(&mut me.answer).poll(context);
        if let Poll::Ready(Ok(response)) = &polled
            && let Some((watched, desk)) = me.watched.take()
        {
            watched.end_with(&desk, response);
        }
        polled
    }
}
