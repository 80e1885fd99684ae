//! `bench overload`: ten times more people than the server can take, then ten thousand sockets
//! that waste its time.
//!
//! The server must be the slower side, or the flood is no flood. So it gets a small share of its
//! core: beside it runs a program that only counts, and the scheduler divides the core by
//! niceness. That needs no privilege and no control group, and it holds on any machine.

mod flood;
mod idlers;
mod probe;

use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use self::flood::{Flood, Flooded};
use self::probe::Probed;
use super::Scale;
use super::cpu::{self, Cores};
use super::data::DataFolder;
use super::load::requests::{Joins, Keys};
use super::report::{Better, Expected, Figure, Measure};
use super::serving::ask::ask;
use super::serving::child::{Child, quiet};
use super::serving::crowd::{self, Crowd};
use super::serving::waitroom::{ROOM, Start, Waitroom};
use crate::failure::{Failure, OrFail, Outcome};

/// The server's niceness beside a counter of niceness 0: a quarter of the core. By the kernel's
/// table 335 parts of 1,359.
const NICE: i32 = 5;
const AT_PEAK: usize = 256;
const OVERLOAD: f64 = 10.0;
/// Within the time that the server gives to sockets that hang, the second of warming up and the
/// time to take them in included.
const HANGING: Duration = Duration::from_secs(5);
/// How long the server may need to take in thousands of connections, or to see them go.
const SETTLE: Duration = Duration::from_secs(30);
/// The server's time-outs for headers and bodies are ten seconds. It looks every second or so,
/// and has a quarter of a core.
const CLOSED_WITHIN: Duration = Duration::from_secs(15);
/// Early enough to go elsewhere: a fraction of what people wait for a page.
const REFUSED_WITHIN: Duration = Duration::from_secs(2);
/// What memory may grow by under the flood, besides the places it gave: each of the connections
/// has buffers, and queues have bounds.
const GROWTH_MB_MAX: f64 = 512.0;

/// Counts until its input ends.
pub fn part(words: &str) -> Outcome {
    if words != "spin" {
        return Err(Failure::new(format!("bench overload has no part {words:?}")));
    }
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        std::process::exit(0);
    });
    let mut count = 0_u64;
    loop {
        count = std::hint::black_box(count.wrapping_add(1));
    }
}

/// How many there are of everything.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    calm: Duration,
    storm: Duration,
    idlers: usize,
    /// What the server may have open: more than hang on it, less than the flood brings.
    seats: usize,
    flood: usize,
}

impl Sizes {
    fn of(scale: Scale) -> Self {
        let seconds = Duration::from_secs;
        match scale {
            Scale::Full => Sizes {
                calm: seconds(15),
                storm: seconds(60),
                idlers: 10_000,
                seats: 10_500,
                flood: 12_000,
            },
            Scale::Quick => Sizes {
                calm: seconds(4),
                storm: seconds(10),
                idlers: 2_000,
                seats: 2_500,
                flood: 3_000,
            },
        }
    }
}

pub fn run(scale: Scale) -> Outcome<Vec<Figure>> {
    let cores = Cores::split()?;
    if cores.server == cores.client {
        return Err(Failure::new("the flood needs a core that the server does not have"));
    }
    std::thread::scope(|scope| {
        let bench = scope.spawn(|| {
            cpu::pin(None, cores.client)?;
            measure(scale, cores)
        });
        bench.join().expect("a benchmark fails by saying so")
    })
}

fn measure(scale: Scale, cores: Cores) -> Outcome<Vec<Figure>> {
    let Sizes { calm, storm, idlers, seats, flood } = Sizes::of(scale);
    let folder = DataFolder::new("overload")?;
    let settings = vec![("WAITROOM_LIMITS_CONNECTIONS_MAX", seats.to_string())];
    let start = Start { core: Some(cores.server), nice: Some(NICE), settings, ..Start::default() };
    let server = Waitroom::start(&folder.path().join("ours"), &start)?;
    let public = server.addresses.public;
    let crowd = Crowd::join(public, 1_000, AT_PEAK)?;
    let status = format!("/v1/rooms/{ROOM}/status");
    let questions: Vec<String> = crowd.people[..probe::PEOPLE]
        .iter()
        .map(|it| {
            crowd::request("GET", &status, &format!("Authorization: Bearer {}\r\n", it.token))
        })
        .collect();
    let joins = Joins::new(&format!("/v1/rooms/{ROOM}/join"), Keys::None);
    let _spinner = spinner(cores.server)?;
    let observed = |flood: Flood| -> Outcome<(Flooded, Probed)> {
        let stop = AtomicBool::new(false);
        let seated = Barrier::new(questions.len() + 1);
        std::thread::scope(|scope| {
            let probing = scope.spawn(|| probe::probe(public, &questions, &seated, &stop));
            // Who waits already has a seat when the flood comes.
            seated.wait();
            let flooded = flood.run(public, server.id(), &joins);
            stop.store(true, Ordering::Relaxed);
            let probed = probing.join().expect("a probe fails by saying so");
            Ok((flooded?, probed?))
        })
    };
    let warm = Duration::from_secs(1);
    let peak = Flood { per_second: None, connections: AT_PEAK, warm, time: calm };
    let (at_peak, calm_status) = observed(peak)?;
    say("peak", &at_peak, calm_status);
    let per_second = Some(OVERLOAD * at_peak.per_second());
    let (flooded, storm_status) =
        observed(Flood { per_second, connections: flood, warm, time: storm })?;
    say("ten times as many", &flooded, storm_status);
    open_at(&server, |open| open < AT_PEAK)?;
    let slow_began = Instant::now();
    let (closed, (beside_idlers, idle_status)) = std::thread::scope(|scope| {
        let limit = CLOSED_WITHIN * 4;
        let (opened, wait) = std::sync::mpsc::channel();
        let holding = scope.spawn(move || idlers::hold_on(public, idlers, limit, &opened));
        // While they hang there: to be taken in is what any connection costs, once.
        let _ = wait.recv();
        let taken_in = open_at(&server, |open| open >= idlers);
        let beside = observed(Flood { time: HANGING, ..peak });
        let closed = holding.join().expect("it fails by saying so");
        taken_in?;
        Ok::<_, Failure>((closed?, beside?))
    })?;
    say(&format!("{idlers} slow or silent sockets"), &beside_idlers, idle_status);
    eprintln!("they were closed after {closed:?}, all within {:?}", slow_began.elapsed());
    Ok(figures(
        &at_peak,
        &flooded,
        &beside_idlers,
        [calm_status, storm_status, idle_status],
        closed,
    ))
}

/// Waits until the server has as many connections open as `wanted` says, by its own count.
fn open_at(server: &Waitroom, wanted: impl Fn(usize) -> bool) -> Outcome {
    let began = Instant::now();
    loop {
        let page = ask(server.addresses.admin, "GET", "/metrics", "")?;
        let line = "waitroom_listener_connections{listener=\"public\"} ";
        let open = page.lines().find_map(|it| it.strip_prefix(line)?.parse().ok());
        let open = open.ok_or_else(|| Failure::new("the server does not say what is open"))?;
        if wanted(open) {
            return Ok(());
        }
        if began.elapsed() > SETTLE {
            return Err(Failure::new(format!("{open} connections are open after {SETTLE:?}")));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn figures(
    peak: &Flooded,
    flooded: &Flooded,
    beside_idlers: &Flooded,
    [calm, storm, idle]: [Probed; 3],
    closed: idlers::Closed,
) -> Vec<Figure> {
    let per_cpu = |name: &str, it: &Flooded| Measure::new(name, it.per_cpu_second(), "1/cpu s");
    let ms = |name: &str, time: Duration| Measure::new(name, time.as_secs_f64() * 1e3, "ms");
    let mb = |bytes: u64| bytes as f64 / 1e6;
    let peak_goodput = || per_cpu("peak_goodput_per_cpu_s", peak);
    // Places that were given stay in memory, as they should; 64 bytes are more than one takes.
    let places = (flooded.good + flooded.late) * 64;
    let growth = mb(flooded.resident_max.saturating_sub(peak.resident_max + places));
    vec![
        Figure::alone(
            "overload_offered_times_peak",
            flooded.offered_per_second() / peak.per_second(),
            "x",
        ),
        Figure::beside(per_cpu("overload_goodput", flooded), peak_goodput(), Better::Higher)
            .expect(Expected::RatioAtLeast(0.9)),
        Figure::beside(
            Measure::new("overload_goodput_per_s", flooded.per_second(), "1/s"),
            Measure::new("peak_goodput_per_s", peak.per_second(), "1/s"),
            Better::Higher,
        ),
        Figure::alone("overload_refused_per_s", flooded.refused as f64 / flooded.seconds, "1/s")
            .expect(Expected::AtLeast(1.0)),
        Figure::of(ms("overload_refusal_p99_ms", flooded.refused_p99))
            .expect(Expected::AtMost(REFUSED_WITHIN.as_secs_f64() * 1e3)),
        Figure::alone("overload_late", flooded.late as f64, "answers"),
        Figure::alone("overload_growth_mb", growth, "MB").expect(Expected::AtMost(GROWTH_MB_MAX)),
        Figure::alone("overload_resident_mb", mb(flooded.resident_max), "MB"),
        Figure::of(ms("overload_join_p99_ms", flooded.p99)),
        Figure::beside(
            ms("overload_status_p99_ms", storm.p99),
            ms("peak_status_p99_ms", calm.p99),
            Better::Lower,
        )
        .expect(Expected::AtMost(1_000.0)),
        Figure::beside(
            ms("overload_status_p50_ms", storm.p50),
            ms("peak_status_p50_ms", calm.p50),
            Better::Lower,
        ),
        Figure::beside(
            per_cpu("idle_sockets_goodput", beside_idlers),
            peak_goodput(),
            Better::Higher,
        )
        .expect(Expected::RatioAtLeast(0.9)),
        Figure::of(ms("idle_sockets_status_p99_ms", idle.p99)).expect(Expected::AtMost(1_000.0)),
        Figure::alone("idle_sockets_last_closed_s", closed.last.as_secs_f64(), "s")
            .expect(Expected::AtMost(CLOSED_WITHIN.as_secs_f64())),
    ]
}

fn say(what: &str, it: &Flooded, status: Probed) {
    eprintln!(
        "{what}: {:.0} offered/s, {:.0} places/s ({:.0} a CPU second, of which {:.0} % were left \
         to it), {} refused (p99 {:?}), {} late, {} closed, {} shut out, join p99 {:?}, {:.0} MB; \
         status: {} answers, p50 {:?}, p99 {:?}",
        it.offered_per_second(),
        it.per_second(),
        it.per_cpu_second(),
        100.0 * it.cpu_seconds / it.seconds,
        it.refused,
        it.refused_p99,
        it.late,
        it.closed,
        it.shut_out,
        it.p99,
        it.resident_max as f64 / 1e6,
        status.answers,
        status.p50,
        status.p99
    );
}

fn spinner(core: usize) -> Outcome<Child> {
    let program = std::env::current_exe().or_fail(|| "find our own program")?;
    let mut command: Command = quiet(program);
    command.args(["overload", "--part", "spin"]).stdin(std::process::Stdio::piped());
    Child::start("spinner", command, Some(core))
}
