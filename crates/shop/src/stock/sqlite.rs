//! The stock in SQLite: one file, one writer at a time.
//!
//! Every step that changes something begins its transaction as a writer (`BEGIN IMMEDIATE`), so
//! it never looks before it may write. Other processes wait for their turn up to [`BUSY`].

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::{Buyer, Count, Error, Hold, Reserved, Sold};
use crate::ledger::Order;
use crate::seat::{Hall, Seat};

/// A step takes a millisecond; whoever waits this long waits for a disk that is broken.
const BUSY: Duration = Duration::from_secs(10);

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS seats (
        seat INTEGER PRIMARY KEY, held_by TEXT, held_until INTEGER NOT NULL DEFAULT 0, sold_in INTEGER);
    CREATE INDEX IF NOT EXISTS seats_held_by ON seats (held_by) WHERE held_by IS NOT NULL;
    CREATE TABLE IF NOT EXISTS orders (
        id INTEGER PRIMARY KEY, session TEXT NOT NULL, pass TEXT NOT NULL, name TEXT NOT NULL,
        paid_at INTEGER NOT NULL);
    CREATE INDEX IF NOT EXISTS orders_session ON orders (session);
    CREATE TABLE IF NOT EXISTS lines (order_id INTEGER NOT NULL, seat INTEGER NOT NULL);
    CREATE INDEX IF NOT EXISTS lines_order ON lines (order_id);";

#[derive(Clone, Debug)]
pub struct Sqlite {
    db: Arc<Mutex<Connection>>,
}

impl Sqlite {
    /// Opens the stock in this file, or fills a new one.
    pub fn open(file: &Path, hall: Hall) -> Result<Sqlite, Error> {
        let open = || {
            let mut db = Connection::open(file)?;
            db.busy_timeout(BUSY)?;
            // The journal that lets readers read while one writes.
            db.pragma_update(None, "journal_mode", "WAL")?;
            db.pragma_update(None, "synchronous", "NORMAL")?;
            let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            tx.execute_batch(TABLES)?;
            let there: u32 = tx.query_row("SELECT count(*) FROM seats", [], |row| row.get(0))?;
            if there == 0 {
                let mut put = tx.prepare("INSERT INTO seats (seat) VALUES (?1)")?;
                for seat in 1..=hall.seats() {
                    put.execute([seat])?;
                }
            }
            tx.commit()?;
            Ok(db)
        };
        let db = open()
            .map_err(|error: rusqlite::Error| Error(format!("{}: {error}", file.display())))?;
        Ok(Sqlite { db: Arc::new(Mutex::new(db)) })
    }

    pub async fn reserve(
        &self,
        session: &str,
        seats: &[Seat],
        now_ms: u64,
        until_ms: u64,
    ) -> Result<Reserved, Error> {
        let (session, seats) = (session.to_owned(), seats.to_vec());
        self.change(move |tx| {
            tx.execute(
                "UPDATE seats SET held_by = NULL WHERE held_by = ?1 AND sold_in IS NULL",
                [&session],
            )?;
            let mut take = tx.prepare_cached(
                "UPDATE seats SET held_by = ?1, held_until = ?2
                 WHERE seat = ?3 AND sold_in IS NULL AND (held_by IS NULL OR held_until <= ?4)",
            )?;
            let mut taken = Vec::new();
            for seat in seats {
                if take.execute(params![session, until_ms as i64, seat.0, now_ms as i64])? == 0 {
                    taken.push(seat);
                }
            }
            Ok(if taken.is_empty() {
                Step::Keep(Reserved::Held)
            } else {
                Step::Undo(Reserved::Taken(taken))
            })
        })
        .await
    }

    pub async fn held(&self, session: &str, now_ms: u64) -> Result<Hold, Error> {
        let session = session.to_owned();
        self.look(move |db| held(db, &session, now_ms)).await
    }

    pub async fn give_back(&self, session: &str) -> Result<(), Error> {
        let session = session.to_owned();
        self.change(move |tx| {
            tx.execute(
                "UPDATE seats SET held_by = NULL WHERE held_by = ?1 AND sold_in IS NULL",
                [&session],
            )?;
            Ok(Step::Keep(()))
        })
        .await
    }

    pub async fn sell(&self, buyer: Buyer<'_>, now_ms: u64) -> Result<Sold, Error> {
        let [session, pass, name] = [buyer.session, buyer.pass, buyer.name].map(str::to_owned);
        self.change(move |tx| {
            // One visit, one order: a button pressed twice buys once.
            if let Some(before) = bought_before(tx, &session)? {
                return Ok(Step::Undo(before));
            }
            let seats = held(tx, &session, now_ms)?.seats;
            if seats.is_empty() {
                return Ok(Step::Undo(Sold::NothingHeld));
            }
            tx.execute(
                "INSERT INTO orders (session, pass, name, paid_at) VALUES (?1, ?2, ?3, ?4)",
                params![session, pass, name, now_ms as i64],
            )?;
            let order = tx.last_insert_rowid();
            for seat in &seats {
                tx.execute(
                    "INSERT INTO lines (order_id, seat) VALUES (?1, ?2)",
                    params![order, seat.0],
                )?;
                tx.execute(
                    "UPDATE seats SET sold_in = ?1, held_by = NULL WHERE seat = ?2",
                    params![order, seat.0],
                )?;
            }
            let left: i64 =
                tx.query_row("SELECT count(*) FROM seats WHERE sold_in IS NULL", [], |row| {
                    row.get(0)
                })?;
            Ok(Step::Keep(Sold::Now { order: order as u64, seats, left: left as u64 }))
        })
        .await
    }

    pub async fn lapse(&self, now_ms: u64) -> Result<Vec<String>, Error> {
        self.change(move |tx| {
            let mut late = tx.prepare_cached(
                "SELECT DISTINCT held_by FROM seats
                 WHERE held_by IS NOT NULL AND sold_in IS NULL AND held_until <= ?1 ORDER BY held_by",
            )?;
            let sessions: Vec<String> =
                late.query_map([now_ms as i64], |row| row.get(0))?.collect::<Result<_, _>>()?;
            tx.execute(
                "UPDATE seats SET held_by = NULL WHERE held_by IS NOT NULL AND sold_in IS NULL AND held_until <= ?1",
                [now_ms as i64],
            )?;
            Ok(Step::Keep(sessions))
        })
        .await
    }

    pub async fn gone(&self, from: Seat, to: Seat, now_ms: u64) -> Result<Vec<Seat>, Error> {
        self.look(move |db| {
            let mut gone = db.prepare_cached(
                "SELECT seat FROM seats WHERE seat BETWEEN ?1 AND ?2
                 AND (sold_in IS NOT NULL OR held_by IS NOT NULL AND held_until > ?3) ORDER BY seat",
            )?;
            gone.query_map(params![from.0, to.0, now_ms as i64], |row| row.get(0).map(Seat))?.collect()
        })
        .await
    }

    pub async fn count(&self, now_ms: u64) -> Result<Count, Error> {
        self.look(move |db| {
            db.query_row(
                "SELECT count(*), count(sold_in),
                 count(CASE WHEN sold_in IS NULL AND held_by IS NOT NULL AND held_until > ?1 THEN 1 END) FROM seats",
                [now_ms as i64],
                |row| {
                    let number = |at| row.get::<_, i64>(at).map(|it| it as u64);
                    Ok(Count { seats: number(0)?, sold: number(1)?, held: number(2)? })
                },
            )
        })
        .await
    }

    pub async fn orders(&self) -> Result<Vec<Order>, Error> {
        self.look(|db| {
            let mut all =
                db.prepare_cached("SELECT id, session, pass, paid_at FROM orders ORDER BY id")?;
            let mut orders: Vec<Order> = all
                .query_map([], |row| {
                    Ok(Order {
                        id: row.get::<_, i64>(0)? as u64,
                        session: row.get(1)?,
                        pass: row.get(2)?,
                        paid_at_ms: row.get::<_, i64>(3)? as u64,
                        seats: Vec::new(),
                    })
                })?
                .collect::<Result<_, _>>()?;
            for order in &mut orders {
                order.seats = seats_of(db, order.id as i64)?;
            }
            Ok(orders)
        })
        .await
    }

    /// One transaction, on a thread that may wait for a disk.
    async fn change<T: Send + 'static>(
        &self,
        step: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<Step<T>> + Send + 'static,
    ) -> Result<T, Error> {
        self.on_a_thread(move |db| {
            let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            match step(&tx)? {
                Step::Keep(done) => tx.commit().map(|()| done),
                Step::Undo(done) => tx.rollback().map(|()| done),
            }
        })
        .await
    }

    async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        self.on_a_thread(move |db| look(db)).await
    }

    async fn on_a_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let db = self.db.clone();
        let worked = tokio::task::spawn_blocking(move || {
            // A panic in the middle left a transaction that was dropped, which undoes it.
            work(&mut db.lock().unwrap_or_else(PoisonError::into_inner))
        });
        worked
            .await
            .map_err(|error| Error(error.to_string()))?
            .map_err(|error| Error(format!("SQLite: {error}")))
    }
}

/// What a transaction came to.
enum Step<T> {
    Keep(T),
    Undo(T),
}

fn held(db: &Connection, session: &str, now_ms: u64) -> rusqlite::Result<Hold> {
    let mut mine = db.prepare_cached(
        "SELECT seat, held_until FROM seats
         WHERE held_by = ?1 AND sold_in IS NULL AND held_until > ?2 ORDER BY seat",
    )?;
    let mut hold = Hold::default();
    let mut rows = mine.query(params![session, now_ms as i64])?;
    while let Some(row) = rows.next()? {
        hold.seats.push(Seat(row.get(0)?));
        hold.until_ms = row.get::<_, i64>(1)? as u64;
    }
    Ok(hold)
}

fn bought_before(db: &Connection, session: &str) -> rusqlite::Result<Option<Sold>> {
    let mut before = db.prepare_cached("SELECT max(id) FROM orders WHERE session = ?1")?;
    let order: Option<i64> = before.query_row([session], |row| row.get(0))?;
    let Some(order) = order else { return Ok(None) };
    Ok(Some(Sold::Before { order: order as u64, seats: seats_of(db, order)? }))
}

fn seats_of(db: &Connection, order: i64) -> rusqlite::Result<Vec<Seat>> {
    let mut lines =
        db.prepare_cached("SELECT seat FROM lines WHERE order_id = ?1 ORDER BY seat")?;
    lines.query_map([order], |row| row.get(0).map(Seat))?.collect()
}
