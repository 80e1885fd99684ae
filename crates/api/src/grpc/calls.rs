//! The calls, one method each.

use std::sync::Arc;

use tonic::{Request, Response, Status};
use waitroom_core::id::TicketId;
use waitroom_core::{Command, Presented, Reply, State, Status as Ticket};

use super::House;
use super::checkout::Checkout;
use super::credential;
use super::positions::Positions;
use super::proto::{
    GetQueueStatusRequest, GetQueueStatusResponse, HealthCheckRequest, HealthCheckResponse,
    JoinQueueRequest, JoinQueueResponse, LeaveQueueRequest, LeaveQueueResponse,
    StreamQueuePositionRequest, waitroom_service_server::WaitroomService,
};
use super::refusal::{expired, no_settings, refused};
use super::session::{Standing, expires_at, moment};
use crate::answer::Sight;
use crate::desk::RoomDesk;
use crate::problem::{Code, Problem, status_word};
use crate::request::bad_field;
use crate::visitor::join::{Joiner, place};

/// As long as over HTTP.
const USER_BYTES_MAX: usize = 256;

/// The calls of one connection.
#[derive(Debug)]
pub struct Calls {
    house: Arc<House>,
    standing: credential::Standing,
}

impl Calls {
    pub(super) fn new(house: Arc<House>, standing: credential::Standing) -> Calls {
        Calls { house, standing }
    }

    /// The message of a call, once it is clear that the caller may make it.
    fn admitted<M>(&self, request: Request<M>) -> Result<M, Status> {
        let headers: &http::HeaderMap = request.metadata().as_ref();
        self.standing.admit(&self.house.desk, headers).map_err(refused)?;
        Ok(request.into_inner())
    }

    fn find(&self, session_id: &str) -> Result<(Arc<RoomDesk>, Presented), Problem> {
        if session_id.is_empty() {
            return Err(bad_field("session_id", "the id that JoinQueue gave"));
        }
        let found = TicketId::parse(session_id).ok().and_then(|id| self.house.desk.find(id));
        let unknown = || Problem::new(Code::TicketUnknown, "");
        found.ok_or_else(|| self.house.desk.unopened.not_found(unknown()))
    }
}

#[tonic::async_trait]
impl WaitroomService for Calls {
    async fn join_queue(
        &self,
        request: Request<JoinQueueRequest>,
    ) -> Result<Response<JoinQueueResponse>, Status> {
        let asked = self.admitted(request)?;
        if asked.user_id.is_empty() || asked.user_id.len() > USER_BYTES_MAX {
            return Err(refused(bad_field("user_id", "1 to 256 bytes")));
        }
        if asked.event_id.is_empty() {
            return Err(refused(bad_field("event_id", "the name of a room")));
        }
        let room = self.house.desk.room(&asked.event_id).map_err(refused)?;
        let settings = room.settings().ok_or_else(no_settings)?;
        // Address and user agent are taken and not kept: nothing here needs them, and what is not
        // kept cannot be lost.
        let joiner = Joiner { user: Some(asked.user_id), ..Joiner::default() };
        let (sight, _) = place(&room, Some(&settings), joiner).await.map_err(refused)?;
        let board = room.handle().board_guard();
        let standing = Standing::of(board.state(), &sight);
        Ok(Response::new(JoinQueueResponse {
            session_id: sight.id.to_string(),
            position: standing.position,
            queue_length: standing.queue_length,
            queued_at: moment(sight.view.joined_at),
            expires_at: expires_at(board.state(), &sight.view, room.now()),
            websocket_url: websocket_url(&self.house.desk.manners.public_url, &room),
        }))
    }

    async fn get_queue_status(
        &self,
        request: Request<GetQueueStatusRequest>,
    ) -> Result<Response<GetQueueStatusResponse>, Status> {
        let asked = self.admitted(request)?;
        let (room, presented) = self.find(&asked.session_id).map_err(refused)?;
        let answer = look(&room, presented, |state, sight| self.house.tell(&room, state, sight));
        Ok(Response::new(answer.await.map_err(refused)?))
    }

    async fn leave_queue(
        &self,
        request: Request<LeaveQueueRequest>,
    ) -> Result<Response<LeaveQueueResponse>, Status> {
        let asked = self.admitted(request)?;
        let (room, presented) = self.find(&asked.session_id).map_err(refused)?;
        let (sight, reply) =
            room.act(presented, Command::Leave(presented)).await.map_err(refused)?;
        // These clients send no version along, so the board must know before they do: whoever
        // asks next would otherwise be told of a place that was given back.
        room.board_since(sight.version).await;
        let Reply::Over { status, .. } = reply else {
            let problem = Problem::new(Code::Internal, "a leave was answered by something else");
            return Err(refused(problem));
        };
        let message = match status {
            Ticket::Left => "left the queue",
            // Who leaves from inside is done.
            Ticket::Completed => "session completed",
            Ticket::Expired => return Err(expired("it was over before")),
            status => {
                let detail = format!("the ticket is {}", status_word(status));
                return Err(refused(Problem::new(Code::WrongStatus, detail)));
            }
        };
        Ok(Response::new(LeaveQueueResponse {
            session_id: sight.id.to_string(),
            message: message.to_owned(),
        }))
    }

    type StreamQueuePositionStream = Positions;

    async fn stream_queue_position(
        &self,
        request: Request<StreamQueuePositionRequest>,
    ) -> Result<Response<Positions>, Status> {
        let asked = self.admitted(request)?;
        let (room, presented) = self.find(&asked.session_id).map_err(refused)?;
        Ok(Response::new(Positions::open(self.house.clone(), room, presented)))
    }

    async fn health_check(
        &self,
        _: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        Ok(Response::new(self.house.probe.report(&self.house.desk).await))
    }
}

/// Looks a ticket up and tells of it what `tell` says. Counts as a heartbeat.
///
/// Clients of this contract never claim: they wait for a token. So a ticket that is found admitted
/// is claimed for them first. Where that fails, now, the ticket is told as it is, and the next look
/// tries again.
pub(super) async fn look<R>(
    room: &RoomDesk,
    presented: Presented,
    tell: impl Fn(&State, &Sight) -> R,
) -> Result<R, Problem> {
    let board = room.handle().board_guard();
    let sight = match room.look(&board, &presented) {
        Ok(sight) if sight.view.status != Ticket::Admitted => {
            room.handle().beat(sight.view.ticket);
            return Ok(tell(board.state(), &sight));
        }
        Err(problem) if !room.is_behind(&board, &problem) => return Err(problem),
        seen => seen,
    };
    drop(board);
    let sight = match sight {
        Ok(sight) => sight,
        // The ticket is younger than the board.
        Err(_) => {
            let (board, stale) = room.newest_board().await;
            room.look(&board, &presented).map_err(|problem| room.waited(stale, problem))?
        }
    };
    let sight = if sight.view.status == Ticket::Admitted {
        let presented = sight.presented;
        room.act(presented, Command::Claim(presented)).await.map_or(sight, |(claimed, _)| claimed)
    } else {
        sight
    };
    room.handle().beat(sight.view.ticket);
    Ok(tell(room.handle().board_guard().state(), &sight))
}

impl House {
    fn tell(&self, room: &RoomDesk, state: &State, sight: &Sight) -> GetQueueStatusResponse {
        let view = &sight.view;
        let standing = Standing::of(state, sight);
        let Checkout { token, url } = self.checkouts.of(&self.desk, room, state, sight);
        GetQueueStatusResponse {
            session_id: sight.id.to_string(),
            status: standing.status.into(),
            position: standing.position,
            queue_length: standing.queue_length,
            queued_at: moment(view.joined_at),
            expires_at: expires_at(state, view, room.now()),
            checkout_token: token,
            checkout_url: url,
            checkout_expires_at: moment(view.session.map(|session| session.pass_expires_at)),
            admitted_at: moment(view.admitted_at),
        }
    }
}

/// Where a page can follow the room live; empty when the server was not told its own address.
fn websocket_url(public_url: &str, room: &RoomDesk) -> String {
    let Some(rest) = public_url.strip_prefix("http") else { return String::new() };
    format!("ws{}/v1/rooms/{}/live", rest.trim_end_matches('/'), room.name())
}
