//! What kind of room and what kind of weather a seed stands for.

use super::bug::Bug;
use crate::rng::Rng;
use waitroom_core::settings::{ClaimMode, DrawSettings, LaneSettings, NoShow, Rate, Returning};
use waitroom_core::{Millis, Settings, Timestamp};

/// Where the room's log is kept in this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weather {
    /// Several instances share a store; owners are paused, cut off, killed and fenced.
    Cluster,
    /// Whole instances with letters between them; see `machines`.
    Machines,
    /// One instance on a disk that tears, drops, fills up and fails to sync.
    Disk,
}

impl Weather {
    /// Which weather a seed stands for: every fifth has whole instances. A bug shows only where it
    /// is planted.
    pub fn of(seed: u64, bug: Option<Bug>) -> Weather {
        match seed % 2 {
            _ if bug.is_some_and(Bug::is_of_machines) => Weather::Machines,
            _ if bug.is_none() && seed % 5 == 4 => Weather::Machines,
            0 => Weather::Cluster,
            _ => Weather::Disk,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Profile {
    pub weather: Weather,
    pub instances: usize,
    pub settings: Settings,
    pub clients: u32,
    /// The sale starts this long after the beginning of the run, where it has a start.
    pub commands: u64,
    pub fault_chance: f64,
}

impl Profile {
    /// The run begins at `start` (wall clock).
    pub fn of(weather: Weather, start: Timestamp, rng: &mut Rng) -> Profile {
        Profile {
            weather,
            instances: if weather == Weather::Disk { 1 } else { 2 + rng.below(2) as usize },
            settings: settings(start, rng),
            clients: 20 + rng.below(120) as u32,
            commands: 2_000,
            fault_chance: [0.002, 0.006, 0.02][rng.below(3) as usize],
        }
    }
}

fn settings(start: Timestamp, rng: &mut Rng) -> Settings {
    let lanes = 1 + rng.below(3);
    let seconds =
        |rng: &mut Rng, low: u64, high: u64| Millis((low + rng.below(high - low)) * 1_000);
    let mut settings = Settings {
        title: "simulated".into(),
        max_active: 1 + rng.below(30),
        max_waiting: if rng.chance(0.2) { 10 + rng.below(60) } else { 0 },
        rate: (!rng.chance(0.1)).then(|| Rate {
            count: 1 + rng.below(20) as u32,
            per: Millis([1_000, 1_000, 60_000, 700][rng.below(4) as usize]),
        }),
        burst: rng.chance(0.3).then(|| 1 + rng.below(5) as u32),
        queue_all: rng.chance(0.5),
        claim: if rng.chance(0.3) { ClaimMode::OnAdmission } else { ClaimMode::Explicit },
        claim_within: seconds(rng, 5, 60),
        session_timeout: seconds(rng, 10, 120),
        session_renewal: rng.chance(0.7),
        pass_leeway: Millis(rng.below(6) * 1_000),
        heartbeat_timeout: seconds(rng, 20, 120),
        memory: seconds(rng, 600, 1_200),
        no_show: if rng.chance(0.5) { NoShow::Return } else { NoShow::Keep },
        keep_inside: rng.chance(0.6),
        lanes: (0..lanes)
            .map(|i| LaneSettings { name: format!("lane {i}"), weight: 1 + rng.below(5) as u32 })
            .collect(),
        ..Settings::default()
    };
    if rng.chance(0.4) {
        settings.pass_life = Millis(1_000 + rng.below(settings.session_timeout.0 - 1_000));
    }
    if rng.chance(0.3) {
        settings.ticket_life = Millis(settings.heartbeat_timeout.0 + rng.below(300_000));
    }
    if rng.chance(0.4) {
        let share = 1 + rng.below(50) as u32;
        settings.returning = Some(Returning { share, within: seconds(rng, 10, 300) });
    }
    if rng.chance(0.25) {
        settings.shuffle_window = [16, 20, 64][rng.below(3) as usize];
    }
    if rng.chance(0.35) {
        settings.opens_at = Some(Timestamp(start.0 + rng.below(10_000)));
        settings.starts_at = Some(Timestamp(start.0 + 20_000 + rng.below(60_000)));
        if rng.chance(0.6) {
            let beacon = rng.chance(0.5).then(|| "test:round:7".to_owned());
            settings.draw = Some(DrawSettings { beacon });
        }
    }
    if rng.chance(0.1) {
        settings.ends_at = Some(Timestamp(start.0 + 100_000 + rng.below(400_000)));
    }
    settings
}
