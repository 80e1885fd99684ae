//! Waiting as a known user of a shop that speaks gRPC.
//!
//! Its answers carry no version and no place, so the judge learns less from them: that the same
//! user gets the same ticket, and that no ticket is lost.

use std::sync::atomic::Ordering;

use tonic::Status;

use crate::history::{Got, Sent, Verb};
use crate::tally::{End, Fate, Stage};
use crate::wire::proto::{
    GetQueueStatusRequest, JoinQueueRequest, LeaveQueueRequest, StreamQueuePositionRequest,
};
use crate::wire::{refusal, status_name};

use super::{Held, Turn, Visitor};

impl Visitor {
    pub(super) async fn join_by_rpc(&mut self) -> Result<Option<Turn>, Fate> {
        let Some(rpc) = self.world.rpc.clone() else { return Err(Fate::Refused) };
        let user = format!("crowd-{:x}-{}", self.world.start.wall_ms, self.who);
        for attempt in 1.. {
            let message = JoinQueueRequest {
                user_id: user.clone(),
                event_id: self.world.plan.room.clone(),
                user_agent: "waitroom crowd".into(),
                ip_address: self.address.clone().unwrap_or_default(),
            };
            let request = rpc.request(message, self.address.as_deref());
            let t0 = self.world.start.ns();
            let answer = rpc.client(self.who).join_queue(request).await;
            let answer = answer.map(tonic::Response::into_inner);
            let sent = Sent { user: Some(user.clone().into()), ..Sent::default() };
            let got = answer.as_ref().map(|it| fine(&it.session_id, ""));
            self.heard(Verb::Join, "grpc_join", t0, sent, got).await;
            match answer {
                Ok(joined) => {
                    self.held = Some(Held { id: joined.session_id, token: None, pass: None });
                    self.world.tally.joined.fetch_add(1, Ordering::Relaxed);
                    self.step(Stage::Waiting);
                    return Ok(None);
                }
                Err(status) if !may_pass(&status) => break,
                Err(_) => {}
            }
            let pause = self.backoff(attempt, None);
            if !self.stop.sleep(pause).await {
                break;
            }
        }
        Err(Fate::Refused)
    }

    /// Half of them ask now and then, half follow the stream.
    pub(super) async fn follow_by_rpc(&mut self) -> Turn {
        let streams = self.rng.chance(0.5);
        let mut attempt = 0;
        loop {
            let usual = (2_000.0 / self.world.plan.speed).max(20.0) as u64;
            let pause = if attempt > 0 { self.backoff(attempt, None) } else { usual };
            if let Some(turn) = self.patience(pause).await {
                return turn;
            }
            if streams && let Some(turn) = self.stream_by_rpc().await {
                return turn;
            }
            match self.status_by_rpc().await {
                Ok("waiting" | "") => attempt = 0,
                Ok("admitted" | "active") => return Turn::Come,
                Ok("completed") => return Turn::Fate(Fate::Completed),
                Ok("left") => return Turn::Fate(Fate::Left),
                Ok(_) => return Turn::Fate(Fate::Ended),
                Err(status) if !may_pass(&status) => return Turn::Fate(Fate::Ended),
                Err(_) => attempt += 1,
            }
        }
    }

    pub(super) async fn look_once_by_rpc(&mut self) -> bool {
        self.status_by_rpc().await.map_or_else(|status| !may_pass(&status), |_| true)
    }

    async fn status_by_rpc(&mut self) -> Result<&'static str, Status> {
        let nothing = || Status::not_found("no ticket to ask for");
        let rpc = self.world.rpc.clone().ok_or_else(nothing)?;
        let session_id = self.held.as_ref().ok_or_else(nothing)?.id.clone();
        let message = GetQueueStatusRequest { session_id: session_id.clone() };
        let request = rpc.request(message, self.address.as_deref());
        let t0 = self.world.start.ns();
        let answer = rpc.client(self.who).get_queue_status(request).await;
        let answer = answer.map(|it| status_name(it.into_inner().status));
        let got = answer.as_ref().map(|status| fine(&session_id, status));
        let sent = Sent { ticket: Some(session_id.clone().into()), ..Sent::default() };
        self.heard(Verb::Status, "grpc_status", t0, sent, got).await;
        answer
    }

    /// Until the stream says that it is our turn; none when it breaks or ends.
    async fn stream_by_rpc(&mut self) -> Option<Turn> {
        let rpc = self.world.rpc.clone()?;
        let session_id = self.held.as_ref()?.id.clone();
        let message = StreamQueuePositionRequest { session_id };
        let request = rpc.request(message, self.address.as_deref());
        let mut client = rpc.client(self.who);
        let mut stream = client.stream_queue_position(request).await.ok()?.into_inner();
        let mut lowest = i64::MAX;
        loop {
            let next = tokio::select! {
                next = stream.message() => next.ok()??,
                rest = self.rest(10_000) => match self.after(rest).await {
                    Some(turn) => return Some(turn),
                    None => continue,
                },
            };
            self.world.tally.frames.fetch_add(1, Ordering::Relaxed);
            // One stream is one reader of one room: its positions never rise.
            if next.position > lowest {
                let said = format!("visitor {} stream: {lowest}, then {}", self.who, next.position);
                self.world.tally.surprise(said);
            }
            lowest = lowest.min(next.position);
            if matches!(status_name(next.status), "admitted" | "active") {
                return Some(Turn::Come);
            }
        }
    }

    pub(super) async fn leave_by_rpc(&mut self) -> Fate {
        let (Some(rpc), Some(held)) = (self.world.rpc.clone(), self.held.clone()) else {
            return Fate::Silent;
        };
        let message = LeaveQueueRequest { session_id: held.id.clone() };
        let request = rpc.request(message, self.address.as_deref());
        let t0 = self.world.start.ns();
        let answer = rpc.client(self.who).leave_queue(request).await;
        let got = answer.as_ref().map(|_| fine(&held.id, ""));
        let sent = Sent { ticket: Some(held.id.clone().into()), ..Sent::default() };
        self.heard(Verb::Leave, "grpc_leave", t0, sent, got).await;
        if answer.is_ok() { Fate::Left } else { Fate::Silent }
    }

    async fn heard(
        &self,
        verb: Verb,
        name: &'static str,
        t0: u64,
        sent: Sent<'static>,
        got: Result<Got<'static>, &Status>,
    ) {
        let t1 = self.world.start.ns();
        let got = got.unwrap_or_else(refusal);
        let end = if got.is_unknown() { End::Lost } else { End::of(got.is_fine()) };
        let tally = &self.world.tally;
        tally.call(name, end, t1 - t0);
        if end == End::Refused {
            let number = got.grpc.unwrap_or_default();
            let code = got.code.as_deref().map_or(format!("grpc {number}"), str::to_owned);
            tally.problem(&code);
        }
        let got = (end != End::Lost).then_some(got);
        self.note(verb, (t0, t1), None, sent, got).await;
    }
}

fn fine(ticket: &str, status: &'static str) -> Got<'static> {
    Got {
        ticket: Some(ticket.to_owned().into()),
        status: (!status.is_empty()).then(|| status.into()),
        grpc: Some(0),
        ..Got::default()
    }
}

/// Whether the same call may be answered otherwise later.
fn may_pass(status: &Status) -> bool {
    use tonic::Code::*;
    matches!(
        status.code(),
        Cancelled
            | Unknown
            | DeadlineExceeded
            | ResourceExhausted
            | Aborted
            | Internal
            | Unavailable
    )
}
