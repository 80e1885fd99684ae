//! Joining, moving a place to another lane, and what makes two joins the same.

use super::person::{Person, Stage};
use super::{Answer, Model};
use waitroom_core::chunked::CHUNK;
use waitroom_core::settings::{METADATA_MAX, SEALED_USER_MAX};
use waitroom_core::{
    AdmitWhy, Fresh, Hold, Holder, Join, KEY_MEMORY, LaneId, Phase, Presented, Refusal, Reply,
    Settings, Status, Ticket, Timestamp,
};

impl Model {
    pub(super) fn join(&mut self, at: Timestamp, join: &Join) -> Answer {
        let settings = self.ready()?;
        let no_key = join.key.is_some_and(|key| key == Default::default());
        if no_key || join.identity.is_some_and(|identity| identity.is_nobody()) {
            return Err(Refusal::NobodyIsNobody);
        }
        if let Some(ticket) = self.made_with_same_key(at, join)? {
            return Ok(self.joined(ticket, Fresh::Repeat));
        }
        let before = self.earlier_ticket(at, join);
        if let Some(ticket) = before.filter(|ticket| self.people[ticket].status().is_live()) {
            if let Some(identity) =
                join.identity.filter(|_| self.people[&ticket].identity.is_none())
            {
                if let Some(old) = self.newest_of(identity) {
                    self.person(old).succeeded = true;
                }
                let made = self.newest_of_all() + 1;
                let person = self.person(ticket);
                person.identity = Some(identity);
                person.made = made;
                self.happened(at);
            }
            return Ok(self.joined(ticket, Fresh::Repeat));
        }
        self.may_join(&settings, join)?;
        let returns = before.filter(|old| self.gives_credit(at, &settings, *old));
        let lane = if returns.is_some() { LaneId::RETURNING } else { join.lane };

        let alone = self.waiting() == 0;
        if let Some(old) = returns {
            self.person(old).succeeded = true;
        }
        if let Some(old) = join.identity.and_then(|identity| self.newest_of(identity)) {
            self.person(old).succeeded = true;
        }
        let ticket = self.new_ticket(at, lane);
        let person = self.person(ticket);
        person.identity = join.identity;
        person.key = join.key;
        let idle = !settings.queue_all && settings.shuffle_window == 1 && self.admits().is_ok();
        if alone && idle && self.slots_free(&settings) > 0 && self.tokens(at, &settings) > 0 {
            self.admit(at, &settings, ticket, AdmitWhy::Straight);
        }
        self.happened(at);
        Ok(self.joined(ticket, Fresh::New))
    }

    pub(super) fn move_to(&mut self, at: Timestamp, presented: &Presented, to: LaneId) -> Answer {
        let settings = self.ready()?;
        let from = self.find(at, presented)?;
        let old = self.people[&from].clone();
        if old.status() != Status::Waiting {
            return Err(Refusal::WrongStatus { status: old.status() });
        }
        if !settings.lane(to) {
            return Err(Refusal::UnknownLane { lane: to });
        }
        if from.lane == to {
            return Ok(Reply::Moved { to: from, epoch: old.epoch });
        }
        let to = self.new_ticket(at, to);
        let new = self.person(to);
        new.holder = old.holder;
        new.identity = old.identity;
        let old = self.person(from);
        old.stage = Stage::Over { status: Status::Moved, at };
        old.gone_at = at;
        old.moved_to = Some(to);
        old.succeeded = true;
        self.happened(at);
        Ok(Reply::Moved { to, epoch: self.epoch })
    }

    /// Forgetting goes by full blocks of tickets: the join keys ten minutes after the last join,
    /// the tickets when the last of them has been gone for as long as the memory lasts.
    pub(super) fn forget(&mut self, at: Timestamp, settings: &Settings) -> bool {
        let mut forgot = false;
        for (id, lane) in &mut self.lanes {
            for block in 0..lane.issued / CHUNK {
                let first = Ticket::new(id.0, block * CHUNK);
                let last = Ticket::new(id.0, (block + 1) * CHUNK - 1);
                let mut all_gone = true;
                let joined_at = self.people[&last].joined_at;
                for person in self.people.range_mut(first..=last).map(|(_, person)| person) {
                    all_gone &= !person.status().is_live()
                        && !person.takes_slot()
                        && person.gone_at.after(settings.memory) <= at;
                    if joined_at.after(KEY_MEMORY) <= at {
                        forgot |= person.key.take().is_some();
                    }
                }
                if all_gone {
                    forgot |= lane.dropped.insert(block);
                }
            }
        }
        forgot
    }

    fn new_ticket(&mut self, at: Timestamp, id: LaneId) -> Ticket {
        let nobody_waits = self.waiting_in(id).next().is_none();
        let lane = self.lanes.get_mut(&id).expect("a lane of the settings exists");
        if nobody_waits {
            lane.clock = lane.clock.max(self.clock);
        }
        let ticket = Ticket::new(id.0, lane.issued);
        lane.issued += 1;
        let strict = self.settings.as_ref().is_some_and(|settings| settings.shuffle_window == 1);
        let made = self.newest_of_all() + 1;
        let person = Person {
            made,
            epoch: self.epoch,
            holder: Holder::default(),
            joined_at: at,
            stage: Stage::Waiting,
            order: strict.then_some(ticket.number.0),
            identity: None,
            key: None,
            moved_to: None,
            succeeded: false,
            paced: false,
            slot_until: None,
            gone_at: at,
        };
        self.people.insert(ticket, person);
        ticket
    }

    fn joined(&self, ticket: Ticket, fresh: Fresh) -> Reply {
        let Person { epoch, holder, .. } = self.people[&ticket];
        Reply::Joined { ticket, epoch, holder, fresh }
    }

    /// A key counts as long as its ticket is known; after that it is as good as new.
    fn made_with_same_key(&self, at: Timestamp, join: &Join) -> Result<Option<Ticket>, Refusal> {
        let Some(key) = join.key else { return Ok(None) };
        let made = self.people.iter().filter(|(_, it)| it.key.is_some_and(|it| it.key == key.key));
        // A key is free again when its ticket is forgotten, so at most one counts.
        let mut known = made.filter_map(|(ticket, person)| {
            let found = self.find(at, &Presented::by_service(*ticket, person.epoch)).ok()?;
            Some((found, person))
        });
        let Some((now, person)) = known.next() else { return Ok(None) };
        if person.key == Some(key) { Ok(Some(now)) } else { Err(Refusal::KeyReused) }
    }

    /// The same person's ticket: a live one first, the known person's before the one in the hand.
    fn earlier_ticket(&self, at: Timestamp, join: &Join) -> Option<Ticket> {
        let known = join.identity.and_then(|identity| self.newest_of(identity));
        let known = known.filter(|ticket| !self.is_forgotten(at, &self.people[ticket]));
        let held = join.holding.and_then(|held| self.find(at, &held).ok());
        // A shared browser does not make two known people one.
        let held = held.filter(|ticket| {
            let owner = self.people[ticket].identity;
            join.identity.is_none() || owner.is_none() || owner == join.identity
        });
        let live = [known, held].into_iter().flatten();
        let live = live.into_iter().find(|ticket| self.people[ticket].status().is_live());
        live.or(known).or(held)
    }

    fn newest_of_all(&self) -> u64 {
        self.people.values().map(|person| person.made).max().unwrap_or(0)
    }

    /// The ticket that this person got, or put their name to, last.
    fn newest_of(&self, identity: waitroom_core::Identity) -> Option<Ticket> {
        let theirs = self.people.iter().filter(|(_, person)| person.identity == Some(identity));
        theirs.max_by_key(|(_, person)| person.made).map(|(ticket, _)| *ticket)
    }

    fn may_join(&self, settings: &Settings, join: &Join) -> Result<(), Refusal> {
        if self.phase == Phase::Scheduled {
            let opens_at = settings.opens_at.unwrap_or(self.newest);
            return Err(Refusal::NotOpenYet { opens_at });
        }
        if self.phase == Phase::Ended {
            return Err(self.finished());
        }
        if settings.draw.is_some() && !self.draw.is_committed() {
            return Err(Refusal::NotOpenYet { opens_at: self.newest });
        }
        if let Some(Hold::Maintenance { reason }) = &self.hold {
            return Err(Refusal::Maintenance { reason: reason.clone() });
        }
        if let Some(Hold::Draining { reason }) = &self.hold {
            return Err(Refusal::Draining { reason: reason.clone() });
        }
        if join.lane.0 as usize >= settings.lanes.len() {
            return Err(Refusal::UnknownLane { lane: join.lane });
        }
        if settings.max_waiting > 0 && self.waiting() >= settings.max_waiting {
            return Err(Refusal::Full { max_waiting: settings.max_waiting });
        }
        for (bytes, bytes_max) in
            [(&join.metadata, METADATA_MAX), (&join.sealed_user, SEALED_USER_MAX)]
        {
            if bytes.as_ref().is_some_and(|bytes| bytes.len() > bytes_max) {
                return Err(Refusal::MetadataTooLarge { bytes_max });
            }
        }
        Ok(())
    }

    /// One credit per ticket, for a while, and none for a ticket that was made by one.
    fn gives_credit(&self, at: Timestamp, settings: &Settings, old: Ticket) -> bool {
        let person = &self.people[&old];
        let Some(returning) = settings.returning else { return false };
        let Stage::Over { status, at: ended_at } = person.stage else { return false };
        matches!(status, Status::Expired | Status::Left | Status::Completed)
            && old.lane != LaneId::RETURNING
            && !person.succeeded
            && at < ended_at.after(returning.within)
    }
}
