//! A queue as this interface writes it down, and the room's settings that it stands for.

use serde::Deserialize;
use serde_json::{Value, json};
use waitroom_core::settings::{ClaimMode, LaneSettings, RATE_PER_SECOND_MAX, Rate};
use waitroom_core::{Hold, Invalid, Millis, Settings, State};

use crate::answer::room_status;
use crate::desk::RoomDesk;
use crate::problem::{Code, FieldProblem, Problem};
use crate::request::bad_field;

/// The fields of a queue. What is not mentioned stays as it is.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fields {
    pub id: Option<String>,
    name: Option<String>,
    target_url: Option<String>,
    max_active_users: Option<u64>,
    max_queue_size: Option<u64>,
    admission_rate: Option<f64>,
    session_timeout_seconds: Option<u64>,
    heartbeat_interval_seconds: Option<u64>,
    heartbeat_timeout_seconds: Option<u64>,
    pub status: Option<QueueStatus>,
    /// Told to visitors with a status that keeps them out.
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueStatus {
    Active,
    Paused,
    Maintenance,
}

/// What their fields are called in our settings, for mistakes.
const NAMES: &[(&str, &str)] = &[
    ("title", "name"),
    ("max_active", "max_active_users"),
    ("max_waiting", "max_queue_size"),
    ("rate", "admission_rate"),
    ("rate.count", "admission_rate"),
    ("rate.per", "admission_rate"),
    ("session_timeout", "session_timeout_seconds"),
    ("heartbeat_interval", "heartbeat_interval_seconds"),
    ("heartbeat_timeout", "heartbeat_timeout_seconds"),
];

/// A room as this interface expects it: everyone gets a place, the pass comes without a claim,
/// and there is a lane for each priority, each twice as heavy as the one below.
pub fn fresh() -> Settings {
    let lane = |priority: u32| LaneSettings {
        name: format!("priority-{priority}"),
        weight: 1 << priority,
    };
    Settings {
        queue_all: true,
        claim: ClaimMode::OnAdmission,
        lanes: (0..=3).map(lane).collect(),
        ..Settings::default()
    }
}

impl Fields {
    /// `settings` with these fields put in, if that can be meant.
    pub fn over(&self, mut settings: Settings) -> Result<Settings, Problem> {
        if let Some(name) = &self.name {
            settings.title.clone_from(name);
        }
        if let Some(target) = &self.target_url {
            settings.target_url.clone_from(target);
        }
        if let Some(most) = self.max_active_users {
            settings.max_active = most;
        }
        if let Some(most) = self.max_queue_size {
            settings.max_waiting = most;
        }
        if let Some(per_second) = self.admission_rate {
            settings.rate = rate(per_second)?;
        }
        let spans = [
            (self.session_timeout_seconds, &mut settings.session_timeout),
            (self.heartbeat_interval_seconds, &mut settings.heartbeat_interval),
            (self.heartbeat_timeout_seconds, &mut settings.heartbeat_timeout),
        ];
        for (given, span) in spans {
            if let Some(seconds) = given {
                *span = Millis(seconds.saturating_mul(1_000));
            }
        }
        settings.check().map_err(mistakes)?;
        Ok(settings)
    }

    /// What keeps people out, if the fields say so; none lets them in again.
    pub fn hold(&self) -> Option<Option<Hold>> {
        let reason = self.reason.clone().filter(|reason| !reason.trim().is_empty());
        Some(match self.status? {
            QueueStatus::Active => None,
            QueueStatus::Paused => {
                let reason = reason.unwrap_or_else(|| "The queue is paused.".to_owned());
                Some(Hold::Paused { reason })
            }
            QueueStatus::Maintenance => {
                let reason = reason.unwrap_or_else(|| "The site is under maintenance.".to_owned());
                Some(Hold::Maintenance { reason })
            }
        })
    }
}

/// Whole numbers are exact; fractions are kept to a thousandth. 0 lets nobody in by itself.
fn rate(per_second: f64) -> Result<Option<Rate>, Problem> {
    if !(0.0..=RATE_PER_SECOND_MAX as f64).contains(&per_second) {
        let bound = format!("a number from 0 to {RATE_PER_SECOND_MAX}, for each second");
        return Err(bad_field("admission_rate", &bound));
    }
    let (count, per) = match per_second.fract() == 0.0 {
        true => (per_second as u32, Millis(1_000)),
        false => ((per_second * 1_000.0).round() as u32, Millis(1_000_000)),
    };
    match (count, per_second == 0.0) {
        (_, true) => Ok(None),
        (0, false) => Err(bad_field("admission_rate", "0, or at least 0.001 for each second")),
        (count, false) => Ok(Some(Rate { count, per })),
    }
}

fn mistakes(invalid: Vec<Invalid>) -> Problem {
    let fields = invalid.into_iter().map(|it| {
        let theirs = NAMES.iter().find(|(ours, _)| *ours == it.field).map(|(_, theirs)| *theirs);
        let problem = format!("{} does not fit; allowed: {}", it.found, it.bound);
        FieldProblem { field: theirs.map_or(it.field, str::to_owned), problem }
    });
    let detail = "see the errors; nothing was changed";
    Problem::new(Code::SettingsInvalid, detail).with_fields(fields.collect())
}

/// A queue as it stands.
pub fn document(room: &RoomDesk, state: &State) -> Value {
    let settings = state.settings().cloned().unwrap_or_default();
    let per_second =
        settings.rate.map_or(0.0, |rate| f64::from(rate.count) * 1_000.0 / rate.per.0 as f64);
    let status = match room_status(state).0 {
        held @ ("paused" | "maintenance" | "ended") => held,
        _ => "active",
    };
    json!({
        "id": room.name().as_str(),
        "name": settings.title,
        "target_url": settings.target_url,
        "max_active_users": settings.max_active,
        "max_queue_size": settings.max_waiting,
        "admission_rate": per_second,
        "session_timeout_seconds": settings.session_timeout.0 / 1_000,
        "heartbeat_interval_seconds": settings.heartbeat_interval.0 / 1_000,
        "heartbeat_timeout_seconds": settings.heartbeat_timeout.0 / 1_000,
        "status": status,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_rate_for_each_second_may_be_slow() {
        assert_eq!(rate(0.0).expect("nobody"), None);
        assert_eq!(rate(10.0).expect("ten"), Some(Rate { count: 10, per: Millis(1_000) }));
        assert_eq!(rate(0.5).expect("half"), Some(Rate { count: 500, per: Millis(1_000_000) }));
        for bad in [-1.0, f64::NAN, f64::INFINITY, 1e9, 0.000_01] {
            assert!(rate(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn mistakes_are_told_by_the_names_that_the_caller_used() {
        let fields = Fields { max_active_users: Some(0), ..Fields::default() };
        let problem = fields.over(fresh()).expect_err("a house for nobody");
        assert_eq!(problem.fields[0].field, "max_active_users");
    }

    proptest! {
        #[test]
        fn whatever_is_accepted_is_possible(
            max_active_users in any::<Option<u64>>(),
            max_queue_size in any::<Option<u64>>(),
            admission_rate in any::<Option<f64>>(),
            session_timeout_seconds in any::<Option<u64>>(),
            heartbeat_interval_seconds in any::<Option<u64>>(),
            heartbeat_timeout_seconds in any::<Option<u64>>(),
        ) {
            let fields = Fields {
                max_active_users, max_queue_size, admission_rate, session_timeout_seconds,
                heartbeat_interval_seconds, heartbeat_timeout_seconds, ..Fields::default()
            };
            if let Ok(settings) = fields.over(fresh()) {
                prop_assert!(settings.check().is_ok());
            }
        }
    }
}
