//! Taking a room in from a portable file: servers that lost everything get a copy of the log.
//!
//! The file is checked to its end before anything is written. Its epochs count as used, and so many
//! more: tickets of the time between the copy and the loss had epochs of their own, and must not be
//! taken for tickets of now.

use std::path::Path;

use waitroom_store::{
    Appended, Error, Head, RoomName, Snapshot, Stored,
    disk::{RealDisk, RealFile},
    file::{EPOCHS_LEFT_OUT, Import, Portable, check_portable, snapshot_of_portable},
};

use crate::{
    inner::{Change, Inner},
    kept::{Kind, refused},
    record::{self, HEADER_BYTES},
    script::{Call, Script},
    snapshots,
    value::{Parts, digits},
};

/// Batches in one call: what a server does well within a few milliseconds.
const TOGETHER: usize = 64;

impl Inner {
    /// Everything is checked before anything is written; what is there already stays.
    pub async fn import(&self, from: &Path) -> Result<Import, Error> {
        let disk = RealDisk::new("");
        let import = check_portable(&disk, from)?;
        let room = &import.room;
        if self.tip(room).await?.head > Head::EMPTY {
            return Err(refused(format!("there is a room {room} already")));
        }
        let snapshot = snapshot_of_portable(&disk, from)?;
        let mut tip = import.base;
        let mut bytes = 0;
        self.adopt(&import, &mut tip, &mut bytes, &[]).await?;
        let (first, later) = match snapshot {
            Some(snapshot) if snapshot.at == import.base.head => (Some(snapshot), None),
            other => (None, other),
        };
        self.adopt_beginning(room, import.base, first).await?;
        let mut file: Portable<RealFile> = Portable::open(&disk, from)?;
        let mut together = Vec::with_capacity(TOGETHER);
        while let Some(stored) = file.next_batch()? {
            together.push(stored);
            if together.len() == TOGETHER {
                self.adopt(&import, &mut tip, &mut bytes, &together).await?;
                together.clear();
            }
        }
        self.adopt(&import, &mut tip, &mut bytes, &together).await?;
        if let Some(Snapshot { at, chain, chunks, .. }) = later {
            self.snapshot(room, at, chain, chunks.into_iter()).await?;
        }
        self.list(room).await?;
        Ok(import)
    }

    /// Writes batches behind `tip`, which moves with them.
    async fn adopt(
        &self,
        import: &Import,
        tip: &mut Appended,
        bytes: &mut u64,
        batches: &[Stored],
    ) -> Result<(), Error> {
        let room = &import.room;
        let keys = [self.keys.room_lease(room), self.keys.tip(room), self.keys.log(room)];
        let mut args: Vec<Vec<u8>> = vec![
            digits(tip.head.0).into(),
            tip.chain.0.into(),
            import.epoch.saturating_add(EPOCHS_LEFT_OUT).to_string().into(),
            HEADER_BYTES.to_string().into(),
            bytes.to_string().into(),
        ];
        for stored in batches {
            *bytes += stored.payload.len() as u64;
            args.push(digits(stored.head.0).into());
            args.push(record::write(&stored.link(), &stored.chain, &stored.payload));
            args.push(stored.at_ms.to_string().into());
            args.push(bytes.to_string().into());
            *tip = Appended { head: stored.head, chain: stored.chain };
        }
        let answer = self.lines.change(Call::script(Script::Adopt, &keys, args)).await?;
        match &*Parts::of(answer)?.text()? {
            "ok" => Ok(()),
            _ => Err(refused(format!("somebody else writes {room}"))),
        }
    }

    /// Where the log begins, and the snapshot that lies there.
    async fn adopt_beginning(
        &self,
        room: &RoomName,
        base: Appended,
        snapshot: Option<Snapshot>,
    ) -> Result<(), Error> {
        if base.head == Head::EMPTY {
            return Ok(());
        }
        let mut change = Change::default();
        change.fields.push(("trimmed".into(), digits(base.head.0)));
        if let Some(Snapshot { at, chain, chunks, .. }) = snapshot {
            let id = format!("{:032x}", crate::inner::mark());
            let key = self.keys.snapshot(room, &id);
            let (chunks, sum) = snapshots::upload(&self.asker, &key, chunks.into_iter()).await?;
            change.fields.push(("newest".into(), Kind { at, chain, id, chunks, sum }.text()));
            change.stays = Some(key);
        }
        let kept = self.kept(room).await?;
        match self.swap(room, &kept, change).await? {
            true => Ok(()),
            false => Err(refused(format!("somebody else changes {room}"))),
        }
    }
}
