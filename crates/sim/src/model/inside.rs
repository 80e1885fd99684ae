//! Those who are let in, and every way in which a ticket ends.

use super::admission::{end_of_pass, new_session};
use super::person::Stage;
use super::{Answer, Model};
use std::collections::BTreeSet;
use waitroom_core::settings::NoShow;
use waitroom_core::{
    EndHow, Fresh, Hold, Holder, Presented, Refusal, Reply, Session, Settings, Status, Ticket,
    Timestamp,
};

/// The deadline of those whose time stands still.
const NEVER: Timestamp = Timestamp(u64::MAX);

/// One command names at most this many tickets; the rest of a longer list is not looked at.
const NAMED_MAX: usize = 2_000;

impl Model {
    pub(super) fn claim(&mut self, at: Timestamp, presented: &Presented) -> Answer {
        let settings = self.ready()?;
        let ticket = self.find(at, presented)?;
        match self.people[&ticket].stage {
            Stage::Active(session) => Ok(Reply::Claimed { ticket, session, fresh: Fresh::Repeat }),
            Stage::Admitted { claim_by } => {
                self.not_shut_out()?;
                if claim_by <= at {
                    return Err(Refusal::ClaimTooLate { claim_by });
                }
                let session = new_session(at, &settings);
                self.person(ticket).stage = Stage::Active(session);
                self.happened(at);
                Ok(Reply::Claimed { ticket, session, fresh: Fresh::New })
            }
            _ => Err(Refusal::WrongStatus { status: self.people[&ticket].status() }),
        }
    }

    pub(super) fn renew(&mut self, at: Timestamp, presented: &Presented) -> Answer {
        let settings = self.ready()?;
        let ticket = self.find(at, presented)?;
        let person = &self.people[&ticket];
        let Stage::Active(old) = person.stage else {
            return Err(Refusal::WrongStatus { status: person.status() });
        };
        self.not_shut_out()?;
        if old.expires_at <= at {
            return Err(Refusal::WrongStatus { status: Status::Expired });
        }
        let mut new = Session { issued_at: at, ..old };
        if settings.session_renewal {
            new.expires_at = old.expires_at.max(at.after(settings.session_timeout));
        }
        new.pass_expires_at = old.pass_expires_at.max(end_of_pass(at, new.expires_at, &settings));
        // Only a gain of a tenth of the session's or the pass's life is worth a line in the log.
        let session_life = settings.session_timeout.0;
        let pass_life = if settings.pass_life.0 == 0 { session_life } else { settings.pass_life.0 };
        let worth_it = (new.expires_at.0 - old.expires_at.0) * 10 >= session_life
            || (new.pass_expires_at.0 - old.pass_expires_at.0) * 10 >= pass_life;
        if !worth_it {
            return Ok(Reply::Renewed { ticket, session: old });
        }
        self.person(ticket).stage = Stage::Active(new);
        self.happened(at);
        Ok(Reply::Renewed { ticket, session: new })
    }

    pub(super) fn leave(&mut self, at: Timestamp, presented: &Presented) -> Answer {
        let ticket = self.find(at, presented)?;
        match self.people[&ticket].status() {
            Status::Waiting => Ok(self.end(at, ticket, Status::Left)),
            Status::Admitted | Status::Active => Ok(self.end(at, ticket, Status::Completed)),
            status => Ok(Reply::Over { ticket, status, fresh: Fresh::Repeat }),
        }
    }

    pub(super) fn end_by_word(
        &mut self,
        at: Timestamp,
        presented: &Presented,
        how: EndHow,
    ) -> Answer {
        let ticket = self.find(at, presented)?;
        let status = self.people[&ticket].status();
        if !status.is_live() {
            return Ok(Reply::Over { ticket, status, fresh: Fresh::Repeat });
        }
        let inside = status != Status::Waiting;
        match how {
            EndHow::Revoked => Ok(self.end(at, ticket, Status::Revoked)),
            EndHow::Completed if inside => Ok(self.end(at, ticket, Status::Completed)),
            EndHow::CheckoutFailed | EndHow::CheckoutExpired if status == Status::Active => {
                Ok(self.end(at, ticket, Status::Expired))
            }
            _ => Err(Refusal::WrongStatus { status }),
        }
    }

    pub(super) fn lapse(&mut self, at: Timestamp, tickets: &[Ticket]) -> Answer {
        let mut count = 0;
        for ticket in tickets.iter().take(NAMED_MAX) {
            let waits = |person: &super::Person| person.status() == Status::Waiting;
            if self.people.get(ticket).is_some_and(waits) {
                self.end(at, *ticket, Status::Expired);
                count += 1;
            }
        }
        Ok(Reply::Lapsed { count })
    }

    pub(super) fn release(&mut self, at: Timestamp, tickets: &[Ticket]) -> Answer {
        let named: BTreeSet<&Ticket> = tickets.iter().take(NAMED_MAX).collect();
        let mut count = 0;
        for ticket in named {
            if self.people.get(ticket).is_some_and(|person| person.slot_until.is_some()) {
                self.free_slot(at, *ticket);
                count += 1;
            }
        }
        Ok(Reply::Released { count })
    }

    pub(super) fn hand_over(&mut self, at: Timestamp, presented: &Presented) -> Answer {
        let ticket = self.find(at, presented)?;
        let person = &self.people[&ticket];
        if !person.status().is_live() {
            return Err(Refusal::WrongStatus { status: person.status() });
        }
        if person.holder == Holder(u8::MAX) {
            return Err(Refusal::HandedOverTooOften);
        }
        let holder = Holder(person.holder.0 + 1);
        self.person(ticket).holder = holder;
        self.happened(at);
        Ok(Reply::HandedOver { ticket, holder })
    }

    /// No-shows, sessions that ran out, slots whose pass no gate accepts any more.
    pub(super) fn end_what_is_due(&mut self, at: Timestamp) -> bool {
        let settings = self.settings.clone().expect("a tick needs settings");
        let everybody: Vec<Ticket> = self.people.keys().copied().collect();
        let mut any = false;
        for ticket in everybody {
            let person = self.person(ticket);
            match person.stage {
                Stage::Admitted { claim_by } if claim_by <= at => {
                    let paced = person.paced;
                    self.end(at, ticket, Status::Expired);
                    let lane = self.lanes.get_mut(&ticket.lane).expect("tickets live in lanes");
                    lane.no_shows += 1;
                    if paced && settings.no_show == NoShow::Return {
                        self.return_token(at, &settings);
                    }
                    any = true;
                }
                Stage::Active(session) if session.expires_at <= at => {
                    self.end(at, ticket, Status::Expired);
                    any = true;
                }
                Stage::Over { .. } if person.slot_until.is_some_and(|until| until <= at) => {
                    self.free_slot(at, ticket);
                    any = true;
                }
                _ => {}
            }
        }
        any
    }

    pub(super) fn end_the_too_old(&mut self, at: Timestamp, settings: &Settings) -> bool {
        if settings.ticket_life.0 == 0 {
            return false;
        }
        let old = self.people.iter().filter(|(_, person)| {
            person.status() == Status::Waiting && person.joined_at.after(settings.ticket_life) <= at
        });
        let old: Vec<Ticket> = old.map(|(ticket, _)| *ticket).collect();
        for ticket in &old {
            self.end(at, *ticket, Status::Expired);
        }
        !old.is_empty()
    }

    /// Everyone inside has the full time again; while they are shut out, time without end.
    pub(super) fn grant_grace(&mut self, at: Timestamp) {
        let Some(settings) = self.settings.clone() else { return };
        let shut_out = self.inside_is_shut_out();
        let graced = |deadline: &mut Timestamp, full: Timestamp| {
            *deadline = match *deadline {
                _ if shut_out => NEVER,
                NEVER => full,
                soon => soon.max(full),
            };
        };
        for person in self.people.values_mut() {
            match &mut person.stage {
                Stage::Admitted { claim_by } => graced(claim_by, at.after(settings.claim_within)),
                Stage::Active(session) => {
                    graced(&mut session.expires_at, at.after(settings.session_timeout));
                }
                _ => {}
            }
        }
    }

    /// Maintenance closes the site for those inside too, unless they are kept.
    pub(super) fn inside_is_shut_out(&self) -> bool {
        let kept = self.settings.as_ref().is_none_or(|settings| settings.keep_inside);
        matches!(self.hold, Some(Hold::Maintenance { .. })) && !kept
    }

    fn not_shut_out(&self) -> Result<(), Refusal> {
        match &self.hold {
            Some(hold) if self.inside_is_shut_out() => {
                Err(Refusal::Maintenance { reason: hold.reason().to_owned() })
            }
            _ => Ok(()),
        }
    }

    fn free_slot(&mut self, at: Timestamp, ticket: Ticket) {
        let person = self.person(ticket);
        person.slot_until = None;
        person.gone_at = at;
        self.happened(at);
    }

    /// A live ticket is over. A session's slot stays taken while a gate may accept its pass.
    fn end(&mut self, at: Timestamp, ticket: Ticket, status: Status) -> Reply {
        let leeway = self.settings.as_ref().expect("tickets came after settings").pass_leeway;
        let person = self.person(ticket);
        if let Stage::Active(session) = person.stage {
            let dead = session.pass_expires_at.after(leeway);
            person.slot_until = (dead > at).then_some(dead);
        }
        person.stage = Stage::Over { status, at };
        person.gone_at = at;
        self.happened(at);
        Reply::Over { ticket, status, fresh: Fresh::New }
    }
}
