//! One kind of request, at our server and at its peers in turn.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use crate::bench::cpu::Cores;
use crate::bench::load::requests::Asker;
use crate::bench::load::round::Typical;
use crate::bench::load::{Drive, Round};
use crate::bench::redis::server::{AppendOnly, Server as Redis};
use crate::bench::report::{Better, Expected, Figure, Measure};
use crate::bench::serving::Waitroom;
use crate::bench::serving::nginx::Nginx;
use crate::bench::serving::peer::Peer;
use crate::failure::{Failure, OrFail, Outcome};

/// What every case needs.
#[derive(Debug)]
pub struct Bench<'a> {
    pub ours: &'a Waitroom,
    pub folder: &'a Path,
    pub cores: Cores,
    pub rounds: Rounds,
}

#[derive(Debug, Clone, Copy)]
pub struct Rounds {
    pub count: usize,
    /// CPU time of the server in each.
    pub work: Duration,
    pub wall_max: Duration,
}

impl Rounds {
    pub fn drive(&self, connections: usize) -> Drive {
        Drive { connections, warm: WARM, work: self.work, wall_max: self.wall_max }
    }
}

/// Before each round: connections open, the first answers are there, buffers have grown.
const WARM: Duration = Duration::from_millis(100);

/// What the servers reached.
#[derive(Debug)]
pub struct Case {
    name: String,
    body: String,
    ours: Typical,
    hyper: Typical,
    nginx: Typical,
}

/// A server under load, and the processes whose CPU time is its own.
struct Target<A> {
    address: SocketAddr,
    served_by: Vec<u32>,
    asker: A,
    rounds: Vec<Round>,
}

impl Bench<'_> {
    pub fn case<A: Asker + Clone>(
        &self,
        name: &str,
        connections: usize,
        asker: &A,
    ) -> Outcome<Case> {
        let body = self.sample(asker)?;
        eprintln!("{name}: {connections} connections, answers of {} bytes", body.len());
        let file = self.folder.join(format!("{name}.json"));
        fs::write(&file, &body).or_fail(|| format!("write {}", file.display()))?;
        let core = self.cores.server;
        let hyper = Peer::start("http", &format!("peer hyper {}", file.display()), core)?;
        let nginx = Nginx::start(&self.folder.join(format!("nginx-{name}")), &body, core)?;
        let mut targets = [
            Target::new(self.ours.addresses.public, &[self.ours.id()], asker),
            Target::new(hyper.address, &[hyper.id()], asker),
            Target::new(nginx.address, &[nginx.id()], asker),
        ];
        self.take_turns(connections, &mut targets)?;
        say_shares(&["ours", "hyper", "nginx"], &targets);
        let [ours, hyper, nginx] = targets.map(|target| Typical::of(&target.rounds));
        Ok(Case { name: name.into(), body, ours, hyper, nginx })
    }

    /// Ours once more, beside the classic join on Redis, in turns.
    fn redis<A: Asker + Clone>(
        &self,
        body: &str,
        connections: usize,
        asker: &A,
    ) -> Outcome<[Typical; 2]> {
        let redis = Redis::start(AppendOnly::EverySecond, self.cores.server)?;
        let file = self.folder.join("join-redis.json");
        fs::write(&file, body).or_fail(|| format!("write {}", file.display()))?;
        let words = format!("peer hyper-redis {} {}", redis.address(), file.display());
        let peer = Peer::start("http", &words, self.cores.server)?;
        eprintln!(
            "join beside {}, behind hyper, one connection for all; both on the server's core",
            redis.line()
        );
        let mut targets = [
            Target::new(self.ours.addresses.public, &[self.ours.id()], asker),
            Target::new(peer.address, &[peer.id(), redis.id()], asker),
        ];
        self.take_turns(connections, &mut targets)?;
        say_shares(&["ours", "hyper and redis"], &targets);
        Ok(targets.map(|target| Typical::of(&target.rounds)))
    }

    fn take_turns<A: Asker>(&self, connections: usize, targets: &mut [Target<A>]) -> Outcome {
        let drive = self.rounds.drive(connections);
        for _ in 0..self.rounds.count {
            for target in &mut *targets {
                let round = drive.run(target.address, &mut target.asker, &target.served_by)?;
                target.rounds.push(round);
            }
        }
        Ok(())
    }

    /// The body of one answer of ours, for the peers to say as well.
    fn sample<A: Asker + Clone>(&self, asker: &A) -> Outcome<String> {
        let mut one = One { asker: asker.clone(), asked: false, body: vec![] };
        Drive::drain(1, self.ours.addresses.public, &mut one)?;
        String::from_utf8(one.body).or_fail(|| "read an answer as text")
    }
}

impl<A: Asker + Clone> Target<A> {
    fn new(address: SocketAddr, served_by: &[u32], asker: &A) -> Self {
        Self { address, served_by: served_by.into(), asker: asker.clone(), rounds: vec![] }
    }
}

/// How busy each server was. One that had time to spare was not what limited its rate.
fn say_shares<A>(names: &[&str], targets: &[Target<A>]) {
    let share = |(name, target): (&&str, &Target<A>)| {
        let wall: Duration = target.rounds.iter().map(|round| round.wall).sum();
        let cpu: Duration = target.rounds.iter().flat_map(|round| &round.cpu).sum();
        format!("{name} {:.0} %", 100.0 * cpu.as_secs_f64() / wall.as_secs_f64())
    };
    let shares: Vec<String> = names.iter().zip(targets).map(share).collect();
    eprintln!("  of the server's core: {}", shares.join(", "));
}

/// Asks once and keeps the answer.
struct One<A> {
    asker: A,
    asked: bool,
    body: Vec<u8>,
}

impl<A: Asker> Asker for One<A> {
    fn next(&mut self) -> Option<&[u8]> {
        let first = !std::mem::replace(&mut self.asked, true);
        if first { self.asker.next() } else { None }
    }

    fn heard(&mut self, status: u16, body: &[u8]) -> Outcome {
        self.body = body.to_vec();
        if body.is_empty() {
            return Err(Failure::new(format!("an empty answer, {status}")));
        }
        self.asker.heard(status, body)
    }
}

impl Case {
    /// Beside hyper and nginx.
    pub fn figures(&self, expected: Expected) -> Vec<Figure> {
        let mut figures = self.beside_hyper();
        let headline = figures.remove(0).expect(expected);
        let name = &self.name;
        let nginx = Figure::beside(
            per_cpu(&format!("{name}_vs_nginx"), self.ours.per_cpu_second),
            per_cpu(&format!("nginx_{name}_per_cpu_s"), self.nginx.per_cpu_second),
            Better::Higher,
        );
        figures.splice(0..0, [headline, nginx]);
        figures
    }

    /// Beside hyper: by CPU second, by second, and the slowest hundredth.
    pub fn beside_hyper(&self) -> Vec<Figure> {
        let name = &self.name;
        vec![
            Figure::beside(
                per_cpu(&format!("{name}_vs_hyper"), self.ours.per_cpu_second),
                per_cpu(&format!("hyper_{name}_per_cpu_s"), self.hyper.per_cpu_second),
                Better::Higher,
            ),
            Figure::beside(
                Measure::new(&format!("{name}_per_s"), self.ours.per_second, "1/s"),
                Measure::new(&format!("hyper_{name}_per_s"), self.hyper.per_second, "1/s"),
                Better::Higher,
            ),
            Figure::beside(
                ms(&format!("{name}_p99_ms"), self.ours.p99),
                ms(&format!("hyper_{name}_p99_ms"), self.hyper.p99),
                Better::Lower,
            ),
        ]
    }

    /// Joins beside the classic join. The headline counts all that serves: our one process, their
    /// two. Their front alone stands beside it.
    pub fn against_redis<A: Asker + Clone>(
        &self,
        bench: &Bench<'_>,
        connections: usize,
        asker: &A,
    ) -> Outcome<Vec<Figure>> {
        let [ours, theirs] = bench.redis(&self.body, connections, asker)?;
        Ok(vec![
            Figure::beside(
                per_cpu("join_vs_redis", ours.per_cpu_second),
                per_cpu("hyper_redis_join_per_cpu_s", theirs.per_cpu_second),
                Better::Higher,
            )
            .expect(Expected::RatioAtLeast(2.0)),
            Figure::beside(
                per_cpu("join_vs_redis_front", ours.per_cpu_second),
                per_cpu("hyper_redis_front_join_per_cpu_s", theirs.per_cpu_second_of_first),
                Better::Higher,
            ),
            Figure::beside(
                Measure::new("join_per_s_vs_redis", ours.per_second, "1/s"),
                Measure::new("hyper_redis_join_per_s", theirs.per_second, "1/s"),
                Better::Higher,
            ),
            Figure::beside(
                ms("join_p99_ms_vs_redis", ours.p99),
                ms("hyper_redis_join_p99_ms", theirs.p99),
                Better::Lower,
            ),
        ])
    }
}

pub fn per_cpu(name: &str, value: f64) -> Measure {
    Measure::new(name, value, "1/cpu s")
}

pub fn ms(name: &str, time: Duration) -> Measure {
    Measure::new(name, time.as_secs_f64() * 1e3, "ms")
}
