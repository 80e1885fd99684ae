//! Wraps a service so that its connection knows when a request is in progress: from the end of
//! its headers to the last byte of its answer, which for a stream of events may be an hour.
//! Refuses a request with more headers than allowed; hyper does that for HTTP/1 only.
//! Sets an endless answer aside, for the connection to go on with by itself (`endless.rs`).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::service::Service;
use hyper::{Method, Request, Response, StatusCode};
use pin_project_lite::pin_project;

use crate::endless::{Aside, Endless};
use crate::line::{InProgress, Line};

pub(crate) struct Tracked<S, B> {
    pub(crate) service: S,
    pub(crate) line: Arc<Line>,
    pub(crate) headers_max: usize,
    /// None on HTTP/2, where an answer has no connection of its own.
    pub(crate) aside: Option<Arc<Aside<Answer<B>>>>,
}

pin_project! {
    /// The answer being worked on.
    #[project = AnsweringProj]
    pub(crate) enum Answering<F, B> {
        Asked {
            #[pin]
            answer: F,
            request: Option<InProgress>,
            aside: Option<Arc<Aside<Answer<B>>>>,
        },
        TooManyHeaders { request: Option<InProgress> },
    }
}

pin_project! {
    /// The answer's body; the request ends when it is dropped.
    pub(crate) struct Answer<B> {
        #[pin]
        body: Option<B>,
        _request: InProgress,
    }
}

impl<S, B> Service<Request<Incoming>> for Tracked<S, B>
where
    S: Service<Request<Incoming>, Response = Response<B>>,
    B: Body<Data = Bytes>,
{
    type Response = Response<Answer<B>>;
    type Error = S::Error;
    type Future = Answering<S::Future, B>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let in_progress = Some(self.line.begin_request());
        if request.headers().len() > self.headers_max {
            return Answering::TooManyHeaders { request: in_progress };
        }
        // The answer to a HEAD has no body to go on with.
        let aside = self.aside.clone().filter(|_| *request.method() == Method::GET);
        Answering::Asked { answer: self.service.call(request), request: in_progress, aside }
    }
}

impl<F, B, E> Future for Answering<F, B>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<Answer<B>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let once = "a future is not polled after it was ready";
        match self.project() {
            AnsweringProj::Asked { answer, request, aside } => {
                let response = ready!(answer.poll(cx))?;
                let _request = request.take().expect(once);
                // Only while all earlier answers of the connection are with the client: whatever
                // hyper still had to write would be lost.
                let stalled = _request.line().stalled_since().is_some();
                let endless = response.extensions().get::<Endless>().is_some();
                let response = response.map(|body| Answer { body: Some(body), _request });
                match aside.take().filter(|_| endless && !stalled) {
                    None => Poll::Ready(Ok(response)),
                    Some(aside) => {
                        // hyper waits for ever; the connection looks here as soon as it does.
                        aside.put(response);
                        Poll::Pending
                    }
                }
            }
            AnsweringProj::TooManyHeaders { request } => {
                let _request = request.take().expect(once);
                let mut response = Response::new(Answer { body: None, _request });
                *response.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
                Poll::Ready(Ok(response))
            }
        }
    }
}

impl<B: Body<Data = Bytes>> Body for Answer<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().body.as_pin_mut() {
            Some(body) => body.poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint)
    }
}
