//! The store on Redis: the contract, call by call.
//!
//! Lives here: opening it, and the calls. They run as tasks of the runtime in which the store was
//! opened, so that whoever waits for one may be on any thread, and who stops waiting stops nothing.
//! Stays out: what they ask (`inner.rs`); connections, groups and scripts, for which the crate's
//! first page says where they are.

use std::{fmt, path::Path, sync::Arc};

use tokio::{runtime::Handle, sync::oneshot};
use waitroom_store::{
    AppendError, Appended, Batch, Chain, Cursor, Error, Gap, Head, HeldBy, Holder, Lease,
    LeaseName, Member, Retention, RoomName, Seams, SinkName, Snapshot, Store, Stored, file::Import,
};

use crate::{
    ask::Asker,
    fitness::{Fitness, Unfit},
    follow::follow,
    inner::{Change, Inner},
    kept::{Kept, cursor_field, refused},
    keys::Keys,
    known::Known,
    line::{Append, Lines},
    now::Now,
    options::Options,
    place::Place,
    script::Call,
    trouble::Trouble,
    value,
};

/// A handle on the rooms of one Redis. Clones share connections and lines.
#[derive(Debug, Clone)]
pub struct RedisStore {
    inner: Arc<Inner>,
    runtime: Handle,
}

/// Why a store could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// An address cannot be read.
    Address(String),
    Away(String),
    /// The servers cannot keep the level that was asked for.
    Unfit(Vec<Unfit>),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Address(why) => f.write_str(why),
            OpenError::Away(why) => write!(f, "Redis cannot be reached: {why}"),
            OpenError::Unfit(all) => {
                let all: Vec<String> = all.iter().map(Unfit::to_string).collect();
                f.write_str(&all.join("; "))
            }
        }
    }
}

impl std::error::Error for OpenError {}

impl RedisStore {
    /// Opens it if the servers are fit for the level. Must be called within a runtime.
    pub async fn open(options: Options, seams: Seams) -> Result<(RedisStore, Fitness), OpenError> {
        let place = Place::new(&options).map_err(OpenError::Address)?;
        let fitness = Fitness::of(&place, &options).await?;
        let keys = Keys::new(&options.prefix);
        let now = Now { time: options.time, seams };
        let asker = Arc::new(Asker::new(place, options));
        let known = Arc::new(Known::default());
        let lines = Lines::start(&asker, &known, &keys, &now);
        let inner = Inner::new(asker, lines, known, keys, now);
        Ok((RedisStore { inner: Arc::new(inner), runtime: Handle::current() }, fitness))
    }

    /// Takes a room in from a portable file, where there is none of its name. Everything is
    /// checked before anything is written.
    pub async fn import(&self, from: &Path) -> Result<Import, Error> {
        let from = from.to_path_buf();
        self.run(move |inner| async move { inner.import(&from).await }).await
    }

    /// Runs a call as a task of the store's own runtime.
    async fn run<T, F>(&self, call: impl FnOnce(Arc<Inner>) -> F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let running = self.runtime.spawn(call(self.inner.clone()));
        running.await.unwrap_or_else(|ended| {
            if ended.is_panic() {
                std::panic::resume_unwind(ended.into_panic());
            }
            Err(Error::Unknown { why: "the store's runtime ended".into() })
        })
    }
}

impl Store for RedisStore {
    fn append(
        &self,
        room: &RoomName,
        lease: &Lease,
        expected: Head,
        batch: Batch,
    ) -> impl Future<Output = Result<Appended, AppendError>> + Send + 'static + use<> {
        let (answer, answered) = oneshot::channel();
        let (room, lease) = (room.clone(), lease.clone());
        let key = self.inner.keys.tip(&room);
        self.inner.lines.append(&key, Append { room, lease, expected, batch, answer });
        async move {
            let lost = |_| Err(AppendError::Unknown { why: "the store was closed".into() });
            answered.await.unwrap_or_else(lost)
        }
    }

    async fn read(&self, room: &RoomName, from: Head, max: usize) -> Result<Vec<Stored>, Error> {
        let room = room.clone();
        self.run(move |inner| async move { inner.read(&room, from, max).await }).await
    }

    async fn committed_head(&self, room: &RoomName) -> Result<Head, Error> {
        Ok(self.tip(room).await?.head)
    }

    async fn tip(&self, room: &RoomName) -> Result<Appended, Error> {
        let room = room.clone();
        self.run(move |inner| async move { inner.tip(&room).await }).await
    }

    fn follow(
        &self,
        room: &RoomName,
        from: Head,
    ) -> impl Future<Output = Result<Head, Error>> + Send + 'static + use<> {
        let (inner, room) = (self.inner.clone(), room.clone());
        let told = inner.known.follow(&room);
        let following = self.runtime.spawn(async move {
            let committed = || async { Ok(inner.tip(&room).await?.head) };
            follow(told, from, committed).await
        });
        // Nobody asks on behalf of who stopped waiting.
        let mut following = Following(following);
        async move {
            let ended = |_| Err(Error::Unavailable { why: "the store was closed".into() });
            (&mut following.0).await.unwrap_or_else(ended)
        }
    }

    async fn trimmed_to(&self, room: &RoomName) -> Result<Head, Error> {
        let room = room.clone();
        self.run(move |inner| async move { Ok(inner.kept(&room).await?.trimmed_to) }).await
    }

    async fn snapshot(
        &self,
        room: &RoomName,
        at: Head,
        chain: Chain,
        chunks: impl Iterator<Item = Vec<u8>> + Send + 'static,
    ) -> Result<(), Error> {
        let room = room.clone();
        self.run(move |inner| async move { inner.snapshot(&room, at, chain, chunks).await }).await
    }

    async fn latest_snapshot(&self, room: &RoomName) -> Result<Option<Snapshot>, Error> {
        let room = room.clone();
        self.run(move |inner| async move { inner.latest_snapshot(&room).await }).await
    }

    async fn trim(&self, room: &RoomName, to: Head) -> Result<(), Error> {
        if room.is_system() && to > Head::EMPTY {
            return Err(Error::AboveFloor { floor: Head::EMPTY, held_by: HeldBy::Retention });
        }
        let room = room.clone();
        self.run(move |inner| async move {
            let trim = |kept: &Kept| {
                kept.there(&room)?;
                let change = |fields| Change { fields, trim_to: Some(to), ..Change::default() };
                Ok(((), kept.trim(to)?.map(change)))
            };
            inner.change(&room, trim).await
        })
        .await
    }

    async fn trim_limit(&self, room: &RoomName) -> Result<Head, Error> {
        let room = room.clone();
        self.run(move |inner| async move {
            let kept = inner.kept(&room).await?;
            let before_newest = kept.snapshots.iter().rev().nth(1).map(|kind| kind.at);
            let limit = match room.is_system() {
                true => Head::EMPTY,
                false => kept.floor(before_newest, &[]).0,
            };
            Ok(limit.max(kept.trimmed_to))
        })
        .await
    }

    async fn keep_from(&self, room: &RoomName, floor: Option<Head>) -> Result<(), Error> {
        let room = room.clone();
        self.run(move |inner| async move {
            let keep = |kept: &Kept| {
                kept.there(&room)?;
                let floor = floor.map(|floor| value::digits(floor.0)).unwrap_or_default();
                let fields = vec![("floor".to_owned(), floor)];
                Ok(((), Some(Change { fields, ..Change::default() })))
            };
            inner.change(&room, keep).await
        })
        .await
    }

    async fn lease(&self, name: &LeaseName, who: &str, ttl_ms: u64) -> Result<Lease, Error> {
        let (name, who) = (name.clone(), who.to_owned());
        self.run(move |inner| async move { inner.lease(&name, &who, ttl_ms).await }).await
    }

    async fn renew(&self, lease: &Lease, ttl_ms: u64) -> Result<(), Error> {
        let lease = lease.clone();
        self.run(move |inner| async move { inner.hold(&lease, Some(ttl_ms)).await }).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), Error> {
        let lease = lease.clone();
        self.run(move |inner| async move { inner.hold(&lease, None).await }).await
    }

    async fn holder_of(&self, name: &LeaseName) -> Result<Option<Holder>, Error> {
        let name = name.clone();
        self.run(move |inner| async move { inner.holder_of(&name).await }).await
    }

    async fn cursor(&self, room: &RoomName, sink: &SinkName) -> Result<Option<Cursor>, Error> {
        let (room, sink) = (room.clone(), sink.clone());
        let look = |inner: Arc<Inner>| async move {
            Ok(inner.kept(&room).await?.cursors.get(&sink).copied())
        };
        self.run(look).await
    }

    async fn cursors(&self, room: &RoomName) -> Result<Vec<(SinkName, Cursor)>, Error> {
        let room = room.clone();
        let look = |inner: Arc<Inner>| async move {
            Ok(inner.kept(&room).await?.cursors.into_iter().collect())
        };
        self.run(look).await
    }

    async fn advance(&self, room: &RoomName, sink: &SinkName, to: Head) -> Result<Cursor, Error> {
        let (room, sink) = (room.clone(), sink.clone());
        self.run(move |inner| async move {
            let advance = |kept: &Kept| {
                let cursor = kept.advance(kept.there(&room)?, &sink, to)?;
                let fields = vec![cursor_field(&sink, Some(cursor))];
                Ok((cursor, Some(Change { fields, ..Change::default() })))
            };
            inner.change(&room, advance).await
        })
        .await
    }

    async fn drop_cursor(&self, room: &RoomName, sink: &SinkName) -> Result<(), Error> {
        let (room, sink) = (room.clone(), sink.clone());
        self.run(move |inner| async move {
            let drop = |kept: &Kept| {
                let change = kept.cursors.contains_key(&sink).then(|| {
                    let fields = vec![cursor_field(&sink, None)];
                    Change { fields, ..Change::default() }
                });
                Ok(((), change))
            };
            inner.change(&room, drop).await
        })
        .await
    }

    async fn mark_broken(&self, room: &RoomName, sink: &SinkName, to: Head) -> Result<Gap, Error> {
        let (room, sink) = (room.clone(), sink.clone());
        self.run(move |inner| async move {
            let give_up = |kept: &Kept| {
                let cursor = kept.mark_broken(kept.there(&room)?, &sink, to)?;
                let fields = vec![cursor_field(&sink, Some(cursor))];
                let gap = cursor.gap.expect("a broken cursor has one");
                Ok((gap, Some(Change { fields, ..Change::default() })))
            };
            inner.change(&room, give_up).await
        })
        .await
    }

    async fn retire(
        &self,
        room: &RoomName,
        keep: Retention,
    ) -> Result<Vec<(SinkName, Gap)>, Error> {
        let room = room.clone();
        self.run(move |inner| async move { inner.retire(&room, keep).await }).await
    }

    async fn announce(&self, instance: &str, about: Vec<u8>, ttl_ms: u64) -> Result<(), Error> {
        let new = Some((instance.to_owned(), about, ttl_ms));
        self.run(move |inner| async move { inner.members(new).await.map(drop) }).await
    }

    async fn instances(&self) -> Result<Vec<Member>, Error> {
        self.run(move |inner| async move { inner.members(None).await }).await
    }

    async fn publish_board(&self, room: &RoomName, board: Vec<u8>) -> Result<(), Error> {
        let call = Call::plain("SET", self.inner.keys.board(room), &[&board]);
        let publish = |inner: Arc<Inner>| async move {
            inner.asker.look(call).await.map(drop).map_err(Trouble::of_look)
        };
        self.run(publish).await
    }

    async fn board(&self, room: &RoomName) -> Result<Option<Vec<u8>>, Error> {
        let call = Call::plain("GET", self.inner.keys.board(room), &[]);
        let look = |inner: Arc<Inner>| async move {
            match inner.asker.look(call).await.map_err(Trouble::of_look)? {
                redis::Value::Nil => Ok(None),
                board => Ok(Some(value::bytes(board)?)),
            }
        };
        self.run(look).await
    }

    async fn rooms(&self) -> Result<Vec<RoomName>, Error> {
        self.run(move |inner| async move { inner.rooms().await }).await
    }

    async fn remove_room(&self, room: &RoomName) -> Result<(), Error> {
        if room.is_system() {
            return Err(refused("the _system log stays"));
        }
        let room = room.clone();
        self.run(move |inner| async move { inner.remove_room(&room).await }).await
    }
}

/// A follower that stops asking when nobody waits for it any more.
struct Following(tokio::task::JoinHandle<Result<Head, Error>>);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}
