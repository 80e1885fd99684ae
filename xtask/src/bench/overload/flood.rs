//! Load that does not wait to be answered: people come at their own pace, and come all the same
//! when the server is slow.
//!
//! Each takes a free connection out of thousands; when none is free they find the door shut,
//! which is counted and costs the server nothing. Refusals (503, 429) are answers. A connection
//! for which the server has no seat hears its refusal at the door; another is opened in its place.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::bench::disk::percentile_index;
use crate::bench::load::poll::Poll;
use crate::bench::load::requests::{Asker, Joins};
use crate::bench::load::socket::Socket;
use crate::bench::process::{Threads, resident_of};
use crate::failure::{Failure, OrFail, Outcome};

/// How long a visitor waits for a place before the answer is worth nothing to them.
const PATIENCE: Duration = Duration::from_secs(5);
/// Memory is looked at this often.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How many come, through how many connections, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Flood {
    /// None: as soon as a connection is free.
    pub per_second: Option<f64>,
    pub connections: usize,
    pub warm: Duration,
    pub time: Duration,
}

/// How the flood went.
#[derive(Debug, Clone, Copy, Default)]
pub struct Flooded {
    pub seconds: f64,
    pub cpu_seconds: f64,
    /// Places given in time, and too late.
    pub good: u64,
    pub late: u64,
    pub refused: u64,
    /// Connections that the server closed without a word.
    pub closed: u64,
    /// Visitors for whom no connection was free.
    pub shut_out: u64,
    pub p99: Duration,
    /// How long a refusal took, from the request or, at the door, from the wish to connect.
    pub refused_p99: Duration,
    pub resident_max: u64,
}

impl Flooded {
    pub fn per_second(&self) -> f64 {
        self.good as f64 / self.seconds
    }

    pub fn per_cpu_second(&self) -> f64 {
        self.good as f64 / self.cpu_seconds
    }

    pub fn offered_per_second(&self) -> f64 {
        (self.good + self.late + self.refused + self.shut_out) as f64 / self.seconds
    }
}

/// Joins, whatever comes back.
struct Coming {
    joins: Joins,
    status: u16,
}

impl Asker for Coming {
    fn next(&mut self) -> Option<&[u8]> {
        self.joins.next()
    }

    fn heard(&mut self, status: u16, body: &[u8]) -> Outcome {
        self.status = status;
        match status {
            200..=299 | 429 | 503 => Ok(()),
            _ => self.joins.heard(status, body),
        }
    }
}

impl Flood {
    pub fn run(&self, address: SocketAddr, server: u32, joins: &Joins) -> Outcome<Flooded> {
        let mut poll = Poll::new()?;
        let open = || Socket::begin(address).or_fail(|| format!("connect to {address}"));
        let mut slots = vec![];
        for index in 0..self.connections {
            slots.push(Slot { socket: open()?, refused: false });
            poll.add(slots[index].socket.stream(), index as u64)?;
        }
        let mut idle: VecDeque<usize> = (0..self.connections).collect();
        let mut coming = Coming { joins: joins.clone(), status: 0 };
        let mut buffer = vec![0; 1 << 16];
        let (mut told, mut latencies, mut refusals) = (Flooded::default(), vec![], vec![]);
        let began = Instant::now();
        let (mut came, mut measuring, mut look_at) = (0.0, None, began);
        loop {
            let now = Instant::now();
            if measuring.is_none() && now - began >= self.warm {
                measuring = Some((now, Threads::of(server)?));
                (told, latencies) = (Flooded::default(), Vec::with_capacity(1 << 20));
                refusals.clear();
            }
            if let Some((since, threads)) = &measuring
                && now - *since >= self.time
            {
                told.seconds = (now - *since).as_secs_f64();
                told.cpu_seconds = Threads::of(server)?.since(threads).as_secs_f64();
                break;
            }
            if now >= look_at {
                look_at = now + LOOK_EVERY;
                told.resident_max = told.resident_max.max(resident_of(server)?);
            }
            let due = match self.per_second {
                None => idle.len(),
                Some(rate) => {
                    let due = (now - began).as_secs_f64() * rate - came;
                    came += due.floor();
                    due as usize
                }
            };
            for _ in 0..due {
                let Some(index) = idle.pop_front() else {
                    told.shut_out += 1;
                    continue;
                };
                match slots[index].socket.try_ask(&mut coming, now) {
                    Ok(_) => continue,
                    // Still before the door.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        idle.push_back(index);
                    }
                    // It was closed while nobody used it; the poll finds it.
                    Err(_) => {}
                }
                told.shut_out += 1;
            }
            for ready in 0..poll.wait(Some(Duration::from_millis(1)))? {
                let index = poll.ready(ready) as usize;
                let slot = &mut slots[index];
                match slot.socket.hear(&mut buffer, &mut coming) {
                    Ok(None) => continue,
                    Ok(Some(heard)) => {
                        heard?;
                        let took = slot.socket.asked_at().elapsed();
                        let micros = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
                        slot.refused = !matches!(coming.status, 200..=299);
                        if slot.refused {
                            told.refused += 1;
                            refusals.push(micros);
                            // At the door nobody may have asked yet.
                            idle.retain(|&other| other != index);
                        } else {
                            *if took <= PATIENCE { &mut told.good } else { &mut told.late } += 1;
                            latencies.push(micros);
                        }
                    }
                    Err(_) => {
                        told.closed += u64::from(!slot.refused);
                        *slot = Slot { socket: open()?, refused: false };
                        poll.add(slot.socket.stream(), index as u64)?;
                        idle.retain(|&other| other != index);
                    }
                }
                idle.push_back(index);
            }
        }
        if latencies.is_empty() {
            return Err(Failure::new("the flood was not answered at all"));
        }
        told.p99 = p99(&mut latencies);
        told.refused_p99 = p99(&mut refusals);
        Ok(told)
    }
}

/// A place for one connection after the other.
struct Slot {
    socket: Socket,
    /// The last that was heard on it was a refusal; whether the server closes it is its affair.
    refused: bool,
}

fn p99(micros: &mut [u32]) -> Duration {
    micros.sort_unstable();
    let at = micros.get(percentile_index(micros.len(), 99)).copied();
    Duration::from_micros(u64::from(at.unwrap_or_default()))
}
