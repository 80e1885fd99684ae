//! `POST …/join`: a place in line, or the one that the caller has already.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Response, StatusCode, request::Parts};
use hyper::body::{Body as _, Incoming};
use serde::Deserialize;
use utoipa::ToSchema;
use waitroom_core::{Command, Fresh, Join, JoinKey, LaneId, Presented, Reply, Settings};
use waitroom_engine::Submitted;
use waitroom_pass::JoinLane;

use super::{Answering, Ask, Cookie, with_token};
use crate::answer::{Sight, VisitorAnswer};
use crate::body::Body;
use crate::caller::{API_KEY_HEADER, ApiCaller, Role, token_text};
use crate::desk::{Desk, RoomDesk};
use crate::limits::Route;
use crate::problem::{Code, Problem};
use crate::request::{bad_field, json, whole_body};

/// What may come with a join. Everything is optional; a visitor sends nothing at all.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinBody {
    /// The lane's name. Counts only from a caller with an API key.
    pub lane: Option<String>,
    /// The shop's name for the person: one place each. Counts only from a caller with an API key.
    pub user_id: Option<String>,
    /// Up to 1 KB that events carry. Counts only from a caller with an API key.
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<serde_json::Map<String, serde_json::Value>>,
    /// A JWT signed by the shop that says who joins, and in which lane.
    pub join_token: Option<String>,
    /// The answer to a challenge, where the room asks for one.
    #[schema(value_type = Option<Object>)]
    pub challenge: Option<serde_json::Value>,
}

/// Who joins, once it is clear whom to believe.
#[derive(Debug, Default)]
pub struct Joiner {
    pub lane: LaneId,
    pub user: Option<String>,
    pub metadata: Option<Vec<u8>>,
    /// Names one attempt, so that a repeat finds it.
    pub key: Option<JoinKey>,
    pub holding: Option<Presented>,
}

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// A key shorter than this cannot hold 128 random bits in base64.
const KEY_CHARS_MIN: usize = 22;
const KEY_CHARS_MAX: usize = 255;
pub const USER_BYTES_MAX: usize = 256;

pub fn join(ask: Box<Ask>, room: Arc<RoomDesk>) -> Answering {
    let Ask { desk, client, head, body } = *ask;
    let service = match allowed(&desk, &room, client, &head.headers) {
        Ok(service) => service,
        Err(problem) => return problem.into(),
    };
    // Visitors send nothing, and then all but the wait for the disk is done here: what waits is
    // small, and one in a crowd of many.
    if body.as_ref().is_none_or(Incoming::is_end_stream) {
        let asked = asked(&desk, &room, service.as_ref(), &head, &Bytes::new());
        return match asked.and_then(|(settings, joiner)| putting(&room, settings, joiner)) {
            Ok(submitted) => Answering::later(answer(desk, room, submitted)),
            Err(problem) => problem.into(),
        };
    }
    Answering::later(async move {
        let (bytes_max, within) = (desk.manners.body_bytes_max, desk.manners.body_timeout);
        let body = body.expect("a body that has not ended is there");
        let body = whole_body(&head.headers, body, bytes_max, within).await?;
        let (settings, joiner) = asked(&desk, &room, service.as_ref(), &head, &body)?;
        let submitted = putting(&room, settings, joiner)?;
        answer(desk, room, submitted).await
    })
}

/// A visitor without a body: what [`join`] does for one.
pub(crate) fn plain(
    desk: &Desk,
    room: &RoomDesk,
    client: IpAddr,
    holding: Option<Presented>,
    idempotency: Option<&[u8]>,
) -> Result<Submitted, Problem> {
    visitor_may(desk, room, client)?;
    let key = idempotency.map(|key| join_key(room, key, &[])).transpose()?;
    putting(room, room.settings(), Joiner { key, holding, ..Joiner::default() })
}

fn visitor_may(desk: &Desk, room: &RoomDesk, client: IpAddr) -> Result<(), Problem> {
    let counted = desk.meter(Route::Join, desk.manners.limits.network(client));
    counted.map(drop).map_err(|problem| problem.in_room(room.name()))
}

/// Services may always ask; visitors as often as the limit says.
fn allowed(
    desk: &Desk,
    room: &RoomDesk,
    client: IpAddr,
    headers: &HeaderMap,
) -> Result<Option<ApiCaller>, Problem> {
    let service = desk.service(headers).or_else(|problem| {
        // A stale ticket in the header is no API key, and no reason to be turned away.
        if headers.contains_key(API_KEY_HEADER) { Err(problem) } else { Ok(None) }
    })?;
    if service.is_none() {
        visitor_may(desk, room, client)?;
    }
    Ok(service)
}

/// Who the request says is joining, as far as it is believed.
fn asked(
    desk: &Desk,
    room: &RoomDesk,
    service: Option<&ApiCaller>,
    head: &Parts,
    body: &Bytes,
) -> Result<(Option<Arc<Settings>>, Joiner), Problem> {
    let said: JoinBody = json(&head.headers, body)?.unwrap_or_default();
    let mut holding = None;
    // Most bring no ticket, and a problem that nobody is told need not be written.
    if token_text(desk, room, &head.headers).is_some() {
        match room.token_holder(desk, &head.method, &head.headers) {
            Ok(holder) => holding = Some(holder.presented),
            Err(problem) if problem.code == Code::HeaderRequired => return Err(problem),
            // One that means nothing here: a new place.
            Err(_) => {}
        }
    }
    let idempotency = head.headers.get(IDEMPOTENCY_KEY).map(|it| it.as_bytes());
    let key = idempotency.map(|key| join_key(room, key, body)).transpose()?;
    let settings = room.settings();
    let mut joiner = who_joins(desk, room, settings.as_deref(), service, said)?;
    joiner.key = key.or(joiner.key);
    joiner.holding = holding;
    Ok((settings, joiner))
}

fn putting(
    room: &RoomDesk,
    settings: Option<Arc<Settings>>,
    joiner: Joiner,
) -> Result<Submitted, Problem> {
    room.submit(Command::Join(join_of(room, settings.as_deref(), joiner)))
}

pub(crate) async fn answer(
    desk: Arc<Desk>,
    room: Arc<RoomDesk>,
    submitted: Submitted,
) -> Result<Response<Body>, Problem> {
    let (sight, fresh) = placed(&room, submitted).await?;
    let status = if fresh == Fresh::New { StatusCode::CREATED } else { StatusCode::OK };
    let board = room.handle().board_guard();
    let answer = VisitorAnswer::of(&room, board.state(), &sight);
    Ok(with_token(&desk, &room, &sight, answer, status, Cookie::Set))
}

/// Puts somebody in line. All interfaces join through here.
pub async fn place(
    room: &RoomDesk,
    settings: Option<&Settings>,
    joiner: Joiner,
) -> Result<(Sight, Fresh), Problem> {
    placed(room, room.submit(Command::Join(join_of(room, settings, joiner)))?).await
}

fn join_of(room: &RoomDesk, settings: Option<&Settings>, joiner: Joiner) -> Join {
    let keep_user = settings.is_some_and(|settings| settings.keep_user_id);
    Join {
        lane: joiner.lane,
        identity: joiner.user.as_deref().map(|user| room.identity(user)),
        key: joiner.key,
        holding: joiner.holding,
        metadata: joiner.metadata.map(Into::into),
        sealed_user: joiner.user.as_deref().filter(|_| keep_user).map(|user| room.seal_user(user)),
    }
}

async fn placed(room: &RoomDesk, submitted: Submitted) -> Result<(Sight, Fresh), Problem> {
    let answer = room.answered(submitted).await?;
    let Reply::Joined { ticket, epoch, holder, fresh } = answer.reply else {
        return Err(Problem::new(Code::Internal, "a join was answered by something else"));
    };
    let presented = Presented { ticket, epoch, holder: Some(holder) };
    let view = match answer.view {
        Some(view) => *view,
        None => {
            let (board, _) = room.board_since(answer.version).await;
            board.look(room.now(), &presented).map_err(|refusal| room.refused(refusal))?
        }
    };
    let id = room.id(&presented);
    Ok((Sight { id, presented, view, version: answer.version, stale: false }, fresh))
}

/// Lane, user and metadata count from a caller with an API key or in a join token; anybody else
/// who sends them gets lane 0 and no name.
fn who_joins(
    desk: &Desk,
    room: &RoomDesk,
    settings: Option<&Settings>,
    service: Option<&ApiCaller>,
    said: JoinBody,
) -> Result<Joiner, Problem> {
    let mut joiner = Joiner::default();
    if let Some(text) = &said.join_token {
        let read = desk.signatures.join_tokens.read(room.name().as_str(), text, desk.now_s());
        let claims = read.map_err(|refused| {
            Problem::new(Code::JoinTokenInvalid, refused.to_string()).in_room(room.name())
        })?;
        joiner.lane = match &claims.lane {
            None => LaneId(0),
            Some(JoinLane::Number(lane)) => LaneId(*lane),
            Some(JoinLane::Name(name)) => lane_named(room, settings, Some(name))?,
        };
        joiner.user = Some(claims.sub);
        joiner.metadata = claims.metadata.map(|it| serde_json::Value::from(it).to_string().into());
        // The token's own name makes it good for one place, however often it is sent.
        joiner.key = Some(key_of(room, claims.jti.as_bytes(), b"join-token"));
    } else if service.is_some_and(|service| service.role >= Role::Operator) {
        joiner.lane = lane_named(room, settings, said.lane.as_deref())?;
        joiner.user = said.user_id;
        joiner.metadata = said.metadata.map(|it| serde_json::Value::from(it).to_string().into());
    }
    if joiner.user.as_ref().is_some_and(|user| user.is_empty() || user.len() > USER_BYTES_MAX) {
        return Err(bad_field("user_id", "1 to 256 bytes"));
    }
    Ok(joiner)
}

pub fn lane_named(
    room: &RoomDesk,
    settings: Option<&Settings>,
    name: Option<&str>,
) -> Result<LaneId, Problem> {
    let Some(name) = name else { return Ok(LaneId(0)) };
    let lanes = settings.map_or(&[][..], |settings| &settings.lanes);
    let found = lanes.iter().position(|lane| lane.name == name);
    found.map(|index| LaneId(index as u8)).ok_or_else(|| {
        let names: Vec<&str> = lanes.iter().map(|lane| lane.name.as_str()).collect();
        let detail = format!("no lane {name:?}; there are: {}", names.join(", "));
        Problem::new(Code::LaneUnknown, detail).in_room(room.name())
    })
}

fn join_key(room: &RoomDesk, key: &[u8], body: &[u8]) -> Result<JoinKey, Problem> {
    if !(KEY_CHARS_MIN..=KEY_CHARS_MAX).contains(&key.len()) {
        let detail =
            format!("{KEY_CHARS_MIN} to {KEY_CHARS_MAX} characters of at least 128 random bits");
        return Err(Problem::new(Code::IdempotencyKeyWeak, detail).in_room(room.name()));
    }
    Ok(key_of(room, key, body))
}

/// What the room remembers of a key: a keyed hash, and a short hash of what came with it.
pub fn key_of(room: &RoomDesk, key: &[u8], body: &[u8]) -> JoinKey {
    let (key, body) = (room.keyed_hash(key), room.keyed_hash(body));
    let mut it = JoinKey::default();
    it.key.copy_from_slice(&key[..12]);
    it.body.copy_from_slice(&body[..4]);
    it
}
