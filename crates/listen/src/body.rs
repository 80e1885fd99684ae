//! Reading a request's body, with an end in bytes and in time.

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame};

/// For a request's body of ordinary size. A phone on a bad link sends a few KB in a second.
pub const WITHIN: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Longer than allowed, by its own word or by what came.
    TooLarge,
    /// Not all there in time.
    TooSlow,
    /// The client went away or broke the framing.
    Broken,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::TooLarge => "the body is larger than allowed",
            Error::TooSlow => "the body did not arrive in time",
            Error::Broken => "the body broke off",
        })
    }
}

impl std::error::Error for Error {}

/// The whole body, at most `bytes_max` long and `within` that time from now.
///
/// A body that is there already, which is nearly every one, costs no timer, and when it came in
/// one piece, no copy.
pub async fn collect<B>(body: B, bytes_max: usize, within: Duration) -> Result<Bytes, Error>
where
    B: Body<Data = Bytes>,
{
    // Announced too long: not a byte of it is read.
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(Error::TooLarge);
    }
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let mut reading = pin!(async move {
        let mut so_far = SoFar { first: Bytes::new(), more: BytesMut::new(), bytes_max };
        let mut body = pin!(body);
        while let Some(frame) = next(body.as_mut()).await {
            let frame = frame.map_err(|_| Error::Broken)?;
            // Trailers carry nothing we ask for.
            if let Ok(data) = frame.into_data() {
                so_far.push(data)?;
            }
        }
        Ok(so_far.all())
    });
    let at_once = poll_fn(|cx| match reading.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => Poll::Ready(None),
    });
    match at_once.await {
        Some(done) => done,
        None => tokio::time::timeout(within, reading).await.map_err(|_| Error::TooSlow)?,
    }
}

async fn next<B: Body>(mut body: Pin<&mut B>) -> Option<Result<Frame<B::Data>, B::Error>> {
    poll_fn(|cx| body.as_mut().poll_frame(cx)).await
}

struct SoFar {
    first: Bytes,
    more: BytesMut,
    bytes_max: usize,
}

impl SoFar {
    fn push(&mut self, data: Bytes) -> Result<(), Error> {
        if self.first.len() + self.more.len() + data.len() > self.bytes_max {
            return Err(Error::TooLarge);
        }
        if self.first.is_empty() {
            self.first = data;
        } else {
            self.more.extend_from_slice(&data);
        }
        Ok(())
    }

    fn all(self) -> Bytes {
        if self.more.is_empty() {
            return self.first;
        }
        [&self.first[..], &self.more[..]].concat().into()
    }
}
