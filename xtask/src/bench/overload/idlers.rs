//! Sockets that hold on to the server: silent ones, slow ones, ones that stop half-way.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use crate::bench::load::poll::Poll;
use crate::bench::serving::waitroom::ROOM;
use crate::failure::{Failure, OrFail, Outcome};

/// How a socket wastes the server's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Habit {
    /// Says nothing at all.
    Silent,
    /// Sends a header, a byte a second.
    Slow,
    /// Promises a body and sends half of it.
    HalfBody,
}

const HABITS: [Habit; 3] = [Habit::Silent, Habit::Slow, Habit::HalfBody];
const CONNECT: Duration = Duration::from_secs(10);
const EVERY: Duration = Duration::from_secs(1);

/// How long they could hold on, each from its own beginning.
#[derive(Debug, Clone, Copy)]
pub struct Closed {
    pub first: Duration,
    pub last: Duration,
}

/// Opens `count` of them and waits until the server has closed all, or `limit` ends.
/// Says so through `opened` in between.
pub fn hold_on(
    address: SocketAddr,
    count: usize,
    limit: Duration,
    opened: &Sender<()>,
) -> Outcome<Closed> {
    let mut poll = Poll::new()?;
    let mut idlers = vec![];
    for index in 0..count {
        let idler = Idler::open(address, index);
        let idler = idler.or_fail(|| format!("open socket {index} to {address}"))?;
        poll.add(&idler.stream, index as u64)?;
        idlers.push(idler);
    }
    // Nobody listens if the flood has failed meanwhile; then our own end does not matter either.
    let _ = opened.send(());
    let mut open = count;
    let (mut closed, mut buffer) = (Closed { first: limit, last: Duration::ZERO }, [0; 4096]);
    let began = Instant::now();
    let mut drip_at = began;
    while open > 0 {
        let now = Instant::now();
        if now - began > limit {
            let kind = |habit| idlers.iter().filter(|it| it.open && it.habit == habit).count();
            return Err(Failure::new(format!(
                "{open} of {count} sockets are still open after {limit:?}: {:?}",
                HABITS.map(|habit| (habit, kind(habit)))
            )));
        }
        if now >= drip_at {
            drip_at = now + EVERY;
            for idler in idlers.iter_mut().filter(|idler| idler.open) {
                idler.drip();
            }
        }
        for ready in 0..poll.wait(Some(Duration::from_millis(50)))? {
            let idler = &mut idlers[poll.ready(ready) as usize];
            match idler.stream.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The server may explain itself before it closes.
                Ok(1..) => {}
                Ok(0) | Err(_) if idler.open => {
                    idler.open = false;
                    open -= 1;
                    let held = idler.since.elapsed();
                    closed = Closed { first: closed.first.min(held), last: closed.last.max(held) };
                    poll.remove(&idler.stream)?;
                }
                Ok(0) | Err(_) => {}
            }
        }
    }
    Ok(closed)
}

struct Idler {
    stream: TcpStream,
    habit: Habit,
    since: Instant,
    open: bool,
}

impl Idler {
    fn open(address: SocketAddr, index: usize) -> io::Result<Self> {
        let habit = HABITS[index % HABITS.len()];
        let mut stream = TcpStream::connect_timeout(&address, CONNECT)?;
        // Each from an address of its own: what one address may ask is not what we look at.
        let request = format!(
            "POST /v1/rooms/{ROOM}/join HTTP/1.1\r\nHost: localhost\r\n\
             X-Forwarded-For: 10.1.{}.{}\r\n",
            index / 250,
            index % 250
        );
        match habit {
            Habit::Silent => {}
            Habit::Slow => stream.write_all(request.as_bytes())?,
            Habit::HalfBody => {
                let rest = "Content-Type: application/json\r\nContent-Length: 40\r\n\r\n{\"lane\":";
                stream.write_all(format!("{request}{rest}").as_bytes())?;
            }
        }
        stream.set_nonblocking(true)?;
        Ok(Self { stream, habit, since: Instant::now(), open: true })
    }

    fn drip(&mut self) {
        if self.habit == Habit::Slow {
            // A socket that the server has closed meanwhile is found by the poll.
            let _ = self.stream.write(b"X");
        }
    }
}
