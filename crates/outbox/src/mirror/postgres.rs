//! A mirror in a table of PostgreSQL: a row for each piece, numbered in each room.

use tokio::sync::Mutex;
use tokio_postgres::{Client, GenericClient};
use waitroom_store::{Appended, Chain, Head, RoomName, Stored};

use super::piece::{Piece, of_mark};
use super::{Marks, cannot_skip, never_forgets, pieces};
use crate::keeper::{Keeper, Standing};
use crate::names::Names;
use crate::postgres::{Link, connect, migrate, said};
use crate::sink::Trouble;

#[derive(Debug)]
pub struct PostgresMirror {
    link: Link,
    marks: Marks,
    client: Mutex<Option<Client>>,
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
    pub fn new(link: Link, marks: Marks) -> PostgresMirror {
        PostgresMirror { link, marks, client: Mutex::default() }
    }

    /// As in the projection: given back only when all went well.
    async fn with<T>(
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

async fn newest(on: &impl GenericClient, room: &RoomName) -> Result<(i64, Standing), Trouble> {
    let Some(row) = on.query_opt(NEWEST, &[&room.as_str()]).await.map_err(said)? else {
        return Ok((0, Standing::NOWHERE));
    };
    let piece: &[u8] = row.get(1);
    let unread = || Trouble::new("the newest row of the mirror is no piece of ours");
    let Appended { head, chain } = Piece::read(piece).ok_or_else(unread)?.standing();
    Ok((row.get(0), Standing { head, chain: Some(chain) }))
}

async fn insert(
    on: &impl GenericClient,
    room: &RoomName,
    after: i64,
    pieces: Vec<(Head, Vec<u8>)>,
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
        self.with(async |client| Ok(Some(newest(client, room).await?.1))).await
    }

    async fn keep(
        &self,
        room: &RoomName,
        _: &dyn Names,
        batches: &[Stored],
    ) -> Result<(), Trouble> {
        self.with(async |client| {
            let transaction = client.transaction().await.map_err(said)?;
            let (number, at) = newest(&transaction, room).await?;
            let (_, pieces) = pieces(room, at, batches)?;
            insert(&transaction, room, number, pieces).await?;
            transaction.commit().await.map_err(said)
        })
        .await
    }

    async fn rest(&self, room: &RoomName, names: &dyn Names) -> Result<(), Trouble> {
        self.with(async |client| {
            let (number, Standing { head, chain }) = newest(client, room).await?;
            let Some(mark) = self.marks.due(room, head, names).await else { return Ok(()) };
            let held = Appended { head, chain: chain.unwrap_or(Chain::START) };
            let piece = (head, of_mark(&mark, held));
            insert(client, room, number, vec![piece]).await
        })
        .await
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
