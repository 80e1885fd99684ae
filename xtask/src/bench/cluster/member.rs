//! One of several instances that share a room: an engine on Redis among its peers, in a process of
//! its own. Whoever does not own the room sends joins on, as a server does.
//!
//! Reads orders from stdin and answers each with a number: `round MS` lets producers join for so
//! long and says how many did, `settled N` waits until it sees so many instances and an owner and
//! says whether that is itself, `slow MS` lets few producers join for so long and says how slow the
//! slowest hundredth of the joins was, in milliseconds, `slowest` the slowest of those, `give` hands
//! the room over and says how long that took, `fill N` lets so many join and says what version the
//! room has then, `seen V` waits until that version is shown here, `first` asks for a place until
//! somebody gives one. It ends with its orders.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use waitroom_cluster::{Cluster, Identity, Rooms, Service};
use waitroom_core::{Command, Join};
use waitroom_engine::{Engine, Peers, RoomHandle};
use waitroom_listen::{Listener, Protocols, Settings};
use waitroom_redis::RedisStore;
use waitroom_store::{RoomName, Seams};

use super::super::rooms::{self, is_new_place};
use super::instance::{each_order, engine_among, join_all};
use crate::failure::{Failure, OrFail, Outcome};

/// How long anything but joining may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Those of `slow`: few, so that what is measured is the room and not the queue before it.
const CALM: u64 = 16;

pub struct Member {
    runtime: Runtime,
    cluster: Arc<Cluster>,
    room: RoomHandle,
    producers: u64,
    slowest_ms: f64,
    /// Held: whoever lets go of it closes the rooms.
    _rooms: Arc<Here>,
}

struct Here(Engine<RedisStore>);

impl Rooms for Here {
    fn room(&self, name: &str) -> Option<RoomHandle> {
        self.0.room(&RoomName::parse(name).ok()?)
    }

    fn names(&self) -> Vec<String> {
        self.0.names().iter().map(RoomName::to_string).collect()
    }
}

impl Member {
    pub fn start(runtime: Runtime, address: &str, room: &str, producers: u64) -> Outcome<Member> {
        let (cluster, rooms, room) = runtime.block_on(join_in(address, room))?;
        Ok(Member { runtime, cluster, room, producers, slowest_ms: 0.0, _rooms: rooms })
    }

    pub fn serve(mut self) -> Outcome {
        each_order(|order| match order.split_once(' ').unwrap_or((order, "")) {
            ("round", ms) => {
                let each = self.joins(millis(ms)?, self.producers)?;
                Ok(each.len() as f64)
            }
            ("settled", count) => {
                self.settled(count.parse().or_fail(|| "read the number of instances")?)
            }
            ("slow", ms) => {
                let mut each = self.joins(millis(ms)?, CALM)?;
                each.sort_unstable();
                let at = each.len().saturating_sub(1 + each.len() / 100);
                let ms = |took: Option<&Duration>| took.map_or(0.0, |it| it.as_secs_f64() * 1e3);
                self.slowest_ms = ms(each.last());
                Ok(ms(each.get(at)))
            }
            ("slowest", _) => Ok(self.slowest_ms),
            ("give", _) => {
                let began = Instant::now();
                match self.runtime.block_on(self.cluster.drain(PATIENCE)) {
                    0 => Ok(began.elapsed().as_secs_f64() * 1e3),
                    _ => Err(Failure::new("nobody took the room")),
                }
            }
            ("fill", people) => self.fill(people.parse().or_fail(|| "read the number of people")?),
            ("seen", version) => {
                self.seen(version.parse().or_fail(|| "read the version of the room")?)
            }
            ("first", _) => self.first(),
            _ => Err(Failure::new(format!("a member cannot {order:?}"))),
        })
    }

    /// Asks, waits for the durable answer, asks again. How long each took.
    fn joins(&self, length: Duration, producers: u64) -> Outcome<Vec<Duration>> {
        let stop = Arc::new(AtomicBool::new(false));
        self.runtime.block_on(async {
            let produce = |_| {
                let (room, stop) = (self.room.clone(), stop.clone());
                tokio::spawn(async move {
                    let mut each = Vec::new();
                    while !stop.load(Ordering::Relaxed) {
                        let sent = Instant::now();
                        let answer = room.send(Command::Join(Join::default())).await;
                        let answer = answer.or_fail(|| "join")?;
                        if !is_new_place(&answer.reply) {
                            return Err(Failure::new("a join got no new place"));
                        }
                        each.push(sent.elapsed());
                    }
                    Ok(each)
                })
            };
            let producers: Vec<_> = (0..producers).map(produce).collect();
            tokio::time::sleep(length).await;
            stop.store(true, Ordering::Relaxed);
            let mut all = Vec::new();
            for producer in producers {
                all.extend(producer.await.or_fail(|| "wait for a producer")??);
            }
            Ok(all)
        })
    }

    fn fill(&self, people: u64) -> Outcome<f64> {
        self.runtime.block_on(join_all(&self.room, 0..people, true))?;
        Ok(self.room.committed() as f64)
    }

    fn seen(&self, version: u64) -> Outcome<f64> {
        let board = self
            .runtime
            .block_on(async { tokio::time::timeout(PATIENCE, self.room.board_at(version)).await });
        Ok(board.or_fail(|| "follow the room")?.version() as f64)
    }

    /// How often somebody who asks for a place is sent away, before there is one again.
    fn first(&self) -> Outcome<f64> {
        let (began, mut refused) = (Instant::now(), 0.0);
        loop {
            let answer = self.runtime.block_on(self.room.send(Command::Join(Join::default())));
            match answer {
                Ok(answer) if is_new_place(&answer.reply) => return Ok(refused),
                Ok(answer) => return Err(Failure::new(format!("no place: {:?}", answer.reply))),
                Err(why) if began.elapsed() > PATIENCE => {
                    return Err(Failure::new(format!("nobody took the room over: {why}")));
                }
                Err(_) => refused += 1.0,
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether this one owns the room, once everybody is there and somebody does for good.
    fn settled(&self, count: usize) -> Outcome<f64> {
        let began = Instant::now();
        loop {
            let picture = self.cluster.picture();
            let room = picture.rooms.iter().find(|it| it.room == self.room.name().as_str());
            let owner = room.filter(|it| it.owner == it.preferred).and_then(|it| it.owner.clone());
            if let (true, Some(owner)) = (picture.instances.len() == count, owner) {
                return Ok(f64::from(u8::from(owner == picture.instance)));
            }
            if began.elapsed() > PATIENCE {
                return Err(Failure::new(format!("the instances do not settle: {picture:?}")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn millis(text: &str) -> Outcome<Duration> {
    Ok(Duration::from_millis(text.parse().or_fail(|| "read a time in milliseconds")?))
}

/// Comes up among those who are there, and opens the room: owned or followed.
async fn join_in(address: &str, room: &str) -> Outcome<(Arc<Cluster>, Arc<Here>, RoomHandle)> {
    let seams = Seams::real();
    let mut settings = Settings::new(vec![([127, 0, 0, 1], 0).into()]);
    settings.protocols = Protocols::Http2;
    let listener = Listener::bind(settings).or_fail(|| "listen for the others")?;
    let identity = Identity {
        instance: format!("bench-{}", std::process::id()),
        address: listener.local_addr().to_string(),
        release: "bench".to_owned(),
        secret: [7; 32],
        certificates: None,
    };
    let cluster = Cluster::new(identity, seams.clock.clone());
    let peers: Arc<dyn Peers> = cluster.clone();
    let here = Arc::new(Here(engine_among(address, Some(peers)).await?));
    let rooms: Arc<dyn Rooms> = here.clone();
    cluster.serves(Arc::downgrade(&rooms));
    let store = here.0.store().clone();
    cluster.look(&*store).await.or_fail(|| "look who is there")?;
    let service = Service::new(cluster.clone());
    tokio::spawn(listener.serve(move |_| service.of(false), std::future::pending()));
    tokio::spawn(cluster.clone().run(store));
    tokio::spawn(cluster.clone().report_beats());
    let room = rooms::room(&here.0, room).await?;
    cluster.is_up();
    Ok((cluster, here, room))
}
