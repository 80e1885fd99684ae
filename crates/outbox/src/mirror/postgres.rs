//! A mirror in a table of PostgreSQL: a row for each piece, numbered in each room.

use tokio_postgres::{Client, GenericClient};
use waitroom_store::{Head, RoomName, Stored};

use super::{Pieces, Terms, cannot_skip, never_forgets};
use crate::keeper::{Keeper, Standing};
use crate::names::Names;
use crate::postgres::{Database, Link, connect, said};
use crate::sink::Trouble;

#[derive(Debug)]
pub struct PostgresMirror {
    terms: Terms,
    database: Database,
}

/// The newest piece of a room: its number, and where the mirror stands with it.
const NEWEST: &str = "SELECT number, piece FROM waitroom.mirror
                      WHERE room = $1 ORDER BY number DESC LIMIT 1";

/// Of two that write at once the key lets one, and the other sees where things stand.
const INSERT: &str = "INSERT INTO waitroom.mirror (room, number, head, piece)
                      SELECT $1, n.* FROM unnest($2::bigint[], $3::bigint[], $4::bytea[]) AS n";

const PAGE: &str = "SELECT number, piece FROM waitroom.mirror
                    WHERE room = $1 AND number > $2 ORDER BY number LIMIT 256";

impl PostgresMirror {
    pub fn new(link: Link, terms: Terms) -> PostgresMirror {
        PostgresMirror { terms, database: Database::at(link) }
    }

    /// The number of the newest piece of a room, and where the mirror stands with it.
    async fn newest(
        &self,
        on: &impl GenericClient,
        room: &RoomName,
    ) -> Result<(i64, Standing), Trouble> {
        match on.query_opt(NEWEST, &[&room.as_str()]).await.map_err(said)? {
            Some(row) => Ok((row.get(0), self.terms.standing(room, row.get(1))?)),
            None => Ok((0, Standing::NOWHERE)),
        }
    }
}

async fn insert(
    on: &impl GenericClient,
    room: &RoomName,
    after: i64,
    pieces: Pieces,
) -> Result<(), Trouble> {
    let numbers: Vec<i64> = (after + 1..).take(pieces.len()).collect();
    let pieces = pieces.into_iter().map(|(head, piece)| (head.0 as i64, piece));
    let (heads, pieces): (Vec<i64>, Vec<Vec<u8>>) = pieces.unzip();
    let with: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
        [&room.as_str(), &numbers, &heads, &pieces];
    on.execute(INSERT, &with).await.map_err(said)?;
    Ok(())
}

impl Keeper for PostgresMirror {
    async fn stands(&self, room: &RoomName) -> Result<Option<Standing>, Trouble> {
        self.database.with(async |client| Ok(Some(self.newest(client, room).await?.1))).await
    }

    async fn keep(
        &self,
        room: &RoomName,
        _: &dyn Names,
        batches: &[Stored],
    ) -> Result<(), Trouble> {
        let keep = async |client: &mut Client| {
            let transaction = client.transaction().await.map_err(said)?;
            let (number, at) = self.newest(&transaction, room).await?;
            let (_, pieces) = self.terms.pieces(room, at, batches)?;
            insert(&transaction, room, number, pieces).await?;
            transaction.commit().await.map_err(said)
        };
        self.database.with(keep).await
    }

    async fn rest(&self, room: &RoomName, names: &dyn Names) -> Result<(), Trouble> {
        let rest = async |client: &mut Client| {
            let (number, held) = self.newest(client, room).await?;
            match self.terms.mark(room, held, names).await {
                none if none.is_empty() => Ok(()),
                mark => insert(client, room, number, mark).await,
            }
        };
        self.database.with(rest).await
    }

    async fn skip(&self, room: &RoomName, to: Head) -> Result<(), Trouble> {
        Err(cannot_skip(room, to))
    }

    async fn forget(&self, room: &RoomName) -> Result<(), Trouble> {
        Err(never_forgets(room))
    }
}

pub(super) async fn read<E>(
    link: &Link,
    room: &RoomName,
    mut take: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<Result<(), E>, Trouble> {
    let client = connect(link).await?;
    let mut after = 0i64;
    loop {
        let rows = client.query(PAGE, &[&room.as_str(), &after]).await.map_err(said)?;
        let Some(last) = rows.last() else { return Ok(Ok(())) };
        after = last.get(0);
        for row in &rows {
            if let Err(enough) = take(row.get(1)) {
                return Ok(Err(enough));
            }
        }
    }
}
