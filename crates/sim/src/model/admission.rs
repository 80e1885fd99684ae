//! Whose turn it is, and what a tick does.
//!
//! Every lane has a clock. Who is served moves the clock of their lane on by a step, the smaller
//! the heavier the lane; the lane whose clock is behind is served next, the lower id first when
//! two agree. A lane without weight gets what the others leave. An empty lane's clock does not
//! stay behind: with its next ticket it starts from where the room's clock is.

use super::person::Stage;
use super::{Answer, Model};
use waitroom_core::settings::ClaimMode;
use waitroom_core::{ADMIT_NOW_MAX, AdmitWhy, LaneId, Reply, Session, Settings, Ticket, Timestamp};

/// A step of weight 1; steps are rounded down, so the unit decides how ties fall.
const STEP: u64 = 1 << 24;

impl Model {
    /// Everything that is due, in this order, until nothing is.
    pub(super) fn tick(&mut self, at: Timestamp, entropy: &[u8; 16]) -> Answer {
        let settings = self.ready()?;
        while self.next_step_of_schedule(at, true)
            || self.end_what_is_due(at)
            || self.end_the_too_old(at, &settings)
            || self.seal_windows(at, &settings, entropy)
            || self.admit_who_is_due(at, &settings)
        {
            self.happened(at);
        }
        if self.forget(at, &settings) {
            self.happened(at);
        }
        Ok(Reply::Ticked { again: false })
    }

    pub(super) fn admit_now(&mut self, at: Timestamp, count: u64, entropy: &[u8; 16]) -> Answer {
        let settings = self.ready()?;
        self.admits()?;
        let may = count.min(self.slots_free(&settings)).min(ADMIT_NOW_MAX);
        if may > 0 {
            self.seal_for_an_operator(&settings, entropy);
        }
        let count = self.admit_up_to(at, &settings, may, AdmitWhy::Manual);
        self.happened(at);
        Ok(Reply::Admitted { count })
    }

    pub(super) fn slots_free(&self, settings: &Settings) -> u64 {
        settings.max_active.saturating_sub(self.slots_taken())
    }

    fn admit_who_is_due(&mut self, at: Timestamp, settings: &Settings) -> bool {
        if self.admits().is_err() {
            return false;
        }
        let may = self.tokens(at, settings).min(self.slots_free(settings));
        self.admit_up_to(at, settings, may, AdmitWhy::Paced) > 0
    }

    fn admit_up_to(&mut self, at: Timestamp, settings: &Settings, may: u64, why: AdmitWhy) -> u64 {
        for granted in 0..may {
            let Some(ticket) = self.whose_turn(settings) else { return granted };
            self.admit(at, settings, ticket, why);
        }
        may
    }

    fn whose_turn(&self, settings: &Settings) -> Option<Ticket> {
        let firsts = self.lanes.iter().filter_map(|(id, lane)| {
            let ordered = self.waiting_in(*id).filter_map(|(ticket, it)| Some((it.order?, ticket)));
            let (_, ticket) = ordered.min()?;
            let only_the_rest = self.step(settings, *id).is_none();
            Some((only_the_rest, lane.clock, *id, ticket))
        });
        firsts.min().map(|(_, _, _, ticket)| ticket)
    }

    pub(super) fn admit(
        &mut self,
        at: Timestamp,
        settings: &Settings,
        ticket: Ticket,
        why: AdmitWhy,
    ) {
        let paced = why != AdmitWhy::Manual;
        if paced {
            self.take_token(at, settings);
        }
        let step = self.step(settings, ticket.lane);
        let person = self.person(ticket);
        person.paced = paced;
        person.stage = match settings.claim {
            ClaimMode::Explicit => Stage::Admitted { claim_by: at.after(settings.claim_within) },
            ClaimMode::OnAdmission => Stage::Active(new_session(at, settings)),
        };
        self.admitted.push((at, ticket, why));
        self.clock = self.clock.max(self.lanes[&ticket.lane].clock);
        let lane = self.lanes.get_mut(&ticket.lane).expect("tickets live in lanes");
        lane.admissions += 1;
        lane.clock += step.unwrap_or(0);
    }

    /// The share of `returning` is a percentage beside the weights of the lanes in which somebody
    /// waits, the one who is served included.
    pub(super) fn step(&self, settings: &Settings, lane: LaneId) -> Option<u64> {
        let weight = |lane: LaneId| Some(settings.lanes.get(lane.0 as usize)?.weight as u64);
        if lane != LaneId::RETURNING {
            return STEP.checked_div(weight(lane)?);
        }
        let share = settings.returning?.share as u64;
        let waits = self.lanes.keys().filter(|id| self.waiting_in(**id).next().is_some());
        let ordinary: u64 = waits.filter_map(|id| weight(*id)).sum();
        Some(STEP * (100 - share) / (share * ordinary.max(1)))
    }
}

pub(super) fn new_session(at: Timestamp, settings: &Settings) -> Session {
    let expires_at = at.after(settings.session_timeout);
    let pass_expires_at = end_of_pass(at, expires_at, settings);
    Session { issued_at: at, expires_at, pass_expires_at }
}

/// A pass lives for its own life or as long as the session, and never longer than that.
pub(super) fn end_of_pass(at: Timestamp, ends: Timestamp, settings: &Settings) -> Timestamp {
    if settings.pass_life.0 == 0 { ends } else { ends.min(at.after(settings.pass_life)) }
}
