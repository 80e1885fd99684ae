//! One connection of the load: at most one request on its way.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};

use super::answer::{Head, head};
use super::requests::Asker;
use crate::failure::{Failure, OrFail, Outcome};

/// Answers of more than this are not what we ask for.
const ANSWER_BYTES_MAX: usize = 1 << 20;

#[derive(Debug)]
pub struct Socket {
    stream: TcpStream,
    asked_at: Instant,
    /// The start of an answer that has not come whole; empty nearly always.
    partial: Vec<u8>,
}

impl Socket {
    pub fn open(address: SocketAddr, patience: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, asked_at: Instant::now(), partial: vec![] })
    }

    /// Opens without waiting for the other side; until it has agreed, [`Socket::try_ask`] says
    /// that it would block.
    pub fn begin(address: SocketAddr) -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
        match net::connect(&socket, &address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        Ok(Self { stream, asked_at: Instant::now(), partial: vec![] })
    }

    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub fn asked_at(&self) -> Instant {
        self.asked_at
    }

    /// Sends the next request; false when there is none.
    pub fn ask(&mut self, asker: &mut dyn Asker, now: Instant) -> Outcome<bool> {
        self.try_ask(asker, now).or_fail(|| "send a request")
    }

    /// As [`Socket::ask`], for who wants to know what the system said.
    pub fn try_ask(&mut self, asker: &mut dyn Asker, now: Instant) -> io::Result<bool> {
        let Some(request) = asker.next() else { return Ok(false) };
        // Nothing else is on its way, so the socket's buffer has room for all of it.
        let sent = self.stream.write(request)?;
        if sent != request.len() {
            return Err(io::Error::other(format!("only {sent} bytes of a request could be sent")));
        }
        self.asked_at = now;
        Ok(true)
    }

    /// Takes what has come. Some: the answer was whole, and this is what the asker thought of it.
    pub fn hear(&mut self, buffer: &mut [u8], asker: &mut dyn Asker) -> Outcome<Option<Outcome>> {
        let read = match self.stream.read(buffer) {
            Ok(0) => return Err(Failure::new("the server closed a connection that asked")),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error).or_fail(|| "read an answer"),
        };
        if self.partial.is_empty() {
            return match whole(&buffer[..read])? {
                Some(head) => Ok(Some(tell(&buffer[..read], head, asker))),
                None => {
                    self.partial.extend_from_slice(&buffer[..read]);
                    Ok(None)
                }
            };
        }
        self.partial.extend_from_slice(&buffer[..read]);
        let Some(head) = whole(&self.partial)? else { return Ok(None) };
        let told = tell(&self.partial, head, asker);
        self.partial.clear();
        Ok(Some(told))
    }
}

fn tell(bytes: &[u8], head: Head, asker: &mut dyn Asker) -> Outcome {
    asker.heard(head.status, &bytes[head.body_from..])
}

/// The head of an answer of which all has come.
fn whole(bytes: &[u8]) -> Outcome<Option<Head>> {
    let Some(head) = head(bytes).map_err(Failure::new)? else { return Ok(None) };
    match head.ends() {
        ends if ends == bytes.len() => Ok(Some(head)),
        ends if ends > bytes.len() && ends <= ANSWER_BYTES_MAX => Ok(None),
        ends => Err(Failure::new(format!("an answer of {ends} bytes came as {}", bytes.len()))),
    }
}
