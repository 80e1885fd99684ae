//! Servers up, crowds on, and what an admission costs and how long it takes to be known.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::clients::shared_clock;
use super::crew::Crew;
use super::frames::Carrier;
use crate::bench::cpu::Cores;
use crate::bench::process::{Threads, resident_of};
use crate::bench::serving::ask::{admit, ask};
use crate::bench::serving::crowd::{Crowd, Person};
use crate::bench::serving::peer::Peer;
use crate::bench::serving::waitroom::{ROOM, Start, Waitroom};
use crate::failure::{Failure, OrFail, Outcome};

/// People join over few connections: memory that served many of them and is free again would hide
/// what the channels take.
const JOINERS: usize = 4;
/// Admissions that are followed to the last client.
const TICKS: usize = 5;
/// Between two of them, so that each meets a crowd at rest: pictures far back are a second apart.
const REST: Duration = Duration::from_millis(1_500);
/// When memory has not changed for this long, it is at rest.
const STILL: Duration = Duration::from_secs(1);
const STILL_LIMIT: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub struct Bench<'a> {
    pub folder: &'a Path,
    pub cores: Cores,
}

/// One instance with many channels.
#[derive(Debug)]
pub struct Channels {
    pub count: usize,
    /// Resident memory of the server by channel, after all ticks and before the first.
    pub bytes_each: f64,
    pub idle_bytes_each: f64,
    pub ticks: Ticks,
    pub pushes_per_cpu_second: f64,
}

/// How long each admission took to be known to all.
#[derive(Debug, Default)]
pub struct Ticks {
    times: Vec<Duration>,
}

impl Ticks {
    pub fn worst_ms(&self) -> f64 {
        self.times.iter().max().map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    }

    pub fn best_ms(&self) -> f64 {
        self.times.iter().min().map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    }
}

impl Bench<'_> {
    /// A fresh instance with `count` channels, and its public board for others to push.
    pub fn channels(&self, carrier: Carrier, count: usize) -> Outcome<(Channels, String)> {
        let server = self.server(carrier.word())?;
        let crowd = Crowd::join(server.addresses.public, count as u64, JOINERS)?;
        let before = at_rest(&server)?;
        let opening = Instant::now();
        let mut crew = self.crew(carrier, &server, &crowd.people)?;
        eprintln!("{}: {count} channels opened in {:?}", carrier.word(), opening.elapsed());
        let idle = at_rest(&server)?;
        let (mut ticks, mut best) = (Ticks::default(), 0.0_f64);
        for _ in 0..TICKS {
            std::thread::sleep(REST);
            let cpu = Threads::of(server.id())?;
            let (took, letters) = tick(&[&server], &mut [&mut crew])?;
            let worked = Threads::of(server.id())?.since(&cpu);
            best = best.max(letters as f64 / worked.as_secs_f64());
            ticks.times.push(took);
        }
        let after = at_rest(&server)?;
        let each = |bytes: u64| bytes.saturating_sub(before) as f64 / count as f64;
        let board = ask(server.addresses.public, "GET", &board_path(), "")?;
        let channels = Channels {
            count,
            bytes_each: each(after),
            idle_bytes_each: each(idle),
            ticks,
            pushes_per_cpu_second: best,
        };
        Ok((channels, board))
    }

    /// Pushes per CPU second of a loop that does nothing else.
    pub fn raw(&self, count: usize, board: &str) -> Outcome<f64> {
        let file = self.folder.join("board.json");
        fs::write(&file, board).or_fail(|| format!("write {}", file.display()))?;
        let words = format!("raw {count} of {}", file.display());
        let mut peer = Peer::start("live", &words, self.cores.server)?;
        let nobody = Person { ticket: String::new(), token: "none".into() };
        let people = vec![nobody; count];
        let (folder, core) = (self.folder, self.cores.client);
        let mut crew = Crew::open(Carrier::WebSocket, peer.address, &people, folder, core)?;
        eprintln!("raw loop: {count} channels, frames of {} bytes and their head", board.len());
        let mut best = 0.0_f64;
        let first = first_raw_version(board);
        for version in first..first + TICKS as u64 {
            crew.mark(version)?;
            let cpu = Threads::of(peer.id())?;
            peer.tell("push")?;
            let heard = crew.heard()?;
            let worked = Threads::of(peer.id())?.since(&cpu);
            best = best.max(heard.letters as f64 / worked.as_secs_f64());
        }
        Ok(best)
    }

    /// Three instances, each with its own data and a third of the channels; everyone everywhere
    /// hears of an admission in each room.
    pub fn three_instances(&self, count: usize) -> Outcome<Ticks> {
        let servers = ["one", "two", "three"].map(|name| self.server(name));
        let servers = servers.into_iter().collect::<Outcome<Vec<Waitroom>>>()?;
        let mut crews = vec![];
        for (index, server) in servers.iter().enumerate() {
            let share = count / 3 + usize::from(index < count % 3);
            let crowd = Crowd::join(server.addresses.public, share as u64, JOINERS)?;
            crews.push(self.crew(Carrier::WebSocket, server, &crowd.people)?);
        }
        eprintln!("three instances: {count} channels are open");
        let mut ticks = Ticks::default();
        for _ in 0..TICKS {
            std::thread::sleep(REST);
            let servers: Vec<&Waitroom> = servers.iter().collect();
            let mut crews: Vec<&mut Crew> = crews.iter_mut().collect();
            ticks.times.push(tick(&servers, &mut crews)?.0);
        }
        Ok(ticks)
    }

    fn server(&self, name: &str) -> Outcome<Waitroom> {
        let start = Start { core: Some(self.cores.server), ..Start::default() };
        Waitroom::start(&self.folder.join(name), &start)
    }

    fn crew(&self, carrier: Carrier, server: &Waitroom, people: &[Person]) -> Outcome<Crew> {
        Crew::open(carrier, server.addresses.public, people, self.folder, self.cores.client)
    }
}

/// Lets one person in at each server and waits until everyone has a board that knows it: how long
/// that took from the first call on, and the letters that came.
fn tick(servers: &[&Waitroom], crews: &mut [&mut Crew]) -> Outcome<(Duration, u64)> {
    for (server, crew) in servers.iter().zip(&mut *crews) {
        crew.mark(version(server)?)?;
    }
    let began = shared_clock();
    for server in servers {
        admit(server.addresses.admin, 1)?;
    }
    let (mut last, mut letters) = (began, 0);
    for crew in crews {
        let heard = crew.heard()?;
        last = last.max(heard.at_ns);
        letters += heard.letters;
    }
    Ok((Duration::from_nanos(last - began), letters))
}

fn board_path() -> String {
    format!("/v1/rooms/{ROOM}/board")
}

/// The version that everybody can see now.
fn version(server: &Waitroom) -> Outcome<u64> {
    let board = ask(server.addresses.public, "GET", &board_path(), "")?;
    let board: Value = serde_json::from_str(&board).or_fail(|| "read the board")?;
    board["version"].as_u64().ok_or_else(|| Failure::new("the board has no version"))
}

/// What the raw loop's frames begin to count from: a 1 and zeroes, as wide as the board's own.
fn first_raw_version(board: &str) -> u64 {
    let digits = |rest: &str| rest.bytes().take_while(u8::is_ascii_digit).count();
    let width = board.split("\"version\":").nth(1).map_or(1, digits);
    10_u64.pow(width.saturating_sub(1) as u32) + 1
}

/// Resident memory of the server once it does not change any more.
fn at_rest(server: &Waitroom) -> Outcome<u64> {
    let began = Instant::now();
    let (mut bytes, mut since) = (resident_of(server.id())?, Instant::now());
    while since.elapsed() < STILL && began.elapsed() < STILL_LIMIT {
        std::thread::sleep(Duration::from_millis(50));
        let now = resident_of(server.id())?;
        if now != bytes {
            (bytes, since) = (now, Instant::now());
        }
    }
    Ok(bytes)
}
