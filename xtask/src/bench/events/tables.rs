//! The projection, beside the plain client that writes the same rows to tables of the same shape:
//! inserted from arrays in transactions of the same size, and, for the record, copied in whole.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt, StreamExt};
use tokio_postgres::Client;
use waitroom_outbox::postgres::{Link, Projection};
use waitroom_outbox::{Pace, Whole};

use super::database::Postgres;
use super::{Bench, Carried};
use crate::bench::report::Figure;
use crate::failure::{OrFail, Outcome};

/// The projection commits about as many events together.
const TOGETHER: i64 = 20_000;

const LIKE: &str = "
CREATE SCHEMA plain;
CREATE TABLE plain.tickets (LIKE waitroom.tickets INCLUDING ALL);
CREATE TABLE plain.events (LIKE waitroom.events INCLUDING ALL)";

const TICKETS: &str = "
INSERT INTO plain.tickets (room, lane, number, id, joined_at, joined_by, place, status)
SELECT $1, n.lane, n.number, n.id::uuid, n.joined_at, n.joined_by, n.place, n.status
FROM unnest($2::smallint[], $3::bigint[], $4::text[], $5::timestamptz[], $6::bigint[],
            $7::bigint[], $8::text[])
    AS n (lane, number, id, joined_at, joined_by, place, status)";

const EVENTS: &str = "
INSERT INTO plain.events (room, head, at, kind, lane, number)
SELECT $1, n.* FROM unnest($2::bigint[], $3::timestamptz[], $4::text[], $5::smallint[],
                           $6::bigint[]) AS n";

const WRITTEN: &str = "
SELECT e.head, e.at, e.kind, e.lane, e.number, t.id::text, t.joined_at, t.joined_by, t.place,
       t.status
FROM waitroom.events e JOIN waitroom.tickets t USING (room, lane, number)
WHERE e.room = $1 AND e.head > $2 AND e.head <= $3 ORDER BY e.head";

pub(super) async fn measure(bench: &Bench<'_>, folder: &Path) -> Outcome<Vec<Figure>> {
    let folder = tempfile::tempdir_in(folder).or_fail(|| "make a folder for PostgreSQL")?;
    let postgres = Postgres::start_in(folder).await;
    let link = Link { url: postgres.url(), password_file: None };
    eprintln!("postgres: the projection, then the plain client");
    let projection = Whole::new(Projection::new(link));
    let ours: Carried = bench.carried("postgres", projection, Pace::default()).await?;
    let client = postgres.client().await;
    client.batch_execute(LIKE).await.or_fail(|| "make tables")?;
    let inserted = inserted(&client, bench.room.name().as_str()).await?;
    client.batch_execute("TRUNCATE plain.tickets, plain.events").await.or_fail(|| "empty them")?;
    let copied = copied(&client, bench.events).await?;
    let mut figures = Vec::from(ours.beside("postgres", inserted));
    figures.push(Figure::alone("postgres_plain_copy", copied, "1/s"));
    Ok(figures)
}

/// Events a second, a ticket and an event each, by the statement that a plain client would use.
async fn inserted(client: &Client, room: &str) -> Outcome<f64> {
    let newest = "SELECT max(head) FROM waitroom.events WHERE room = $1";
    let newest: i64 = client.query_one(newest, &[&room]).await.or_fail(|| "look")?.get(0);
    let tickets = client.prepare(TICKETS).await.or_fail(|| "prepare")?;
    let events = client.prepare(EVENTS).await.or_fail(|| "prepare")?;
    let (mut took, mut sent) = (Duration::ZERO, 0);
    let mut after = 0;
    while after < newest {
        let to = after + TOGETHER;
        let rows = client.query(WRITTEN, &[&room, &after, &to]).await.or_fail(|| "read rows")?;
        after = to;
        fn column<'a, T: tokio_postgres::types::FromSql<'a>>(
            rows: &'a [tokio_postgres::Row],
            at: usize,
        ) -> Vec<T> {
            rows.iter().map(|row| row.get(at)).collect()
        }
        let heads: Vec<i64> = column(&rows, 0);
        let at: Vec<SystemTime> = column(&rows, 1);
        let kinds: Vec<&str> = column(&rows, 2);
        let lanes: Vec<i16> = column(&rows, 3);
        let numbers: Vec<i64> = column(&rows, 4);
        let ids: Vec<&str> = column(&rows, 5);
        let joined_at: Vec<SystemTime> = column(&rows, 6);
        let joined_by: Vec<i64> = column(&rows, 7);
        let places: Vec<i64> = column(&rows, 8);
        let statuses: Vec<&str> = column(&rows, 9);
        let began = Instant::now();
        client.batch_execute("BEGIN").await.or_fail(|| "begin")?;
        let with: [&(dyn tokio_postgres::types::ToSql + Sync); 8] =
            [&room, &lanes, &numbers, &ids, &joined_at, &joined_by, &places, &statuses];
        client.execute(&tickets, &with).await.or_fail(|| "insert tickets")?;
        let with: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
            [&room, &heads, &at, &kinds, &lanes, &numbers];
        client.execute(&events, &with).await.or_fail(|| "insert events")?;
        client.batch_execute("COMMIT").await.or_fail(|| "commit")?;
        took += began.elapsed();
        sent += rows.len();
    }
    Ok(sent as f64 / took.as_secs_f64())
}

/// The fastest way into a table that there is: the bytes of the whole table, as the server itself
/// gave them out.
async fn copied(client: &Client, events: u64) -> Outcome<f64> {
    let mut took = Duration::ZERO;
    for table in ["tickets", "events"] {
        let out = format!("COPY waitroom.{table} TO STDOUT (FORMAT binary)");
        let out = client.copy_out(&out).await.or_fail(|| "copy out")?;
        let mut out = std::pin::pin!(out);
        let mut bytes = BytesMut::new();
        while let Some(some) = out.next().await {
            bytes.extend_from_slice(&some.or_fail(|| "copy out")?);
        }
        let began = Instant::now();
        let into = format!("COPY plain.{table} FROM STDIN (FORMAT binary)");
        let into = client.copy_in::<_, Bytes>(&into).await.or_fail(|| "copy in")?;
        let mut into = std::pin::pin!(into);
        let mut bytes = bytes.freeze();
        while !bytes.is_empty() {
            let some = bytes.split_to(bytes.len().min(1 << 20));
            into.send(some).await.or_fail(|| "copy in")?;
        }
        into.finish().await.or_fail(|| "copy in")?;
        took += began.elapsed();
    }
    Ok(events as f64 / took.as_secs_f64())
}
