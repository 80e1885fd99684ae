//! Whether this instance should be asked: the service's own `HealthCheck`, and `grpc.health.v1`
//! for balancers.
//!
//! Neither needs a key, so neither tells anything of rooms but their number, and neither can be
//! used to make work: what was found out is told for a second.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, timeout};
use tonic::server::NamedService;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{self, health_server};
use waitroom_core::{Command, Epoch, Presented, Ticket};

use super::calls::Calls;
use super::proto::HealthCheckResponse;
use super::proto::waitroom_service_server::WaitroomServiceServer;
use super::refusal::refused;
use super::watched::Watched;
use crate::desk::{Desk, RoomDesk};
use crate::problem::{Code, Problem};

/// How long a finding is told before it is looked for again.
const FRESH: Duration = Duration::from_secs(1);
/// A writer answers within milliseconds; a room that was lost is tried again within five seconds.
const PROBE_WITHIN: Duration = Duration::from_secs(1);
/// Rooms asked for one finding, each time the next ones: an instance may have hundreds.
const PROBED: usize = 8;

/// Finds out whether rooms can write.
#[derive(Debug, Default)]
pub struct Probe {
    found: Mutex<Option<(Instant, bool)>>,
    turn: AtomicUsize,
}

impl Probe {
    pub async fn report(&self, desk: &Desk) -> HealthCheckResponse {
        let rooms = desk.rooms();
        let writes = self.writes(&rooms).await;
        let status = match (*desk.draining.borrow(), writes) {
            (true, _) => "draining",
            (false, true) => "healthy",
            (false, false) => "unhealthy",
        };
        let store = if writes { "healthy" } else { "unhealthy" };
        HealthCheckResponse {
            status: status.to_owned(),
            service: "waitroom".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            kafka_enabled: false,
            components: HashMap::from([
                ("store".to_owned(), store.to_owned()),
                ("rooms".to_owned(), format!("{} open", rooms.len())),
            ]),
        }
    }

    /// Held over the asking, so that a crowd of checks asks once.
    async fn writes(&self, rooms: &[Arc<RoomDesk>]) -> bool {
        let mut found = self.found.lock().await;
        if let Some((at, writes)) = *found
            && at.elapsed() < FRESH
        {
            return writes;
        }
        let first = self.turn.fetch_add(PROBED, Ordering::Relaxed);
        let asked = rooms.iter().cycle().skip(first % rooms.len().max(1));
        let all = async {
            for room in asked.take(PROBED.min(rooms.len())) {
                if !answers(room).await {
                    return false;
                }
            }
            true
        };
        let writes = timeout(PROBE_WITHIN, all).await.unwrap_or(false);
        *found = Some((Instant::now(), writes));
        writes
    }
}

/// Whether the room's writer has the store: the claim of a ticket that nobody can hold goes all
/// the way to it, waits for what is being written, and is refused without an event.
async fn answers(room: &RoomDesk) -> bool {
    let nobody = Presented::by_service(Ticket::new(u8::MAX, u64::MAX >> 24), Epoch(0));
    room.handle().send(Command::Claim(nobody)).await.is_ok()
}

/// `grpc.health.v1`: serving, until the instance drains.
#[derive(Debug)]
pub struct Health {
    draining: watch::Receiver<bool>,
}

impl Health {
    pub fn new(desk: &Desk) -> Health {
        Health { draining: desk.draining.subscribe() }
    }
}

/// The whole server goes by the empty name.
fn known(service: &str) -> Result<(), Status> {
    if service.is_empty() || service == WaitroomServiceServer::<Calls>::NAME {
        return Ok(());
    }
    Err(refused(Problem::new(Code::NotFound, "no service of that name is served here")))
}

pub(super) fn serving(draining: bool) -> pb::HealthCheckResponse {
    let status = if draining { ServingStatus::NotServing } else { ServingStatus::Serving };
    pb::HealthCheckResponse { status: status.into() }
}

#[tonic::async_trait]
impl health_server::Health for Health {
    async fn check(
        &self,
        request: Request<pb::HealthCheckRequest>,
    ) -> Result<Response<pb::HealthCheckResponse>, Status> {
        known(&request.get_ref().service)?;
        Ok(Response::new(serving(*self.draining.borrow())))
    }

    type WatchStream = Watched;

    async fn watch(
        &self,
        request: Request<pb::HealthCheckRequest>,
    ) -> Result<Response<Watched>, Status> {
        known(&request.get_ref().service)?;
        Ok(Response::new(Watched::new(self.draining.clone())))
    }
}
