//! The body of an answer that leaves the gate: one of our own, or the origin's as it comes.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};

use crate::origin::OriginBody;

#[derive(Debug)]
pub enum Body {
    Whole(Option<Bytes>),
    Api(waitroom_api::body::Body),
    Origin(Box<OriginBody>),
}

/// Why the origin's body broke off. The connection to the visitor is cut then, so that nobody
/// takes half an answer for a whole one.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

impl Body {
    pub fn full(bytes: impl Into<Bytes>) -> Body {
        Body::Whole(Some(bytes.into()))
    }

    pub fn empty() -> Body {
        Body::Whole(None)
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        match self.get_mut() {
            Body::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Body::Api(body) => Pin::new(body)
                .poll_frame(context)
                .map(|it| it.map(|it| it.map_err(|it| match it {}))),
            Body::Origin(body) => Pin::new(&mut **body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Whole(bytes) => bytes.is_none(),
            Body::Api(body) => body.is_end_stream(),
            Body::Origin(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Body::Api(body) => body.size_hint(),
            Body::Origin(body) => body.size_hint(),
        }
    }
}
