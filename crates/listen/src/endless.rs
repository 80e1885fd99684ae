//! An answer that goes on for as long as the client stays, written without hyper.
//!
//! hyper keeps its read buffer of 8 KB and its state for the whole of an answer. For a stream of
//! events that is hours of memory for nothing: there is no next request on such a connection. So
//! an answer marked [`Endless`] is taken from hyper before a byte of it is written, together with
//! the socket; then the connection is the socket and the body, and little else. The body ends with
//! the connection, which is how HTTP/1 says that no length is known.
//! Over HTTP/2, and when earlier answers are still on their way, hyper writes it like any other.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;
use hyper::Response;
use hyper::body::Body;
use hyper::http::response::Parts;
use tokio::io::AsyncWriteExt;

use crate::io::Io;

/// Put it into an answer's extensions: the body goes on until client or server leave.
#[derive(Clone, Copy, Debug)]
pub struct Endless;

/// Where an endless answer is put down until the connection takes it.
#[derive(Debug)]
pub(crate) struct Aside<B> {
    there: AtomicBool,
    response: Mutex<Option<Response<B>>>,
}

impl<B> Aside<B> {
    pub(crate) fn empty() -> Aside<B> {
        Aside { there: AtomicBool::new(false), response: Mutex::new(None) }
    }

    pub(crate) fn put(&self, response: Response<B>) {
        *self.response.lock().unwrap_or_else(PoisonError::into_inner) = Some(response);
        self.there.store(true, Ordering::Release);
    }

    /// Looked at after every poll, so an empty place costs one load.
    pub(crate) fn take(&self) -> Option<Response<B>> {
        if !self.there.load(Ordering::Acquire) {
            return None;
        }
        self.there.store(false, Ordering::Release);
        self.response.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Writes the whole answer, and closes.
pub(crate) async fn write<B>(mut io: Io, response: Response<B>) -> io::Result<()>
where
    B: Body<Data = Bytes>,
{
    let (head, body) = response.into_parts();
    io.write_all(&head_text(&head)).await?;
    drop(head);
    let mut body = pin!(body);
    loop {
        io.flush().await?;
        // A body that broke off ends like one that is over: nothing else can be said here.
        let frame = poll_fn(|cx| body.as_mut().poll_frame(cx).map(|frame| frame?.ok())).await;
        let Some(frame) = frame else { return io.shutdown().await };
        if let Ok(data) = frame.into_data() {
            io.write_all(&data).await?;
        }
    }
}

fn head_text(head: &Parts) -> Vec<u8> {
    let reason = head.status.canonical_reason().unwrap_or_default();
    let mut text = format!("HTTP/1.1 {} {reason}\r\n", head.status.as_str()).into_bytes();
    for (name, value) in &head.headers {
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    let date = httpdate::fmt_http_date(SystemTime::now());
    text.extend_from_slice(format!("date: {date}\r\nconnection: close\r\n\r\n").as_bytes());
    text
}
