//! Somebody who asks where they stand, now and then, while the flood is on.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::bench::disk::percentile;
use crate::bench::load::answer::head;
use crate::failure::{Failure, OrFail, Outcome};

/// Between two questions of one person: within what the limit of a token allows.
const EVERY: Duration = Duration::from_millis(1_050);
/// People who ask; all of them together ask twenty times a second.
pub const PEOPLE: usize = 20;
const PATIENCE: Duration = Duration::from_secs(30);

/// How long answers took.
#[derive(Debug, Clone, Copy)]
pub struct Probed {
    pub answers: usize,
    pub p50: Duration,
    pub p99: Duration,
}

/// Asks with each of `requests` over a connection of its own until `stop`, then tells.
/// All of them are connected when they have come to `seated`.
pub fn probe(
    address: SocketAddr,
    requests: &[String],
    seated: &Barrier,
    stop: &AtomicBool,
) -> Outcome<Probed> {
    let mut times = std::thread::scope(|scope| {
        let people: Vec<_> = requests
            .iter()
            .enumerate()
            .map(|(index, request)| {
                let late = EVERY * index as u32 / requests.len() as u32;
                scope.spawn(move || person(address, request, late, seated, stop))
            })
            .collect();
        let times = people.into_iter().map(|person| person.join().expect("nobody panics"));
        times.collect::<Outcome<Vec<_>>>().map(|times| times.concat())
    })?;
    if times.is_empty() {
        return Err(Failure::new("nobody who asked for their place was answered"));
    }
    times.sort_unstable();
    Ok(Probed { answers: times.len(), p50: percentile(&times, 50), p99: percentile(&times, 99) })
}

fn person(
    address: SocketAddr,
    request: &str,
    late: Duration,
    seated: &Barrier,
    stop: &AtomicBool,
) -> Outcome<Vec<Duration>> {
    let attempt = || "ask for a place in line";
    let stream = TcpStream::connect_timeout(&address, PATIENCE).or_fail(attempt);
    // Also who has failed comes here: the others wait for everybody.
    seated.wait();
    let mut stream = stream?;
    stream.set_nodelay(true).or_fail(attempt)?;
    stream.set_read_timeout(Some(PATIENCE)).or_fail(attempt)?;
    let (mut times, mut buffer) = (vec![], [0; 4096]);
    let mut next = Instant::now() + late;
    while !stop.load(Ordering::Relaxed) {
        if let Some(early) = next.checked_duration_since(Instant::now()) {
            std::thread::sleep(early.min(Duration::from_millis(100)));
            continue;
        }
        let began = Instant::now();
        stream.write_all(request.as_bytes()).or_fail(attempt)?;
        let read = stream.read(&mut buffer).or_fail(attempt)?;
        let answered = head(&buffer[..read]).map_err(Failure::new)?;
        match answered {
            Some(head) if head.status == 200 && head.ends() == read => times.push(began.elapsed()),
            _ => {
                let said = String::from_utf8_lossy(&buffer[..read]);
                return Err(Failure::new(format!("a question was answered {said:?}")));
            }
        }
        next += EVERY;
    }
    Ok(times)
}
