//! `bench live`: many people on live channels of one server, and one admission that all hear of.
//!
//! Server and crowd have a core each. A file is a socket, and a process may open so many files
//! (20,000 on our machines, and nobody may raise it), so one instance takes 19,000; 50,000 take
//! three instances and three crowds.

mod clients;
mod crew;
mod frames;
mod measure;
mod raw;

use std::path::Path;

use self::frames::Carrier;
use self::measure::{Bench, Channels};
use super::Scale;
use super::cpu::{self, Cores};
use super::data::DataFolder;
use super::report::{Better, Expected, Figure, Measure};
use crate::failure::{Failure, OrFail, Outcome};

/// What our machines allow a process, less what a server needs besides sockets.
const CHANNELS: usize = 19_000;
const CHANNELS_QUICK: usize = 2_000;
/// Over three instances.
const CHANNELS_OF_THREE: usize = 50_000;
const CHANNELS_OF_THREE_QUICK: usize = 3_000;

/// The roles of this program's other processes.
pub fn part(words: &str) -> Outcome {
    let number = |word: &str| word.parse().or_fail(|| format!("read {word} as a number"));
    match words.splitn(4, ' ').collect::<Vec<_>>()[..] {
        ["clients", carrier, address, tokens] => {
            let carrier = Carrier::of_word(carrier)
                .ok_or_else(|| Failure::new(format!("no carrier {carrier:?}")))?;
            let address = address.parse().or_fail(|| format!("read {address} as an address"))?;
            clients::run(carrier, address, Path::new(tokens))
        }
        ["raw", count, "of", file] => raw::run(number(count)?, Path::new(file)),
        _ => Err(Failure::new(format!("bench live has no part {words:?}"))),
    }
}

pub fn run(scale: Scale) -> Outcome<Vec<Figure>> {
    let cores = Cores::split()?;
    // A thread of its own, because it stays on the crowd's core.
    std::thread::scope(|scope| {
        let bench = scope.spawn(|| {
            cpu::pin(None, cores.client)?;
            measure(scale, cores)
        });
        bench.join().expect("a benchmark fails by saying so")
    })
}

fn measure(scale: Scale, cores: Cores) -> Outcome<Vec<Figure>> {
    let (channels, of_three) = match scale {
        Scale::Full => (CHANNELS, CHANNELS_OF_THREE),
        Scale::Quick => (CHANNELS_QUICK, CHANNELS_OF_THREE_QUICK),
    };
    let folder = DataFolder::new("live")?;
    let bench = Bench { folder: folder.path(), cores };
    let (sockets, board) = bench.channels(Carrier::WebSocket, channels)?;
    let raw = bench.raw(channels, &board)?;
    let (streams, _) = bench.channels(Carrier::Events, channels)?;
    let three = bench.three_instances(of_three)?;
    let mut figures = sockets.figures("connection", "", raw, Expected::AtMost(6_144.0));
    figures.extend(streams.figures("stream", "stream_", raw, Expected::AtMost(12_288.0)));
    figures.push(Figure::alone("connections_of_three_instances", of_three as f64, "connections"));
    figures.push(
        Figure::alone("tick_to_last_client_ms_of_three_instances", three.worst_ms(), "ms")
            .expect(Expected::AtMost(1_000.0)),
    );
    Ok(figures)
}

impl Channels {
    /// `each` is what one is called, `prefix` what the other names begin with.
    fn figures(&self, each: &str, prefix: &str, raw: f64, bytes: Expected) -> Vec<Figure> {
        let name = |rest: &str| format!("{prefix}{rest}");
        let pushes = Figure::beside(
            Measure::new(&name("pushes_per_cpu_s"), self.pushes_per_cpu_second, "1/cpu s"),
            Measure::new("raw_loop_pushes_per_cpu_s", raw, "1/cpu s"),
            Better::Higher,
        );
        // Only for WebSockets: a raw loop that sends a WebSocket frame is no peer of a stream.
        let pushes = match prefix {
            "" => pushes.expect(Expected::RatioAtLeast(0.6)),
            _ => pushes,
        };
        vec![
            Figure::alone(&format!("{each}s"), self.count as f64, &format!("{each}s")),
            Figure::alone(&format!("bytes_per_{each}"), self.bytes_each, "bytes").expect(bytes),
            Figure::alone(&format!("bytes_per_idle_{each}"), self.idle_bytes_each, "bytes"),
            Figure::alone(&name("tick_to_last_client_ms"), self.ticks.worst_ms(), "ms")
                .expect(Expected::AtMost(1_000.0)),
            Figure::alone(&name("tick_to_last_client_best_ms"), self.ticks.best_ms(), "ms"),
            pushes,
        ]
    }
}
