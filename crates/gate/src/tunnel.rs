//! A WebSocket through the gate: bytes both ways until one side ends, the session does, or the
//! instance drains. Bytes are activity and keep the session alive; a tunnel whose session ended
//! is cut, because its visitor is no longer inside.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::sync::watch;
use waitroom_core::id::TicketId;

use crate::gate::{Gate, SiteGate};
use crate::origin::{InFlight, Taken};
use crate::remote::Elsewhere;
use crate::room::GateRoom;
use crate::verdict::Stand;

/// How often it is looked whether the session goes on: what `pass_leeway` forgives by default.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// WebSocket frames are small; two of these are held per tunnel.
const BUFFER: usize = 4 * 1024;

#[derive(Debug)]
pub struct Tunnel {
    pub taken: Taken,
    pub entered: InFlight,
    pub visitor: OnUpgrade,
}

/// Whose tunnel it is, and how it is seen that they are no longer inside.
#[derive(Debug)]
pub enum Inside {
    /// A request that needed no pass.
    Anybody,
    Here(Arc<SiteGate>, Arc<GateRoom>, TicketId),
    /// The room is elsewhere: until its owner says so, or the pass that was shown is over.
    Elsewhere(Arc<Gate>, Arc<SiteGate>, Elsewhere),
}

pub async fn run(tunnel: Tunnel, inside: Inside, mut draining: watch::Receiver<bool>) {
    let Tunnel { taken, entered, visitor } = tunnel;
    let (link, in_use) = taken.into_parts();
    let (upstream, first) = link.into_parts();
    let first = std::io::Cursor::new(first);
    if let Ok(visitor) = visitor.await {
        let (from_visitor, to_visitor) = split(TokioIo::new(visitor));
        let (from_origin, to_origin) = split(upstream);
        // What the origin said in one breath with its answer.
        let from_origin = first.chain(from_origin);
        let moved = AtomicU64::new(0);
        tokio::select! {
            () = pump(from_visitor, to_origin, &moved) => {}
            () = pump(from_origin, to_visitor, &moved) => {}
            () = session_ends(inside, &moved) => {}
            _ = draining.wait_for(|draining| *draining) => {}
        }
    }
    drop((in_use, entered));
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    moved: &AtomicU64,
) {
    let mut buffer = vec![0; BUFFER];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if to.write_all(&buffer[..read]).await.is_err() || to.flush().await.is_err() {
            return;
        }
        moved.fetch_add(read as u64, Relaxed);
    }
    let _ = to.shutdown().await;
}

async fn session_ends(inside: Inside, moved: &AtomicU64) {
    let mut seen = 0;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        match &inside {
            Inside::Anybody => std::future::pending().await,
            Inside::Here(at, room, ticket) => {
                // Where this is the only way in, a gate that is cut off also ends it with the pass
                // that it knows of.
                if !matches!(room.stand_at(&at.site, *ticket), Stand::Inside(_)) {
                    return;
                }
                let now = moved.load(Relaxed);
                if now > seen
                    && let Some(presented) = room.desk.presented(*ticket, None)
                {
                    seen = now;
                    room.activity.note(presented.ticket);
                }
            }
            Inside::Elsewhere(gate, at, who) => {
                let ended = at.remote.as_ref().is_none_or(|remote| remote.has_ended(who));
                if ended || gate.desk.now_s() >= who.expires_s {
                    return;
                }
            }
        }
    }
}
