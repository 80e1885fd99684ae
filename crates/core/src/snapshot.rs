//! The whole state as bytes, in parts, and the digest over them.
//!
//! The head comes first: every small field. Then the columns, part by part, each about a megabyte,
//! made one at a time so that a snapshot of 20 million tickets needs no second copy of them.
//! The digest is the SHA-256 over all parts: what is in the snapshot is in the digest, and the
//! patterns below name every field, so the compiler asks about a new one.
//! Chunked arrays and bitmaps come out alike however they came to their content, so a room read
//! from a snapshot, a replayed one and a live one have the same bytes.

use crate::bitmap::Bitmap;
use crate::bucket::Bucket;
use crate::bytes::{Damaged, Reader, put_bytes, put_number, put_option};
use crate::chunked::{CHUNK, Chunked};
use crate::codec::{
    put_hold, put_settings, put_ticket, take_cause, take_hold, take_settings, take_ticket,
};
use crate::event::Session;
use crate::lane::{Counts, Drawn, Lane, Note, Window};
use crate::line::Line;
use crate::permutation::Permutation;
use crate::record::Record;
use crate::room::{Index, Room};
use crate::settings::ACTIVE_MAX;
use crate::slots::{Inside, Slots, Stage};
use crate::state::{Commitment, DrawState, Finish, Moved, Phase, Revealed, State};
use crate::units::{Epoch, LaneId, Number, Timestamp};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

const FORMAT: u8 = 1;
const HEAD: u8 = 1;
const COLUMN: u8 = 2;
const BITS: u8 = 3;

/// Chunks or blocks in one part: parts of up to a megabyte.
const PART_CHUNKS: usize = 64;

/// Slots stand beside the lanes' columns under a lane that cannot be.
const OF_ROOM: LaneId = LaneId(254);

impl Room {
    /// Rebuilds a room from the parts of a snapshot.
    pub fn restore<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> Result<Room, Damaged> {
        let mut parts = parts.into_iter();
        let head = parts.next().ok_or(Damaged("a snapshot without a head"))?;
        let mut state = take_head(head.as_ref())?;
        for part in parts {
            take_part(&mut state, part.as_ref())?;
        }
        check(&state)?;
        let index = Index::of(&state);
        Ok(Room { state, index })
    }
}

impl State {
    /// The parts of a snapshot, made as they are asked for.
    pub fn snapshot(&self) -> impl Iterator<Item = Vec<u8>> + '_ {
        let mut place = Place::default();
        std::iter::from_fn(move || place.next_part(self))
    }

    /// The same, owning the state: for a thread that writes them while the room goes on.
    pub fn into_snapshot(self) -> impl Iterator<Item = Vec<u8>> + Send + 'static {
        let mut place = Place::default();
        std::iter::from_fn(move || place.next_part(&self))
    }

    /// A fingerprint of every field: equal digests, equal rooms.
    pub fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for part in self.snapshot() {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(&part);
        }
        hash.finalize().into()
    }
}

/// How far a snapshot is: the head, then lane by lane each column from a chunk on, then the slots.
#[derive(Default)]
struct Place {
    head_done: bool,
    lane: usize,
    column: u8,
    chunk: u64,
}

impl Place {
    fn next_part(&mut self, state: &State) -> Option<Vec<u8>> {
        if !self.head_done {
            self.head_done = true;
            return Some(put_head(state));
        }
        while self.lane <= state.lanes.len() {
            let part = match state.lanes.get(self.lane) {
                Some(lane) => lane_part(lane, self.column, &mut self.chunk),
                None if self.column == 0 => {
                    column_part(OF_ROOM, 9, &state.slots.entries, &mut self.chunk)
                }
                None => None,
            };
            if part.is_some() {
                return part;
            }
            self.chunk = 0;
            self.column += 1;
            if self.column == LANE_COLUMNS {
                (self.lane, self.column) = (self.lane + 1, 0);
            }
        }
        None
    }
}

const LANE_COLUMNS: u8 = 8;

fn lane_part(lane: &Lane, column: u8, from: &mut u64) -> Option<Vec<u8>> {
    let id = lane.id;
    match column {
        0 => column_part(id, 1, &lane.records, from),
        1 => column_part(id, 2, &lane.identities, from),
        2 => column_part(id, 3, &lane.keys, from),
        3 => column_part(id, 4, &lane.notes, from),
        4 => column_part(id, 5, &lane.windows, from),
        5 => column_part(id, 6, &lane.block_joined, from),
        6 => bits_part(id, 7, &lane.line.drawn, from),
        _ => bits_part(id, 8, &lane.line.rest, from),
    }
}

fn put_head(state: &State) -> Vec<u8> {
    let State {
        founded_at,
        epoch,
        opened_at,
        last_at,
        settings,
        phase,
        hold,
        finish,
        draw,
        lanes,
        slots: Slots { entries, taken },
        bucket: Bucket { level, at: bucket_at },
        virtual_time,
        moved,
    } = state;
    let mut out = vec![FORMAT, HEAD];
    for number in [founded_at.0, epoch.0 as u64, opened_at.0, last_at.0] {
        put_number(&mut out, number);
    }
    put_option(&mut out, settings.as_deref(), put_settings);
    out.push(*phase as u8);
    put_option(&mut out, hold.as_ref(), put_hold);
    put_option(&mut out, finish.as_ref(), |out, Finish { cause, reason, at, from }| {
        out.push(*cause as u8);
        put_bytes(out, reason.as_bytes());
        put_number(out, at.0);
        out.push(*from as u8);
    });
    put_draw(&mut out, draw);
    for number in [entries.len(), *taken, *level, bucket_at.0, *virtual_time] {
        put_number(&mut out, number);
    }
    put_number(&mut out, moved.len() as u64);
    for (from, Moved { to, epoch }) in moved {
        put_ticket(&mut out, *from);
        put_ticket(&mut out, *to);
        put_number(&mut out, epoch.0 as u64);
    }
    put_number(&mut out, lanes.len() as u64);
    for lane in lanes {
        put_lane(&mut out, lane);
    }
    out
}

fn take_head(bytes: &[u8]) -> Result<State, Damaged> {
    let mut from = Reader::new(bytes);
    let from = &mut from;
    if from.array()? != [FORMAT, HEAD] {
        return Err(Damaged("a snapshot of an unknown format"));
    }
    let mut state = State {
        founded_at: time(from)?,
        epoch: Epoch(small(from)?),
        opened_at: time(from)?,
        last_at: time(from)?,
        settings: from.option(take_settings)?,
        phase: take_phase(from)?,
        hold: from.option(take_hold)?,
        finish: from.option(|from| {
            Ok(Finish {
                cause: take_cause(from)?,
                reason: from.text()?,
                at: time(from)?,
                from: take_phase(from)?,
            })
        })?,
        draw: take_draw(from)?,
        ..State::default()
    };
    let slots = from.number()?;
    if slots > ACTIVE_MAX {
        return Err(Damaged("more slots than a room can have"));
    }
    state.slots.entries.extend_default(slots);
    state.slots.taken = from.number()?;
    state.bucket = Bucket { level: from.number()?, at: time(from)? };
    state.virtual_time = from.number()?;
    for _ in 0..from.number()? {
        let old = take_ticket(from)?;
        state.moved.insert(old, Moved { to: take_ticket(from)?, epoch: Epoch(small(from)?) });
    }
    for _ in 0..from.number()? {
        state.lanes.push(take_lane(from)?);
    }
    from.end()?;
    Ok(state)
}

/// What the index takes for granted. Lengths that nothing stands behind would cost memory on the
/// word of a damaged byte.
fn check(state: &State) -> Result<(), Damaged> {
    for lane in &state.lanes {
        let given = lane.records.len();
        let columns = [lane.identities.len(), lane.keys.len(), lane.notes.len()];
        if lane.counts.joined != given || columns.iter().any(|len| *len > given) {
            return Err(Damaged("more tickets than people joined"));
        }
        let Line { drawn, split, rest } = &lane.line;
        if drawn.len() != *split || drawn.len() + rest.len() != given {
            return Err(Damaged("a line of another length than its lane"));
        }
        if lane.forgotten_to > given / CHUNK {
            return Err(Damaged("blocks forgotten that were never full"));
        }
    }
    for (_, inside) in state.slots.iter() {
        let lane = state.lane(inside.ticket.lane);
        let kept = |lane: &Lane| lane.kept_from()..lane.next().0;
        if !lane.is_some_and(|lane| kept(lane).contains(&inside.ticket.number.0)) {
            return Err(Damaged("a slot of a ticket that nobody has"));
        }
    }
    Ok(())
}

fn put_draw(out: &mut Vec<u8>, draw: &DrawState) {
    let DrawState { commitment, counts, closed, revealed } = draw;
    put_option(out, commitment.as_ref(), |out, Commitment { hash, sealed_seed, beacon }| {
        out.extend_from_slice(hash);
        put_bytes(out, sealed_seed);
        put_option(out, beacon.as_deref(), |out, beacon| put_bytes(out, beacon.as_bytes()));
    });
    put_number(out, counts.len() as u64);
    for (lane, count) in counts {
        out.push(lane.0);
        put_number(out, *count);
    }
    out.push(*closed as u8);
    put_option(out, revealed.as_ref(), |out, Revealed { seed, chain, beacon, waived }| {
        out.extend_from_slice(seed);
        out.extend_from_slice(chain);
        put_option(out, beacon.as_deref(), put_bytes);
        out.push(*waived as u8);
    });
}

fn take_draw(from: &mut Reader<'_>) -> Result<DrawState, Damaged> {
    let commitment = from.option(|from| {
        Ok(Commitment {
            hash: from.array()?,
            sealed_seed: from.bytes()?.to_vec(),
            beacon: from.option(Reader::text)?,
        })
    })?;
    let mut counts = Vec::new();
    for _ in 0..from.number()? {
        counts.push((LaneId(from.byte()?), from.number()?));
    }
    let closed = from.flag()?;
    let revealed = from.option(|from| {
        Ok(Revealed {
            seed: from.array()?,
            chain: from.array()?,
            beacon: from.option(|from| from.bytes().map(<[u8]>::to_vec))?,
            waived: from.flag()?,
        })
    })?;
    Ok(DrawState { commitment, counts, closed, revealed })
}

fn put_lane(out: &mut Vec<u8>, lane: &Lane) {
    let Lane {
        id,
        records,
        identities,
        keys,
        notes,
        line: Line { drawn: drawn_bits, split, rest },
        drawn,
        windows,
        windows_from,
        sealed_to,
        epochs,
        closings,
        block_joined,
        forgotten_to,
        keys_forgotten,
        virtual_time,
        counts,
    } = lane;
    out.push(id.0);
    put_option(out, drawn.as_ref(), |out, Drawn { key, permutation: _ }| {
        out.extend_from_slice(key);
    });
    for number in [
        records.len(),
        identities.len(),
        keys.len(),
        notes.len(),
        windows.len(),
        block_joined.len(),
        drawn_bits.len(),
        rest.len(),
        *split,
        *windows_from,
        sealed_to.0,
        *forgotten_to,
        *keys_forgotten,
        *virtual_time,
    ] {
        put_number(out, number);
    }
    put_number(out, epochs.len() as u64);
    for (epoch, first) in epochs {
        put_number(out, epoch.0 as u64);
        put_number(out, first.0);
    }
    put_number(out, closings.len() as u64);
    for (below, at) in closings {
        put_number(out, below.0);
        put_number(out, at.0);
    }
    for count in count_fields(counts) {
        put_number(out, count);
    }
}

fn take_lane(from: &mut Reader<'_>) -> Result<Lane, Damaged> {
    let mut lane = Lane::new(LaneId(from.byte()?), Epoch(0));
    let key = from.option(Reader::array::<16>)?;
    lane.records.extend_default(bounded(from)?);
    lane.identities.extend_default(bounded(from)?);
    lane.keys.extend_default(bounded(from)?);
    lane.notes.extend_default(bounded(from)?);
    lane.windows.extend_default(bounded(from)?);
    lane.block_joined.extend_default(bounded(from)?);
    lane.line.drawn.extend_zeros(bounded(from)?);
    lane.line.rest.extend_zeros(bounded(from)?);
    lane.line.split = bounded(from)?;
    lane.windows_from = bounded(from)?;
    lane.sealed_to = Number(bounded(from)?);
    lane.forgotten_to = bounded(from)?;
    lane.keys_forgotten = bounded(from)?;
    lane.virtual_time = from.number()?;
    lane.drawn =
        key.map(|key| Drawn { key, permutation: Arc::new(Permutation::new(key, lane.line.split)) });
    lane.epochs.clear();
    for _ in 0..from.number()? {
        lane.epochs.push((Epoch(small(from)?), Number(from.number()?)));
    }
    for _ in 0..from.number()? {
        lane.closings.push((Number(bounded(from)?), time(from)?));
    }
    let mut counts = [0; 12];
    for count in &mut counts {
        *count = from.number()?;
    }
    lane.counts = counts_of(counts);
    Ok(lane)
}

fn count_fields(counts: &Counts) -> [u64; 12] {
    let Counts {
        joined,
        waiting,
        admitted,
        active,
        completed,
        left,
        expired,
        revoked,
        moved,
        closed,
        admissions,
        no_shows,
    } = *counts;
    [
        joined, waiting, admitted, active, completed, left, expired, revoked, moved, closed,
        admissions, no_shows,
    ]
}

fn counts_of(fields: [u64; 12]) -> Counts {
    let [
        joined,
        waiting,
        admitted,
        active,
        completed,
        left,
        expired,
        revoked,
        moved,
        closed,
        admissions,
        no_shows,
    ] = fields;
    Counts {
        joined,
        waiting,
        admitted,
        active,
        completed,
        left,
        expired,
        revoked,
        moved,
        closed,
        admissions,
        no_shows,
    }
}

/// What a column can hold: entries that know their bytes.
trait Cell: Clone + Default + PartialEq {
    fn put(&self, out: &mut Vec<u8>);
    fn take(from: &mut Reader<'_>) -> Result<Self, Damaged>;
}

/// The next chunks of a column from `from` on, which moves behind them.
fn column_part<T: Cell>(
    lane: LaneId,
    id: u8,
    column: &Chunked<T>,
    from: &mut u64,
) -> Option<Vec<u8>> {
    let mut out = vec![FORMAT, COLUMN, lane.0, id];
    let start = *from;
    for (index, entries) in column.chunks().skip_while(|it| it.0 < start).take(PART_CHUNKS) {
        put_number(&mut out, index);
        put_number(&mut out, entries.len() as u64);
        for entry in entries {
            entry.put(&mut out);
        }
        *from = index + 1;
    }
    (*from > start).then_some(out)
}

fn bits_part(lane: LaneId, id: u8, bits: &Bitmap, from: &mut u64) -> Option<Vec<u8>> {
    let mut out = vec![FORMAT, BITS, lane.0, id];
    let start = *from;
    for (index, words) in bits.blocks().skip_while(|it| it.0 < start).take(PART_CHUNKS) {
        put_number(&mut out, index);
        put_number(&mut out, words.len() as u64);
        for word in words {
            out.extend_from_slice(&word.to_le_bytes());
        }
        *from = index + 1;
    }
    (*from > start).then_some(out)
}

fn take_part(state: &mut State, bytes: &[u8]) -> Result<(), Damaged> {
    let mut from = Reader::new(bytes);
    let [format, kind, lane, id] = from.array()?;
    if format != FORMAT {
        return Err(Damaged("a snapshot of an unknown format"));
    }
    if LaneId(lane) == OF_ROOM && (kind, id) == (COLUMN, 9) {
        return take_column(from, &mut state.slots.entries);
    }
    let lane = state.lanes.iter_mut().find(|it| it.id.0 == lane);
    let lane = lane.ok_or(Damaged("a part of a lane that is not in the head"))?;
    match (kind, id) {
        (COLUMN, 1) => take_column(from, &mut lane.records),
        (COLUMN, 2) => take_column(from, &mut lane.identities),
        (COLUMN, 3) => take_column(from, &mut lane.keys),
        (COLUMN, 4) => take_column(from, &mut lane.notes),
        (COLUMN, 5) => take_column(from, &mut lane.windows),
        (COLUMN, 6) => take_column(from, &mut lane.block_joined),
        (BITS, 7) => take_bits(from, &mut lane.line.drawn),
        (BITS, 8) => take_bits(from, &mut lane.line.rest),
        _ => Err(Damaged("a part of an unknown kind")),
    }
}

fn take_column<T: Cell>(mut from: Reader<'_>, column: &mut Chunked<T>) -> Result<(), Damaged> {
    let mut entries = Vec::with_capacity(CHUNK as usize);
    while !from.is_empty() {
        let chunk = bounded(&mut from)?;
        let count = from.number()?;
        if count > CHUNK || chunk * CHUNK + count > column.len() {
            return Err(Damaged("a chunk that goes past its column"));
        }
        entries.clear();
        for _ in 0..count {
            entries.push(T::take(&mut from)?);
        }
        column.put_chunk(chunk, &entries);
    }
    Ok(())
}

fn take_bits(mut from: Reader<'_>, bits: &mut Bitmap) -> Result<(), Damaged> {
    let mut words = Vec::new();
    while !from.is_empty() {
        let block = bounded(&mut from)?;
        let count = from.number()?;
        let start = block * crate::bitmap::BLOCK_BITS;
        if count > crate::bitmap::BLOCK_BITS / 64 || start >= bits.len() {
            return Err(Damaged("a block that goes past its bitmap"));
        }
        words.clear();
        for _ in 0..count {
            words.push(u64::from_le_bytes(from.array()?));
        }
        let last = words
            .iter()
            .rposition(|word| *word != 0)
            .map_or(0, |at| start + at as u64 * 64 + 64 - words[at].leading_zeros() as u64);
        if last > bits.len() {
            return Err(Damaged("bits past the end of their bitmap"));
        }
        bits.put_block(block, &words);
    }
    Ok(())
}

impl Cell for Record {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_le_bytes());
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok(Record(u64::from_le_bytes(from.array()?)))
    }
}

impl Cell for [u8; 16] {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        from.array()
    }
}

impl Cell for Timestamp {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(out, self.0);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        time(from)
    }
}

impl Cell for Option<Arc<Note>> {
    fn put(&self, out: &mut Vec<u8>) {
        put_option(out, self.as_deref(), |out, Note { metadata, sealed_user }| {
            put_option(out, metadata.as_deref(), put_bytes);
            put_option(out, sealed_user.as_deref(), put_bytes);
        });
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        from.option(|from| {
            let metadata = from.option(Reader::shared)?;
            let sealed_user = from.option(Reader::shared)?;
            Ok(Arc::new(Note { metadata, sealed_user }))
        })
    }
}

impl Cell for Window {
    fn put(&self, out: &mut Vec<u8>) {
        let Window { start, len, seed } = self;
        put_number(out, *start);
        put_number(out, *len as u64);
        out.extend_from_slice(seed);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok(Window { start: from.number()?, len: small(from)?, seed: from.array()? })
    }
}

impl Cell for Option<Inside> {
    fn put(&self, out: &mut Vec<u8>) {
        put_option(out, self.as_ref(), |out, inside| {
            let Inside { ticket, joined_at, admitted_at, paced, stage } = inside;
            put_ticket(out, *ticket);
            put_number(out, joined_at.0);
            put_number(out, admitted_at.0);
            out.push(*paced as u8);
            match stage {
                Stage::Admitted { claim_by } => {
                    out.push(0);
                    put_number(out, claim_by.0);
                }
                Stage::Active(Session { issued_at, expires_at, pass_expires_at }) => {
                    out.push(1);
                    put_number(out, issued_at.0);
                    put_number(out, expires_at.0);
                    put_number(out, pass_expires_at.0);
                }
                Stage::Held { until } => {
                    out.push(2);
                    put_number(out, until.0);
                }
            }
        });
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        from.option(|from| {
            Ok(Inside {
                ticket: take_ticket(from)?,
                joined_at: time(from)?,
                admitted_at: time(from)?,
                paced: from.flag()?,
                stage: match from.byte()? {
                    0 => Stage::Admitted { claim_by: time(from)? },
                    1 => Stage::Active(Session {
                        issued_at: time(from)?,
                        expires_at: time(from)?,
                        pass_expires_at: time(from)?,
                    }),
                    2 => Stage::Held { until: time(from)? },
                    _ => return Err(Damaged("an unknown stage of a session")),
                },
            })
        })
    }
}

fn take_phase(from: &mut Reader<'_>) -> Result<Phase, Damaged> {
    Ok(match from.byte()? {
        0 => Phase::Scheduled,
        1 => Phase::Doors,
        2 => Phase::Drawing,
        3 => Phase::Running,
        4 => Phase::Ended,
        _ => return Err(Damaged("an unknown phase")),
    })
}

fn time(from: &mut Reader<'_>) -> Result<Timestamp, Damaged> {
    from.number().map(Timestamp)
}

fn small(from: &mut Reader<'_>) -> Result<u32, Damaged> {
    u32::try_from(from.number()?).map_err(|_| Damaged("a number above 32 bits"))
}

/// A length or an index: nothing in a room has more than 2^40 of anything.
fn bounded(from: &mut Reader<'_>) -> Result<u64, Damaged> {
    let number = from.number()?;
    if number > Number::MAX.0 + 1 { Err(Damaged("a length above 40 bits")) } else { Ok(number) }
}
