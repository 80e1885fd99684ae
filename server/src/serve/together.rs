//! Several instances on one store: what this one tells the others, and what it hears of them.
//!
//! Lives here: the cluster, wired to the configuration and to the rooms; and following the
//! `_system` log, so that a room, an API key or a pass key that was made at one instance is good at
//! every other. Stays out: who owns what (`waitroom_cluster`).

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use waitroom_api::Desk;
use waitroom_api::desk::{ClusterDesk, ClusterFigures, Pending};
use waitroom_cluster::{Certificates, Cluster, Identity, Rooms, Service, UsedTicket};
use waitroom_listen::{Listener, Peer};
use waitroom_pass::LiveMark;
use waitroom_store::seal::MasterKey;
use waitroom_store::{Clock, RoomName, Store};

use super::installation::House;
use super::{keys, rooms, say};
use crate::config::Config;
use crate::failure::{Exit, Failure};

/// How long a stop waits until the others have taken over what was owned here.
const HANDED_OVER_WITHIN: Duration = Duration::from_secs(5);
/// After the `_system` log could not be read.
const RETRY: Duration = Duration::from_millis(500);

/// What runs besides the rooms, until it is ended.
#[derive(Debug)]
pub struct Together {
    cluster: Arc<Cluster>,
    tasks: Vec<JoinHandle<()>>,
}

/// This instance as the others know it.
pub fn cluster(
    config: &Config,
    instance: &str,
    listener: &Listener,
    master: &MasterKey,
    clock: Arc<dyn Clock>,
) -> Result<Arc<Cluster>, Failure> {
    let address = config.cluster.advertise.clone();
    let identity = Identity {
        instance: instance.to_owned(),
        address: address.unwrap_or_else(|| listener.local_addr().to_string()),
        release: env!("CARGO_PKG_VERSION").to_owned(),
        secret: master.hash_key("cluster").hash(b"instances of one installation"),
        certificates: certificates(config)?,
    };
    Ok(Cluster::new(identity, clock))
}

fn certificates(config: &Config) -> Result<Option<Certificates>, Failure> {
    let of = &config.cluster;
    let (Some(cert), Some(key), Some(ca)) = (&of.cert, &of.key, &of.ca) else { return Ok(None) };
    Certificates::load(cert, key, ca).map(Some).map_err(|why| {
        Failure::new(Exit::Usage, format!("cluster.cert: {why}")).means("the server does not start")
    })
}

impl Together {
    /// Joins the others. Comes before rooms are opened, so that nobody asks for what others own.
    pub async fn join<S: Store + Clone>(
        cluster: Arc<Cluster>,
        listener: Listener,
        house: &Arc<House<S>>,
    ) -> Result<Together, Failure> {
        let rooms: Arc<dyn Rooms> = house.clone();
        cluster.serves(Arc::downgrade(&rooms));
        let store = house.engine.store().clone();
        cluster.look(&*store).await.map_err(|error| {
            Failure::new(Exit::Unavailable, format!("the list of instances: {error}"))
                .means("the server does not start")
        })?;
        let service = Service::new(cluster.clone());
        let make = move |peer: &Peer| service.of(peer.client_cert.is_some());
        let tasks = vec![
            tokio::spawn(async move {
                listener.serve(make, std::future::pending()).await;
            }),
            tokio::spawn(cluster.clone().run(store)),
            tokio::spawn(cluster.clone().report_beats()),
        ];
        Ok(Together { cluster, tasks })
    }

    /// From now on operators see it, and what others write is taken over.
    pub fn attend<S: Store + Clone>(&mut self, house: &Arc<House<S>>, desk: &Arc<Desk>) {
        let _ = desk.cluster.set(Arc::new(Seen(self.cluster.clone())));
        let (writer, writes) = (desk.signatures.live_tickets.writer(), Arc::downgrade(desk));
        let use_up = move |UsedTicket { writer, ends_ms, name }: &UsedTicket| {
            let Some(desk) = writes.upgrade() else { return false };
            let mark = LiveMark { writer: *writer, ends_ms: *ends_ms, name: *name };
            desk.signatures.live_tickets.use_up(&mark, desk.clock.wall_ms()).is_ok()
        };
        self.cluster.writes_tickets(writer, Arc::new(use_up));
        self.tasks.push(tokio::spawn(follow_system(house.clone(), desk.clone())));
    }

    /// Gives every room to the others while visitors are still served.
    pub async fn hand_over(&self) {
        let before = self.cluster.about().rooms.len();
        let left = self.cluster.drain(HANDED_OVER_WITHIN).await;
        say::handed_over(before - left.min(before), left);
    }

    /// The last thing before the end.
    pub async fn leave<S: Store>(self, store: &S) {
        for task in &self.tasks {
            task.abort();
        }
        self.cluster.leave(store).await;
    }
}

struct Seen(Arc<Cluster>);

impl ClusterDesk for Seen {
    fn picture(&self) -> serde_json::Value {
        serde_json::to_value(self.0.picture()).expect("plain data can be written")
    }

    fn use_live_ticket(&self, mark: LiveMark) -> Pending<'static, bool> {
        let (cluster, LiveMark { writer, ends_ms, name }) = (self.0.clone(), mark);
        Box::pin(async move { cluster.use_ticket(UsedTicket { writer, ends_ms, name }).await })
    }

    fn figures(&self) -> ClusterFigures {
        let figures = &self.0.figures;
        ClusterFigures {
            instances: self.0.picture().instances.len() as u64,
            rooms_owned: self.0.about().rooms.len() as u64,
            sent_on: figures.sent_on.get(),
            taken_in: figures.taken_in.get(),
            unknown: figures.unknown.get(),
            takeovers: figures.takeovers.get(),
            handovers: figures.handovers.get(),
        }
    }
}

/// Takes over what other instances write, until it is aborted.
async fn follow_system<S: Store + Clone>(house: Arc<House<S>>, desk: Arc<Desk>) {
    let store = house.engine.store().clone();
    loop {
        let at = house.system.lock().await.tip().head;
        let read = match store.follow(&RoomName::system(), at).await {
            Ok(_) => house.system.lock().await.catch_up().await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(why) = read {
            tracing::debug!(why, "the _system log cannot be followed");
            tokio::time::sleep(RETRY).await;
            continue;
        }
        let rooms: Vec<RoomName> = {
            let system = house.system.lock().await;
            house.keyring.take(system.api_keys());
            keys::adopt(&system, &desk.signatures.passes, desk.now_s());
            system.rooms().filter_map(|(name, _)| RoomName::parse(name).ok()).collect()
        };
        open_all(&desk, rooms).await;
    }
}

/// Opens what is new. What cannot be opened is noted, and tried again by `rooms::keep_trying`; where
/// the reason lies here, the room's task has told the others, so that one of them has it meanwhile. A
/// store that is away, or another that is writing, is none.
async fn open_all(desk: &Desk, rooms: Vec<RoomName>) {
    for room in rooms {
        let known = desk.room(room.as_str()).is_ok();
        if !known && !desk.unopened.rooms().contains_key(&room) {
            rooms::try_open(desk, &room).await;
        }
    }
}
