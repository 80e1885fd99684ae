//! Rows to tables: one statement for each table, whatever the number of rows.
//!
//! Columns go over as arrays, so that a thousand rows are one round trip and one plan.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio_postgres::Transaction;
use tokio_postgres::types::ToSql;
use waitroom_core::{Ticket, Timestamp};
use waitroom_store::RoomName;

use super::rows::{Rows, TicketRow};
use super::said;
use crate::sink::Trouble;

macro_rules! into_tickets {
    () => {
        "
INSERT INTO waitroom.tickets AS t
    (room, lane, number, id, joined_at, joined_by, place, status, waited_ms, ended_at, ended_from,
     ending)
SELECT $1, n.lane, n.number, n.id::uuid, n.joined_at, n.joined_by, n.place, n.status, n.waited_ms,
       n.ended_at, n.ended_from, n.ending
FROM unnest($2::smallint[], $3::bigint[], $4::text[], $5::timestamptz[], $6::bigint[],
            $7::bigint[], $8::text[], $9::bigint[], $10::timestamptz[], $11::text[], $12::text[])
    AS n (lane, number, id, joined_at, joined_by, place, status, waited_ms, ended_at, ended_from,
          ending)
"
    };
}

/// Of tickets that begin in this stretch of the log: nobody can know them yet, and looking for each
/// costs the database as much as writing it.
const BEGUN: &str = into_tickets!();

/// Of tickets that were there before.
const CHANGED: &str = concat!(
    into_tickets!(),
    "ON CONFLICT (room, lane, number) DO UPDATE SET
    id = coalesce(excluded.id, t.id),
    joined_at = coalesce(excluded.joined_at, t.joined_at),
    joined_by = coalesce(excluded.joined_by, t.joined_by),
    place = coalesce(excluded.place, t.place),
    status = excluded.status,
    waited_ms = coalesce(excluded.waited_ms, t.waited_ms),
    ended_at = coalesce(excluded.ended_at, t.ended_at),
    ended_from = coalesce(excluded.ended_from, t.ended_from),
    ending = coalesce(excluded.ending, t.ending)"
);

const ADMISSIONS: &str = "
INSERT INTO waitroom.admissions
    (room, head, lane, number, at, why, waited_ms, waiting, claim_by)
SELECT $1, n.* FROM unnest($2::bigint[], $3::smallint[], $4::bigint[], $5::timestamptz[],
    $6::text[], $7::bigint[], $8::bigint[], $9::timestamptz[]) AS n";

const SESSIONS: &str = "
INSERT INTO waitroom.sessions AS s
    (room, lane, number, started_at, expires_at, renewals, ended_at, ending)
SELECT $1, n.* FROM unnest($2::smallint[], $3::bigint[], $4::timestamptz[], $5::timestamptz[],
    $6::bigint[], $7::timestamptz[], $8::text[]) AS n
ON CONFLICT (room, lane, number) DO UPDATE SET
    started_at = coalesce(excluded.started_at, s.started_at),
    expires_at = coalesce(excluded.expires_at, s.expires_at),
    renewals = s.renewals + excluded.renewals,
    ended_at = coalesce(excluded.ended_at, s.ended_at),
    ending = coalesce(excluded.ending, s.ending)";

const EVENTS: &str = "
INSERT INTO waitroom.events (room, head, at, kind, lane, number, data)
SELECT $1, n.head, n.at, n.kind, n.lane, n.number, n.data::jsonb
FROM unnest($2::bigint[], $3::timestamptz[], $4::text[], $5::smallint[], $6::bigint[], $7::text[])
    AS n (head, at, kind, lane, number, data)";

const ROOM: &str = "
UPDATE waitroom.rooms SET
    made_at = coalesce($2, made_at),
    changed_at = coalesce($3, changed_at),
    status = coalesce($4, status)
WHERE room = $1";

const SETTINGS: &str = "
UPDATE waitroom.rooms SET title = $2, target_url = $3, max_active = $4, rate_per_minute = $5
WHERE room = $1";

const CLOSED: &str = "
UPDATE waitroom.tickets SET
    status = 'closed', ended_at = $2, ended_from = 'waiting', ending = 'closed',
    waited_ms = round(extract(epoch FROM $2::timestamptz - joined_at) * 1000)
WHERE room = $1 AND status = 'waiting'";

/// Writes a stretch of a room's log.
pub async fn write(on: &Transaction<'_>, room: &RoomName, rows: Rows) -> Result<(), Trouble> {
    let room = room.as_str();
    tickets(on, room, &rows).await.map_err(said)?;
    admissions(on, room, &rows).await.map_err(said)?;
    sessions(on, room, &rows).await.map_err(said)?;
    events(on, room, &rows).await.map_err(said)?;
    let of = &rows.room;
    if of.made_at.is_some() || of.changed_at.is_some() || of.status.is_some() {
        let (made, changed) = (of.made_at.map(time), of.changed_at.map(time));
        put(on, ROOM, &[&room, &made, &changed, &of.status]).await.map_err(said)?;
    }
    if let Some(it) = &of.settings {
        let (title, url, rate) = (&it.title, &it.target_url, &it.rate_per_minute);
        let max_active = number(it.max_active);
        put(on, SETTINGS, &[&room, title, url, &max_active, rate]).await.map_err(said)?;
    }
    if let Some(at) = rows.closed_at {
        put(on, CLOSED, &[&room, &time(at)]).await.map_err(said)?;
    }
    Ok(())
}

type Sent = Result<(), tokio_postgres::Error>;

/// Statements are prepared once for each connection by the cache of the transaction's client, as
/// long as their text is the same.
async fn put(on: &Transaction<'_>, statement: &str, with: &[&(dyn ToSql + Sync)]) -> Sent {
    on.execute(statement, with).await.map(|_| ())
}

async fn tickets(on: &Transaction<'_>, room: &str, rows: &Rows) -> Sent {
    let (begun, changed): (Vec<_>, Vec<_>) =
        rows.tickets.iter().partition(|(_, row)| row.joined_by.is_some());
    put_tickets(on, BEGUN, room, &begun).await?;
    put_tickets(on, CHANGED, room, &changed).await
}

async fn put_tickets(
    on: &Transaction<'_>,
    statement: &str,
    room: &str,
    all: &[(&Ticket, &TicketRow)],
) -> Sent {
    if all.is_empty() {
        return Ok(());
    }
    let (lanes, numbers) = split(all.iter().map(|(ticket, _)| *ticket));
    let all = || all.iter().map(|(_, row)| row);
    let ids: Vec<_> = all().map(|it| it.id.as_deref()).collect();
    let joined_at: Vec<_> = all().map(|it| it.joined_at.map(time)).collect();
    let joined_by: Vec<_> = all().map(|it| it.joined_by.map(number)).collect();
    let places: Vec<_> = all().map(|it| it.place.map(number)).collect();
    let statuses: Vec<_> = all().map(|it| it.status).collect();
    let waited: Vec<_> = all().map(|it| it.waited_ms.map(number)).collect();
    let ended_at: Vec<_> = all().map(|it| it.ended.map(|it| time(it.at))).collect();
    let ended_from: Vec<_> = all().map(|it| it.ended.map(|it| it.from)).collect();
    let endings: Vec<_> = all().map(|it| it.ended.map(|it| it.ending)).collect();
    let with: [&(dyn ToSql + Sync); 12] = [
        &room,
        &lanes,
        &numbers,
        &ids,
        &joined_at,
        &joined_by,
        &places,
        &statuses,
        &waited,
        &ended_at,
        &ended_from,
        &endings,
    ];
    put(on, statement, &with).await
}

async fn admissions(on: &Transaction<'_>, room: &str, rows: &Rows) -> Sent {
    let all = &rows.admissions;
    if all.is_empty() {
        return Ok(());
    }
    let heads: Vec<_> = all.iter().map(|it| number(it.head)).collect();
    let (lanes, numbers) = split(all.iter().map(|it| &it.ticket));
    let at: Vec<_> = all.iter().map(|it| time(it.at)).collect();
    let whys: Vec<_> = all.iter().map(|it| it.why).collect();
    let waited: Vec<_> = all.iter().map(|it| number(it.waited_ms)).collect();
    let waiting: Vec<_> = all.iter().map(|it| number(it.waiting)).collect();
    let claim_by: Vec<_> = all.iter().map(|it| it.claim_by.map(time)).collect();
    let with: [&(dyn ToSql + Sync); 9] =
        [&room, &heads, &lanes, &numbers, &at, &whys, &waited, &waiting, &claim_by];
    put(on, ADMISSIONS, &with).await
}

async fn sessions(on: &Transaction<'_>, room: &str, rows: &Rows) -> Sent {
    let all = &rows.sessions;
    if all.is_empty() {
        return Ok(());
    }
    let (lanes, numbers) = split(all.keys());
    let started: Vec<_> = all.values().map(|it| it.started_at.map(time)).collect();
    let expires: Vec<_> = all.values().map(|it| it.expires_at.map(time)).collect();
    let renewals: Vec<_> = all.values().map(|it| number(it.renewals)).collect();
    let ended_at: Vec<_> = all.values().map(|it| it.ended.map(|it| time(it.0))).collect();
    let endings: Vec<_> = all.values().map(|it| it.ended.map(|it| it.1)).collect();
    let with: [&(dyn ToSql + Sync); 8] =
        [&room, &lanes, &numbers, &started, &expires, &renewals, &ended_at, &endings];
    put(on, SESSIONS, &with).await
}

async fn events(on: &Transaction<'_>, room: &str, rows: &Rows) -> Sent {
    let all = &rows.events;
    if all.is_empty() {
        return Ok(());
    }
    let heads: Vec<_> = all.iter().map(|it| number(it.head)).collect();
    let at: Vec<_> = all.iter().map(|it| time(it.at)).collect();
    let kinds: Vec<_> = all.iter().map(|it| it.kind).collect();
    let lanes: Vec<_> = all.iter().map(|it| it.ticket.map(|it| i16::from(it.lane.0))).collect();
    let numbers: Vec<_> = all.iter().map(|it| it.ticket.map(|it| number(it.number.0))).collect();
    let data: Vec<_> = all.iter().map(|it| it.data.as_ref().map(|it| it.to_string())).collect();
    let with: [&(dyn ToSql + Sync); 7] = [&room, &heads, &at, &kinds, &lanes, &numbers, &data];
    put(on, EVENTS, &with).await
}

fn split<'a>(tickets: impl Iterator<Item = &'a Ticket>) -> (Vec<i16>, Vec<i64>) {
    tickets.map(|it| (i16::from(it.lane.0), number(it.number.0))).unzip()
}

/// Numbers of ours have 40 bits, times and heads far fewer than 63.
pub fn number(of: u64) -> i64 {
    i64::try_from(of).unwrap_or(i64::MAX)
}

fn time(at: Timestamp) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(at.0)
}
