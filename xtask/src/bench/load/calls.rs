//! gRPC calls as load: several connections, each with many calls on their way at a time.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::h2::{self, CallHeaders, Frame};
use super::poll::Poll;
use crate::bench::classic::scatter;
use crate::failure::{Failure, OrFail, Outcome};

/// Calls of one method with messages that differ.
#[derive(Debug, Clone)]
pub struct Calls {
    pub headers: CallHeaders,
    pub messages: Vec<Vec<u8>>,
    pub asked: u64,
}

/// A server that gives no answer for this long is stuck.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Connections {
    poll: Poll,
    all: Vec<Connection>,
    /// The message of the last answer, without its frame.
    pub last: Vec<u8>,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    next_stream: u32,
    on_their_way: HashMap<u32, Call>,
    read: Vec<u8>,
    write: Vec<u8>,
    received: u32,
}

#[derive(Debug)]
struct Call {
    asked_at: Instant,
    answered: bool,
}

impl Connections {
    /// Opens `count` connections, each with `each` calls on their way.
    pub fn open(
        address: SocketAddr,
        count: usize,
        each: usize,
        calls: &mut Calls,
    ) -> Outcome<Self> {
        let attempt = || format!("connect to {address}");
        let poll = Poll::new()?;
        let mut all = vec![];
        for index in 0..count {
            let stream = TcpStream::connect_timeout(&address, PATIENCE).or_fail(attempt)?;
            stream.set_nodelay(true).or_fail(attempt)?;
            stream.set_nonblocking(true).or_fail(attempt)?;
            poll.add(&stream, index as u64)?;
            let mut connection = Connection {
                stream,
                next_stream: 1,
                on_their_way: HashMap::new(),
                read: Vec::with_capacity(1 << 16),
                write: vec![],
                received: 0,
            };
            h2::hello(&mut connection.write);
            for _ in 0..each {
                connection.ask(calls, Instant::now());
            }
            connection.flush()?;
            all.push(connection);
        }
        Ok(Self { poll, all, last: vec![] })
    }

    /// Takes the answers that are there, or the next ones to come, and asks again.
    pub fn step(&mut self, calls: &mut Calls, note: &mut dyn FnMut(Duration)) -> Outcome {
        let ready = self.poll.wait(Some(PATIENCE))?;
        if ready == 0 {
            return Err(Failure::new(format!("no answer within {PATIENCE:?}")));
        }
        for index in 0..ready {
            let connection = &mut self.all[self.poll.ready(index) as usize];
            connection.hear(calls, note, &mut self.last)?;
            connection.flush()?;
        }
        Ok(())
    }
}

impl Connection {
    fn ask(&mut self, calls: &mut Calls, now: Instant) {
        let which = scatter(calls.asked) % calls.messages.len() as u64;
        calls.asked += 1;
        let (stream, first) = (self.next_stream, self.next_stream == 1);
        self.next_stream += 2;
        calls.headers.call(first, stream, &calls.messages[which as usize], &mut self.write);
        self.on_their_way.insert(stream, Call { asked_at: now, answered: false });
    }

    fn flush(&mut self) -> Outcome {
        if self.write.is_empty() {
            return Ok(());
        }
        // A few kilobytes at most, and the server has read what went before.
        let sent = self.stream.write(&self.write).or_fail(|| "send calls")?;
        if sent != self.write.len() {
            return Err(Failure::new("the server does not read what it is sent"));
        }
        self.write.clear();
        Ok(())
    }

    fn hear(
        &mut self,
        calls: &mut Calls,
        note: &mut dyn FnMut(Duration),
        last: &mut Vec<u8>,
    ) -> Outcome {
        let mut buffer = [0; 1 << 16];
        match self.stream.read(&mut buffer) {
            Ok(0) => return Err(Failure::new("the server closed a connection that asked")),
            Ok(read) => self.read.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error).or_fail(|| "read answers"),
        }
        let now = Instant::now();
        let bytes = std::mem::take(&mut self.read);
        let mut rest = &bytes[..];
        while let Some(frame) = Frame::read(rest) {
            if frame.bytes > h2::FRAME_BYTES_MAX {
                return Err(Failure::new(format!("a frame of {} bytes", frame.bytes)));
            }
            let Some(payload) = rest.get(h2::FRAME_HEAD..h2::FRAME_HEAD + frame.bytes) else {
                break;
            };
            rest = &rest[h2::FRAME_HEAD + frame.bytes..];
            if self.take(frame, payload, now, note, last)? {
                self.ask(calls, now);
            }
        }
        self.read = rest.to_vec();
        Ok(())
    }

    /// True when this frame was the end of a call.
    fn take(
        &mut self,
        frame: Frame,
        payload: &[u8],
        now: Instant,
        note: &mut dyn FnMut(Duration),
        last: &mut Vec<u8>,
    ) -> Outcome<bool> {
        match frame.kind {
            h2::SETTINGS if frame.flags & h2::ACK == 0 => {
                h2::frame(h2::SETTINGS, h2::ACK, 0, &[], &mut self.write);
            }
            h2::PING if frame.flags & h2::ACK == 0 => {
                h2::frame(h2::PING, h2::ACK, 0, payload, &mut self.write);
            }
            h2::GOAWAY | h2::RST_STREAM => {
                let said = String::from_utf8_lossy(payload);
                return Err(Failure::new(format!("the server ended calls: {frame:?} {said:?}")));
            }
            h2::DATA => {
                self.received += frame.bytes as u32;
                if self.received >= h2::WINDOW_STEP {
                    self.received -= h2::WINDOW_STEP;
                    h2::window(h2::WINDOW_STEP, &mut self.write);
                }
                if let Some(call) = self.on_their_way.get_mut(&frame.stream) {
                    call.answered = true;
                    last.clear();
                    last.extend_from_slice(payload.get(5..).unwrap_or_default());
                }
            }
            _ => {}
        }
        let ends = matches!(frame.kind, h2::HEADERS | h2::DATA) && frame.flags & h2::END_STREAM > 0;
        let Some(call) = ends.then(|| self.on_their_way.remove(&frame.stream)).flatten() else {
            return Ok(false);
        };
        // A refusal comes as headers alone.
        if !call.answered {
            let said = String::from_utf8_lossy(payload);
            return Err(Failure::new(format!("a call was refused; its headers: {said:?}")));
        }
        note(now - call.asked_at);
        Ok(true)
    }
}
