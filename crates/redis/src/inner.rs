//! What each call of the contract asks of Redis, and what the answers mean.
//!
//! Lives here: the calls but `append`, which goes straight into its line.
//! Stays out: on which thread they run (`store.rs`), connections and groups.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use waitroom_store::{
    Appended, Chain, EPOCH_MAX, Error, Gap, Head, Holder, Lease, LeaseName, Member, Retention,
    RoomName, SinkName, Snapshot, Stored, lease::WHO_BYTES_MAX,
};

use crate::{
    ask::{Asker, Repeat},
    group::commit_call,
    kept::{Fields, Kept, Kind, cursor_field, refused},
    keys::Keys,
    known::Known,
    line::Lines,
    now::Now,
    options::Level,
    record::{self, HEADER_BYTES},
    script::{Call, Script},
    snapshots,
    trouble::Trouble,
    value::{Parts, digits},
};

/// Payloads read in one round trip.
const READ_BYTES: usize = 4 << 20;
/// Longest lease: until the end of time, in numbers that scripts can add without loss.
const TTL_MS_MAX: u64 = 1 << 50;
/// How often a change is decided anew because another one came first. Only sinks and snapshots of
/// one room compete, so this many in a row means that something is wrong.
const CHANGES_MAX: u32 = 100;

#[derive(Debug)]
pub struct Inner {
    pub asker: Arc<Asker>,
    pub lines: Lines,
    pub known: Arc<Known>,
    pub keys: Keys,
    pub now: Now,
    /// Rooms that are in the list of names, as far as we put them there.
    listed: Mutex<HashSet<RoomName>>,
}

impl Inner {
    pub fn new(asker: Arc<Asker>, lines: Lines, known: Arc<Known>, keys: Keys, now: Now) -> Inner {
        Inner { asker, lines, known, keys, now, listed: Mutex::default() }
    }
}

/// What becomes of what is kept.
#[derive(Debug, Default)]
pub struct Change {
    pub fields: Fields,
    pub trim_to: Option<Head>,
    /// The key of a snapshot that stays from now on.
    pub stays: Option<String>,
    pub goes: Vec<String>,
}

impl Inner {
    pub async fn tip(&self, room: &RoomName) -> Result<Appended, Error> {
        let keys = [self.keys.room_lease(room), self.keys.tip(room), self.keys.log(room)];
        let (epoch, head) = self.known.durable(room);
        let call = Call::script(Script::Tip, &keys, [epoch, head]);
        let answer = self.asker.look(call).await.map_err(Trouble::of_look)?;
        let read = || -> Result<Appended, Trouble> {
            let mut parts = Parts::of(answer)?;
            // Head and chain of what may not be durable yet.
            parts.bytes()?;
            parts.bytes()?;
            Ok(Appended { head: Head(parts.number()?), chain: parts.chain()? })
        };
        read().map_err(Trouble::of_look)
    }

    /// One page of batches, and how far the log was trimmed.
    async fn page(
        &self,
        room: &RoomName,
        from: Head,
        max: usize,
    ) -> Result<(Head, Vec<Stored>), Error> {
        let keys = [
            self.keys.room_lease(room),
            self.keys.tip(room),
            self.keys.log(room),
            self.keys.keep(room),
        ];
        let (epoch, durable) = self.known.durable(room);
        let args: [Vec<u8>; 5] = [
            digits(from.0.saturating_add(1)).into(),
            max.to_string().into(),
            epoch.into(),
            durable.into(),
            HEADER_BYTES.to_string().into(),
        ];
        let call = Call::script(Script::Read, &keys, args);
        let answer = self.asker.look(call).await.map_err(Trouble::of_look)?;
        let read = || -> Result<(Head, Vec<Stored>), Trouble> {
            let mut parts = Parts::of(answer)?;
            let trimmed = Head(parts.number()?);
            let mut entries = parts.parts()?;
            let mut stored = Vec::with_capacity(entries.left() / 3);
            while entries.left() > 0 {
                entries.bytes()?;
                let record = entries.bytes()?;
                stored.push(record::read(&record, entries.number()?)?);
            }
            Ok((trimmed, stored))
        };
        read().map_err(Trouble::of_look)
    }

    pub async fn read(
        &self,
        room: &RoomName,
        from: Head,
        max: usize,
    ) -> Result<Vec<Stored>, Error> {
        let mut all: Vec<Stored> = Vec::new();
        let (mut at, mut bytes) = (from, 0usize);
        loop {
            let (trimmed, page) = self.page(room, at, max.min(READ_BYTES)).await?;
            if all.is_empty() && from < trimmed {
                return Err(Error::Trimmed { to: trimmed });
            }
            let Some(last) = page.last() else { return Ok(all) };
            at = last.head;
            for stored in page {
                bytes = bytes.saturating_add(stored.payload.len().max(1));
                if !all.is_empty() && bytes > max {
                    return Ok(all);
                }
                all.push(stored);
            }
        }
    }

    pub async fn kept(&self, room: &RoomName) -> Result<Kept, Error> {
        let keys = [self.keys.keep(room), self.keys.tip(room), self.keys.room_lease(room)];
        let (epoch, head) = self.known.durable(room);
        let call = Call::script(Script::Kept, &keys, [epoch, head]);
        let answer = self.asker.look(call).await.map_err(Trouble::of_look)?;
        Parts::of(answer).and_then(Kept::read).map_err(Trouble::of_look)
    }

    /// Writes a change that was decided on `kept`. `false`: somebody else changed it first.
    pub async fn swap(&self, room: &RoomName, kept: &Kept, change: Change) -> Result<bool, Error> {
        let mut keys = vec![self.keys.keep(room), self.keys.tip(room), self.keys.log(room)];
        let stays = if change.stays.is_some() { "1" } else { "" };
        keys.extend(change.stays);
        keys.extend(change.goes);
        let mark = format!("{:032x}", mark());
        let first = change.trim_to.map(|to| digits(to.0.saturating_add(1))).unwrap_or_default();
        let mut args = vec![kept.mark.clone(), mark, first, stays.to_owned()];
        args.extend(change.fields.into_iter().flat_map(|(field, value)| [field, value]));
        let call = Call::script(Script::Keep, &keys, args);
        let answer = self.lines.change(call).await?;
        match &*Parts::of(answer)?.text()? {
            "ok" => Ok(true),
            "changed" => Ok(false),
            _ => Err(refused(format!("there is no room {room}"))),
        }
    }

    /// Looks, decides and swaps, until nobody else came between. No change is nothing to write.
    pub async fn change<T>(
        &self,
        room: &RoomName,
        decide: impl Fn(&Kept) -> Result<(T, Option<Change>), Error>,
    ) -> Result<T, Error> {
        for _ in 0..CHANGES_MAX {
            let kept = self.kept(room).await?;
            let (answer, change) = decide(&kept)?;
            match change {
                None => return Ok(answer),
                Some(change) => {
                    if self.swap(room, &kept, change).await? {
                        return Ok(answer);
                    }
                }
            }
        }
        Err(Error::Unavailable { why: format!("{room} is changed by others all the time") })
    }

    pub async fn snapshot(
        &self,
        room: &RoomName,
        at: Head,
        chain: Chain,
        chunks: impl Iterator<Item = Vec<u8>> + Send,
    ) -> Result<(), Error> {
        // Before anything is sent: a snapshot that is not wanted may be large.
        self.fits(room, &self.kept(room).await?, at, chain).await?;
        let id = format!("{:032x}", mark());
        let key = self.keys.snapshot(room, &id);
        let (chunks, sum) = snapshots::upload(&self.asker, &key, chunks).await?;
        let new = Kind { at, chain, id, chunks, sum };
        for _ in 0..CHANGES_MAX {
            let kept = self.kept(room).await?;
            self.fits(room, &kept, at, chain).await?;
            let mut all = kept.snapshots.clone();
            let same = all.iter().position(|kind| kind.at == at);
            let mut goes: Vec<Kind> = same.map(|same| all.remove(same)).into_iter().collect();
            all.push(new.clone());
            while all.len() > 2 {
                goes.push(all.remove(0));
            }
            let before = match &all[..] {
                [before, _] => before.text(),
                _ => String::new(),
            };
            let change = Change {
                fields: vec![("newest".into(), new.text()), ("before".into(), before)],
                stays: Some(key.clone()),
                goes: goes.iter().map(|kind| self.keys.snapshot(room, &kind.id)).collect(),
                trim_to: None,
            };
            if self.swap(room, &kept, change).await? {
                return Ok(());
            }
        }
        Err(Error::Unavailable { why: format!("{room} is changed by others all the time") })
    }

    /// Whether a snapshot lies on the chain and is not older than the newest.
    async fn fits(
        &self,
        room: &RoomName,
        kept: &Kept,
        at: Head,
        chain: Chain,
    ) -> Result<(), Error> {
        kept.there(room)?;
        if let Some(newest) = kept.snapshots.last() {
            if at < newest.at {
                return Err(refused(format!("there is a snapshot at {} already", newest.at)));
            }
            if (at, chain) == (newest.at, newest.chain) {
                return Ok(());
            }
        }
        let not_there = || refused(format!("head {at} with chain {chain} is not in the log"));
        let before = Head(at.0.checked_sub(1).ok_or_else(not_there)?);
        let (trimmed, page) = self.page(room, before.max(kept.trimmed_to), 1).await?;
        let found = page.first().is_some_and(|stored| (stored.head, stored.chain) == (at, chain));
        if at > trimmed && found { Ok(()) } else { Err(not_there()) }
    }

    pub async fn latest_snapshot(&self, room: &RoomName) -> Result<Option<Snapshot>, Error> {
        for _ in 0..CHANGES_MAX {
            let kept = self.kept(room).await?;
            let mut passed_over = Vec::new();
            for Kind { at, chain, id, chunks, sum } in kept.snapshots.iter().rev() {
                let key = self.keys.snapshot(room, id);
                let chunks = snapshots::download(&self.asker, &key, *chunks, sum).await;
                match chunks.map_err(Trouble::of_look)? {
                    Some(chunks) => {
                        let (at, chain) = (*at, *chain);
                        return Ok(Some(Snapshot { at, chain, chunks, passed_over }));
                    }
                    None => passed_over.push(format!("{key} is not what was written")),
                }
            }
            // Perhaps they were replaced while they were read.
            if self.kept(room).await?.mark == kept.mark {
                return match passed_over.is_empty() {
                    true => Ok(None),
                    false => Err(Error::Damaged { why: passed_over.join("; ") }),
                };
            }
        }
        Err(Error::Unavailable { why: format!("snapshots of {room} change all the time") })
    }

    pub async fn retire(
        &self,
        room: &RoomName,
        keep: Retention,
    ) -> Result<Vec<(SinkName, Gap)>, Error> {
        for _ in 0..CHANGES_MAX {
            let kept = self.kept(room).await?;
            let head = kept.there(room)?;
            let whole: Vec<(SinkName, Head)> = kept
                .cursors
                .iter()
                .filter(|(_, cursor)| !cursor.broken)
                .map(|(sink, cursor)| (sink.clone(), cursor.at))
                .collect();
            let over = self.over_the_cap(room, &whole, keep).await?;
            let (to, _) = kept.floor(kept.newest_snapshot(), &over);
            let (mut gaps, mut fields) = (Vec::new(), Vec::new());
            for sink in over {
                if kept.cursors[&sink].at < to {
                    let cursor = kept.mark_broken(head, &sink, to)?;
                    fields.push(cursor_field(&sink, Some(cursor)));
                    gaps.push((sink, cursor.gap.expect("a broken cursor has one")));
                }
            }
            let change = Change { fields, ..Change::default() };
            if gaps.is_empty() || self.swap(room, &kept, change).await? {
                return Ok(gaps);
            }
        }
        Err(Error::Unavailable { why: format!("{room} is changed by others all the time") })
    }

    async fn over_the_cap(
        &self,
        room: &RoomName,
        sinks: &[(SinkName, Head)],
        keep: Retention,
    ) -> Result<Vec<SinkName>, Error> {
        let keys = [self.keys.tip(room), self.keys.log(room)];
        let mut args = vec![self.now.text(), HEADER_BYTES.to_string()];
        args.extend(sinks.iter().map(|(_, at)| digits(at.0)));
        let call = Call::script(Script::Behind, &keys, args);
        let answer = self.asker.look(call).await.map_err(Trouble::of_look)?;
        let read = || -> Result<Vec<SinkName>, Trouble> {
            let mut parts = Parts::of(answer)?;
            let now = parts.number()?;
            let mut over = Vec::new();
            for (sink, _) in sinks {
                let (bytes, since) = (parts.number()?, parts.text()?);
                let age_ms = since.parse().map_or(0, |since: u64| now.saturating_sub(since));
                if bytes > keep.keep_bytes || age_ms > keep.keep_age_ms {
                    over.push(sink.clone());
                }
            }
            Ok(over)
        };
        read().map_err(Trouble::of_look)
    }

    pub async fn lease(&self, name: &LeaseName, who: &str, ttl_ms: u64) -> Result<Lease, Error> {
        if who.len() > WHO_BYTES_MAX {
            return Err(refused("the holder's name is too long"));
        }
        let room = name.as_str().strip_prefix("room/").map(str::to_owned);
        let nonce = self.now.seams.entropy.next_u128();
        let key = self.keys.lease(name);
        // A lease of no room has no log; the script finds none under this name.
        let beside = |what: &str| format!("{}:{what}", key.strip_suffix(":lease").unwrap_or(&key));
        let keys = [key.clone(), beside("tip"), beside("log")];
        let args: [Vec<u8>; 5] = [
            who.into(),
            self.now.text().into(),
            ttl_ms.min(TTL_MS_MAX).to_string().into(),
            format!("{nonce:032x}").into(),
            EPOCH_MAX.to_string().into(),
        ];
        let answer = self.lines.change(Call::script(Script::Lease, &keys[..2], args)).await?;
        let mut parts = Parts::of(answer)?;
        match &*parts.text()? {
            "ok" => {}
            "held" => return Err(Error::Held { who: parts.text()?, left_ms: parts.number()? }),
            _ => return Err(refused(format!("{name} has used up its {EPOCH_MAX} epochs"))),
        }
        let epoch = u32::try_from(parts.number()?).unwrap_or(u32::MAX);
        let tip = Appended { head: Head(parts.number()?), chain: parts.chain()? };
        if let Some(room) = room.and_then(|room| stored_name(&room)) {
            if self.asker.options.level != Level::Async && tip.head > Head::EMPTY {
                // The wait for this lease was a wait for all before it: the log is settled.
                let call = commit_call(&keys, epoch, nonce, tip.head);
                self.asker.ask(vec![call], Repeat::Harmless).await?;
            }
            self.known.set_tip(&room, Some(tip));
            self.known.durable_to(&room, epoch, tip.head);
            self.list(&room).await?;
        }
        Ok(Lease { name: name.clone(), epoch, nonce })
    }

    /// Puts a name into the list of names, once for each handle. It stays there for good: whether
    /// a room has a log is asked of the room.
    pub async fn list(&self, room: &RoomName) -> Result<(), Error> {
        let listed = || self.listed.lock().expect("nobody panics while holding it");
        if listed().contains(room) {
            return Ok(());
        }
        let call = Call::plain("SADD", self.keys.rooms(), &[room.as_str().as_bytes()]);
        self.lines.change(call).await?;
        listed().insert(room.clone());
        Ok(())
    }

    pub async fn hold(&self, lease: &Lease, ttl: Option<u64>) -> Result<(), Error> {
        let keys = [self.keys.lease(&lease.name)];
        let gives_back = ttl.is_none();
        let ttl = ttl.map(|ttl| ttl.min(TTL_MS_MAX).to_string()).unwrap_or_default();
        let args: [Vec<u8>; 4] = [
            lease.epoch.to_string().into(),
            format!("{:032x}", lease.nonce).into(),
            self.now.text().into(),
            ttl.into(),
        ];
        let call = Call::script(Script::Hold, &keys, args);
        // A renewal is good for a moment only, and need not outlive a server; what is given back
        // must stay given back.
        let answer = match gives_back {
            true => self.lines.change(call).await?,
            false => self.asker.ask(vec![call], Repeat::Harmless).await?.remove(0),
        };
        let mut parts = Parts::of(answer)?;
        match &*parts.text()? {
            "ok" => Ok(()),
            _ => Err(Error::Lost { epoch: u32::try_from(parts.number()?).unwrap_or(u32::MAX) }),
        }
    }

    pub async fn holder_of(&self, name: &LeaseName) -> Result<Option<Holder>, Error> {
        let keys = [self.keys.lease(name)];
        let call = Call::script(Script::Holder, &keys, [self.now.text()]);
        let answer = self.asker.look(call).await.map_err(Trouble::of_look)?;
        let mut parts = Parts::of(answer)?;
        if parts.left() == 0 {
            return Ok(None);
        }
        let (who, epoch, left_ms) = (parts.text()?, parts.number()?, parts.number()?);
        Ok(Some(Holder { who, epoch: u32::try_from(epoch).unwrap_or(u32::MAX), left_ms }))
    }

    pub async fn members(&self, new: Option<(String, Vec<u8>, u64)>) -> Result<Vec<Member>, Error> {
        let now = self.now.text();
        let mut args: Vec<Vec<u8>> = vec![now.into_bytes()];
        if let Some((instance, about, ttl)) = new {
            let ttl = ttl.min(TTL_MS_MAX).to_string().into_bytes();
            args.extend([instance.into_bytes(), about, ttl]);
        }
        let (script, keys) = (Script::Members, vec![self.keys.instances()]);
        let call = Call::Script { script, keys, args };
        let answer = self.asker.look(call).await.map_err(Trouble::of_look)?;
        let mut parts = Parts::of(answer)?;
        let mut members = Vec::with_capacity(parts.left() / 3);
        while parts.left() > 0 {
            let (instance, about, left_ms) = (parts.text()?, parts.bytes()?, parts.number()?);
            members.push(Member { instance, about, left_ms });
        }
        members.sort_by(|a, b| a.instance.cmp(&b.instance));
        Ok(members)
    }

    pub async fn rooms(&self) -> Result<Vec<RoomName>, Error> {
        let call = Call::plain("SMEMBERS", self.keys.rooms(), &[]);
        let names = self.asker.look(call).await.map_err(Trouble::of_look)?;
        let mut names = match names {
            redis::Value::Set(names) => Parts::of(redis::Value::Array(names))?,
            names => Parts::of(names)?,
        };
        let mut rooms = Vec::new();
        while names.left() > 0 {
            let Ok(room) = RoomName::parse(&names.text()?) else { continue };
            if self.tip(&room).await?.head > Head::EMPTY {
                rooms.push(room);
            }
        }
        rooms.sort();
        Ok(rooms)
    }

    pub async fn remove_room(&self, room: &RoomName) -> Result<(), Error> {
        for _ in 0..CHANGES_MAX {
            let kept = self.kept(room).await?;
            let mut keys = vec![
                self.keys.keep(room),
                self.keys.tip(room),
                self.keys.log(room),
                self.keys.board(room),
            ];
            keys.extend(kept.snapshots.iter().map(|kind| self.keys.snapshot(room, &kind.id)));
            let call = Call::script(Script::Remove, &keys, [kept.mark]);
            let answer = self.lines.change(call).await?;
            if Parts::of(answer)?.text()? == "ok" {
                self.known.removed(room);
                return Ok(());
            }
        }
        Err(Error::Unavailable { why: format!("{room} is changed by others all the time") })
    }
}

/// Something that was never there before.
pub fn mark() -> u128 {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the operating system always has randomness to give");
    u128::from_le_bytes(bytes)
}

/// A room's name out of the name of its lease.
fn stored_name(room: &str) -> Option<RoomName> {
    let system = RoomName::system();
    if room == system.as_str() { Some(system) } else { RoomName::parse(room).ok() }
}
