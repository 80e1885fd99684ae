//! Server-sent events, read as they come.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, HOST};
use hyper_util::rt::TokioIo;

use super::http::{Pool, Unheard};

/// An event without its end must not fill the memory.
const EVENT_MAX: usize = 1 << 20;

/// A message of a live channel: its type and its JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub kind: String,
    pub data: String,
}

/// An open stream of events.
#[derive(Debug)]
pub struct Stream {
    body: Incoming,
    events: Events,
    driver: tokio::task::JoinHandle<()>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Stream {
    /// Opens a stream; otherwise says with which status the server refused.
    pub async fn open(
        pool: &Pool,
        path: &str,
        bearer: Option<&str>,
        forwarded_for: Option<&str>,
    ) -> Result<Result<Stream, u16>, Unheard> {
        let opening = async {
            let unsent = |error: String| Unheard::NotSent(error);
            let socket = pool.sources().connect().await.map_err(|it| unsent(it.to_string()))?;
            let shaken = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await;
            let (mut connection, driver) = shaken.map_err(|it| unsent(it.to_string()))?;
            let driver = tokio::spawn(async move {
                let _ = driver.await;
            });
            let mut request = Request::get(path)
                .header(HOST, pool.host().clone())
                .header(ACCEPT, "text/event-stream");
            if let Some(token) = bearer {
                request = request.header(AUTHORIZATION, format!("Bearer {token}"));
            }
            if let Some(address) = forwarded_for {
                request = request.header("x-forwarded-for", address);
            }
            let request = request.body(Empty::<Bytes>::new());
            let request = request.map_err(|it| unsent(it.to_string()))?;
            // Opening a stream changes nothing, so it does not matter whether it happened.
            let response = connection.send_request(request).await;
            let response = response.map_err(|it| unsent(it.to_string()))?;
            let status = response.status().as_u16();
            if status != 200 {
                driver.abort();
                return Ok(Err(status));
            }
            Ok(Ok(Stream { body: response.into_body(), events: Events::default(), driver }))
        };
        let opened = tokio::time::timeout(pool.timeout(), opening).await;
        opened.unwrap_or_else(|_| Err(Unheard::NotSent("no stream in time".into())))
    }

    /// The next event; none when the stream is over. Waiting can be given up and taken up again.
    pub async fn next(&mut self) -> Option<Message> {
        loop {
            if let Some(message) = self.events.take() {
                return Some(message);
            }
            let frame = self.body.frame().await?.ok()?;
            if let Ok(data) = frame.into_data()
                && !self.events.put(&data)
            {
                return None;
            }
        }
    }

    /// The first event, or none within that time.
    pub async fn first(&mut self, within: Duration) -> Option<Message> {
        tokio::time::timeout(within, self.next()).await.ok().flatten()
    }
}

/// Bytes into events.
#[derive(Debug, Default)]
struct Events {
    bytes: Vec<u8>,
    /// Up to here there is no end of an event.
    looked: usize,
}

impl Events {
    /// Takes bytes; false when an event grows without end.
    fn put(&mut self, data: &[u8]) -> bool {
        self.bytes.extend_from_slice(data);
        self.bytes.len() <= EVENT_MAX
    }

    /// The next whole event that says something.
    fn take(&mut self) -> Option<Message> {
        loop {
            let from = self.looked.saturating_sub(3);
            let Some((at, length)) = blank_line(&self.bytes[from..]) else {
                self.looked = self.bytes.len();
                return None;
            };
            let event: Vec<u8> = self.bytes.drain(..from + at + length).collect();
            self.looked = 0;
            let text = String::from_utf8_lossy(&event[..from + at]);
            let mut message = Message { kind: "message".into(), data: String::new() };
            for line in text.lines() {
                let (field, value) = line.split_once(':').unwrap_or((line, ""));
                let value = value.strip_prefix(' ').unwrap_or(value);
                match field {
                    "event" => message.kind = value.to_owned(),
                    "data" if message.data.is_empty() => message.data = value.to_owned(),
                    "data" => message.data = format!("{}\n{value}", message.data),
                    // Comments keep the connection alive; ids and retries are not ours.
                    _ => {}
                }
            }
            if !message.data.is_empty() {
                return Some(message);
            }
        }
    }
}

/// Where the first empty line ends an event, and how long it is.
fn blank_line(bytes: &[u8]) -> Option<(usize, usize)> {
    (0..bytes.len()).find_map(|at| match &bytes[at..] {
        [b'\r', b'\n', b'\r', b'\n', ..] => Some((at, 4)),
        [b'\n', b'\n', ..] => Some((at, 2)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8], cuts: &[usize]) -> Vec<Message> {
        let (mut events, mut read, mut from) = (Events::default(), Vec::new(), 0);
        let ends = cuts.iter().map(|cut| cut % (bytes.len() + 1)).chain([bytes.len()]);
        for to in ends {
            if to > from {
                assert!(events.put(&bytes[from..to]));
                from = to;
            }
            read.extend(std::iter::from_fn(|| events.take()));
        }
        read
    }

    #[test]
    fn events_have_a_type_and_data() {
        let text = ": hello\n\nevent: ticket\ndata: {\"a\":1}\n\nid: 3\r\ndata:x\r\ndata: y\r\n\r\ndata: half";
        let message = |kind: &str, data: &str| Message { kind: kind.into(), data: data.into() };
        assert_eq!(
            read(text.as_bytes(), &[]),
            [message("ticket", "{\"a\":1}"), message("message", "x\ny")]
        );
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_the_bytes_are_cut(
            cuts in prop::collection::vec(0usize..200, 0..12),
            parts in prop::collection::vec("(event: [a-z]{1,5}\n)?(data: [a-z{}]{0,9}\n)?\n", 0..6),
        ) {
            let text = parts.concat();
            prop_assert_eq!(read(text.as_bytes(), &cuts), read(text.as_bytes(), &[]));
        }

        #[test]
        fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes, &[3, 50, 51]);
        }
    }
}
