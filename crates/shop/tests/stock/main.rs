//! What a stock promises, on SQLite and on a real PostgreSQL.
//!
//! `promises.rs` says it once; each database runs all of it. `model.rs` holds any sequence of
//! steps against a stock that is a map in memory.

mod model;
mod postgres;
mod promises;

use std::sync::atomic::{AtomicU32, Ordering};

use waitroom_shop::{Hall, Postgres, Sqlite, Stock};

/// A database that can open a stock of its own, as often as wanted.
pub trait Database {
    fn fresh(&self, seats: u32) -> Where;
}

/// One stock, and how to open it once more: another shop that sells from it.
#[derive(Debug)]
pub enum Where {
    File(tempfile::TempDir, Hall),
    Schema(String, String, Hall),
}

impl Where {
    pub async fn open(&self) -> Stock {
        match self {
            Where::File(folder, hall) => Stock::Sqlite(
                Sqlite::open(&folder.path().join("stock"), *hall).expect("SQLite opens"),
            ),
            Where::Schema(url, schema, hall) => {
                Stock::Postgres(Postgres::open(url, schema, *hall).await.expect("PostgreSQL opens"))
            }
        }
    }
}

struct Files;

impl Database for Files {
    fn fresh(&self, seats: u32) -> Where {
        let folder = tempfile::tempdir().expect("a folder");
        Where::File(folder, Hall::new(seats).expect("a hall"))
    }
}

impl Database for postgres::Server {
    fn fresh(&self, seats: u32) -> Where {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let schema = format!("stock_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        Where::Schema(self.url.clone(), schema, Hall::new(seats).expect("a hall"))
    }
}

pub fn wait_for<T>(doing: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build();
    runtime.expect("a runtime").block_on(doing)
}

#[test]
fn sqlite_keeps_every_promise() {
    wait_for(promises::all(&Files));
}

#[test]
fn sqlite_does_what_the_model_does() {
    model::compare(&Files, 48);
}

#[test]
fn postgresql_keeps_every_promise_and_does_what_the_model_does() {
    // One server for both: starting it takes longer than asking it.
    let server = postgres::Server::start();
    wait_for(promises::all(&server));
    model::compare(&server, 24);
}
