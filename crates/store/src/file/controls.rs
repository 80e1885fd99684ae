//! Staging everything that is not an append: leases, cursors, trims, removals, imports.
//!
//! Lives here: the rules of the contract for these, each looking at the state as the group so far
//! will have made it, and ending in notes for the journal.
//! Stays out: appends and commits (`journal`), and what a note does to the state (`state`).

use crate::{
    cursor::{Cursor, Gap},
    disk::Disk,
    error::Error,
    file::{
        book::Effect,
        index::Placed,
        journal::{Journal, stage_batch},
        outcome::{Control, Controlled},
        record::{self, BatchRecord, Note},
    },
    lease::{EPOCH_MAX, Lease, WHO_BYTES_MAX},
    log::{Appended, Head, Stored},
    name::{LeaseName, RoomName, SinkName},
};

impl<D: Disk> Journal<D> {
    /// Stages anything else. The answer counts once [`Journal::commit`] returned `Ok`.
    pub fn stage(&mut self, control: Control) -> Result<Controlled, Error> {
        self.make_ready().map_err(Error::refused)?;
        match control {
            Control::Lease { name, who, ttl_ms } => self.stage_lease(name, who, ttl_ms),
            Control::Release { lease } => self.stage_release(&lease),
            Control::Advance { room, sink, to } => self.stage_advance(room, sink, to),
            Control::DropCursor { room, sink } => {
                if self.cursor(&room, &sink).is_some() {
                    self.note(Note::CursorDropped { room, sink });
                }
                Ok(Controlled::Done)
            }
            Control::MarkBroken { room, sink, to } => self.stage_broken(room, sink, to),
            Control::Trim { room, to } => self.stage_trim(room, to),
            Control::KeepFrom { room, floor } => {
                self.must_exist(&room)?;
                self.note(Note::Floor { room, floor });
                Ok(Controlled::Done)
            }
            Control::Remove { room } => {
                if room.is_system() {
                    return Err(Error::refused("the _system log stays"));
                }
                if self.must_exist(&room).is_ok() {
                    self.effects.push(Effect::Forgotten(room.clone()));
                    self.untidy = true;
                    self.note(Note::Removed { room });
                }
                Ok(Controlled::Done)
            }
            Control::Adopt { room, base, until, epoch } => {
                self.stage_adopt(room, base, until, epoch)
            }
            Control::Adopted { room, stored } => self.stage_adopted(room, *stored),
            Control::RaiseEpochs { by } => {
                self.note(Note::EpochsRaised { by });
                Ok(Controlled::Done)
            }
        }
    }

    fn note(&mut self, note: Note) {
        record::write_note(&mut self.buffer, self.len, &note);
        self.changes.absorb(&self.shared.book().state, &note);
    }

    fn must_exist(&self, room: &RoomName) -> Result<(), Error> {
        let book = self.shared.book();
        let known = self.changes.room(&book.state, room);
        known.map(|_| ()).ok_or_else(|| Error::refused(format!("there is no room {room}")))
    }

    fn cursor(&self, room: &RoomName, sink: &SinkName) -> Option<Cursor> {
        let book = self.shared.book();
        self.changes.room(&book.state, room).and_then(|room| room.cursors.get(sink).copied())
    }

    fn stage_lease(
        &mut self,
        name: LeaseName,
        who: String,
        ttl_ms: u64,
    ) -> Result<Controlled, Error> {
        if who.len() > WHO_BYTES_MAX {
            return Err(Error::refused(format!(
                "a holder's name has at most {WHO_BYTES_MAX} bytes"
            )));
        }
        let now_ms = self.shared.now_ms();
        let mut epoch = 1;
        {
            let book = self.shared.book();
            let mut soft = self.shared.soft();
            if let Some(held) = self.changes.lease(&book.state, &name) {
                let until_ms =
                    self.deadlines_ms.get(&name).or_else(|| soft.deadlines_ms.get(&name));
                let left_ms = until_ms.map_or(0, |until_ms| until_ms.saturating_sub(now_ms));
                if !held.released && left_ms > 0 && *held.who != *who {
                    return Err(Error::Held { who: held.who.to_string(), left_ms });
                }
                epoch = held.epoch + 1;
            }
            if epoch > EPOCH_MAX {
                return Err(Error::refused(format!("{name} has used up its {EPOCH_MAX} epochs")));
            }
            soft.granting.insert(name.clone());
        }
        let nonce = self.shared.seams.entropy.next_u128();
        self.deadlines_ms.insert(name.clone(), now_ms.saturating_add(ttl_ms));
        self.note(Note::Leased { name: name.clone(), epoch, nonce, who });
        Ok(Controlled::Lease(Lease { name, epoch, nonce }))
    }

    fn stage_release(&mut self, lease: &Lease) -> Result<Controlled, Error> {
        {
            let book = self.shared.book();
            let current = self.changes.lease(&book.state, &lease.name);
            if !current.is_some_and(|granted| granted.is(lease)) {
                return Err(Error::Lost { epoch: current.map_or(0, |granted| granted.epoch) });
            }
        }
        self.note(Note::Released { name: lease.name.clone() });
        Ok(Controlled::Done)
    }

    fn stage_advance(
        &mut self,
        room: RoomName,
        sink: SinkName,
        to: Head,
    ) -> Result<Controlled, Error> {
        let known = self.cursor(&room, &sink);
        self.within_log(&room, to)?;
        if let Some(known) = known.filter(|known| to < known.at) {
            return Err(Error::refused(format!("the cursor is at {} already", known.at)));
        }
        let trimmed_to = {
            let book = self.shared.book();
            self.changes.room(&book.state, &room).map_or(Head::EMPTY, |room| room.trimmed_to)
        };
        if known.is_none_or(|known| known.broken) && to < trimmed_to {
            return Err(Error::Trimmed { to: trimmed_to });
        }
        let cursor = Cursor { at: to, broken: false, gap: known.and_then(|known| known.gap) };
        if known != Some(cursor) {
            self.note(Note::Cursor { room, sink, cursor });
        }
        Ok(Controlled::Cursor(cursor))
    }

    fn stage_broken(
        &mut self,
        room: RoomName,
        sink: SinkName,
        to: Head,
    ) -> Result<Controlled, Error> {
        self.within_log(&room, to)?;
        let Some(cursor) = self.cursor(&room, &sink) else {
            return Err(Error::refused(format!("there is no cursor {sink}")));
        };
        if to < cursor.at {
            return Err(Error::refused(format!("the cursor is at {} already", cursor.at)));
        }
        let after = cursor.gap.filter(|_| cursor.broken).map_or(cursor.at, |gap| gap.after);
        let gap = Gap { after, to };
        let cursor = Cursor { at: to, broken: true, gap: Some(gap) };
        self.note(Note::Cursor { room, sink, cursor });
        Ok(Controlled::Gap(gap))
    }

    fn within_log(&self, room: &RoomName, to: Head) -> Result<(), Error> {
        self.must_exist(room)?;
        let book = self.shared.book();
        let head = self.changes.room(&book.state, room).map_or(Head::EMPTY, |room| room.tip.head);
        if to > head {
            return Err(Error::refused(format!("the log ends at {head}, before {to}")));
        }
        Ok(())
    }

    fn stage_trim(&mut self, room: RoomName, to: Head) -> Result<Controlled, Error> {
        self.must_exist(&room)?;
        {
            let book = self.shared.book();
            let known = self.changes.room(&book.state, &room).expect("it exists");
            if to <= known.trimmed_to {
                return Ok(Controlled::Done);
            }
            let snapshot = book.newest_snapshot(&room).map(|newest| newest.at);
            let (floor, held_by) = book.floor(&room, known, snapshot, &[]);
            if to > floor {
                return Err(Error::AboveFloor { floor, held_by });
            }
        }
        self.effects.push(Effect::Trimmed(room.clone(), to));
        self.untidy = true;
        self.note(Note::Trimmed { room, to });
        Ok(Controlled::Done)
    }

    fn stage_adopt(
        &mut self,
        room: RoomName,
        base: Appended,
        until: Head,
        epoch: u32,
    ) -> Result<Controlled, Error> {
        if self.must_exist(&room).is_ok() {
            return Err(Error::refused(format!("there is a room {room} already")));
        }
        let name = LeaseName::room(&room);
        let known = {
            let book = self.shared.book();
            self.changes.lease(&book.state, &name).map_or(0, |granted| granted.epoch)
        };
        let nonce = self.shared.seams.entropy.next_u128();
        let epoch = epoch.max(known).max(1);
        self.note(Note::Leased { name: name.clone(), epoch, nonce, who: "import".into() });
        self.note(Note::Released { name });
        self.note(Note::Adopted { room, base, until });
        Ok(Controlled::Done)
    }

    fn stage_adopted(&mut self, room: RoomName, stored: Stored) -> Result<Controlled, Error> {
        self.must_exist(&room)?;
        let book = self.shared.book();
        let known = self.changes.room(&book.state, &room).expect("it exists");
        if known.adopting.is_none() {
            return Err(Error::refused(format!("no import of {room} is under way")));
        }
        let before = known.tip.chain;
        let link = stored.link();
        let record = BatchRecord {
            carried: false,
            room,
            link,
            at_ms: stored.at_ms,
            before,
            payload: &stored.payload,
        };
        let chain = record.chain();
        if link.after != known.tip.head || chain != stored.chain {
            let after = known.tip.head;
            return Err(Error::Damaged { why: format!("the imported chain breaks after {after}") });
        }
        let place = stage_batch(&mut self.buffer, self.active, self.len, &record);
        self.changes.absorb_batch(&book.state, &record, chain);
        let payload_bytes = stored.payload.len() as u64;
        let placed = Placed { link, payload_bytes, before, chain, place };
        self.effects.push(Effect::Batch(record.room, placed));
        Ok(Controlled::Done)
    }
}
