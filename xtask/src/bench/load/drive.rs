//! The loop: connections open, requests out, answers in, times noted.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::poll::Poll;
use super::requests::Asker;
use super::round::Round;
use super::socket::Socket;
use crate::bench::process::Threads;
use crate::failure::{Failure, OrFail, Outcome};

/// How to load a server.
#[derive(Debug, Clone, Copy)]
pub struct Drive {
    pub connections: usize,
    /// Before the clock starts: both sides find their rhythm, and buffers their size.
    pub warm: Duration,
    /// A round lasts until the server has worked this long, in CPU time: so much work is measured
    /// however small a share of its core the neighbours leave it.
    pub work: Duration,
    /// And no longer than this, if the neighbours leave it next to nothing.
    pub wall_max: Duration,
}

/// How often the server's CPU time is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// A server that gives no answer for this long is stuck.
const PATIENCE: Duration = Duration::from_secs(10);

impl Drive {
    /// Loads the server for a while. `served_by` are the processes whose CPU time counts.
    pub fn run(
        &self,
        address: SocketAddr,
        asker: &mut dyn Asker,
        served_by: &[u32],
    ) -> Outcome<Round> {
        let mut sockets = Sockets::open(address, self.connections)?;
        sockets.ask_all(asker)?;
        self.measure(served_by, |note| sockets.step(asker, note))
            .map_err(|failure| Failure::new(format!("{address}: {failure}")))
    }

    /// Warms up, then measures `step`, which takes what answers there are, notes how long each
    /// took, and asks again.
    pub fn measure(
        &self,
        served_by: &[u32],
        mut step: impl FnMut(&mut dyn FnMut(Duration)) -> Outcome,
    ) -> Outcome<Round> {
        let threads = || served_by.iter().map(|&pid| Threads::of(pid)).collect::<Outcome<Vec<_>>>();
        let warm_until = Instant::now() + self.warm;
        while Instant::now() < warm_until {
            step(&mut |_| ())?;
        }
        let mut latencies = Vec::with_capacity(1 << 20);
        let (before, began) = (threads()?, Instant::now());
        let mut look_at = began + LOOK_EVERY;
        let (wall, cpu) = loop {
            while Instant::now() < look_at {
                step(&mut |latency| {
                    latencies.push(u32::try_from(latency.as_nanos()).unwrap_or(u32::MAX));
                })?;
            }
            look_at += LOOK_EVERY;
            let (now, wall) = (threads()?, began.elapsed());
            let cpu: Vec<Duration> =
                now.iter().zip(&before).map(|(now, before)| now.since(before)).collect();
            if wall >= self.wall_max || cpu.iter().sum::<Duration>() >= self.work {
                break (wall, cpu);
            }
        };
        if latencies.is_empty() {
            return Err(Failure::new(format!("nothing was answered within {wall:?}")));
        }
        Ok(Round::of(&mut latencies, wall, cpu))
    }

    /// Sends all that the asker has to say, and waits for every answer.
    pub fn drain(connections: usize, address: SocketAddr, asker: &mut dyn Asker) -> Outcome {
        let mut sockets = Sockets::open(address, connections)?;
        sockets.ask_all(asker)?;
        while sockets.waiting > 0 {
            sockets.step(asker, &mut |_| ())?;
        }
        Ok(())
    }
}

struct Sockets {
    poll: Poll,
    all: Vec<Socket>,
    buffer: Box<[u8]>,
    /// Connections with a request on its way.
    waiting: usize,
}

impl Sockets {
    fn open(address: SocketAddr, count: usize) -> Outcome<Self> {
        let attempt = || format!("connect to {address}");
        let poll = Poll::new()?;
        let mut all = Vec::with_capacity(count);
        for index in 0..count {
            let socket = Socket::open(address, PATIENCE).or_fail(attempt)?;
            poll.add(socket.stream(), index as u64)?;
            all.push(socket);
        }
        Ok(Self { poll, all, buffer: vec![0; 1 << 16].into(), waiting: 0 })
    }

    fn ask_all(&mut self, asker: &mut dyn Asker) -> Outcome {
        for socket in &mut self.all {
            if socket.ask(asker, Instant::now())? {
                self.waiting += 1;
            }
        }
        Ok(())
    }

    /// Takes the answers that are there, or the next ones to come, and asks again.
    fn step(&mut self, asker: &mut dyn Asker, note: &mut dyn FnMut(Duration)) -> Outcome {
        let ready = self.poll.wait(Some(PATIENCE))?;
        if ready == 0 {
            return Err(Failure::new(format!("no answer within {PATIENCE:?}")));
        }
        for index in 0..ready {
            let socket = &mut self.all[self.poll.ready(index) as usize];
            let Some(heard) = socket.hear(&mut self.buffer, asker)? else { continue };
            heard?;
            let now = Instant::now();
            note(now - socket.asked_at());
            if !socket.ask(asker, now)? {
                self.waiting -= 1;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::super::requests::Requests;
    use super::*;

    /// Answers each request on one connection with the given pieces, one write each.
    fn server(pieces: &'static [&'static [u8]], connections: usize) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
        let address = listener.local_addr().expect("it is bound");
        std::thread::spawn(move || {
            for stream in listener.incoming().take(connections) {
                let mut stream = stream.expect("a client comes");
                stream.set_nodelay(true).expect("it is a socket");
                std::thread::spawn(move || {
                    let mut request = [0; 64];
                    while stream.read(&mut request).is_ok_and(|read| read > 0) {
                        for piece in pieces {
                            if stream.write_all(piece).is_err() {
                                return;
                            }
                        }
                    }
                });
            }
        });
        address
    }

    #[test]
    fn answers_in_pieces_count_once_and_every_connection_goes_on() {
        let address = server(&[b"HTTP/1.1 200 OK\r\ncontent-", b"length: 4\r\n\r\nab", b"cd"], 3);
        let mut asker = Requests::new(["GET / HTTP/1.1\r\n\r\n".to_owned()]);
        let drive = Drive {
            connections: 3,
            warm: Duration::from_millis(10),
            work: Duration::from_millis(20),
            wall_max: Duration::from_secs(10),
        };
        let round = drive.run(address, &mut asker, &[std::process::id()]).expect("it answers");
        assert!(round.requests > 3, "{round:?}");
        assert!(round.p99 >= round.p50 && round.p50 > Duration::ZERO, "{round:?}");
    }

    #[test]
    fn a_refusal_ends_the_benchmark_with_the_servers_words() {
        let address = server(&[b"HTTP/1.1 429 No\r\ncontent-length: 8\r\n\r\ntoo many"], 1);
        let mut asker = Requests::new(["GET / HTTP/1.1\r\n\r\n".to_owned()]);
        let failure = Drive::drain(1, address, &mut asker).expect_err("it was refused");
        assert!(failure.to_string().contains("429: too many"), "{failure}");
    }
}
