//! A sale's figures from the tables, as the views have them.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio_postgres::{Client, Row};
use waitroom_store::RoomName;

use super::{Link, connect, said};
use crate::sale::{DropOff, Fairness, Minute, Sale, Waits, rounded};
use crate::sink::Trouble;

const JOINED: &str = "SELECT date_trunc('minute', joined_at), count(*) FROM waitroom.tickets
    WHERE room = $1 AND joined_at IS NOT NULL AND status <> 'moved' GROUP BY 1";

const MINUTES: &str = "SELECT t.minute, t.paced, t.by_hand, t.limit_per_minute, w.p50_ms, w.p90_ms
    FROM waitroom.throughput t JOIN waitroom.waits_by_minute w USING (room, minute)
    WHERE room = $1";

/// None when the tables know no such room.
pub async fn read(link: &Link, room: &RoomName) -> Result<Option<Sale>, Trouble> {
    let client = connect(link).await?;
    let all = async |query: &str| client.query(query, &[&room.as_str()]).await.map_err(said);
    let of = "SELECT head, gap_to, title FROM waitroom.rooms WHERE room = $1";
    let Some(row) = all(of).await?.pop() else { return Ok(None) };
    let mut sale = Sale {
        room: room.to_string(),
        head: count(&row, 0),
        gap_to: count(&row, 1),
        title: row.get::<_, Option<String>>(2).unwrap_or_default(),
        ..Sale::default()
    };
    let of = "SELECT joined, admitted, started, completed FROM waitroom.conversion WHERE room = $1";
    if let Some(row) = all(of).await?.first() {
        sale.joined = count(row, 0);
        sale.admitted = count(row, 1);
        sale.started = count(row, 2);
        sale.completed = count(row, 3);
    }
    let of = "SELECT no_shows FROM waitroom.no_shows WHERE room = $1";
    sale.no_shows = all(of).await?.first().map_or(0, |row| count(row, 0));
    let of = "SELECT lane, admitted, p50_ms, p90_ms, p95_ms, p99_ms, longest_ms
              FROM waitroom.waits WHERE room = $1 ORDER BY lane";
    sale.waits = all(of).await?.iter().map(waits).collect();
    let of = "SELECT stage, ending, tickets FROM waitroom.drop_off WHERE room = $1";
    let gone = |row: &Row| DropOff {
        stage: row.get::<_, Option<String>>(0).unwrap_or_default(),
        ending: row.get::<_, Option<String>>(1).unwrap_or_default(),
        tickets: count(row, 2),
    };
    sale.drop_off = all(of).await?.iter().map(gone).collect();
    sale.drop_off.sort();
    let of = "SELECT lane, admitted, rank_correlation FROM waitroom.fairness
              WHERE room = $1 ORDER BY lane";
    let fair = |row: &Row| Fairness {
        lane: lane(row),
        admitted: count(row, 1),
        rank_correlation: row.get::<_, Option<f64>>(2).map(rounded),
    };
    sale.fairness = all(of).await?.iter().map(fair).collect();
    sale.minutes = minutes(&client, room).await?;
    Ok(Some(sale))
}

async fn minutes(client: &Client, room: &RoomName) -> Result<Vec<Minute>, Trouble> {
    let mut minutes: BTreeMap<u64, Minute> = BTreeMap::new();
    for row in client.query(JOINED, &[&room.as_str()]).await.map_err(said)? {
        minutes.entry(ms(&row)).or_default().joined = count(&row, 1);
    }
    for row in client.query(MINUTES, &[&room.as_str()]).await.map_err(said)? {
        let minute = minutes.entry(ms(&row)).or_default();
        (minute.paced, minute.by_hand) = (count(&row, 1), count(&row, 2));
        minute.limit_per_minute = row.get(3);
        (minute.p50_ms, minute.p90_ms) = (Some(count(&row, 4)), Some(count(&row, 5)));
    }
    let told = |(at_ms, minute)| Minute { at_ms, ..minute };
    Ok(minutes.into_iter().map(told).collect())
}

fn waits(row: &Row) -> Waits {
    Waits {
        lane: lane(row),
        admitted: count(row, 1),
        p50_ms: count(row, 2),
        p90_ms: count(row, 3),
        p95_ms: count(row, 4),
        p99_ms: count(row, 5),
        longest_ms: count(row, 6),
    }
}

fn count(row: &Row, column: usize) -> u64 {
    u64::try_from(row.get::<_, i64>(column)).unwrap_or(0)
}

fn lane(row: &Row) -> u8 {
    u8::try_from(row.get::<_, i16>(0)).unwrap_or(u8::MAX)
}

fn ms(row: &Row) -> u64 {
    let at: SystemTime = row.get(0);
    at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}
