//! Many rooms, most of them idle: what a room costs when nothing happens in it, and how long a
//! join takes that comes to one of them now and then.

use std::path::Path;
use std::time::Instant;

use waitroom_core::{Command, Join};
use waitroom_engine::RoomHandle;

use super::super::Scale;
use super::super::classic::scatter;
use super::super::disk::{SyncProbe, percentile};
use super::super::part::Part;
use super::super::process::resident;
use super::super::report::Measure;
use super::super::rooms::{self, is_new_place};
use crate::failure::{Failure, OrFail, Outcome};

/// Joins by which the rooms come alive: a few at a time, in rooms all over.
const JOINS: u64 = 2_000;
const AT_ONCE: u64 = 4;
/// Rooms opened at the same time; they share syncs.
const OPENED_AT_ONCE: usize = 64;

pub fn measure(folder: &Path, count: u64) -> Outcome<Part> {
    let disk = SyncProbe::measure(folder, Scale::Quick)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build();
    let runtime = runtime.or_fail(|| "start a runtime")?;
    let (bytes, mut times) = runtime.block_on(async {
        let engine = &rooms::engine(&folder.join("store"))?;
        let before = resident()?;
        let mut handles: Vec<RoomHandle> = vec![];
        let names: Vec<String> = (0..count).map(|n| format!("room-{n}")).collect();
        for names in names.chunks(OPENED_AT_ONCE) {
            for opened in together(names.iter().map(|name| rooms::room(engine, name))).await {
                handles.push(opened?);
            }
        }
        let bytes = resident()?.saturating_sub(before);
        let mut times = vec![];
        for n in (0..JOINS).step_by(AT_ONCE as usize) {
            let picked = (n..n + AT_ONCE).map(|n| &handles[(scatter(n) % count) as usize]);
            for took in together(picked.map(join)).await {
                times.push(took?);
            }
        }
        engine.stop().await;
        Ok::<_, Failure>((bytes, times))
    })?;
    times.sort_unstable();
    let ms =
        |name: &str, time: std::time::Duration| Measure::new(name, time.as_secs_f64() * 1e3, "ms");
    Ok(Part::of(vec![
        ms("idle_rooms_ack_p50_ms", percentile(&times, 50)),
        ms("idle_rooms_ack_p99_ms", percentile(&times, 99)),
        ms("fdatasync_p50_ms", disk.p50),
        ms("fdatasync_p99_ms", disk.p99),
        Measure::new("idle_room_kb", bytes as f64 / count as f64 / 1e3, "KB"),
    ]))
}

async fn join(room: &RoomHandle) -> Outcome<std::time::Duration> {
    let began = Instant::now();
    let answer = room.send(Command::Join(Join::default())).await.or_fail(|| "join")?;
    let took = began.elapsed();
    if is_new_place(&answer.reply) { Ok(took) } else { Err(Failure::new("no new place")) }
}

/// Polls all of them until each is done, in this task.
async fn together<T>(all: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut waiting: Vec<_> = all.map(|one| (Box::pin(one), None)).collect();
    std::future::poll_fn(|context| {
        let mut left = 0;
        for (one, done) in waiting.iter_mut().filter(|(_, done)| done.is_none()) {
            match one.as_mut().poll(context) {
                std::task::Poll::Ready(value) => *done = Some(value),
                std::task::Poll::Pending => left += 1,
            }
        }
        if left == 0 { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    waiting.into_iter().map(|(_, done)| done.expect("all are done")).collect()
}
