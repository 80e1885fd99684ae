//! What joins feel when the bus is away: the same crowd, with the relay delivering and with the bus
//! killed under it, in turns; and how fast what was missed is told afterwards.

use std::sync::Arc;
use std::time::{Duration, Instant};

use waitroom_core::{Command, Join};
use waitroom_engine::{Engine, RoomHandle};
use waitroom_outbox::body::ReadyToken;
use waitroom_outbox::nats::{Link, NatsSink};
use waitroom_outbox::{Filter, Pace, Relay, SinkFigures};
use waitroom_store::{FileStore, SinkName};

use super::names::BenchNames;
use super::parts::Nats;
use super::{PATIENCE, streams};
use crate::bench::Scale;
use crate::bench::report::{Better, Expected, Figure, Measure};
use crate::bench::rooms;
use crate::failure::{Failure, OrFail, Outcome};

/// A busy sale, and still one that a bus keeps up with.
const LIVE_PER_S: u64 = 2_000;
/// Joins that come together, so many times a second.
const TOGETHER: u64 = 20;

/// `minute`: one outage of a minute, for `cargo xtask long events`.
pub async fn measure(
    engine: &Engine<FileStore>,
    scale: Scale,
    minute: bool,
) -> Outcome<Vec<Figure>> {
    let (rounds, each) = match scale {
        _ if minute => (1, Duration::from_secs(60)),
        Scale::Full => (5, Duration::from_secs(6)),
        Scale::Quick => (2, Duration::from_secs(3)),
    };
    let mut nats = Nats::start();
    let room = rooms::room(engine, "outage").await?;
    let link = Link { servers: nats.url(), credentials: None };
    let figures = Arc::new(SinkFigures::default());
    let relay = Relay {
        store: engine.store().clone(),
        room: room.name().clone(),
        name: SinkName::parse("outage").or_fail(|| "name the sink")?,
        sink: NatsSink::new(link, ReadyToken::Off, streams()),
        names: Arc::new(BenchNames::new(room.clone())),
        filter: Filter::everything(),
        pace: Pace { retry_most: Duration::from_millis(200), ..Pace::default() },
        figures: figures.clone(),
    };
    let running = tokio::spawn(async move { relay.run().await });
    let (mut up, mut down, mut drained, mut drain_took) = (vec![], vec![], 0, Duration::ZERO);
    let mut joining = Duration::ZERO;
    for round in 1..=rounds {
        eprintln!("joins: round {round} of {rounds}, {each:?} with the bus and {each:?} without");
        let began = Instant::now();
        up.extend(crowd(&room, each).await?);
        joining += began.elapsed();
        told(&room, &figures).await?;
        nats.kill();
        let away = crowd(&room, each).await?;
        drained += away.len() as u64;
        down.extend(away);
        nats.start_again();
        let began = Instant::now();
        told(&room, &figures).await?;
        drain_took += began.elapsed();
    }
    running.abort();
    let _ = running.await;
    let (joined, held) = (up.len() + down.len(), held(&nats.url()).await?);
    if held != joined as u64 {
        return Err(Failure::new(format!("{joined} joined and the bus holds {held} of them")));
    }
    // What they really came to: on a busy machine fewer than were asked for.
    let live = up.len() as f64 / joining.as_secs_f64();
    let (up, down) = (middle(up), middle(down));
    let drain = drained as f64 / drain_took.as_secs_f64();
    let times = |name: &str, value: f64| Measure::new(name, value, "times");
    let rate = |name: &str, value: f64| Measure::new(name, value, "1/s");
    let ms = |name: &str, time: Duration| Figure::alone(name, time.as_secs_f64() * 1e3, "ms");
    Ok(vec![
        Figure::beside(
            times("join_slowdown_bus_down", down.as_secs_f64() / up.as_secs_f64()),
            times("bus_up", 1.0),
            Better::Lower,
        )
        .expect(Expected::AtMost(1.2)),
        ms("join_ms_bus_up", up),
        ms("join_ms_bus_down", down),
        Figure::beside(rate("drain_after_outage", drain), rate("live", live), Better::Higher)
            .expect(Expected::RatioAtLeast(5.0)),
    ])
}

/// People who come at a steady pace; how long each waited for the answer.
async fn crowd(room: &RoomHandle, during: Duration) -> Outcome<Vec<Duration>> {
    let gap = Duration::from_secs(1) / (LIVE_PER_S / TOGETHER) as u32;
    let mut groups = Vec::new();
    let mut ticks = tokio::time::interval(gap);
    for _ in 0..during.as_nanos() / gap.as_nanos() {
        ticks.tick().await;
        let room = room.clone();
        groups.push(tokio::spawn(async move {
            let began = Instant::now();
            let joins = vec![Command::Join(Join::default()); TOGETHER as usize];
            room.send_many(joins).await.map(|_| began.elapsed())
        }));
    }
    let mut waits = Vec::new();
    for group in groups {
        let waited = group.await.or_fail(|| "join")?.or_fail(|| "join")?;
        waits.extend(std::iter::repeat_n(waited, TOGETHER as usize));
    }
    Ok(waits)
}

/// Waits until everything is told.
async fn told(room: &RoomHandle, figures: &SinkFigures) -> Outcome {
    let began = Instant::now();
    let head = room.committed();
    while figures.lags(0).iter().all(|lag| lag.at < head) {
        if began.elapsed() > PATIENCE {
            return Err(Failure::new("the bus came back and the relay did not"));
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

/// How many messages about places the bus holds; repeats are dropped by their ids.
async fn held(url: &str) -> Outcome<u64> {
    let client = async_nats::connect(url).await.or_fail(|| "connect to NATS")?;
    let context = async_nats::jetstream::new(client);
    let stream = context.get_stream("POSITION_EVENTS").await.or_fail(|| "find the stream")?;
    Ok(stream.cached_info().state.messages)
}

fn middle(mut waits: Vec<Duration>) -> Duration {
    waits.sort_unstable();
    waits.get(waits.len() / 2).copied().unwrap_or_default()
}
