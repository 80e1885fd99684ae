//! One WebSocket after its upgrade: writes letters, listens for signs of life.
//!
//! There are tens of thousands of these, so what one keeps between two letters is a mailbox, the
//! socket, and nothing else: no read buffer, no write buffer, no timer. The hub does the timing.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::frames::{self, GOING_AWAY, NORMAL, Opcode, Said};
use super::hub::Subscription;
use super::mailbox::Letter;

/// Serves until either side closes.
pub async fn serve<I>(io: I, early: &[u8], subscription: Subscription)
where
    I: AsyncRead + AsyncWrite + Unpin,
{
    let mut socket =
        Socket { io, subscription, sending: None, received: early.to_vec(), closing: false };
    // What goes wrong on the way out is the other side's business: the place stays.
    let _ = poll_fn(|context| socket.poll(context)).await;
    let Socket { io, subscription, .. } = socket;
    drop(subscription);
    // Boxed: a timer for the end is nothing to carry all the way.
    Box::pin(close(io)).await;
}

/// Says that nothing more comes, and listens until the other side says so too. Bytes of theirs that
/// nobody took would make the system cut the connection, and our last word with it.
async fn close<I: AsyncRead + AsyncWrite + Unpin>(mut io: I) {
    let rest = async {
        io.shutdown().await?;
        while io.read(&mut [0; READ_BYTES]).await? > 0 {}
        io::Result::Ok(())
    };
    let _ = tokio::time::timeout(CLOSED_WITHIN, rest).await;
}

/// Who has not closed by then is not waited for.
const CLOSED_WITHIN: Duration = Duration::from_secs(1);

struct Socket<I> {
    io: I,
    subscription: Subscription,
    /// The frame that is on its way, as far as it has not left.
    sending: Option<Bytes>,
    /// The start of a frame that has not come whole; empty nearly always.
    received: Vec<u8>,
    /// After what is being sent, the end.
    closing: bool,
}

/// Enough for a beat or a pong; longer frames come in several reads.
const READ_BYTES: usize = 256;

impl<I: AsyncRead + AsyncWrite + Unpin> Socket<I> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let writing = self.poll_send(context)?;
            if writing.is_ready() {
                if self.closing {
                    return Poll::Ready(Ok(()));
                }
                if let Some(bytes) = self.next_frame(context) {
                    self.sending = Some(bytes);
                    continue;
                }
            }
            match self.poll_receive(context)? {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(()) => {}
            }
        }
    }

    fn poll_send(&mut self, context: &mut Context<'_>) -> io::Result<Poll<()>> {
        while let Some(bytes) = &mut self.sending {
            match Pin::new(&mut self.io).poll_write(context, bytes) {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(sent) => {
                    let sent = sent?;
                    if sent == 0 {
                        return Err(io::ErrorKind::WriteZero.into());
                    }
                    bytes::Buf::advance(bytes, sent);
                    if bytes.is_empty() {
                        self.sending = None;
                    }
                }
            }
        }
        // TLS keeps records until it is told to let them go.
        match Pin::new(&mut self.io).poll_flush(context) {
            Poll::Pending => Ok(Poll::Pending),
            Poll::Ready(flushed) => flushed.map(|()| Poll::Ready(())),
        }
    }

    fn next_frame(&mut self, context: &mut Context<'_>) -> Option<Bytes> {
        match self.subscription.mailbox.poll_take(context) {
            Poll::Pending => None,
            Poll::Ready(Letter::Frame(frame)) => Some(frame),
            Poll::Ready(Letter::Ping) => Some(frames::frame(Opcode::Ping, b"")),
            Poll::Ready(Letter::Goodbye(goodbye)) => {
                self.closing = true;
                let mut last = goodbye.map(|it| it.to_vec()).unwrap_or_default();
                last.extend_from_slice(&frames::close(GOING_AWAY));
                Some(last.into())
            }
        }
    }

    fn poll_receive(&mut self, context: &mut Context<'_>) -> io::Result<Poll<()>> {
        let mut bytes = [0; READ_BYTES];
        let mut buffer = ReadBuf::new(&mut bytes);
        match Pin::new(&mut self.io).poll_read(context, &mut buffer) {
            Poll::Pending => return Ok(Poll::Pending),
            Poll::Ready(read) => read?,
        }
        if buffer.filled().is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.received.extend_from_slice(buffer.filled());
        self.subscription.heard();
        loop {
            match frames::take(&mut self.received) {
                Ok(None) => break,
                Ok(Some(Said::Alive)) => {}
                Ok(Some(Said::Ping(payload))) => self.reply(frames::frame(Opcode::Pong, &payload)),
                Ok(Some(Said::Close)) => {
                    self.closing = true;
                    self.reply(frames::close(NORMAL));
                    break;
                }
                Err(code) => {
                    self.closing = true;
                    self.reply(frames::close(code));
                    break;
                }
            }
        }
        if self.received.is_empty() {
            self.received = Vec::new();
        }
        Ok(Poll::Ready(()))
    }

    /// Puts a control frame behind what is on its way. A peer that sends pings faster than it
    /// reads gets only the last pong, which is all that the protocol asks for.
    fn reply(&mut self, frame: Bytes) {
        self.sending = Some(match self.sending.take() {
            Some(under_way) if under_way.len() < 64 * 1024 => {
                [&under_way[..], &frame[..]].concat().into()
            }
            Some(under_way) => under_way,
            None => frame,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::{TcpListener, TcpStream};

    #[tokio::test]
    async fn the_last_word_arrives_although_the_other_side_still_speaks() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut client = TcpStream::connect(address).await.expect("it listens");
        let (mut server, _) = listener.accept().await.expect("somebody came");
        server.write_all(b"goodbye").await.expect("it can be sent");
        let closing = tokio::spawn(close(server));
        // Beats that are on their way when the server says goodbye. Browsers give up, unread answers
        // and all, when one cannot be sent; a cut comes back within this time, if there is one.
        for _ in 0..3 {
            client.write_all(b"a beat").await.expect("it can be sent");
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).await.expect("nobody cut the connection");
        assert_eq!(heard, b"goodbye");
        drop(client);
        closing.await.expect("it ends when the client is gone");
    }
}
