//! The core and the naive model, side by side, under the same random commands.
//!
//! One test per kind of room. `WAITROOM_SEEDS` says how many runs each makes, `WAITROOM_SEED`
//! replays a single one; a difference prints both the seed and the last commands.

mod driver;
mod profiles;
mod rng;

use driver::Driver;
use profiles::Profile;
use std::collections::BTreeMap;

/// Few enough for every build; the nightly run sets more.
const SEEDS: u64 = 20;

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

fn agree(profile: Profile, commands: u64) {
    let seeds = match number_from("WAITROOM_SEED") {
        Some(seed) => seed..seed + 1,
        // Runs are of different length; each profile gets about the same time.
        None => 0..(number_from("WAITROOM_SEEDS").unwrap_or(SEEDS) * 2_000).div_ceil(commands),
    };
    let mut met = BTreeMap::<String, u64>::new();
    for seed in seeds {
        let mut driver = Driver::new(profile, seed);
        driver.run(commands);
        for (kind, times) in driver.met {
            *met.entry(kind).or_default() += times;
        }
    }
    println!("{profile:?} {met:?}");
    // A driver that is refused everything agrees with everything.
    if number_from("WAITROOM_SEED").is_none() {
        for kind in profile.meets() {
            assert!(met.contains_key(*kind), "{profile:?} never met {kind}: {met:?}");
        }
    }
}

macro_rules! rooms {
    ($($name:ident: $profile:ident, $commands:expr;)*) => {$(
        #[test]
        fn $name() {
            agree(Profile::$profile, $commands);
        }
    )*};
}

rooms! {
    a_first_come_room_agrees: Strict, 2_000;
    lanes_and_those_who_return_agree: Lanes, 2_000;
    shuffle_windows_agree: Windows, 2_000;
    shuffle_windows_in_several_lanes_agree: WindowsAndLanes, 2_000;
    a_draw_agrees: Draw, 2_000;
    a_draw_with_a_beacon_agrees: DrawWithBeacon, 2_000;
    a_draw_before_shuffle_windows_agrees: DrawAndWindows, 2_000;
    claims_on_admission_agree: OnAdmission, 2_000;
    short_memories_agree: ShortMemory, 2_000;
    a_small_line_agrees: SmallLine, 2_000;
    live_rate_changes_agree: LiveRates, 2_000;
    a_room_for_one_or_two_agrees: TinyInside, 2_000;
    a_schedule_agrees: Scheduled, 2_000;
    a_room_that_forgets_whole_blocks_agrees: LongLived, 10_000;
}
