//! GetQueueStatus over gRPC, beside a bare tonic server that answers the same message.

use std::fs;
use std::net::SocketAddr;

use super::case::{Bench, ms, per_cpu};
use crate::bench::load::Round;
use crate::bench::load::calls::{Calls, Connections};
use crate::bench::load::h2::{self, CallHeaders};
use crate::bench::load::round::Typical;
use crate::bench::report::{Better, Expected, Figure, Measure};
use crate::bench::serving::crowd::Crowd;
use crate::bench::serving::peer::Peer;
use crate::bench::serving::waitroom::KEY;
use crate::failure::{Failure, OrFail, Outcome};

const PATH: &str = "/waitroom.v1.WaitroomService/GetQueueStatus";
/// Services keep a few connections and many calls on each.
const CONNECTIONS: usize = 4;
const CALLS_EACH: usize = 16;

pub fn measure(bench: &Bench<'_>, crowd: &Crowd) -> Outcome<Vec<Figure>> {
    let Some(address) = bench.ours.addresses.grpc else {
        eprintln!("note: this build of waitroom has no gRPC listener; no figure for it");
        return Ok(vec![]);
    };
    let messages = crowd.people.iter().map(|person| h2::message(&person.ticket)).collect();
    let calls = Calls { headers: CallHeaders::new(PATH, KEY), messages, asked: 0 };
    let sample = sample(address, calls.clone())?;
    eprintln!(
        "grpc_status: {CONNECTIONS} connections with {CALLS_EACH} calls each, answers of {} bytes",
        sample.len()
    );
    let file = bench.folder.join("grpc-status");
    fs::write(&file, &sample).or_fail(|| format!("write {}", file.display()))?;
    let tonic = Peer::start("http", &format!("peer tonic {}", file.display()), bench.cores.server)?;
    let mut ours = (address, bench.ours.id(), calls.clone(), vec![]);
    let mut theirs = (tonic.address, tonic.id(), calls, vec![]);
    for _ in 0..bench.rounds.count {
        for (address, pid, calls, rounds) in [&mut ours, &mut theirs] {
            rounds.push(round(bench, *address, *pid, calls)?);
        }
    }
    let (ours, theirs) = (Typical::of(&ours.3), Typical::of(&theirs.3));
    Ok(vec![
        Figure::beside(
            per_cpu("grpc_status_vs_tonic", ours.per_cpu_second),
            per_cpu("tonic_status_per_cpu_s", theirs.per_cpu_second),
            Better::Higher,
        )
        .expect(Expected::RatioAtLeast(0.8)),
        Figure::beside(
            Measure::new("grpc_status_per_s", ours.per_second, "1/s"),
            Measure::new("tonic_status_per_s", theirs.per_second, "1/s"),
            Better::Higher,
        ),
        Figure::beside(
            ms("grpc_status_p99_ms", ours.p99),
            ms("tonic_status_p99_ms", theirs.p99),
            Better::Lower,
        ),
    ])
}

fn round(bench: &Bench<'_>, address: SocketAddr, pid: u32, calls: &mut Calls) -> Outcome<Round> {
    let mut connections = Connections::open(address, CONNECTIONS, CALLS_EACH, calls)?;
    bench.rounds.drive(CONNECTIONS).measure(&[pid], |note| connections.step(calls, note))
}

/// One answer of ours, as a message.
fn sample(address: SocketAddr, mut calls: Calls) -> Outcome<Vec<u8>> {
    let mut connections = Connections::open(address, 1, 1, &mut calls)?;
    let mut answers = 0;
    // The first things to come are the server's settings.
    for _ in 0..16 {
        connections.step(&mut calls, &mut |_| answers += 1)?;
        if answers > 0 {
            return Ok(connections.last);
        }
    }
    Err(Failure::new("a gRPC call was never answered"))
}
