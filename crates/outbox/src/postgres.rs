//! PostgreSQL: what happened, in tables for those who ask about a sale.
//!
//! Lives here: the connection and the migrations. [`projection`] writes, [`rows`] says what.
//! To change a table: a new file below `schema/`, never a change of an old one, and a line in
//! `MIGRATIONS`.

pub mod projection;
mod rows;
pub mod sale;
mod write;

use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::{Client, Config, NoTls};

use crate::sink::Trouble;

pub use projection::Projection;

/// Where the database is and who we are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// `postgres://user@host/database`, or `host=… user=… dbname=…`.
    pub url: String,
    pub password_file: Option<PathBuf>,
}

/// A database that takes longer is away.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// In order, each applied once. An old one never changes: databases out there have it.
const MIGRATIONS: &[&str] =
    &[include_str!("postgres/schema/0001.sql"), include_str!("postgres/schema/0002.sql")];

/// Whether this could be where a database is.
pub fn is_address(url: &str) -> bool {
    url.parse::<Config>().is_ok_and(|it| !it.get_hosts().is_empty())
}

/// A connection; it ends with the client.
pub async fn connect(link: &Link) -> Result<Client, Trouble> {
    let mut config: Config = link.url.parse().map_err(said)?;
    config.connect_timeout(CONNECT_WITHIN).application_name("waitroom");
    if let Some(path) = &link.password_file {
        let read = tokio::task::spawn_blocking({
            let path = path.clone();
            move || std::fs::read_to_string(path)
        });
        let read = read.await.map_err(Trouble::new)?;
        let password = read.map_err(|it| Trouble::new(format!("{}: {it}", path.display())))?;
        config.password(password.trim_end());
    }
    let (client, connection) = config.connect(NoTls).await.map_err(said)?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "the connection to PostgreSQL ended");
        }
    });
    Ok(client)
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
