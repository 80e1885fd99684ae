//! A crowd on live channels, in a process of its own: thousands of sockets on one thread.
//!
//! Takes orders on lines, answers on lines. `open` is said once, when every channel is open and
//! has had its first board. After the order `mark VERSION` it waits until every channel has had a
//! board newer than that, and says `heard NANOSECONDS LETTERS`: when the last one had it, by the
//! clock that all processes of a machine share, and how many letters came meanwhile.

use std::io::{self, BufRead, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::time::{ClockId, clock_gettime};

use super::frames::{Carrier, Letter, PONG};
use crate::bench::load::answer::head;
use crate::bench::load::poll::Poll;
use crate::bench::serving::waitroom::ROOM;
use crate::failure::{Failure, OrFail, Outcome};

/// Opened at a time: fewer than a listener keeps waiting for its accept.
const OPENING: usize = 200;
/// So many sources of 127.0.0.x take turns, so that no pair of addresses runs out of ports.
const SOURCES: usize = 8;
/// A server that says nothing at all for so long has forgotten us.
const PATIENCE: Duration = Duration::from_secs(30);
/// The name of standard input among the sockets.
const ORDERS: u64 = u64::MAX;

/// Nanoseconds by a clock that is the same in every process of this machine.
pub fn shared_clock() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Opens a channel for each line of `tokens` and follows orders until there are no more.
pub fn run(carrier: Carrier, address: SocketAddr, tokens: &Path) -> Outcome {
    let text = std::fs::read_to_string(tokens).or_fail(|| format!("read {}", tokens.display()))?;
    let mut crowd = Clients::new(carrier)?;
    let tokens: Vec<&str> = text.lines().collect();
    for some in tokens.chunks(OPENING) {
        for token in some {
            crowd.open(address, token)?;
        }
        crowd.until(Clients::all_have_a_board)?;
    }
    println!("open {}", crowd.all.len());
    let stdin = io::stdin();
    crowd.poll.add(&stdin, ORDERS)?;
    loop {
        if !crowd.step(None)? {
            continue;
        }
        let mut order = String::new();
        stdin.lock().read_line(&mut order).or_fail(|| "read an order")?;
        match order.split_whitespace().collect::<Vec<_>>()[..] {
            [] => return Ok(()),
            ["mark", version] => {
                let version = version.parse().or_fail(|| format!("read {version} as a version"))?;
                crowd.mark(version);
                println!("marked");
                crowd.until(|crowd| crowd.behind == 0)?;
                println!("heard {} {}", crowd.last_at, crowd.letters);
            }
            ref other => return Err(Failure::new(format!("no such order: {other:?}"))),
        }
    }
}

#[derive(Debug)]
struct Clients {
    carrier: Carrier,
    poll: Poll,
    all: Vec<Client>,
    buffer: Box<[u8]>,
    /// What counts as news, how many have not had it, when the last one had it, and the letters
    /// that came.
    newer_than: u64,
    behind: usize,
    last_at: u64,
    letters: u64,
}

#[derive(Debug)]
struct Client {
    stream: TcpStream,
    open: bool,
    /// The newest board it has had.
    version: Option<u64>,
    partial: Vec<u8>,
}

impl Clients {
    fn new(carrier: Carrier) -> Outcome<Self> {
        Ok(Self {
            carrier,
            poll: Poll::new()?,
            all: vec![],
            buffer: vec![0; 1 << 16].into(),
            newer_than: 0,
            behind: 0,
            last_at: 0,
            letters: 0,
        })
    }

    fn open(&mut self, address: SocketAddr, token: &str) -> Outcome {
        let attempt = || format!("connect to {address}");
        let index = self.all.len();
        let mut stream = connect(address, index).or_fail(attempt)?;
        let request = self.carrier.request(ROOM, token);
        stream.write_all(request.as_bytes()).or_fail(attempt)?;
        stream.set_nonblocking(true).or_fail(attempt)?;
        self.poll.add(&stream, index as u64)?;
        self.all.push(Client { stream, open: false, version: None, partial: vec![] });
        Ok(())
    }

    fn all_have_a_board(&self) -> bool {
        self.all.iter().rev().take(OPENING).all(|client| client.version.is_some())
    }

    /// Listens until `done`.
    fn until(&mut self, done: impl Fn(&Self) -> bool) -> Outcome {
        let began = Instant::now();
        while !done(self) {
            if began.elapsed() > PATIENCE {
                let open = self.all.iter().filter(|client| client.version.is_some()).count();
                return Err(Failure::new(format!(
                    "of {} channels {open} had a board, and {} are behind after {PATIENCE:?}",
                    self.all.len(),
                    self.behind
                )));
            }
            self.step(Some(Duration::from_secs(1)))?;
        }
        Ok(())
    }

    fn mark(&mut self, version: u64) {
        self.newer_than = version;
        self.letters = 0;
        let has = |client: &&Client| client.version.is_some_and(|had| had > version);
        self.behind = self.all.len() - self.all.iter().filter(has).count();
        self.last_at = shared_clock();
    }

    /// Takes what has come; true when an order is among it.
    fn step(&mut self, patience: Option<Duration>) -> Outcome<bool> {
        let mut ordered = false;
        for index in 0..self.poll.wait(patience)? {
            match self.poll.ready(index) {
                // While a mark is waited for, the next order can wait too.
                ORDERS => ordered = true,
                number => self.hear(number as usize)?,
            }
        }
        Ok(ordered)
    }

    fn hear(&mut self, index: usize) -> Outcome {
        let client = &mut self.all[index];
        let read = match client.stream.read(&mut self.buffer) {
            Ok(0) => return Err(Failure::new(format!("the server closed channel {index}"))),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error).or_fail(|| format!("read channel {index}")),
        };
        let mut whole = std::mem::take(&mut client.partial);
        let bytes = if whole.is_empty() {
            &self.buffer[..read]
        } else {
            whole.extend_from_slice(&self.buffer[..read]);
            &whole[..]
        };
        let mut taken = 0;
        if !client.open {
            let Some(head) = head(bytes).map_err(Failure::new)? else {
                client.partial = bytes.to_vec();
                return Ok(());
            };
            if head.status != self.carrier.opens_with() {
                let said = String::from_utf8_lossy(&bytes[head.body_from..]);
                return Err(Failure::new(format!("a channel was refused {}: {said}", head.status)));
            }
            client.open = true;
            taken = head.body_from;
        }
        while let Some((letter, length)) = self.carrier.take(&bytes[taken..]) {
            taken += length;
            match letter {
                Letter::Board(version) => {
                    let news = version > self.newer_than;
                    if news && client.version.is_none_or(|had| had <= self.newer_than) {
                        self.behind = self.behind.saturating_sub(1);
                        self.last_at = shared_clock();
                    }
                    client.version = client.version.max(Some(version));
                    self.letters += 1;
                }
                Letter::Ticket => self.letters += 1,
                Letter::Ping => {
                    client.stream.write_all(&PONG).or_fail(|| "answer a ping")?;
                }
                Letter::Nothing => {}
                Letter::End => {
                    return Err(Failure::new(format!("the server ended channel {index}")));
                }
            }
        }
        client.partial = bytes[taken..].to_vec();
        Ok(())
    }
}

/// From one of several addresses of this machine.
fn connect(address: SocketAddr, index: usize) -> io::Result<TcpStream> {
    let source = Ipv4Addr::new(127, 0, 0, 2 + (index % SOURCES) as u8);
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    rustix::net::bind(&socket, &SocketAddrV4::new(source, 0))?;
    rustix::net::connect(&socket, &address)?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    Ok(stream)
}
