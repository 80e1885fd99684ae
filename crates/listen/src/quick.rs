//! The short way: a small plain request is answered without hyper.
//!
//! People who wait ask the same two or three things all day, and to hyper each of these is a map
//! of headers, a body and an answer of the same kind. A service that has a [`Quick`] side is shown
//! such a request as it lies in the buffer, and writes its answer as the bytes that go out. A
//! connection on the short way holds no buffer: both lie with the thread, and one that has been
//! parked comes back here, so that a visitor who asks every ten seconds never costs more.
//!
//! What is shown has come whole and in one piece, is HTTP/1.1, has one `Host`, no body and no word
//! about the connection but `keep-alive`. Everything else, and whatever the service does not take,
//! goes to hyper from its first byte on, as if nobody had looked: there is one reader of hard
//! cases, and where a request ends is never a matter of opinion.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

use crate::io::Io;
use crate::line::{Line, Order, Stage};
use crate::peer::Peer;

/// A service's side for plain requests.
pub trait Quick: std::fmt::Debug + Send + Sync {
    /// Writes the whole answer, status line to body, behind what is in `out`; or leaves it.
    fn answer(&self, peer: &Peer, request: &Plain<'_>, out: &mut Vec<u8>) -> Quickly;
}

/// What a service makes of a plain request.
pub enum Quickly {
    /// The answer is written.
    Written,
    /// It will be these bytes.
    Later(Pin<Box<dyn Future<Output = Vec<u8>> + Send>>),
    /// Nothing was written, and nothing done: hyper shall have it.
    NotMine,
}

impl std::fmt::Debug for Quickly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Quickly::Written => "Written",
            Quickly::Later(_) => "Later",
            Quickly::NotMine => "NotMine",
        })
    }
}

/// A request without a body, as it came.
#[derive(Clone, Copy, Debug)]
pub struct Plain<'a> {
    pub method: &'a str,
    /// Path and query.
    pub target: &'a str,
    /// Names as the client wrote them. Those about framing and the connection are among them, and
    /// have been seen to.
    pub headers: &'a [httparse::Header<'a>],
}

/// Why a connection leaves the short way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// What was read is put back, for hyper.
    ToHyper,
    /// Nothing to do for a while.
    ToPark,
    /// The client is gone, or was told to go, or does not take its answers.
    Over,
}

/// A request of ours has some 300 bytes; a browser's with its cookies rarely more than this.
const READ: usize = 4_096;
/// More headers than this are no plain request.
const HEADERS: usize = 24;

/// What one look at the socket came to.
enum Turn {
    Left(Left),
    /// All that was asked is answered, and the answer is with the kernel.
    Done,
    /// The client was slow to take its answer, or asked for more behind it.
    Rest {
        unwritten: Vec<u8>,
        unread: Vec<u8>,
    },
    Later {
        answer: Pin<Box<dyn Future<Output = Vec<u8>> + Send>>,
        unread: Vec<u8>,
    },
}

/// Serves plain requests until one comes that is not.
pub(crate) async fn serve(quick: &dyn Quick, io: &mut Io, peer: &Peer, line: &Arc<Line>) -> Left {
    loop {
        let turn = poll_fn(|cx| turn(cx, quick, io, peer, line)).await;
        let (unwritten, unread, request) = match turn {
            Turn::Left(left) => return left,
            Turn::Done => continue,
            // From here on the connection waits for us, or for the client to take its answer, and
            // no longer for a request.
            Turn::Rest { unwritten, unread } => (unwritten, unread, line.begin_request()),
            Turn::Later { answer, unread } => {
                let request = line.begin_request();
                let mut answer = answer.await;
                let last = line.order() >= Order::Finish;
                if last {
                    say_goodbye(&mut answer);
                }
                if send(io, &answer).await.is_err() || last {
                    return Left::Over;
                }
                (Vec::new(), unread, request)
            }
        };
        if send(io, &unwritten).await.is_err() {
            return Left::Over;
        }
        drop(request);
        if !unread.is_empty() {
            io.put_back(&unread);
        }
    }
}

async fn send(io: &mut Io, bytes: &[u8]) -> std::io::Result<()> {
    io.write_all(bytes).await?;
    // TLS takes bytes before the socket does.
    io.flush().await
}

/// The last answer of a connection says that it is.
fn say_goodbye(answer: &mut Vec<u8>) {
    if let Some(at) = answer.windows(2).position(|two| two == b"\r\n") {
        answer.splice(at + 2..at + 2, *b"connection: close\r\n");
    }
}

thread_local! {
    static READING: RefCell<Box<[u8; READ]>> = RefCell::new(Box::new([0; READ]));
    static WRITING: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

fn turn(
    cx: &mut Context<'_>,
    quick: &dyn Quick,
    io: &mut Io,
    peer: &Peer,
    line: &Line,
) -> Poll<Turn> {
    READING.with_borrow_mut(|room| {
        let mut read = ReadBuf::new(&mut room[..]);
        match Pin::new(&mut *io).poll_read(cx, &mut read) {
            Poll::Ready(Err(_)) => return Poll::Ready(Turn::Left(Left::Over)),
            Poll::Ready(Ok(())) => {}
            Poll::Pending if line.order() >= Order::Finish => {
                return Poll::Ready(Turn::Left(Left::Over));
            }
            Poll::Pending if line.asked_to_park() && line.is_at_rest() => {
                return Poll::Ready(Turn::Left(Left::ToPark));
            }
            Poll::Pending => {
                if line.asked_to_park() {
                    line.set_parked(false);
                }
                return Poll::Pending;
            }
        }
        match read.filled() {
            [] => Poll::Ready(Turn::Left(Left::Over)),
            bytes => WRITING.with_borrow_mut(|out| {
                out.clear();
                Poll::Ready(hear(cx, quick, io, peer, line, bytes, out))
            }),
        }
    })
}

/// Answers the first request in `bytes`. One at a time: who sends several at once waits for the
/// socket in between, like everybody else.
fn hear(
    cx: &mut Context<'_>,
    quick: &dyn Quick,
    io: &mut Io,
    peer: &Peer,
    line: &Line,
    bytes: &[u8],
    out: &mut Vec<u8>,
) -> Turn {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let heard = match plain(bytes, &mut headers) {
        // Who is told to finish says so in its last answer; hyper does.
        Some((request, end)) if line.order() == Order::Go => {
            Some((quick.answer(peer, &request, out), end))
        }
        _ => None,
    };
    let (answered, end) = match heard {
        None | Some((Quickly::NotMine, _)) => {
            io.put_back(bytes);
            return Turn::Left(Left::ToHyper);
        }
        Some(heard) => heard,
    };
    let unread = &bytes[end..];
    if let Quickly::Later(answer) = answered {
        return Turn::Later { answer, unread: unread.to_vec() };
    }
    let written = match Pin::new(&mut *io).poll_write(cx, out) {
        Poll::Ready(Ok(0) | Err(_)) => return Turn::Left(Left::Over),
        Poll::Ready(Ok(count)) => count,
        Poll::Pending => 0,
    };
    let sent = written == out.len() && Pin::new(&mut *io).poll_flush(cx).is_ready();
    if sent && unread.is_empty() {
        line.enter(Stage::Idle);
        return Turn::Done;
    }
    Turn::Rest { unwritten: out[written..].to_vec(), unread: unread.to_vec() }
}

/// The request at the front of `bytes` and where it ends, if it is a plain one.
fn plain<'a>(
    bytes: &'a [u8],
    headers: &'a mut [httparse::Header<'a>; HEADERS],
) -> Option<(Plain<'a>, usize)> {
    let mut request = httparse::Request::new(headers);
    let Ok(httparse::Status::Complete(end)) = request.parse(bytes) else { return None };
    if request.version != Some(1) {
        return None;
    }
    let mut hosts = 0;
    for header in &*request.headers {
        match framing(header)? {
            Said::Host => hosts += 1,
            Said::Nothing => {}
        }
    }
    let (method, target) = (request.method?, request.path?);
    (hosts == 1).then_some((Plain { method, target, headers: request.headers }, end))
}

enum Said {
    Host,
    Nothing,
}

/// What a header says about the connection or the end of the request; none when that makes the
/// request anything but plain.
fn framing(header: &httparse::Header<'_>) -> Option<Said> {
    let is = |name: &str| header.name.eq_ignore_ascii_case(name);
    // By length first: most names are none of these, and this is looked at for each.
    let plain = match header.name.len() {
        4 if is("host") => return Some(Said::Host),
        2 => !is("te"),
        6 => !is("expect"),
        7 => !is("upgrade") && !is("trailer"),
        10 if is("connection") => header.value.eq_ignore_ascii_case(b"keep-alive"),
        14 if is("content-length") => header.value == b"0",
        14 => !is("http2-settings"),
        16 => !is("proxy-connection"),
        17 => !is("transfer-encoding"),
        _ => true,
    };
    plain.then_some(Said::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seen(text: &[u8]) -> Option<(String, usize)> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let (request, end) = plain(text, &mut headers)?;
        Some((format!("{} {}", request.method, request.target), end))
    }

    #[test]
    fn a_request_without_a_body_is_plain_and_ends_where_it_says() {
        let one =
            b"POST /a?b HTTP/1.1\r\nhost: x\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n";
        let end = one.len();
        assert_eq!(seen(one), Some(("POST /a?b".into(), end)));
        assert_eq!(seen(&[&one[..], b"GET /"].concat()), Some(("POST /a?b".into(), end)));
    }

    #[test]
    fn whatever_could_be_read_in_two_ways_is_left_to_hyper() {
        let with = |header: &str| format!("POST /a HTTP/1.1\r\nhost: x\r\n{header}\r\n\r\n");
        assert!(seen(with("accept: */*").as_bytes()).is_some());
        for header in [
            "content-length: 1",
            "content-length: 00",
            "content-length: 0, 0",
            "content-length: +0",
            "Transfer-Encoding: chunked",
            "transfer-encoding: identity",
            "connection: close",
            "connection: upgrade",
            "upgrade: websocket",
            "expect: 100-continue",
            "te: trailers",
            "trailer: x",
            "host: y",
            "proxy-connection: keep-alive",
            "http2-settings: x",
        ] {
            assert_eq!(seen(with(header).as_bytes()), None, "{header}");
        }
        for text in [
            "GET /a HTTP/1.0\r\nhost: x\r\n\r\n",
            "GET /a HTTP/1.1\r\n\r\n",
            "GET /a HTTP/1.1\r\nhost: x\r\n",
            "GET /a HTTP/1.1\r\nhost : x\r\n\r\n",
            "GET /a HTTP/1.1\r\nhost: x\r\n folded: y\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\n",
        ] {
            assert_eq!(seen(text.as_bytes()), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fall_or_see_more_than_there_is(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            cut in 0usize..80,
        ) {
            let mut text = b"GET /v1/rooms/a/status HTTP/1.1\r\nhost: x\r\naccept: y\r\n\r\n".to_vec();
            text.truncate(cut);
            text.extend(bytes);
            if let Some((_, end)) = seen(&text) {
                prop_assert!(text[..end].ends_with(b"\n"));
            }
        }
    }
}
