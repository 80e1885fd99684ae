//! PostgreSQL: what happened, in tables for those who ask about a sale.
//!
//! Lives here: the connection and the migrations. [`projection`] writes, [`rows`] says what.
//! To change a table: a new file below `schema/`, never a change of an old one, and a line in
//! `MIGRATIONS`.

pub mod projection;
mod rows;
pub mod sale;
mod tls;
mod write;

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio_postgres::{Client, NoTls, Socket};

use self::tls::{Address, Secure};
use crate::sink::Trouble;

pub use projection::Projection;

/// Where the database is and who we are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// `postgres://user@host/database`, or `host=… user=… dbname=…`; with TLS by `sslmode` and the
    /// like (`tls.rs`).
    pub url: String,
    pub password_file: Option<PathBuf>,
}

/// A database that takes longer is away.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// In order, each applied once. An old one never changes: databases out there have it.
const MIGRATIONS: &[&str] =
    &[include_str!("postgres/schema/0001.sql"), include_str!("postgres/schema/0002.sql")];

/// Whether this could be where a database is, and if not, why.
pub fn is_address(url: &str) -> Result<(), String> {
    Address::parse(url).map(|_| ())
}

/// A connection; it ends with the client.
pub async fn connect(link: &Link) -> Result<Client, Trouble> {
    let Address { mut config, tls } = Address::parse(&link.url).map_err(Trouble::new)?;
    config.connect_timeout(CONNECT_WITHIN).application_name("waitroom");
    let password_file = link.password_file.clone();
    let read = tokio::task::spawn_blocking(move || {
        let password = password_file.map(|path| {
            let read = std::fs::read_to_string(&path);
            read.map_err(|error| format!("{}: {error}", path.display()))
        });
        let secure = tls.map(|files| Secure::new(&files));
        Ok::<_, String>((password.transpose()?, secure.transpose()?))
    });
    let (password, secure) = read.await.map_err(Trouble::new)?.map_err(Trouble::new)?;
    if let Some(password) = password {
        config.password(password.trim_end());
    }
    match secure {
        Some(secure) => {
            let (client, connection) = config.connect(secure).await.map_err(said)?;
            Ok(begun(client, connection))
        }
        None => {
            let (client, connection) = config.connect(NoTls).await.map_err(said)?;
            Ok(begun(client, connection))
        }
    }
}

fn begun<T>(client: Client, connection: tokio_postgres::Connection<Socket, T>) -> Client
where
    T: tokio_postgres::tls::TlsStream + Unpin + Send + 'static,
{
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "the connection to PostgreSQL ended");
        }
    });
    client
}

/// A database with our tables, and the one connection to it that all rooms share: they take turns,
/// and a batch is a few round trips.
#[derive(Debug)]
pub(crate) struct Database {
    link: Link,
    client: Mutex<Option<Client>>,
}

impl Database {
    pub fn at(link: Link) -> Database {
        Database { link, client: Mutex::default() }
    }

    /// Does something on the connection. It is given back only when all went well: whoever was
    /// dropped half-way takes it along, and the database forgets what was not committed.
    pub async fn with<T>(
        &self,
        work: impl AsyncFnOnce(&mut Client) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let mut kept = self.client.lock().await;
        let mut client = match kept.take() {
            Some(client) => client,
            None => {
                let mut client = connect(&self.link).await?;
                migrate(&mut client).await?;
                client
            }
        };
        let done = work(&mut client).await?;
        *kept = Some(client);
        Ok(done)
    }
}

/// Brings the tables up to date. Several instances may try at once.
pub async fn migrate(client: &mut Client) -> Result<(), Trouble> {
    let transaction = client.transaction().await.map_err(said)?;
    // A number that nobody else is likely to lock: "waitroom" in a telephone's letters.
    transaction.execute("SELECT pg_advisory_xact_lock(92487666)", &[]).await.map_err(said)?;
    transaction
        .batch_execute(
            "CREATE SCHEMA IF NOT EXISTS waitroom;
             CREATE TABLE IF NOT EXISTS waitroom.migrations (
                 version int PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())",
        )
        .await
        .map_err(said)?;
    let newest = "SELECT coalesce(max(version), 0) FROM waitroom.migrations";
    let newest: i32 = transaction.query_one(newest, &[]).await.map_err(said)?.get(0);
    let known = MIGRATIONS.len() as i32;
    if newest > known {
        let why = format!("its tables are of version {newest}, this release knows {known}");
        return Err(Trouble::new(why));
    }
    for (version, migration) in (1..).zip(MIGRATIONS).skip(newest as usize) {
        transaction.batch_execute(migration).await.map_err(said)?;
        let note = "INSERT INTO waitroom.migrations (version) VALUES ($1)";
        transaction.execute(note, &[&version]).await.map_err(said)?;
    }
    transaction.commit().await.map_err(said)
}

/// The client's own words are "db error"; the cause says which.
pub(crate) fn said(error: tokio_postgres::Error) -> Trouble {
    let cause = std::error::Error::source(&error).map(|it| format!(": {it}"));
    Trouble::new(format!("PostgreSQL: {error}{}", cause.unwrap_or_default()))
}
