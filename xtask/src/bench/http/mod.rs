//! `bench http`: what the waiting room adds to the cost of answering at all.
//!
//! Our server, the real one in development mode with its limits on, beside servers that do
//! nothing but answer: a minimal hyper server and nginx with the same body, the classic join on
//! Redis behind hyper. Servers have one core, the load has the other. They take turns within each
//! round, so that a change of the machine's mood meets them all.

pub mod case;
mod grpc;
mod peers;

use std::time::Duration;

use self::case::{Bench, Rounds};
use super::Scale;
use super::cpu::{self, Cores};
use super::data::DataFolder;
use super::load::Requests;
use super::load::requests::{Joins, Keys};
use super::report::{Expected, Figure};
use super::serving::Waitroom;
use super::serving::crowd::{self, Crowd};
use super::serving::waitroom::{ROOM, Start};
use crate::failure::Outcome;

pub use self::peers::serve as peer;

/// People in line while we measure.
const WAITING: u64 = 100_000;
/// Enough that the server always has the next request when it is done with one.
const READERS: usize = 64;
/// Joins wait for the disk, so more of them are on their way at a time.
const JOINERS: usize = 256;

/// Which figures to make; all of them if none is named. For whoever tunes one.
#[derive(Debug, Clone, Default)]
pub struct Only(pub Vec<String>);

impl Only {
    fn wants(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|wanted| wanted == name)
    }
}

pub fn run(scale: Scale, only: &Only) -> Outcome<Vec<Figure>> {
    let cores = Cores::split()?;
    // A thread of its own, because it stays on the load's core.
    std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            cpu::pin(None, cores.client)?;
            measure(scale, only, cores)
        });
        load.join().expect("a benchmark fails by saying so")
    })
}

fn measure(scale: Scale, only: &Only, cores: Cores) -> Outcome<Vec<Figure>> {
    let rounds = match scale {
        Scale::Full => {
            Rounds { count: 20, work: Duration::from_millis(250), wall_max: Duration::from_secs(3) }
        }
        Scale::Quick => Rounds {
            count: 3,
            work: Duration::from_millis(250),
            wall_max: Duration::from_millis(1_000),
        },
    };
    let folder = DataFolder::new("http")?;
    let start = Start { core: Some(cores.server), ..Start::default() };
    let ours = Waitroom::start(&folder.path().join("ours"), &start)?;
    eprintln!(
        "ours: waitroom serve --dev on core {}, load on core {}, {rounds:?}",
        cores.server, cores.client
    );
    let crowd = Crowd::join(ours.addresses.public, WAITING, JOINERS)?;
    let bench = Bench { ours: &ours, folder: folder.path(), cores, rounds };
    let path = |route: &str| format!("/v1/rooms/{ROOM}/{route}");
    let mut figures = vec![];
    let reads = [
        ("status", crowd.requests("GET", &path("status"))),
        ("heartbeat", crowd.requests("POST", &path("heartbeat"))),
        ("board", Requests::new([crowd::request("GET", &path("board"), "")])),
    ];
    for (name, requests) in reads {
        if only.wants(name) {
            let case = bench.case(name, READERS, &requests)?;
            figures.extend(case.figures(Expected::RatioAtLeast(0.8)));
        }
    }
    if only.wants("grpc_status") {
        figures.extend(grpc::measure(&bench, &crowd)?);
    }
    if only.wants("join") {
        let joins = Joins::new(&path("join"), Keys::None);
        let case = bench.case("join", JOINERS, &joins)?;
        figures.extend(case.figures(Expected::RatioAtLeast(0.6)));
        figures.extend(case.against_redis(&bench, JOINERS, &joins)?);
    }
    if only.wants("join_with_key") {
        let joins = Joins::new(&path("join"), Keys::Each);
        figures.extend(bench.case("join_with_key", JOINERS, &joins)?.beside_hyper());
    }
    Ok(figures)
}
