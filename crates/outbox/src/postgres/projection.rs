//! A room's log as tables: tickets, admissions, sessions, events.
//!
//! What a batch changes and how far the log is told are written in one transaction. So whatever is
//! killed when, the tables are those of some point of the log, and going on from there makes them
//! the same as if nothing had happened. Dropped and told again, they come out alike.

use tokio_postgres::Transaction;
use waitroom_core::{Epoch, codec};
use waitroom_store::{Chain, Head, RoomName, Stored};

use super::rows::Rows;
use super::write::{number, write};
use super::{Database, Link, said};
use crate::keeper::{Keeper, Standing, other_history};
use crate::names::Names;
use crate::sink::Trouble;

#[derive(Debug)]
pub struct Projection(Database);

impl Projection {
    pub fn new(link: Link) -> Projection {
        Projection(Database::at(link))
    }
}

/// The tables that hold a room, besides its own row.
const OF_ROOM: [&str; 4] = ["tickets", "admissions", "sessions", "events"];

impl Keeper for Projection {
    async fn stands(&self, room: &RoomName) -> Result<Option<Standing>, Trouble> {
        self.0
            .with(async |client| {
                let transaction = client.transaction().await.map_err(said)?;
                let held = held(&transaction, room).await?;
                transaction.commit().await.map_err(said)?;
                Ok(Some(held))
            })
            .await
    }

    async fn keep(
        &self,
        room: &RoomName,
        names: &dyn Names,
        batches: &[Stored],
    ) -> Result<(), Trouble> {
        self.0
            .with(async |client| {
                let transaction = client.transaction().await.map_err(said)?;
                let mut held = held(&transaction, room).await?;
                let mut rows = Rows::default();
                for batch in batches {
                    if batch.head <= held.head {
                        continue;
                    }
                    let next =
                        held.with(room, batch).ok_or_else(|| other_history(room, held.head))?;
                    let mut events = Vec::with_capacity(batch.events as usize);
                    codec::decode(&batch.payload, |event| events.push(event)).map_err(
                        |damaged| {
                            Trouble::new(format!(
                                "the batch at {} is damaged: {}",
                                batch.head, damaged.0
                            ))
                        },
                    )?;
                    for (head, event) in (batch.after.0 + 1..).zip(&events) {
                        if head <= held.head.0 {
                            continue;
                        }
                        let epoch = Epoch(batch.epoch);
                        rows.take(head, event, |ticket| names.id(ticket, epoch).to_string());
                        if rows.must_be_written() {
                            write(&transaction, room, std::mem::take(&mut rows)).await?;
                        }
                    }
                    held = next;
                }
                write(&transaction, room, rows).await?;
                let note = "UPDATE waitroom.rooms SET head = $2, chain = $3 WHERE room = $1";
                let chain = held.chain.map(|chain| chain.0.to_vec());
                let with: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
                    [&room.as_str(), &number(held.head.0), &chain];
                transaction.execute(note, &with).await.map_err(said)?;
                transaction.commit().await.map_err(said)
            })
            .await
    }

    async fn rest(&self, _: &RoomName, _: &dyn Names) -> Result<(), Trouble> {
        Ok(())
    }

    /// Figures of before are missing, and the row says so; better than no figures.
    async fn skip(&self, room: &RoomName, to: Head) -> Result<(), Trouble> {
        self.0
            .with(async |client| {
                let skip = "UPDATE waitroom.rooms SET head = $2, gap_to = $2, chain = NULL
                        WHERE room = $1";
                client.execute(skip, &[&room.as_str(), &number(to.0)]).await.map_err(said)?;
                Ok(())
            })
            .await
    }

    async fn forget(&self, room: &RoomName) -> Result<(), Trouble> {
        self.0
            .with(async |client| {
                let transaction = client.transaction().await.map_err(said)?;
                for table in OF_ROOM.into_iter().chain(["rooms"]) {
                    let delete = format!("DELETE FROM waitroom.{table} WHERE room = $1");
                    transaction.execute(&delete, &[&room.as_str()]).await.map_err(said)?;
                }
                transaction.commit().await.map_err(said)
            })
            .await
    }
}

/// Reads a room's row and keeps it from others until the end of the transaction.
async fn held(on: &Transaction<'_>, room: &RoomName) -> Result<Standing, Trouble> {
    let make = "INSERT INTO waitroom.rooms (room, chain) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    on.execute(make, &[&room.as_str(), &Chain::START.0.to_vec()]).await.map_err(said)?;
    let look = "SELECT head, chain FROM waitroom.rooms WHERE room = $1 FOR UPDATE";
    let row = on.query_one(look, &[&room.as_str()]).await.map_err(said)?;
    let chain: Option<Vec<u8>> = row.get(1);
    let chain = chain.and_then(|it| <[u8; 32]>::try_from(it).ok()).map(Chain);
    Ok(Standing { head: Head(row.get::<_, i64>(0) as u64), chain })
}
