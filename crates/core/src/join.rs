//! A visitor joins: a new ticket at the end of a lane, or the one they already have.
//!
//! Repeats are found in this order: the same `Idempotency-Key`, the same identity, the ticket
//! that the visitor holds. A repeat is an answer without events, whatever the room's status.

use crate::chunked::CHUNK;
use crate::command::Join;
use crate::event::{AdmitWhy, Event, Joined, What};
use crate::lane::Note;
use crate::record::{Record, Status};
use crate::reply::{Fresh, Refusal, Reply};
use crate::room::{Decided, Room, padded};
use crate::settings::{METADATA_MAX, SEALED_USER_MAX, Settings};
use crate::state::{Found, Phase};
use crate::units::{Identity, JoinKey, LaneId, Number, Presented, Ticket, Timestamp};
use std::sync::Arc;

impl Room {
    pub(crate) fn decide_join(&self, at: Timestamp, join: &Join, out: &mut Vec<Event>) -> Decided {
        let settings = self.state.ready()?;
        // All zeros is how the columns say "none".
        let no_key = join.key.is_some_and(|key| key == JoinKey::default());
        if no_key || join.identity.is_some_and(|identity| identity.is_nobody()) {
            return Err(Refusal::NobodyIsNobody);
        }
        if let Some(repeat) = self.same_key(at, join)? {
            return Ok(repeat);
        }
        let before = self.earlier_ticket(at, join);
        if let Some(found) = before.filter(|found| found.status.is_live()) {
            // Somebody joined without a name and now has one: the place becomes theirs, so that
            // joining by name from elsewhere finds it.
            if let Some(identity) = join.identity
                && self.owner_of(found.ticket).is_nobody()
            {
                out.push(What::Bound { ticket: found.ticket, identity }.at(at));
            }
            return Ok(self.joined_before(&found));
        }
        self.may_join(settings, join)?;
        let returns = before.filter(|found| self.gives_credit(at, settings, found));
        let lane = if returns.is_some() { LaneId::RETURNING } else { join.lane };
        let lane_state = self.state.lane(lane).ok_or(Refusal::UnknownLane { lane })?;
        let ticket = Ticket { lane, number: lane_state.next() };
        if ticket.number > Number::MAX {
            return Err(Refusal::Full { max_waiting: Number::MAX.0 });
        }
        let waiting = self.state.waiting() + 1;
        out.push(
            What::Joined(Joined {
                ticket,
                waiting_in_lane: lane_state.counts.waiting + 1,
                waiting,
                identity: join.identity,
                key: join.key,
                metadata: join.metadata.clone(),
                sealed_user: join.sealed_user.clone(),
                returns: returns.map(|found| found.ticket),
            })
            .at(at),
        );
        if waiting == 1 && self.goes_straight_through(at, settings) {
            let entry = self.entry(at, settings);
            let why = AdmitWhy::Straight;
            let sealed_user = join.sealed_user.clone();
            out.push(
                What::Admitted { ticket, joined_at: at, waiting: 0, why, entry, sealed_user }
                    .at(at),
            );
        }
        Ok(Reply::Joined {
            ticket,
            epoch: self.state.epoch,
            holder: Default::default(),
            fresh: Fresh::New,
        })
    }

    /// The join that this `Idempotency-Key` made before, whatever became of its ticket.
    fn same_key(&self, at: Timestamp, join: &Join) -> Result<Option<Reply>, Refusal> {
        let Some(key) = join.key else { return Ok(None) };
        let Some(ticket) = self.by_key(&key.key) else { return Ok(None) };
        // What became of a ticket that is forgotten helps nobody: the key is free again.
        let Ok(found) = self.state.find(at, &self.named(ticket)) else { return Ok(None) };
        let lane = self.state.lane(ticket.lane).expect("the table points at lanes that exist");
        if lane.key(ticket.number)[12..] != key.body {
            return Err(Refusal::KeyReused);
        }
        Ok(Some(self.joined_before(&found)))
    }

    /// The newest ticket of the same person, live or finished.
    fn earlier_ticket(&self, at: Timestamp, join: &Join) -> Option<Found> {
        let known = join
            .identity
            .and_then(|identity| self.by_identity(&identity.0))
            .and_then(|ticket| self.state.find(at, &self.named(ticket)).ok());
        // Who is known by name is not mistaken for another because of a shared browser: a ticket
        // in the hand counts only if it is nobody's or their own.
        let held = join.holding.and_then(|held| self.state.find(at, &held).ok());
        let held = held.filter(|found| match join.identity {
            None => true,
            Some(identity) => {
                let owner = self.owner_of(found.ticket);
                owner.is_nobody() || owner == identity
            }
        });
        match (known, held) {
            (Some(known), _) if known.status.is_live() => Some(known),
            (_, Some(held)) if held.status.is_live() => Some(held),
            (known, held) => known.or(held),
        }
    }

    fn may_join(&self, settings: &Settings, join: &Join) -> Result<(), Refusal> {
        use crate::command::Hold;
        match self.state.phase {
            Phase::Scheduled => {
                let opens_at = settings.opens_at.unwrap_or(self.state.last_at);
                return Err(Refusal::NotOpenYet { opens_at });
            }
            Phase::Ended => return Err(self.state.finished()),
            Phase::Doors | Phase::Drawing | Phase::Running => {}
        }
        // Nobody joins a draw that could still be rigged.
        if settings.draw.is_some() && self.state.draw.commitment.is_none() {
            return Err(Refusal::NotOpenYet { opens_at: self.state.last_at });
        }
        match &self.state.hold {
            Some(Hold::Maintenance { reason }) => {
                return Err(Refusal::Maintenance { reason: reason.clone() });
            }
            Some(Hold::Draining { reason }) => {
                return Err(Refusal::Draining { reason: reason.clone() });
            }
            Some(Hold::Paused { .. }) | None => {}
        }
        // Only those who come back get into `returning`, and they do not ask for it.
        if join.lane == LaneId::RETURNING || !settings.lane(join.lane) {
            return Err(Refusal::UnknownLane { lane: join.lane });
        }
        if settings.max_waiting > 0 && self.state.waiting() >= settings.max_waiting {
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

    /// Whether a finished ticket lets its holder come back into the lane `returning`: once, soon
    /// enough, and not from that lane itself.
    fn gives_credit(&self, at: Timestamp, settings: &Settings, found: &Found) -> bool {
        let Some(returning) = settings.returning else { return false };
        let lane = self.state.lane(found.ticket.lane).expect("found tickets have a lane");
        matches!(found.status, Status::Expired | Status::Left | Status::Completed)
            && found.ticket.lane != LaneId::RETURNING
            && !found.record.superseded()
            && !found.record.credit_used()
            && self
                .state
                .ended_at(lane, found.ticket.number)
                .is_some_and(|ended_at| at < ended_at.after(returning.within))
    }

    fn goes_straight_through(&self, at: Timestamp, settings: &Settings) -> bool {
        !settings.queue_all
            && settings.shuffle_window == 1
            && self.state.admits().is_ok()
            && self.state.slots_free(settings) > 0
            && self.state.bucket.tokens(at, settings) > 0
    }

    fn joined_before(&self, found: &Found) -> Reply {
        let presented = self.named(found.ticket);
        Reply::Joined {
            ticket: found.ticket,
            epoch: presented.epoch,
            holder: found.record.holder(),
            fresh: Fresh::Repeat,
        }
    }

    /// A ticket of ours as a service would present it.
    pub(crate) fn named(&self, ticket: Ticket) -> Presented {
        let lane = self.state.lane(ticket.lane);
        let epoch = lane.and_then(|lane| lane.epoch_of(ticket.number)).unwrap_or_default();
        Presented::by_service(ticket, epoch)
    }

    fn owner_of(&self, ticket: Ticket) -> Identity {
        Identity(self.state.identity_at(ticket.packed()))
    }

    pub(crate) fn absorb_joined(&mut self, at: Timestamp, joined: &Joined) {
        if let Some(old) = joined.returns {
            self.mark(old, Record::mark_credit_used);
        }
        if let Some(identity) = joined.identity
            && let Some(old) = self.by_identity(&identity.0)
        {
            self.mark(old, Record::mark_superseded);
        }
        if let Some(key) = joined.key
            && let Some(old) = self.by_key(&key.key)
        {
            self.unbind_key(old, &key.key);
        }
        self.add_ticket(at, joined.ticket);
        let place = self.state.lane_at(joined.ticket.lane);
        let number = joined.ticket.number.0;
        let lane = &mut self.state.lanes[place];
        if let Some(key) = joined.key {
            lane.keys.extend_default(number + 1);
            lane.keys.set(number, key.to_bytes());
        }
        if joined.metadata.is_some() || joined.sealed_user.is_some() {
            let (metadata, sealed_user) = (joined.metadata.clone(), joined.sealed_user.clone());
            lane.notes.extend_default(number + 1);
            lane.notes.set(number, Some(Arc::new(Note { metadata, sealed_user })));
        }
        if let Some(identity) = joined.identity {
            self.bind_identity(joined.ticket, identity);
        }
        if let Some(key) = joined.key {
            let state = &self.state;
            let hash = padded(&key.key);
            self.index.keys.insert(&hash, joined.ticket.packed(), |packed| state.key_at(packed));
        }
    }

    /// A key that is used again belongs to the new ticket alone, in the column and in the table.
    fn unbind_key(&mut self, old: Ticket, key: &[u8; 12]) {
        let place = self.state.lane_at(old.lane);
        self.index.keys.remove(&padded(key), old.packed());
        self.state.lanes[place].keys.set(old.number.0, [0; 16]);
    }

    /// A new waiting ticket at the end of its lane.
    pub(crate) fn add_ticket(&mut self, at: Timestamp, ticket: Ticket) {
        let word = self.state.word_of(at);
        let place = self.state.lane_at(ticket.lane);
        let virtual_time = self.state.virtual_time;
        let lane = &mut self.state.lanes[place];
        debug_assert_eq!(lane.next(), ticket.number, "numbers are dense");
        if lane.counts.waiting == 0 {
            // A lane that was empty has no claim on the turns it did not use.
            lane.virtual_time = lane.virtual_time.max(virtual_time);
        }
        lane.records.push(Record::waiting(word));
        lane.line.push();
        lane.counts.joined += 1;
        lane.counts.waiting += 1;
        if ticket.number.0 % CHUNK == CHUNK - 1 {
            lane.block_joined.extend_default(ticket.number.0 / CHUNK + 1);
            lane.block_joined.set(ticket.number.0 / CHUNK, at);
        }
        self.index.lanes[place].joined(ticket.number);
    }

    pub(crate) fn absorb_bound(&mut self, ticket: Ticket, identity: Identity) {
        if let Some(old) = self.by_identity(&identity.0) {
            self.mark(old, Record::mark_superseded);
        }
        self.bind_identity(ticket, identity);
    }

    pub(crate) fn bind_identity(&mut self, ticket: Ticket, identity: Identity) {
        let place = self.state.lane_at(ticket.lane);
        let lane = &mut self.state.lanes[place];
        lane.identities.extend_default(ticket.number.0 + 1);
        lane.identities.set(ticket.number.0, identity.0);
        let state = &self.state;
        self.index
            .identities
            .insert(&identity.0, ticket.packed(), |packed| state.identity_at(packed));
    }

    /// Notes on an old ticket that it has a successor.
    fn mark(&mut self, old: Ticket, marked: impl FnOnce(Record) -> Record) {
        let place = self.state.lane_at(old.lane);
        let record = self.state.lanes[place].record(old.number);
        if record.status().is_some() {
            self.state.lanes[place].records.set(old.number.0, marked(record));
        }
    }
}
