//! The bytes of events, as the log keeps them.
//!
//! A batch is a format byte, the time of its first event, and records. A record is a tag and its
//! fields; the tag's high bit says that the time moves on. Neighbouring plain joins of a lane fold
//! into one record (a run), so 1,000 anonymous joins cost a dozen bytes; reading unfolds them, and
//! each counts as one event.
//! To add an event: a new tag at the end. Tags are never reused, old logs must stay readable.

use crate::bytes::{Damaged, Reader, put_bytes, put_number, put_option};
use crate::command::{Actor, Block, FinishCause, Hold};
use crate::event::{AdmitWhy, Ending, Entry, Event, Joined, Session, What};
use crate::record::Status;
use crate::settings::Settings;
use crate::units::{Epoch, Holder, Identity, JoinKey, LaneId, Millis, Number, Ticket, Timestamp};
use std::sync::Arc;

/// The format that this release writes; it reads this one (it is the first).
pub const FORMAT: u8 = 1;

const LATER: u8 = 0x80;
const WITH_IDENTITY: u8 = 1;
const WITH_KEY: u8 = 2;

/// Longest run that is folded; bounds what one record can unfold to.
const RUN_MAX: usize = 1 << 16;

mod tag {
    pub const OPENED: u8 = 1;
    pub const CONFIGURED: u8 = 2;
    pub const JOINED: u8 = 3;
    pub const JOIN_RUN: u8 = 4;
    pub const ADMITTED: u8 = 5;
    pub const CLAIMED: u8 = 6;
    pub const RENEWED: u8 = 7;
    pub const ENDED: u8 = 8;
    pub const RELEASED: u8 = 9;
    pub const HANDED_OVER: u8 = 10;
    pub const MOVED: u8 = 11;
    pub const HELD: u8 = 12;
    pub const RESUMED: u8 = 13;
    pub const ADMITTED_NOW: u8 = 14;
    pub const DOORS_OPENED: u8 = 15;
    pub const SALE_STARTED: u8 = 16;
    pub const SALE_ENDED: u8 = 17;
    pub const REOPENED: u8 = 18;
    pub const DRAW_COMMITTED: u8 = 19;
    pub const DRAW_CLOSED: u8 = 20;
    pub const DRAWN: u8 = 21;
    pub const SEALED: u8 = 22;
    pub const FORGOT_TICKETS: u8 = 23;
    pub const FORGOT_KEYS: u8 = 24;
    pub const BOUND: u8 = 25;
}

/// Appends a batch to `out`.
pub fn encode(events: &[Event], out: &mut Vec<u8>) {
    out.push(FORMAT);
    let mut at = events.first().map_or(Timestamp(0), |event| event.at);
    put_number(out, at.0);
    let mut rest = events;
    while let Some(event) = rest.first() {
        let run = run_length(rest);
        let place = out.len();
        out.push(0);
        let mut tag = 0;
        if event.at != at {
            put_number(out, event.at.since(at).0);
            tag = LATER;
            at = event.at;
        }
        tag |= if run > 1 { put_run(out, &rest[..run]) } else { put_event(out, event) };
        out[place] = tag;
        rest = &rest[run.max(1)..];
    }
}

/// Reads a batch, event by event, in order.
pub fn decode(bytes: &[u8], mut each: impl FnMut(Event)) -> Result<(), Damaged> {
    let mut from = Reader::new(bytes);
    if from.byte()? != FORMAT {
        return Err(Damaged("a batch of an unknown format"));
    }
    let mut at = Timestamp(from.number()?);
    while !from.is_empty() {
        let tag = from.byte()?;
        if tag & LATER != 0 {
            at = Timestamp(at.0.checked_add(from.number()?).ok_or(Damaged("a time beyond time"))?);
        }
        match tag & !LATER {
            tag::JOIN_RUN => take_run(&mut from, at, &mut each)?,
            tag => each(take_event(&mut from, tag, at)?.at(at)),
        }
    }
    Ok(())
}

/// How many joins from here on fold into one record.
fn run_length(events: &[Event]) -> usize {
    let Some((first, joined)) = plain_join(&events[0]) else { return 1 };
    let follows = |(i, event): (usize, &Event)| {
        plain_join(event).is_some_and(|(at, next)| {
            let i = i as u64;
            at == first
                && next.ticket.lane == joined.ticket.lane
                && next.ticket.number.0 == joined.ticket.number.0 + i
                && next.waiting_in_lane == joined.waiting_in_lane + i
                && next.waiting == joined.waiting + i
                && next.identity.is_some() == joined.identity.is_some()
                && next.key.is_some() == joined.key.is_some()
        })
    };
    events.iter().enumerate().take(RUN_MAX).take_while(|it| follows(*it)).count()
}

fn plain_join(event: &Event) -> Option<(Timestamp, &Joined)> {
    match &event.what {
        What::Joined(joined)
            if joined.metadata.is_none()
                && joined.sealed_user.is_none()
                && joined.returns.is_none() =>
        {
            Some((event.at, joined))
        }
        _ => None,
    }
}

fn put_run(out: &mut Vec<u8>, run: &[Event]) -> u8 {
    let (_, first) = plain_join(&run[0]).expect("runs are of plain joins");
    let with_identity = if first.identity.is_some() { WITH_IDENTITY } else { 0 };
    let with_key = if first.key.is_some() { WITH_KEY } else { 0 };
    out.push(with_identity | with_key);
    put_ticket(out, first.ticket);
    put_number(out, run.len() as u64);
    put_number(out, first.waiting_in_lane);
    put_number(out, first.waiting);
    for event in run {
        let (_, joined) = plain_join(event).expect("runs are of plain joins");
        if let Some(identity) = joined.identity {
            out.extend_from_slice(&identity.0);
        }
        if let Some(key) = joined.key {
            out.extend_from_slice(&key.to_bytes());
        }
    }
    tag::JOIN_RUN
}

fn take_run(
    from: &mut Reader<'_>,
    at: Timestamp,
    each: &mut impl FnMut(Event),
) -> Result<(), Damaged> {
    let flags = from.byte()?;
    let first = take_ticket(from)?;
    let count = from.number()?;
    let waiting_in_lane = from.number()?;
    let waiting = from.number()?;
    let last = first.number.0.checked_add(count).filter(|last| *last <= Number::MAX.0 + 1);
    if flags > (WITH_IDENTITY | WITH_KEY) || count > RUN_MAX as u64 || last.is_none() {
        return Err(Damaged("a run that no release writes"));
    }
    for i in 0..count {
        let identity =
            (flags & WITH_IDENTITY != 0).then(|| from.array().map(Identity)).transpose()?;
        let key =
            (flags & WITH_KEY != 0).then(|| from.array().map(JoinKey::from_bytes)).transpose()?;
        let joined = Joined {
            ticket: Ticket { lane: first.lane, number: Number(first.number.0 + i) },
            waiting_in_lane: waiting_in_lane.wrapping_add(i),
            waiting: waiting.wrapping_add(i),
            identity,
            key,
            ..Joined::default()
        };
        each(What::Joined(joined).at(at));
    }
    Ok(())
}

fn put_event(out: &mut Vec<u8>, event: &Event) -> u8 {
    let at = event.at;
    match &event.what {
        What::Opened { epoch } => {
            put_number(out, epoch.0 as u64);
            tag::OPENED
        }
        What::Configured { settings, by } => {
            put_settings(out, settings);
            put_actor(out, by);
            tag::CONFIGURED
        }
        What::Joined(joined) => {
            put_joined(out, joined);
            tag::JOINED
        }
        What::Admitted { ticket, joined_at, waiting, why, entry, sealed_user } => {
            put_ticket(out, *ticket);
            put_number(out, at.since(*joined_at).0);
            put_number(out, *waiting);
            out.push(*why as u8);
            match entry {
                Entry::MustClaim { by } => {
                    out.push(0);
                    put_later(out, at, *by);
                }
                Entry::Claimed(session) => {
                    out.push(1);
                    put_session(out, at, session);
                }
            }
            put_option(out, sealed_user.as_deref(), put_bytes);
            tag::ADMITTED
        }
        What::Claimed { ticket, session } => {
            put_ticket(out, *ticket);
            put_session(out, at, session);
            tag::CLAIMED
        }
        What::Renewed { ticket, session } => {
            put_ticket(out, *ticket);
            put_session(out, at, session);
            tag::RENEWED
        }
        What::Ended { ticket, was, ending, waited, waiting, held_until, sealed_user, by } => {
            put_ticket(out, *ticket);
            out.push(*was as u8);
            out.push(*ending as u8);
            put_number(out, waited.0);
            put_number(out, *waiting);
            put_option(out, *held_until, |out, until| put_later(out, at, until));
            put_option(out, sealed_user.as_deref(), put_bytes);
            put_actor(out, by);
            tag::ENDED
        }
        What::Released { ticket } => {
            put_ticket(out, *ticket);
            tag::RELEASED
        }
        What::HandedOver { ticket, holder } => {
            put_ticket(out, *ticket);
            out.push(holder.0);
            tag::HANDED_OVER
        }
        What::Bound { ticket, identity } => {
            put_ticket(out, *ticket);
            out.extend_from_slice(&identity.0);
            tag::BOUND
        }
        What::Moved { from, to, joined_at, by } => {
            put_ticket(out, *from);
            put_ticket(out, *to);
            put_number(out, at.since(*joined_at).0);
            put_actor(out, by);
            tag::MOVED
        }
        What::Held { hold, by } => {
            put_hold(out, hold);
            put_actor(out, by);
            tag::HELD
        }
        What::Resumed { by } => {
            put_actor(out, by);
            tag::RESUMED
        }
        What::AdmittedNow { asked, granted, by } => {
            put_number(out, *asked);
            put_number(out, *granted);
            put_actor(out, by);
            tag::ADMITTED_NOW
        }
        What::DoorsOpened => tag::DOORS_OPENED,
        What::SaleStarted => tag::SALE_STARTED,
        What::SaleEnded { cause, reason, closed, by } => {
            out.push(*cause as u8);
            put_bytes(out, reason.as_bytes());
            put_number(out, *closed);
            put_actor(out, by);
            tag::SALE_ENDED
        }
        What::Reopened { by } => {
            put_actor(out, by);
            tag::REOPENED
        }
        What::DrawCommitted { commitment, sealed_seed, beacon } => {
            out.extend_from_slice(commitment);
            put_bytes(out, sealed_seed);
            put_option(out, beacon.as_deref(), |out, beacon| put_bytes(out, beacon.as_bytes()));
            tag::DRAW_COMMITTED
        }
        What::DrawClosed { counts } => {
            put_number(out, counts.len() as u64);
            for (lane, count) in counts {
                out.push(lane.0);
                put_number(out, *count);
            }
            tag::DRAW_CLOSED
        }
        What::Drawn { seed, chain, beacon, waived, by } => {
            out.extend_from_slice(seed);
            out.extend_from_slice(chain);
            put_option(out, beacon.as_deref(), put_bytes);
            out.push(*waived as u8);
            put_actor(out, by);
            tag::DRAWN
        }
        What::Sealed { lane, start, len, seed } => {
            put_ticket(out, Ticket { lane: *lane, number: *start });
            put_number(out, *len as u64);
            out.extend_from_slice(seed);
            tag::SEALED
        }
        What::ForgotTickets(block) => {
            put_block(out, *block);
            tag::FORGOT_TICKETS
        }
        What::ForgotKeys(block) => {
            put_block(out, *block);
            tag::FORGOT_KEYS
        }
    }
}

fn take_event(from: &mut Reader<'_>, tag: u8, at: Timestamp) -> Result<What, Damaged> {
    Ok(match tag {
        tag::OPENED => What::Opened { epoch: Epoch(small(from)?) },
        tag::CONFIGURED => {
            What::Configured { settings: take_settings(from)?, by: take_actor(from)? }
        }
        tag::JOINED => What::Joined(take_joined(from)?),
        tag::ADMITTED => What::Admitted {
            ticket: take_ticket(from)?,
            joined_at: take_earlier(from, at)?,
            waiting: from.number()?,
            why: take_why(from)?,
            entry: match from.flag()? {
                false => Entry::MustClaim { by: take_later(from, at)? },
                true => Entry::Claimed(take_session(from, at)?),
            },
            sealed_user: from.option(Reader::shared)?,
        },
        tag::CLAIMED => {
            What::Claimed { ticket: take_ticket(from)?, session: take_session(from, at)? }
        }
        tag::RENEWED => {
            What::Renewed { ticket: take_ticket(from)?, session: take_session(from, at)? }
        }
        tag::ENDED => What::Ended {
            ticket: take_ticket(from)?,
            was: Status::from_code(from.byte()?).ok_or(Damaged("an unknown status"))?,
            ending: Ending::from_code(from.byte()?).ok_or(Damaged("an unknown ending"))?,
            waited: Millis(from.number()?),
            waiting: from.number()?,
            held_until: from.option(|from| take_later(from, at))?,
            sealed_user: from.option(Reader::shared)?,
            by: take_actor(from)?,
        },
        tag::RELEASED => What::Released { ticket: take_ticket(from)? },
        tag::HANDED_OVER => {
            What::HandedOver { ticket: take_ticket(from)?, holder: Holder(from.byte()?) }
        }
        tag::MOVED => What::Moved {
            from: take_ticket(from)?,
            to: take_ticket(from)?,
            joined_at: take_earlier(from, at)?,
            by: take_actor(from)?,
        },
        tag::HELD => What::Held { hold: take_hold(from)?, by: take_actor(from)? },
        tag::RESUMED => What::Resumed { by: take_actor(from)? },
        tag::ADMITTED_NOW => What::AdmittedNow {
            asked: from.number()?,
            granted: from.number()?,
            by: take_actor(from)?,
        },
        tag::DOORS_OPENED => What::DoorsOpened,
        tag::SALE_STARTED => What::SaleStarted,
        tag::SALE_ENDED => What::SaleEnded {
            cause: take_cause(from)?,
            reason: from.text()?,
            closed: from.number()?,
            by: take_actor(from)?,
        },
        tag::REOPENED => What::Reopened { by: take_actor(from)? },
        tag::DRAW_COMMITTED => What::DrawCommitted {
            commitment: from.array()?,
            sealed_seed: from.bytes()?.to_vec(),
            beacon: from.option(Reader::text)?,
        },
        tag::DRAW_CLOSED => {
            let mut counts = Vec::new();
            for _ in 0..from.number()? {
                counts.push((LaneId(from.byte()?), from.number()?));
            }
            What::DrawClosed { counts }
        }
        tag::DRAWN => What::Drawn {
            seed: from.array()?,
            chain: from.array()?,
            beacon: from.option(|from| from.bytes().map(<[u8]>::to_vec))?,
            waived: from.flag()?,
            by: take_actor(from)?,
        },
        tag::SEALED => {
            let Ticket { lane, number: start } = take_ticket(from)?;
            What::Sealed { lane, start, len: small(from)?, seed: from.array()? }
        }
        tag::FORGOT_TICKETS => What::ForgotTickets(take_block(from)?),
        tag::FORGOT_KEYS => What::ForgotKeys(take_block(from)?),
        tag::BOUND => What::Bound { ticket: take_ticket(from)?, identity: Identity(from.array()?) },
        _ => return Err(Damaged("an event of an unknown kind")),
    })
}

fn put_joined(out: &mut Vec<u8>, joined: &Joined) {
    put_ticket(out, joined.ticket);
    put_number(out, joined.waiting_in_lane);
    put_number(out, joined.waiting);
    put_option(out, joined.identity, |out, identity| out.extend_from_slice(&identity.0));
    put_option(out, joined.key, |out, key| out.extend_from_slice(&key.to_bytes()));
    put_option(out, joined.metadata.as_deref(), put_bytes);
    put_option(out, joined.sealed_user.as_deref(), put_bytes);
    put_option(out, joined.returns, put_ticket);
}

fn take_joined(from: &mut Reader<'_>) -> Result<Joined, Damaged> {
    Ok(Joined {
        ticket: take_ticket(from)?,
        waiting_in_lane: from.number()?,
        waiting: from.number()?,
        identity: from.option(|from| from.array().map(Identity))?,
        key: from.option(|from| from.array().map(JoinKey::from_bytes))?,
        metadata: from.option(Reader::shared)?,
        sealed_user: from.option(Reader::shared)?,
        returns: from.option(take_ticket)?,
    })
}

pub(crate) fn put_ticket(out: &mut Vec<u8>, ticket: Ticket) {
    out.push(ticket.lane.0);
    put_number(out, ticket.number.0);
}

pub(crate) fn take_ticket(from: &mut Reader<'_>) -> Result<Ticket, Damaged> {
    let lane = LaneId(from.byte()?);
    let number = Number(from.number()?);
    if number > Number::MAX {
        return Err(Damaged("a ticket number above 40 bits"));
    }
    Ok(Ticket { lane, number })
}

/// Times that lie ahead of the event cost their distance, not a whole timestamp.
fn put_later(out: &mut Vec<u8>, at: Timestamp, later: Timestamp) {
    put_number(out, later.0.wrapping_sub(at.0));
}

fn take_later(from: &mut Reader<'_>, at: Timestamp) -> Result<Timestamp, Damaged> {
    Ok(Timestamp(at.0.wrapping_add(from.number()?)))
}

fn take_earlier(from: &mut Reader<'_>, at: Timestamp) -> Result<Timestamp, Damaged> {
    at.0.checked_sub(from.number()?).map(Timestamp).ok_or(Damaged("a time before time"))
}

fn put_session(out: &mut Vec<u8>, at: Timestamp, session: &Session) {
    put_later(out, at, session.issued_at);
    put_later(out, at, session.expires_at);
    put_later(out, at, session.pass_expires_at);
}

fn take_session(from: &mut Reader<'_>, at: Timestamp) -> Result<Session, Damaged> {
    Ok(Session {
        issued_at: take_later(from, at)?,
        expires_at: take_later(from, at)?,
        pass_expires_at: take_later(from, at)?,
    })
}

fn put_actor(out: &mut Vec<u8>, by: &Actor) {
    put_bytes(out, by.0.as_bytes());
}

fn take_actor(from: &mut Reader<'_>) -> Result<Actor, Damaged> {
    Ok(Actor(from.text()?.into()))
}

pub(crate) fn put_hold(out: &mut Vec<u8>, hold: &Hold) {
    out.push(match hold {
        Hold::Paused { .. } => 0,
        Hold::Maintenance { .. } => 1,
        Hold::Draining { .. } => 2,
    });
    put_bytes(out, hold.reason().as_bytes());
}

pub(crate) fn take_hold(from: &mut Reader<'_>) -> Result<Hold, Damaged> {
    let kind = from.byte()?;
    let reason = from.text()?;
    match kind {
        0 => Ok(Hold::Paused { reason }),
        1 => Ok(Hold::Maintenance { reason }),
        2 => Ok(Hold::Draining { reason }),
        _ => Err(Damaged("an unknown kind of hold")),
    }
}

pub(crate) fn put_settings(out: &mut Vec<u8>, settings: &Settings) {
    // JSON: rare, readable in an export, and open to fields that later releases add.
    put_bytes(out, &serde_json::to_vec(settings).expect("settings have no unserialisable part"));
}

pub(crate) fn take_settings(from: &mut Reader<'_>) -> Result<Arc<Settings>, Damaged> {
    let settings: Settings =
        serde_json::from_slice(from.bytes()?).map_err(|_| Damaged("settings that do not parse"))?;
    Ok(Arc::new(settings))
}

fn put_block(out: &mut Vec<u8>, block: Block) {
    out.push(block.lane.0);
    put_number(out, block.index);
}

fn take_block(from: &mut Reader<'_>) -> Result<Block, Damaged> {
    Ok(Block { lane: LaneId(from.byte()?), index: from.number()? })
}

fn take_why(from: &mut Reader<'_>) -> Result<AdmitWhy, Damaged> {
    match from.byte()? {
        0 => Ok(AdmitWhy::Paced),
        1 => Ok(AdmitWhy::Straight),
        2 => Ok(AdmitWhy::Manual),
        _ => Err(Damaged("an unknown cause of admission")),
    }
}

pub(crate) fn take_cause(from: &mut Reader<'_>) -> Result<FinishCause, Damaged> {
    match from.byte()? {
        0 => Ok(FinishCause::Schedule),
        1 => Ok(FinishCause::SoldOut),
        2 => Ok(FinishCause::Operator),
        _ => Err(Damaged("an unknown cause of the end")),
    }
}

fn small(from: &mut Reader<'_>) -> Result<u32, Damaged> {
    u32::try_from(from.number()?).map_err(|_| Damaged("a number above 32 bits"))
}
