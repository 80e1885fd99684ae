//! Recovery: one process makes a room and stops, another one brings it back from the disk.
//!
//! The room has a snapshot with everybody in it and a tail of a million events behind it: joins,
//! leaves from anywhere, admissions. While the snapshot is written through the store the tail is
//! appended, so the peak of memory holds the copies that this causes. The files are dropped from
//! the kernel's cache before the second process opens them. Both say the room's digest.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use rustix::fs::Advice;
use tokio::runtime::Runtime;
use waitroom_core::{Command, Epoch, Reply, Room, State};
use waitroom_engine::recover::recover;
use waitroom_engine::writer::Writer;
use waitroom_store::file::Options;
use waitroom_store::{Batch, FileStore, Head, Lease, LeaseName, RoomName, Seams, Store};

use super::super::cpu::process_cpu;
use super::super::part::Part;
use super::super::process::{forget_peak, resident, resident_peak};
use super::super::report::Measure;
use super::crowd::{BEGIN, Crowd, admit, after, configure, presented, scattered, settings};
use crate::failure::{Failure, OrFail, Outcome};

/// Events behind the snapshot.
const TAIL: u64 = 1_000_000;
/// Events in a batch: few syncs, as this is not what is measured here.
const BATCH: usize = 65_536;

/// Makes the room, in a process of its own.
pub fn prepare(folder: &Path, crowd: Crowd, people: u64) -> Outcome<Part> {
    let runtime = runtime()?;
    let (part, digest) = runtime.block_on(async {
        let mut owner = Owner::open(folder).await?;
        for n in 0..people {
            owner.apply(n, &crowd.join(n)).await?;
        }
        owner.commit().await?;
        let before = resident()?;
        forget_peak()?;
        let snapshot = owner.snapshot(owner.writer.state().clone());
        let writing = tokio::spawn(snapshot);
        owner.tail(crowd, people).await?;
        let took = writing.await.or_fail(|| "write the snapshot")??;
        let peak = resident_peak()?.saturating_sub(before) as f64 / 1e6;
        let measures = vec![
            Measure::new("snapshot_peak_mb", peak, "MB"),
            Measure::new("snapshot_write_s", took, "s"),
        ];
        Ok::<_, Failure>((Part::of(measures), digest(owner.writer.state())))
    })?;
    forget_files(folder)?;
    Ok(Part { digest: Some(digest), ..part })
}

/// Brings it back, in another process.
pub fn bring_back(folder: &Path) -> Outcome<Part> {
    let runtime = runtime()?;
    let (began, cpu) = (Instant::now(), process_cpu());
    let recovered = runtime.block_on(async {
        let (store, _) =
            FileStore::open(folder, Options::default(), Seams::real()).or_fail(|| "open")?;
        recover(&store, &room_name()).await.or_fail(|| "recover the room")
    })?;
    let (took, spent) = (began.elapsed().as_secs_f64(), process_cpu() - cpu);
    let replayed = recovered.head - recovered.from_snapshot;
    if recovered.from_snapshot == 0 || replayed < TAIL {
        return Err(Failure::new(format!(
            "recovery began at {} and replayed {replayed} events, not {TAIL}",
            recovered.from_snapshot
        )));
    }
    let measures = vec![
        Measure::new("recovery_s", took, "s"),
        Measure::new("recovery_cpu_s", spent.as_secs_f64(), "s"),
        Measure::new("recovery_peak_mb", resident_peak()? as f64 / 1e6, "MB"),
    ];
    Ok(Part { measures, digest: Some(digest(recovered.room.state())) })
}

/// The owner of the room: the engine's writer with the store's appends, one after the other.
struct Owner {
    store: Arc<FileStore>,
    lease: Lease,
    writer: Writer,
    tip: waitroom_store::Appended,
}

impl Owner {
    async fn open(folder: &Path) -> Outcome<Self> {
        let (store, _) =
            FileStore::open(folder, Options::default(), Seams::real()).or_fail(|| "open")?;
        let lease = store.lease(&LeaseName::room(&room_name()), "bench", 3_600_000).await;
        let lease = lease.or_fail(|| "take the lease")?;
        let writer = Writer::open(Room::new(), 0, Epoch(lease.epoch), BEGIN);
        let tip = waitroom_store::Appended::default();
        let mut owner = Self { store: Arc::new(store), lease, writer, tip };
        owner.apply(0, &configure(settings())).await?;
        owner.commit().await?;
        Ok(owner)
    }

    async fn apply(&mut self, n: u64, command: &Command) -> Outcome {
        let reply = self.writer.apply(after(n), command);
        if let Reply::Refused(refusal) = reply {
            return Err(Failure::new(format!("{command:?} was refused: {refusal:?}")));
        }
        if self.writer.round_events().len() >= BATCH { self.commit().await } else { Ok(()) }
    }

    async fn commit(&mut self) -> Outcome {
        let Some(round) = self.writer.cut() else { return Ok(()) };
        let batch = Batch { number: round.number, events: round.events, payload: round.payload };
        let append = self.store.append(&room_name(), &self.lease, Head(round.expected), batch);
        self.tip = append.await.or_fail(|| "append")?;
        Ok(())
    }

    /// Writes a snapshot of what is durable now, and says how long that took in seconds.
    fn snapshot(&self, state: State) -> impl Future<Output = Outcome<f64>> + Send + 'static {
        let (store, tip) = (self.store.clone(), self.tip);
        async move {
            let began = Instant::now();
            let chunks = state.into_snapshot();
            let taken = store.snapshot(&room_name(), tip.head, tip.chain, chunks).await;
            taken.or_fail(|| "take a snapshot")?;
            Ok(began.elapsed().as_secs_f64())
        }
    }

    /// A million events more: of each 20, 14 join, 5 leave, and now and then 1,000 enter.
    async fn tail(&mut self, crowd: Crowd, people: u64) -> Outcome {
        let mut came = people;
        // The front is left to the admissions.
        let from = people / 2;
        let mut leavers = scattered(people - from);
        let begin = self.writer.head();
        while self.writer.head() + self.writer.round_events().len() as u64 <= begin + TAIL {
            for _ in 0..14_000 {
                self.apply(came, &crowd.join(came)).await?;
                came += 1;
            }
            for number in leavers.by_ref().take(5_000) {
                self.apply(came, &Command::Leave(presented(from + number))).await?;
            }
            self.apply(came, &admit(1_000)).await?;
        }
        self.commit().await
    }
}

fn room_name() -> RoomName {
    RoomName::parse("spring-sale").expect("letters and a dash make a name")
}

fn runtime() -> Outcome<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_time().build().or_fail(|| "start a runtime")
}

fn digest(state: &State) -> String {
    state.digest().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Asks the kernel to drop the files from its cache, so that the next process reads the disk.
fn forget_files(folder: &Path) -> Outcome {
    let attempt = || format!("read {}", folder.display());
    for entry in std::fs::read_dir(folder).or_fail(attempt)? {
        let path = entry.or_fail(attempt)?.path();
        if path.is_dir() {
            forget_files(&path)?;
            continue;
        }
        let file = File::open(&path).or_fail(|| format!("open {}", path.display()))?;
        // Only what is written back can be dropped.
        file.sync_all().or_fail(|| format!("sync {}", path.display()))?;
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).or_fail(attempt)?;
    }
    Ok(())
}
