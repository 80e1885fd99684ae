//! Rooms of different kinds, and how an operator changes them while they run.

use crate::rng::Rng;
use waitroom_core::settings::{
    ClaimMode, DrawSettings, LaneSettings, NoShow, Rate, Returning, Settings,
};
use waitroom_core::{Millis, Timestamp};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    Strict,
    Lanes,
    Windows,
    WindowsAndLanes,
    Draw,
    DrawWithBeacon,
    DrawAndWindows,
    OnAdmission,
    ShortMemory,
    SmallLine,
    LiveRates,
    TinyInside,
    Scheduled,
    LongLived,
}

/// When every run begins.
pub const BEGIN: Timestamp = Timestamp(1_700_000_000_000);
pub const BEACON: &str = "drand:quicknet:77";

impl Profile {
    pub fn settings(self, rng: &mut Rng) -> Settings {
        let mut it = Settings {
            title: format!("{self:?}"),
            rate: Some(Rate { count: rng.between(1, 20) as u32, per: Millis(1_000) }),
            max_active: rng.between(3, 60),
            queue_all: rng.percent(50),
            claim_within: Millis(rng.pick(&[1_000, 5_000, 90_000])),
            session_timeout: Millis(rng.pick(&[2_000, 20_000, 600_000])),
            pass_leeway: Millis(rng.pick(&[0, 1, 5_000])),
            heartbeat_timeout: Millis(3_000),
            memory: Millis(rng.pick(&[600_000, 3_600_000])),
            no_show: rng.pick(&[NoShow::Keep, NoShow::Return]),
            keep_inside: rng.percent(50),
            ..Settings::default()
        };
        match self {
            Profile::Strict => {}
            Profile::Lanes => lanes(rng, &mut it),
            Profile::Windows => it.shuffle_window = 16,
            Profile::WindowsAndLanes => {
                it.shuffle_window = 16;
                lanes(rng, &mut it);
            }
            Profile::Draw => draw(rng, &mut it, None),
            Profile::DrawWithBeacon => {
                lanes(rng, &mut it);
                draw(rng, &mut it, Some(BEACON));
            }
            Profile::DrawAndWindows => {
                it.shuffle_window = 16;
                draw(rng, &mut it, None);
            }
            Profile::OnAdmission => {
                it.claim = ClaimMode::OnAdmission;
                it.pass_life = Millis(rng.pick(&[0, 1_000, 2_000]));
            }
            Profile::ShortMemory => {
                it.memory = Millis(600_000);
                it.ticket_life = Millis(rng.between(3_000, 60_000));
                it.returning = Some(Returning { share: 30, within: Millis(30_000) });
            }
            Profile::SmallLine => it.max_waiting = rng.between(1, 8),
            Profile::LiveRates => it.burst = Some(rng.between(1, 30) as u32),
            Profile::TinyInside => it.max_active = rng.between(1, 2),
            Profile::Scheduled => {
                it.opens_at = Some(BEGIN.after(Millis(rng.below(20_000))));
                it.starts_at = Some(BEGIN.after(Millis(rng.between(20_000, 60_000))));
                it.ends_at = Some(BEGIN.after(Millis(rng.between(60_001, 200_000))));
            }
            Profile::LongLived => {
                it.max_active = 5_000;
                it.session_timeout = Millis(2_000);
                it.claim_within = Millis(2_000);
                it.lanes.push(lane(1, 0));
                // Longer than join keys are remembered, so that both kinds of forgetting show.
                it.memory = Millis(900_000);
                it.rate = Some(Rate { count: 500, per: Millis(1_000) });
            }
        }
        it
    }

    /// What a handful of runs must come across to be worth anything.
    pub fn meets(self) -> &'static [&'static str] {
        match self {
            Profile::Windows | Profile::WindowsAndLanes => &["Sealed", "Moved", "Reopened"],
            Profile::Draw => &["Drawn", "DrawWrongSeed", "DrawTooLate"],
            Profile::DrawWithBeacon => &["Drawn", "Moved", "DrawAlreadyDrawn"],
            Profile::DrawAndWindows => &["Drawn", "Sealed"],
            Profile::SmallLine => &["Full", "KeyReused"],
            Profile::Scheduled => &["NotOpenYet", "NotStarted", "SaleEnded", "Finished"],
            Profile::LongLived => &["ForgotTickets", "ForgotKeys"],
            _ => &["Claimed", "ClaimTooLate", "Renewed", "Released", "Moved", "Forgotten"],
        }
    }

    /// One live change; sometimes an impossible one, sometimes none.
    pub fn changed(self, rng: &mut Rng, old: &Settings) -> Settings {
        let mut it = old.clone();
        match rng.below(18) {
            0..=3 => it.rate = rate(rng),
            4 => it.burst = rng.percent(50).then(|| rng.between(1, 40) as u32),
            5 => it.tick = Millis(rng.between(20, 1_000)),
            6 => it.max_active = rng.between(1, 60),
            7 => it.max_waiting = rng.pick(&[0, 0, 0, 5, 40]),
            8 => it.lanes.iter_mut().for_each(|lane| lane.weight = rng.below(5) as u32),
            9 => it.ticket_life = Millis(rng.pick(&[0, 0, 3_000, 60_000])),
            10 => it.keep_inside = !it.keep_inside,
            11 => it.claim = rng.pick(&[ClaimMode::Explicit, ClaimMode::OnAdmission]),
            12 => it.no_show = rng.pick(&[NoShow::Keep, NoShow::Return]),
            13 => it.session_renewal = !it.session_renewal,
            14 => it.claim_within = Millis(rng.pick(&[1_000, 5_000, 90_000])),
            15 => it.session_timeout = Millis(rng.pick(&[2_000, 20_000, 600_000])),
            16 => match rng.below(6) {
                0 => it.max_active = 0,
                1 => it.shuffle_window = if it.shuffle_window == 1 { 16 } else { 1 },
                2 => it.heartbeat_timeout = Millis(0),
                3 => it.draw = if it.draw.is_none() { drawn(None) } else { None },
                4 if it.starts_at.is_some() => {
                    it.starts_at = it.starts_at.map(|at| at.after(Millis(5_000)))
                }
                _ => it.rate = Some(Rate { count: 0, per: Millis(1) }),
            },
            _ if it.draw.is_none() => match rng.below(4) {
                0 if it.lanes.len() > 1 => drop(it.lanes.pop()),
                1 => it.returning = None,
                2 => it.returning = returning(rng),
                _ if it.lanes.len() < 5 => it.lanes.push(lane(it.lanes.len(), 1)),
                _ => {}
            },
            _ => {}
        }
        it
    }
}

fn rate(rng: &mut Rng) -> Option<Rate> {
    let per = rng.pick(&[1, 7, 1_000, 1_000, 1_000, 60_000, 333]);
    let count = rng.between(1, if per < 1_000 { 3 } else { 200 }) as u32;
    rng.percent(90).then_some(Rate { count, per: Millis(per) })
}

fn lanes(rng: &mut Rng, it: &mut Settings) {
    it.lanes = (0..rng.between(2, 4) as usize).map(|i| lane(i, rng.below(5) as u32)).collect();
    it.lanes[0].weight += 1;
    it.returning = returning(rng);
}

fn lane(i: usize, weight: u32) -> LaneSettings {
    LaneSettings { name: format!("lane {i}"), weight }
}

fn returning(rng: &mut Rng) -> Option<Returning> {
    let share = rng.between(1, 90) as u32;
    Some(Returning { share, within: Millis(rng.pick(&[1_000, 60_000, 600_000])) })
}

fn draw(rng: &mut Rng, it: &mut Settings, beacon: Option<&str>) {
    it.starts_at = Some(BEGIN.after(Millis(rng.between(5_000, 60_000))));
    it.draw = drawn(beacon);
}

fn drawn(beacon: Option<&str>) -> Option<DrawSettings> {
    Some(DrawSettings { beacon: beacon.map(str::to_owned) })
}
