//! The socket as hyper and everybody after an upgrade see it.
//!
//! [`Io`] is public and one type for plain and TLS sockets, because hyper gives back after an
//! upgrade what was put in, if it can be named. Who upgrades wants the bare socket and none of
//! hyper's buffers: [`Io::take`].

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::rt::ReadBufCursor;
use hyper::upgrade::Upgraded;
use hyper_util::rt::tokio::WithHyperIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::line::Line;
use crate::seat::Seat;
use crate::stats::one_more;

/// A connection's bytes, with what was read ahead put back in front.
#[derive(Debug)]
pub struct Io(WithHyperIo<Wire>);

/// The bare socket. TLS state is some kilobytes, so it is boxed and a plain one stays small.
#[derive(Debug)]
pub enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// What is left of a connection after an upgrade: nothing but these.
#[derive(Debug)]
pub struct Taken {
    pub socket: Socket,
    /// What the client sent behind its request. Almost always empty, and then without memory.
    pub early: Bytes,
    /// The socket's place among the connections; keep it as long as the socket.
    pub seat: Seat,
}

#[derive(Debug)]
struct Wire {
    socket: Socket,
    /// Read before hyper came, or given back by it; goes first.
    ahead: Bytes,
    line: Arc<Line>,
    seat: Seat,
}

impl Io {
    pub(crate) fn new(socket: Socket, ahead: Bytes, line: Arc<Line>, seat: Seat) -> Io {
        Io(WithHyperIo::new(Wire { socket, ahead, line, seat }))
    }

    /// Takes the socket out of hyper's hands after an upgrade. Gives `upgraded` back when it is
    /// not a connection of ours (or one stream of HTTP/2, which has no socket of its own).
    pub fn take(upgraded: Upgraded) -> Result<Taken, Upgraded> {
        let parts = upgraded.downcast::<Io>()?;
        let Wire { socket, ahead, line: _, seat } = parts.io.0.into_inner();
        one_more(&seat.stats().upgraded);
        // hyper's buffer is 8 KB even when nothing is in it; a copy of what is, is not.
        let early = match (&parts.read_buf[..], &ahead[..]) {
            ([], []) => Bytes::new(),
            (read, ahead) => [read, ahead].concat().into(),
        };
        Ok(Taken { socket, early, seat })
    }

    /// Puts back what hyper had read and not used, when it is taken apart. True if there is any.
    pub(crate) fn put_back(&mut self, read: &[u8]) -> bool {
        let ahead = &mut self.0.inner_mut().ahead;
        if !read.is_empty() {
            *ahead = [read, ahead].concat().into();
        }
        !ahead.is_empty()
    }

    /// Ready when there is something to read, if only the end.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.inner().socket.tcp().poll_read_ready(cx).map(drop)
    }
}

impl Socket {
    pub fn tcp(&self) -> &TcpStream {
        match self {
            Socket::Plain(tcp) => tcp,
            Socket::Tls(tls) => tls.get_ref().0,
        }
    }
}

macro_rules! on_socket {
    ($socket:expr, $inner:ident => $call:expr) => {
        match $socket {
            Socket::Plain($inner) => $call,
            Socket::Tls($inner) => $call,
        }
    };
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        on_socket!(self.get_mut(), inner => Pin::new(inner).poll_read(cx, buf))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        on_socket!(self.get_mut(), inner => Pin::new(inner).poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        on_socket!(self.get_mut(), inner => Pin::new(inner).poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        on_socket!(self, inner => inner.is_write_vectored())
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_socket!(self.get_mut(), inner => Pin::new(inner).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_socket!(self.get_mut(), inner => Pin::new(inner).poll_shutdown(cx))
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let wire = self.get_mut();
        let before = buf.filled().len();
        if !wire.ahead.is_empty() {
            let count = wire.ahead.len().min(buf.remaining());
            buf.put_slice(&wire.ahead.split_to(count));
            if buf.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
        }
        let poll = Pin::new(&mut wire.socket).poll_read(cx, buf);
        if buf.filled().len() > before {
            wire.line.heard();
            // Bytes from ahead go out now, whatever the socket says; it will say it again.
            return Poll::Ready(Ok(()));
        }
        poll
    }
}

impl Wire {
    /// Notes whether the client takes what we give.
    fn wrote<T>(&self, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.line.wrote(poll.is_ready());
        poll
    }
}

/// Headers and body of an ordinary answer. To copy them costs less than the kernel's work for a
/// list of pieces; larger ones are not copied.
const SMALL: usize = 1_536;

/// All pieces in a row, if there are several and they fit.
fn joined<'a>(bufs: &[IoSlice<'_>], room: &'a mut [u8; SMALL]) -> Option<&'a [u8]> {
    let mut end = 0;
    for buf in bufs {
        room.get_mut(end..end + buf.len())?.copy_from_slice(buf);
        end += buf.len();
    }
    Some(&room[..end])
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.socket).poll_write(cx, buf);
        self.wrote(poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let socket = Pin::new(&mut self.socket);
        let poll = match joined(bufs, &mut [0; SMALL]) {
            Some(small) => socket.poll_write(cx, small),
            None => socket.poll_write_vectored(cx, bufs),
        };
        self.wrote(poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.socket).poll_flush(cx);
        self.wrote(poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.socket).poll_shutdown(cx);
        self.wrote(poll)
    }
}

impl hyper::rt::Read for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        hyper::rt::Read::poll_read(Pin::new(&mut self.0), cx, buf)
    }
}

impl hyper::rt::Write for Io {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        hyper::rt::Write::poll_write(Pin::new(&mut self.0), cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        hyper::rt::Write::poll_write_vectored(Pin::new(&mut self.0), cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        hyper::rt::Write::is_write_vectored(&self.0)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        hyper::rt::Write::poll_flush(Pin::new(&mut self.0), cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        hyper::rt::Write::poll_shutdown(Pin::new(&mut self.0), cx)
    }
}

impl AsyncRead for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        AsyncRead::poll_read(Pin::new(self.0.inner_mut()), cx, buf)
    }
}

impl AsyncWrite for Io {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        AsyncWrite::poll_write(Pin::new(self.0.inner_mut()), cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        AsyncWrite::poll_write_vectored(Pin::new(self.0.inner_mut()), cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        AsyncWrite::is_write_vectored(self.0.inner())
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_flush(Pin::new(self.0.inner_mut()), cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_shutdown(Pin::new(self.0.inner_mut()), cx)
    }
}
