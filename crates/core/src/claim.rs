//! The exchange of an admitted ticket for a pass: a session starts here.

use crate::admit::{new_session, pass_end};
use crate::event::{Event, Session, What};
use crate::record::Status;
use crate::reply::{Fresh, Refusal, Reply};
use crate::room::{Decided, Room};
use crate::slots::Stage;
use crate::units::{Presented, Ticket, Timestamp};

impl Room {
    pub(crate) fn decide_claim(
        &self,
        at: Timestamp,
        presented: &Presented,
        out: &mut Vec<Event>,
    ) -> Decided {
        let settings = self.state.ready()?;
        let found = self.state.find(at, presented)?;
        let ticket = found.ticket;
        match found.status {
            // The same claims again: a repeated claim is the same admission, not a second one.
            Status::Active => {
                let session = self.session_of(ticket);
                Ok(Reply::Claimed { ticket, session, fresh: Fresh::Repeat })
            }
            Status::Admitted => {
                self.not_in_maintenance()?;
                let slot = self.state.slots.get(found.record.word());
                if slot.deadline() <= at {
                    return Err(Refusal::ClaimTooLate { claim_by: slot.deadline() });
                }
                let session = new_session(at, settings);
                out.push(What::Claimed { ticket, session }.at(at));
                Ok(Reply::Claimed { ticket, session, fresh: Fresh::New })
            }
            status => Err(Refusal::WrongStatus { status }),
        }
    }

    pub(crate) fn decide_renew(
        &self,
        at: Timestamp,
        presented: &Presented,
        out: &mut Vec<Event>,
    ) -> Decided {
        let settings = self.state.ready()?;
        let found = self.state.find(at, presented)?;
        if found.status != Status::Active {
            return Err(Refusal::WrongStatus { status: found.status });
        }
        self.not_in_maintenance()?;
        let ticket = found.ticket;
        let old = self.session_of(ticket);
        if old.expires_at <= at {
            return Err(Refusal::WrongStatus { status: Status::Expired });
        }
        let expires_at = match settings.session_renewal {
            true => at.after(settings.session_timeout).max(old.expires_at),
            false => old.expires_at,
        };
        let pass_expires_at = pass_end(at, expires_at, settings).max(old.pass_expires_at);
        // Activity comes with every request; the log hears of it only when it matters.
        let gains =
            |new: Timestamp, old: Timestamp, life: u64| new.since(old).0 * 10 >= life.max(1);
        let pass_life = match settings.pass_life.0 {
            0 => settings.session_timeout.0,
            life => life,
        };
        if !gains(expires_at, old.expires_at, settings.session_timeout.0)
            && !gains(pass_expires_at, old.pass_expires_at, pass_life)
        {
            return Ok(Reply::Renewed { ticket, session: old });
        }
        let session = Session { issued_at: at, expires_at, pass_expires_at };
        out.push(What::Renewed { ticket, session }.at(at));
        Ok(Reply::Renewed { ticket, session })
    }

    pub(crate) fn session_of(&self, ticket: Ticket) -> Session {
        let lane = self.state.lane(ticket.lane).expect("found tickets have a lane");
        match self.state.slots.get(lane.record(ticket.number).word()).stage {
            Stage::Active(session) => session,
            _ => unreachable!("an active record points at an active slot"),
        }
    }

    fn not_in_maintenance(&self) -> Result<(), Refusal> {
        match &self.state.hold {
            Some(hold) if self.state.frozen() => {
                Err(Refusal::Maintenance { reason: hold.reason().to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// A claim starts the session, a renewal prolongs it: both leave these times.
    pub(crate) fn absorb_session(&mut self, ticket: Ticket, session: Session) {
        let place = self.state.lane_at(ticket.lane);
        let lane = &mut self.state.lanes[place];
        let record = lane.record(ticket.number);
        if record.status() == Some(Status::Admitted) {
            lane.records.set(ticket.number.0, record.with_status(Status::Active));
            lane.counts.admitted -= 1;
            lane.counts.active += 1;
        }
        self.state.slots.change(&mut self.index.slots, record.word(), Stage::Active(session));
    }
}
