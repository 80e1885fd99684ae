//! Waiting on a live channel: WebSocket or server-sent events.
//!
//! Staying connected is the heartbeat. A channel that breaks is opened again, and before that the
//! visitor looks once: what happened in between must not be missed.

use std::sync::atomic::Ordering;

use crate::history::{Sent, Verb};
use crate::plan::Channel;
use crate::tally::{End, Fate};
use crate::wire::{Message, Socket, Stream, Ticket};

use super::call::Heard;
use super::join::{may_pass, turn};
use super::{Rest, Turn, Visitor};

/// Well below any heartbeat timeout that makes sense for people.
const BEAT_MS: u64 = 10_000;

enum Open {
    Events(Box<Stream>),
    Socket(Box<Socket>),
}

/// What ended a wait for the next message.
enum Came {
    Message(Option<Message>),
    Time(Rest),
}

impl Open {
    async fn next(&mut self) -> Option<Message> {
        match self {
            Open::Events(stream) => stream.next().await,
            Open::Socket(socket) => socket.next().await,
        }
    }
}

impl Visitor {
    pub(super) async fn follow(&mut self) -> Turn {
        let mut attempt = 0;
        loop {
            match self.open().await {
                None => attempt += 1,
                Some(mut channel) => {
                    attempt = 0;
                    if let Some(turn) = self.listen(&mut channel).await {
                        if let Open::Socket(socket) = channel {
                            socket.close().await;
                        }
                        return turn;
                    }
                }
            }
            self.world.tally.reconnects.fetch_add(1, Ordering::Relaxed);
            let pause = self.backoff(attempt, None);
            if let Some(turn) = self.patience(pause).await {
                return turn;
            }
            let ask = self.status_ask("");
            match self.call(Verb::Status, ask).await {
                Heard::Ticket(ticket) => {
                    if let Some(turn) = turn(&ticket) {
                        return turn;
                    }
                }
                Heard::Problem(problem) if !may_pass(&problem.code) => {
                    return Turn::Fate(Fate::Ended);
                }
                _ => {}
            }
        }
    }

    async fn open(&self) -> Option<Open> {
        let token = self.held.as_ref().and_then(|held| held.token.as_deref());
        let address = self.address.as_deref();
        let (pool, t0) = (&self.world.pool, self.world.start.ns());
        let (name, opened) = match self.channel {
            Channel::Ws => {
                let opened = Socket::open(pool, &self.path("live"), token, address).await;
                ("open_ws", opened.map(|it| it.map(|it| Open::Socket(Box::new(it)))))
            }
            _ => {
                let opened = Stream::open(pool, &self.path("stream"), token, address).await;
                ("open_sse", opened.map(|it| it.map(|it| Open::Events(Box::new(it)))))
            }
        };
        let tally = &self.world.tally;
        let Ok(opened) = opened else {
            tally.unreachable.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        tally.call(name, End::of(opened.is_ok()), self.world.start.ns() - t0);
        if let Err(status) = &opened {
            tally.problem(&format!("{name} {status}"));
        }
        opened.ok()
    }

    /// Until it is our turn; none when the channel breaks.
    async fn listen(&mut self, channel: &mut Open) -> Option<Turn> {
        loop {
            let came = tokio::select! {
                message = channel.next() => Came::Message(message),
                rest = self.rest(BEAT_MS) => Came::Time(rest),
            };
            match came {
                Came::Message(message) => {
                    if let Some(turn) = self.told(&message?).await {
                        return Some(turn);
                    }
                }
                Came::Time(Rest::Rested) => {
                    if let Open::Socket(socket) = channel
                        && !socket.beat().await
                    {
                        return None;
                    }
                }
                Came::Time(rest) => return self.after(rest).await,
            }
        }
    }

    async fn told(&mut self, message: &Message) -> Option<Turn> {
        #[derive(serde::Deserialize)]
        struct Typed<'a> {
            r#type: &'a str,
        }
        let tally = &self.world.tally;
        tally.frames.fetch_add(1, Ordering::Relaxed);
        let strange = |said: &str| tally.surprise(format!("visitor {} frame: {said}", self.who));
        let Ok(Typed { r#type: kind }) = serde_json::from_str(&message.data) else {
            strange("without a type");
            return None;
        };
        if !message.kind.is_empty() && message.kind != kind {
            strange(&format!("event {} is of type {kind}", message.kind));
        }
        match kind {
            "ticket" => {}
            "board" => {
                tally.boards.fetch_add(1, Ordering::Relaxed);
                return None;
            }
            // The server closes after it, and `listen` sees that.
            "bye" => return None,
            other => {
                strange(&format!("of type {other:?}"));
                return None;
            }
        }
        let Ok(ticket) = serde_json::from_str::<Ticket>(&message.data) else {
            strange("a ticket that cannot be read");
            return None;
        };
        let now = self.world.start.ns();
        self.believe(Verb::Frame, &ticket);
        let id = self.held.as_ref().map(|held| held.id.clone().into());
        let sent = Sent { ticket: id, ..Sent::default() };
        self.note(Verb::Frame, (now, now), None, sent, Some(ticket.got())).await;
        turn(&ticket)
    }
}
