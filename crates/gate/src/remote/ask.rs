//! Questions to the owner of a room.

use std::future::poll_fn;
use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_body::Body as _;
use serde_json::Value;
use waitroom_core::id::TicketId;

use super::known::Heard;
use super::{ANSWERS_WITHIN, Remote, RemoteRoom};
use crate::facts::Facts;
use crate::forward::write_field;
use crate::origin::{OriginBody, Origins, Upload};

/// More than a million ended sessions; whoever says more is not the owner.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What the owner says about those who ended, while it is told what was heard before.
pub async fn hear(remote: &Remote, room: &RemoteRoom) -> Option<Heard> {
    let confirmed = room.known.version().unwrap_or(0);
    let (name, gate) = (&room.name, &remote.at.gate);
    let path = format!("/admin/v1/rooms/{name}/gates/{gate}?confirmed={confirmed}");
    let headers = [("x-api-key", remote.at.key.as_bytes())];
    let asked = get(&remote.admin, &path, &headers);
    let (status, _, body) = tokio::time::timeout(ANSWERS_WITHIN, asked).await.ok()??;
    if status != StatusCode::OK {
        return None;
    }
    let said: Value = serde_json::from_slice(&body).ok()?;
    let ended = said["ended"].as_array()?.iter();
    Some(Heard {
        version: said["version"].as_u64()?,
        ended: ended.map(|id| TicketId::parse(id.as_str()?).ok()).collect::<Option<_>>()?,
        keep_s: said["keep_s"].as_u64()?,
        keys: said["keys"].to_string(),
    })
}

/// Whether this pass is good, with a cookie for the visitor; none when the owner cannot be asked.
pub async fn about(
    remote: &Remote,
    room: &RemoteRoom,
    pass: &str,
    facts: &Facts<'_>,
) -> Option<(bool, Option<HeaderValue>)> {
    let path = format!("/.waitroom/gate/check?room={}&as=status", room.name);
    let client = facts.client.to_string();
    let agent = facts.header(header::USER_AGENT).unwrap_or_default();
    let headers = [
        ("waitroom-pass", pass.as_bytes()),
        ("x-forwarded-for", client.as_bytes()),
        ("user-agent", agent.as_bytes()),
    ];
    let asked = get(&remote.questions, &path, &headers);
    let (status, headers, _) = tokio::time::timeout(ANSWERS_WITHIN, asked).await.ok()??;
    match status {
        StatusCode::OK => Some((true, headers.get(header::SET_COOKIE).cloned())),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Some((false, None)),
        _ => None,
    }
}

async fn get(
    owner: &Origins,
    path: &str,
    headers: &[(&str, &[u8])],
) -> Option<(StatusCode, HeaderMap, Bytes)> {
    let entered = owner.enter()?;
    let origin = owner.all.first()?;
    let manners = &owner.manners;
    let mut taken = match origin.waiting() {
        Some(taken) => taken,
        None => origin.connected(manners.connect_timeout).await.ok()?,
    };
    let write = |out: &mut Vec<u8>| {
        out.extend_from_slice(format!("GET {path} HTTP/1.1\r\n").as_bytes());
        write_field(out, "host", origin.host_header.as_bytes());
        headers.iter().for_each(|(name, value)| write_field(out, name, value));
        out.extend_from_slice(b"\r\n");
    };
    let mut nothing = Upload::Nothing;
    let within = manners.answer_timeout;
    let head = taken.link.exchange(&Method::GET, write, &mut nothing, within).await.ok()?;
    let mut body = OriginBody::new(&head, taken, entered, manners.idle_timeout);
    let mut whole = BytesMut::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        if let Ok(data) = frame.ok()?.into_data() {
            whole.extend_from_slice(&data);
        }
        if whole.len() > ANSWER_BYTES_MAX {
            return None;
        }
    }
    Some((head.status, head.headers, whole.freeze()))
}
