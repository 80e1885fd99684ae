//! What a gate does besides answering: renews sessions, asks whether rooms and origins live,
//! frees slots that every gate has given up, and follows the origin's health with the pace.

use std::sync::Arc;
use std::time::Duration;

use waitroom_core::id::TicketId;
use waitroom_core::{Actor, Command, EndHow, FinishCause, Presented};

use crate::counts::one_more;
use crate::gate::{Gate, HERE, SiteGate};
use crate::origin::probe;
use crate::room::GateRoom;
use crate::session::{Said, SessionWord};

/// Sessions live for minutes, and a room that is away should be known within a breath or two.
const EVERY: Duration = Duration::from_secs(1);
/// A room that does not answer a command in this time cannot be asked.
pub const ANSWERS_WITHIN: Duration = Duration::from_secs(2);
/// What one request to the engine may hold.
const COMMANDS_MAX: usize = 1_024;
/// One command of the core frees at most this many.
const RELEASE_MAX: usize = 1_000;

/// Runs until it is dropped.
pub async fn run(gate: Arc<Gate>) {
    for at in &gate.sites {
        if let Some(path) = &at.site.manners.health_path {
            tokio::spawn(ask_origins(Arc::downgrade(&gate), at.clone(), path.clone()));
        }
    }
    for at in gate.sites.iter().filter(|at| at.remote.is_some()) {
        tokio::spawn(crate::remote::follow(Arc::downgrade(&gate), at.clone()));
    }
    loop {
        tokio::time::sleep(EVERY).await;
        for room in gate.rooms() {
            see_to(&gate, &room).await;
        }
        for at in &gate.sites {
            at.origins.all.iter().for_each(|origin| origin.tidy());
            crate::adaptive::follow(&gate, at).await;
        }
    }
}

async fn see_to(gate: &Gate, room: &GateRoom) {
    let mut commands = vec![Command::Release { tickets: released(gate, room) }];
    let renewed = room.activity.take();
    for ticket in &renewed {
        let named = room.look(|board| board.state().named(*ticket));
        commands.extend(named.map(Command::Renew));
    }
    commands.truncate(COMMANDS_MAX);
    let asked = room.desk.handle().send_many(commands);
    let answered = tokio::time::timeout(ANSWERS_WITHIN, asked).await;
    let fine = matches!(answered, Ok(Ok(_)));
    if room.reach.note(fine) {
        let now = if fine { "answers again" } else { "cannot be asked" };
        eprintln!("gate: room {:?} {now}", room.name());
    }
    if fine && !renewed.is_empty() {
        for at in
            gate.sites.iter().filter(|at| at.site.rooms().any(|it| it.as_str() == room.name()))
        {
            at.counts.renewed.fetch_add(renewed.len() as u64, std::sync::atomic::Ordering::Relaxed);
        }
    }
}

/// Slots that can be free: only where this gate is the only way in.
fn released(gate: &Gate, room: &GateRoom) -> Vec<waitroom_core::Ticket> {
    let only = |at: &&Arc<SiteGate>| at.site.rooms().any(|it| it.as_str() == room.name());
    let mut sites = gate.sites.iter().filter(only).peekable();
    if sites.peek().is_none() || !sites.all(|at| at.site.only_way_in) {
        return Vec::new();
    }
    let handle = room.desk.handle();
    let everywhere = handle.shown_everywhere();
    // Every instance has a gate, and one of them says when all have given a session up: where the
    // room is owned.
    if handle.follows() {
        return Vec::new();
    }
    let (confirmations, board) = (gate.confirmations(room.name()), handle.board());
    confirmations.in_epoch(board.state().epoch());
    confirmations.confirm(HERE, everywhere);
    let mut released = confirmations.released(&board);
    released.truncate(RELEASE_MAX);
    released
}

async fn ask_origins(gate: std::sync::Weak<Gate>, at: Arc<SiteGate>, path: String) {
    let manners = &at.site.manners;
    loop {
        tokio::time::sleep(manners.health_every).await;
        let Some(gate) = gate.upgrade() else { return };
        for origin in &at.origins.all {
            if probe(origin, manners, &path).await {
                origin.health.worked();
            } else {
                one_more(&at.counts.origin_failed);
                origin.health.failed(gate.desk.clock.now_ms());
            }
        }
    }
}

/// Does what the origin said about a session or its room. Says whether the session is over.
pub async fn obey(room: &GateRoom, ticket: TicketId, said: Said) -> bool {
    let by = || Actor::new("origin");
    if said.sold_out {
        let cause = FinishCause::SoldOut;
        let finish = Command::Finish { cause, reason: "sold out".to_owned(), by: by() };
        let _ = tokio::time::timeout(ANSWERS_WITHIN, room.desk.send(finish)).await;
    }
    let (Some(word), Some(presented)) = (said.session, room.desk.presented(ticket, None)) else {
        return false;
    };
    let how = match word {
        SessionWord::Complete => EndHow::Completed,
        SessionWord::End => EndHow::Revoked,
    };
    end(room, presented, how, by()).await
}

async fn end(room: &GateRoom, ticket: Presented, how: EndHow, by: Actor) -> bool {
    let end = room.desk.send(Command::End { ticket, how, by });
    match tokio::time::timeout(ANSWERS_WITHIN, end).await {
        Ok(Ok(_)) => true,
        // It is over already, by somebody else's word.
        Ok(Err(problem)) => problem.code == waitroom_api::Code::WrongStatus,
        // The session ends by itself in time; the visitor need not wait for that.
        Err(_) => false,
    }
}
