//! The stock in PostgreSQL: many shops, many writers, one hall.
//!
//! A step locks the rows it will change, in the order of the seats, before it looks at them: two
//! who want the same seats wait for each other and cannot lock each other out. Everything is in a
//! schema of its own, so a database that others use too is safe.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_postgres::{Client, NoTls, Transaction};

use super::{Buyer, Count, Error, Hold, Reserved, Sold};
use crate::ledger::Order;
use crate::seat::{Hall, Seat};

/// Connections at a time. A step takes milliseconds; eight of them sell thousands of seats a second.
const CONNECTIONS_MAX: usize = 8;
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS seats (
        seat INTEGER PRIMARY KEY, held_by TEXT, held_until BIGINT NOT NULL DEFAULT 0, sold_in BIGINT);
    CREATE INDEX IF NOT EXISTS seats_held_by ON seats (held_by) WHERE held_by IS NOT NULL;
    CREATE TABLE IF NOT EXISTS orders (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, session TEXT NOT NULL, pass TEXT NOT NULL,
        name TEXT NOT NULL, paid_at BIGINT NOT NULL);
    CREATE INDEX IF NOT EXISTS orders_session ON orders (session);
    CREATE TABLE IF NOT EXISTS lines (order_id BIGINT NOT NULL, seat INTEGER NOT NULL);
    CREATE INDEX IF NOT EXISTS lines_order ON lines (order_id);";

pub struct Postgres {
    url: String,
    schema: String,
    idle: Mutex<Vec<Client>>,
    permits: Semaphore,
}

/// The address may hold a password.
impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Postgres({})", self.schema)
    }
}

impl Postgres {
    /// Opens the stock in this schema, or fills a new one. A schema is named by small letters,
    /// digits and `_`.
    pub async fn open(url: &str, schema: &str, hall: Hall) -> Result<Postgres, Error> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if schema.is_empty() || schema.len() > 60 || !schema.chars().all(plain) {
            return Err(Error(format!("{schema:?} is no name for a schema")));
        }
        let stock = Postgres {
            url: url.to_owned(),
            schema: schema.to_owned(),
            idle: Mutex::default(),
            permits: Semaphore::new(CONNECTIONS_MAX),
        };
        let mut client = stock.connect().await?;
        let tx = client.transaction().await.map_err(said)?;
        // Whoever fills it first holds this lock; the others find it full.
        tx.execute("SELECT pg_advisory_xact_lock(hashtext($1))", &[&stock.schema])
            .await
            .map_err(said)?;
        let make = format!("CREATE SCHEMA IF NOT EXISTS {schema}; {TABLES}");
        tx.batch_execute(&make).await.map_err(said)?;
        tx.execute(
            "INSERT INTO seats (seat) SELECT generate_series(1, $1::int) WHERE NOT EXISTS (SELECT FROM seats)",
            &[&(hall.seats() as i32)],
        )
        .await
        .map_err(said)?;
        tx.commit().await.map_err(said)?;
        stock.put_back(client);
        Ok(stock)
    }

    pub async fn reserve(
        &self,
        session: &str,
        seats: &[Seat],
        now_ms: u64,
        until_ms: u64,
    ) -> Result<Reserved, Error> {
        let wanted: Vec<i32> = seats.iter().map(|it| it.0 as i32).collect();
        let (now, until) = (now_ms as i64, until_ms as i64);
        let _permit = self.permit().await;
        let mut client = self.client().await?;
        let tx = client.transaction().await.map_err(said)?;
        let doing = async {
            tx.execute(
                "SELECT seat FROM seats WHERE seat = ANY($1) OR held_by = $2 ORDER BY seat FOR UPDATE",
                &[&wanted, &session],
            )
            .await?;
            tx.execute(
                "UPDATE seats SET held_by = NULL WHERE held_by = $1 AND sold_in IS NULL",
                &[&session],
            )
            .await?;
            tx.execute(
                "UPDATE seats SET held_by = $1, held_until = $2
                 WHERE seat = ANY($3) AND sold_in IS NULL AND (held_by IS NULL OR held_until <= $4)",
                &[&session, &until, &wanted, &now],
            )
            .await?;
            let mine = tx
                .query("SELECT seat FROM seats WHERE held_by = $1 AND sold_in IS NULL", &[&session])
                .await?;
            Ok(mine.iter().map(|row| row.get::<_, i32>(0)).collect::<Vec<i32>>())
        };
        let mine = doing.await.map_err(said)?;
        let taken: Vec<Seat> =
            seats.iter().copied().filter(|it| !mine.contains(&(it.0 as i32))).collect();
        let reserved = if taken.is_empty() {
            tx.commit().await.map_err(said)?;
            Reserved::Held
        } else {
            tx.rollback().await.map_err(said)?;
            Reserved::Taken(taken)
        };
        self.put_back(client);
        Ok(reserved)
    }

    pub async fn held(&self, session: &str, now_ms: u64) -> Result<Hold, Error> {
        let _permit = self.permit().await;
        let client = self.client().await?;
        let rows = client
            .query(
                "SELECT seat, held_until FROM seats
                 WHERE held_by = $1 AND sold_in IS NULL AND held_until > $2 ORDER BY seat",
                &[&session, &(now_ms as i64)],
            )
            .await
            .map_err(said)?;
        self.put_back(client);
        let until_ms = rows.first().map_or(0, |row| row.get::<_, i64>(1) as u64);
        Ok(Hold { seats: rows.iter().map(seat).collect(), until_ms })
    }

    pub async fn give_back(&self, session: &str) -> Result<(), Error> {
        let _permit = self.permit().await;
        let mut client = self.client().await?;
        let tx = client.transaction().await.map_err(said)?;
        let mine = "SELECT seat FROM seats WHERE held_by = $1 ORDER BY seat FOR UPDATE";
        tx.execute(mine, &[&session]).await.map_err(said)?;
        tx.execute(
            "UPDATE seats SET held_by = NULL WHERE held_by = $1 AND sold_in IS NULL",
            &[&session],
        )
        .await
        .map_err(said)?;
        tx.commit().await.map_err(said)?;
        self.put_back(client);
        Ok(())
    }

    pub async fn sell(&self, buyer: Buyer<'_>, now_ms: u64) -> Result<Sold, Error> {
        let _permit = self.permit().await;
        let mut client = self.client().await?;
        let tx = client.transaction().await.map_err(said)?;
        let sold = sell(&tx, buyer, now_ms as i64).await.map_err(said)?;
        tx.commit().await.map_err(said)?;
        self.put_back(client);
        Ok(sold)
    }

    pub async fn lapse(&self, now_ms: u64) -> Result<Vec<String>, Error> {
        let now = now_ms as i64;
        let _permit = self.permit().await;
        let mut client = self.client().await?;
        let tx = client.transaction().await.map_err(said)?;
        let late = tx
            .query(
                "SELECT seat, held_by FROM seats
                 WHERE held_by IS NOT NULL AND sold_in IS NULL AND held_until <= $1 ORDER BY seat FOR UPDATE",
                &[&now],
            )
            .await
            .map_err(said)?;
        let seats: Vec<i32> = late.iter().map(|row| row.get(0)).collect();
        tx.execute("UPDATE seats SET held_by = NULL WHERE seat = ANY($1)", &[&seats])
            .await
            .map_err(said)?;
        tx.commit().await.map_err(said)?;
        self.put_back(client);
        let mut sessions: Vec<String> = late.iter().map(|row| row.get(1)).collect();
        sessions.sort();
        sessions.dedup();
        Ok(sessions)
    }

    pub async fn gone(&self, from: Seat, to: Seat, now_ms: u64) -> Result<Vec<Seat>, Error> {
        let _permit = self.permit().await;
        let client = self.client().await?;
        let rows = client
            .query(
                "SELECT seat FROM seats WHERE seat BETWEEN $1 AND $2
                 AND (sold_in IS NOT NULL OR held_by IS NOT NULL AND held_until > $3) ORDER BY seat",
                &[&(from.0 as i32), &(to.0 as i32), &(now_ms as i64)],
            )
            .await
            .map_err(said)?;
        self.put_back(client);
        Ok(rows.iter().map(seat).collect())
    }

    pub async fn count(&self, now_ms: u64) -> Result<Count, Error> {
        let _permit = self.permit().await;
        let client = self.client().await?;
        let row = client
            .query_one(
                "SELECT count(*), count(sold_in),
                 count(*) FILTER (WHERE sold_in IS NULL AND held_by IS NOT NULL AND held_until > $1) FROM seats",
                &[&(now_ms as i64)],
            )
            .await
            .map_err(said)?;
        self.put_back(client);
        let number = |at: usize| row.get::<_, i64>(at) as u64;
        Ok(Count { seats: number(0), sold: number(1), held: number(2) })
    }

    pub async fn orders(&self) -> Result<Vec<Order>, Error> {
        let _permit = self.permit().await;
        let client = self.client().await?;
        let rows = client
            .query(
                "SELECT id, session, pass, paid_at,
                 ARRAY(SELECT seat FROM lines WHERE order_id = orders.id ORDER BY seat) FROM orders ORDER BY id",
                &[],
            )
            .await
            .map_err(said)?;
        self.put_back(client);
        let order = |row: &tokio_postgres::Row| Order {
            id: row.get::<_, i64>(0) as u64,
            session: row.get(1),
            pass: row.get(2),
            paid_at_ms: row.get::<_, i64>(3) as u64,
            seats: row.get::<_, Vec<i32>>(4).into_iter().map(|it| Seat(it as u32)).collect(),
        };
        Ok(rows.iter().map(order).collect())
    }

    /// The whole schema, with everything in it.
    pub async fn clear_away(&self) -> Result<(), Error> {
        let _permit = self.permit().await;
        let client = self.client().await?;
        let drop = format!("DROP SCHEMA IF EXISTS {} CASCADE", self.schema);
        client.batch_execute(&drop).await.map_err(said)
    }

    async fn permit(&self) -> tokio::sync::SemaphorePermit<'_> {
        self.permits.acquire().await.expect("the stock is never closed")
    }

    /// A connection. One whose step failed is not put back: dropping it ends its transaction.
    async fn client(&self) -> Result<Client, Error> {
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match idle {
                Some(client) if client.is_closed() => {}
                Some(client) => return Ok(client),
                None => return self.connect().await,
            }
        }
    }

    fn put_back(&self, client: Client) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(client);
    }

    async fn connect(&self) -> Result<Client, Error> {
        let connecting = tokio_postgres::connect(&self.url, NoTls);
        let connected = tokio::time::timeout(CONNECT_WITHIN, connecting).await;
        let (client, driver) = connected
            .map_err(|_| Error("PostgreSQL: no connection in time".into()))?
            .map_err(said)?;
        tokio::spawn(async move {
            // What goes wrong on the connection is told to whoever waits for an answer.
            let _ = driver.await;
        });
        let path = format!("SET search_path TO {}", self.schema);
        client.batch_execute(&path).await.map_err(said)?;
        Ok(client)
    }
}

async fn sell(
    tx: &Transaction<'_>,
    buyer: Buyer<'_>,
    now: i64,
) -> Result<Sold, tokio_postgres::Error> {
    let held = tx
        .query(
            "SELECT seat FROM seats
             WHERE held_by = $1 AND sold_in IS NULL AND held_until > $2 ORDER BY seat FOR UPDATE",
            &[&buyer.session, &now],
        )
        .await?;
    // One visit, one order: a button pressed twice buys once. Looked at under the lock.
    if let Some(before) = bought_before(tx, buyer.session).await? {
        return Ok(before);
    }
    if held.is_empty() {
        return Ok(Sold::NothingHeld);
    }
    let order = tx
        .query_one(
            "INSERT INTO orders (session, pass, name, paid_at) VALUES ($1, $2, $3, $4) RETURNING id",
            &[&buyer.session, &buyer.pass, &buyer.name, &now],
        )
        .await?;
    let order: i64 = order.get(0);
    let seats: Vec<i32> = held.iter().map(|row| row.get(0)).collect();
    tx.execute(
        "INSERT INTO lines (order_id, seat) SELECT $1, unnest($2::int[])",
        &[&order, &seats],
    )
    .await?;
    tx.execute(
        "UPDATE seats SET sold_in = $1, held_by = NULL WHERE seat = ANY($2)",
        &[&order, &seats],
    )
    .await?;
    let left = tx.query_one("SELECT count(*) FROM seats WHERE sold_in IS NULL", &[]).await?;
    let left = left.get::<_, i64>(0) as u64;
    Ok(Sold::Now { order: order as u64, seats: held.iter().map(seat).collect(), left })
}

async fn bought_before(
    tx: &Transaction<'_>,
    session: &str,
) -> Result<Option<Sold>, tokio_postgres::Error> {
    let order = tx.query_one("SELECT max(id) FROM orders WHERE session = $1", &[&session]).await?;
    let Some(order) = order.get::<_, Option<i64>>(0) else { return Ok(None) };
    let lines =
        tx.query("SELECT seat FROM lines WHERE order_id = $1 ORDER BY seat", &[&order]).await?;
    Ok(Some(Sold::Before { order: order as u64, seats: lines.iter().map(seat).collect() }))
}

fn seat(row: &tokio_postgres::Row) -> Seat {
    Seat(row.get::<_, i32>(0) as u32)
}

fn said(error: tokio_postgres::Error) -> Error {
    match error.as_db_error() {
        Some(db) => Error(format!("PostgreSQL: {}", db.message())),
        None => Error(format!("PostgreSQL: {error}")),
    }
}
