//! `bench queue`: the core with a full line, beside the classic design on Redis.
//!
//! Each part runs in a process of its own (see `part.rs`), so that neither memory nor caches of
//! one shows in the figures of another. Sizes are one million and twenty million; `--quick` takes
//! a hundred thousand and a million under the same names.

mod crowd;
mod draw;
mod flat;
mod idle_rooms;
mod memory;
mod operations;
mod recovery;
mod stall;

use std::path::Path;

use self::crowd::Crowd;
use super::Scale;
use super::classic::{Classic, Settings};
use super::data::DataFolder;
use super::part::Part;
use super::redis::server::AppendOnly;
use super::report::{Better, Expected, Figure, Measure};
use crate::failure::{Failure, OrFail, Outcome};

/// The two sizes, by the end of a figure's name.
fn sizes(scale: Scale) -> [(&'static str, u64); 2] {
    match scale {
        Scale::Full => [("1m", 1_000_000), ("20m", 20_000_000)],
        Scale::Quick => [("1m", 100_000), ("20m", 1_000_000)],
    }
}

/// Tickets through a room with 100,000 live ones; a billion is a long job.
fn flat_tickets(scale: Scale) -> u64 {
    match scale {
        Scale::Full => 50_000_000,
        Scale::Quick => 5_000_000,
    }
}

const IDLE_ROOMS: u64 = 500;
const BILLION: u64 = 1_000_000_000;

/// One part, in this process. A folder comes last: its name may have blanks in it.
pub fn part(words: &str) -> Outcome<Part> {
    let people = |word: &str| word.parse::<u64>().or_fail(|| format!("read {word} as a number"));
    match words.splitn(4, ' ').collect::<Vec<_>>()[..] {
        ["operations", crowd, n] => Ok(operations::measure(crowd.parse()?, people(n)?)),
        ["memory", crowd, n] => memory::measure(crowd.parse()?, people(n)?),
        ["stall", n] => stall::measure(people(n)?),
        ["draw", n] => Ok(draw::measure(people(n)?)),
        ["flat", n] => flat::measure(people(n)?),
        ["idle-rooms", n, "in", folder] => idle_rooms::measure(Path::new(folder), people(n)?),
        ["prepare", crowd, n, folder] => {
            recovery::prepare(Path::new(folder), crowd.parse()?, people(n)?)
        }
        ["recover", "all", "from", folder] => recovery::bring_back(Path::new(folder)),
        _ => Err(Failure::new(format!("bench queue has no part {words:?}"))),
    }
}

pub fn run(scale: Scale) -> Outcome<Vec<Figure>> {
    let [_, (largest, most)] = sizes(scale);
    let classic = Classic::measure(&Settings::new(scale, AppendOnly::No))?;
    let mut figures = vec![];
    for (size, people) in sizes(scale) {
        figures.extend(operation_figures(&classic, size, people)?);
        figures.extend(memory_figures(&classic, size, people)?);
    }
    figures.extend(writer_figures(largest, most)?);
    for (size, people) in sizes(scale) {
        figures.extend(recovery_figures(size, people)?);
    }
    figures.extend(flat_figures(flat_tickets(scale))?);
    figures.extend(idle_figures()?);
    Ok(figures)
}

/// `bench billion`: only the always-on room, with a billion tickets.
pub fn billion() -> Outcome<Vec<Figure>> {
    flat_figures(BILLION)
}

fn operation_figures(classic: &Classic, size: &str, people: u64) -> Outcome<Vec<Figure>> {
    let per_cpu = |rate: f64| Measure::new("", 1e9 / rate, "ns");
    let mut figures = vec![];
    for crowd in [Crowd::Anonymous, Crowd::Identity, Crowd::Key] {
        eprintln!("operations: {people} {crowd}");
        let part = Part::run("queue", &format!("operations {crowd} {people}"))?;
        for mut measure in part.measures {
            let anonymous = crowd == Crowd::Anonymous;
            let peer = match &*measure.name {
                "join_ns" => Some(("classic_join_cpu_ns", per_cpu(classic.joins.per_cpu_second))),
                "position_ns" => {
                    Some(("classic_zrank_cpu_ns", per_cpu(classic.positions.per_cpu_second)))
                }
                "heartbeat_ns" => {
                    Some(("classic_heartbeat_cpu_ns", per_cpu(classic.heartbeats.per_cpu_second)))
                }
                "admit_1000_us" => {
                    let us = classic.admit_1000.as_secs_f64() * 1e6;
                    Some(("classic_zpopmin_1000_us", Measure::new("", us, "us")))
                }
                _ => None,
            };
            let expected = match &*measure.name {
                "join_ns" if anonymous => Some(Expected::AtMost(150.0)),
                "position_ns" => Some(Expected::AtMost(300.0)),
                "sweep_ms" => Some(Expected::AtMost(150.0)),
                _ => None,
            };
            measure.name = match anonymous {
                true => format!("{}_{size}", measure.name),
                false => format!("{}_{crowd}_{size}", measure.name),
            };
            let figure = match peer {
                Some((name, peer)) if anonymous => {
                    Figure::beside(measure, Measure { name: name.into(), ..peer }, Better::Lower)
                }
                _ => Figure::of(measure),
            };
            figures.push(match expected {
                Some(expected) => figure.expect(expected),
                None => figure,
            });
        }
    }
    Ok(figures)
}

/// Beside what Redis says it allocated, which is less than what it holds, and so the fairer peer.
fn memory_figures(classic: &Classic, size: &str, people: u64) -> Outcome<Vec<Figure>> {
    let peer = || Measure::new("classic_bytes_per_member", classic.bytes_per_member, "bytes");
    let mut figures = vec![];
    for (crowd, bytes_max, ratio_min) in [
        (Crowd::Anonymous, Some(24.0), Some(("bytes_vs_redis", 15.0))),
        (Crowd::Identity, Some(64.0), Some(("bytes_vs_redis_identity", 5.0))),
        (Crowd::Key, None, None),
    ] {
        eprintln!("memory: {people} {crowd}");
        let part = Part::run("queue", &format!("memory {crowd} {people}"))?;
        let bytes = part.value("bytes_per_visitor")?;
        let ours = |name: &str| Measure::new(name, bytes, "bytes");
        let figure = Figure::of(ours(&format!("bytes_per_visitor_{crowd}_{size}")));
        // A small crowd shares the bytes of the program itself; the promise is about a large one.
        figures.push(match bytes_max.filter(|_| size == "20m") {
            Some(most) => figure.expect(Expected::AtMost(most)),
            None => figure,
        });
        if let Some((name, least)) = ratio_min.filter(|_| size == "20m") {
            let figure = Figure::beside(ours(name), peer(), Better::Lower);
            figures.push(figure.expect(Expected::RatioAtLeast(least)));
        }
    }
    Ok(figures)
}

/// What the writer feels of it all, and the draw that is worked out beside it.
fn writer_figures(size: &str, people: u64) -> Outcome<Vec<Figure>> {
    eprintln!("stalls: {people}, three runs");
    let longest = stall::longest(people)?;
    eprintln!("longest stall: {:.3} ms: {}", longest.ms, longest.what);
    eprintln!("draw: {people}");
    let draw = Part::run("queue", &format!("draw {people}"))?;
    let swap = draw.value("draw_swap_stall_ms")?;
    let of = |name: &str| Ok(Measure::new(&format!("{name}_{size}"), draw.value(name)?, "ms"));
    let stall_max = Expected::AtMost(5.0);
    Ok(vec![
        // The swap of the draw is one of the writer's operations too.
        Figure::alone("longest_stall_ms", longest.ms.max(swap), "ms").expect(stall_max),
        Figure::alone(&format!("epoch_open_ms_{size}"), longest.opening_ms, "ms"),
        Figure::of(of("draw_ms")?),
        Figure::of(of("draw_wall_ms")?),
        Figure::of(of("draw_swap_stall_ms")?).expect(stall_max),
    ])
}

fn recovery_figures(size: &str, people: u64) -> Outcome<Vec<Figure>> {
    let mut figures = vec![];
    for crowd in [Crowd::Anonymous, Crowd::Identity] {
        let folder = DataFolder::new("recovery")?;
        eprintln!("recovery: {people} {crowd}");
        let path = folder.path().display();
        let made = Part::run("queue", &format!("prepare {crowd} {people} {path}"))?;
        let found = Part::run("queue", &format!("recover all from {path}"))?;
        let digest = |part: &Part| part.digest.clone().unwrap_or_default();
        eprintln!("digest: made {}, recovered {}", digest(&made), digest(&found));
        if made.digest != found.digest {
            return Err(Failure::new("the recovered room is not the one that was made"));
        }
        let suffix = if crowd == Crowd::Anonymous { String::new() } else { format!("_{crowd}") };
        let seconds_max = if size == "1m" { 1.0 } else { 10.0 };
        for measure in made.measures.into_iter().chain(found.measures) {
            let Measure { name, value, unit } = measure;
            // Headline names end in the size: recovery_s_20m, recovery_s_20m_identity.
            let figure = Figure::alone(&format!("{name}_{size}{suffix}"), value, &unit);
            figures.push(match &*name {
                "recovery_s" => figure.expect(Expected::AtMost(seconds_max)),
                _ => figure,
            });
        }
    }
    Ok(figures)
}

fn flat_figures(tickets: u64) -> Outcome<Vec<Figure>> {
    eprintln!("always on: {tickets} tickets");
    let part = Part::run("queue", &format!("flat {tickets}"))?;
    let figures = part.measures.into_iter().map(|measure| {
        let growth = measure.name == "flat_growth_mb";
        let figure = Figure::of(measure);
        // A few pages of the allocator; a byte per ticket would be a thousand times that.
        if growth { figure.expect(Expected::AtMost(1.0)) } else { figure }
    });
    Ok(figures.collect())
}

fn idle_figures() -> Outcome<Vec<Figure>> {
    eprintln!("idle rooms: {IDLE_ROOMS}");
    let folder = DataFolder::new("idle-rooms")?;
    let words = format!("idle-rooms {IDLE_ROOMS} in {}", folder.path().display());
    let part = Part::run("queue", &words)?;
    let beside = |name: &str, peer: &str| -> Outcome<Figure> {
        let of = |name: &str| Ok(Measure::new(name, part.value(name)?, "ms"));
        Ok(Figure::beside(of(name)?, of(peer)?, Better::Lower))
    };
    Ok(vec![
        beside("idle_rooms_ack_p50_ms", "fdatasync_p50_ms")?,
        beside("idle_rooms_ack_p99_ms", "fdatasync_p99_ms")?,
        Figure::alone("idle_room_kb", part.value("idle_room_kb")?, "KB"),
    ])
}
