//! From an event of the log to what outsiders are told of it.
//!
//! Lives here: [`translate`], a pure function of the event, its place in the log and the room's
//! names. Replay gives the same messages again, but for the signatures of passes.
//! Stays out: the book-keeping of rooms (slots that become free, devices, blocks that are
//! forgotten), which is nobody else's business and makes no messages.
//! To add an event: an arm in [`translate`]; the compiler asks for it.

use serde_json::json;
use waitroom_core::{
    Ending, Entry, Epoch, Event, FinishCause, Hold, Millis, Session, Status, Ticket, What,
};
use waitroom_store::RoomName;

use crate::message::{About, Fact, Kind, Message, MessageId};
use crate::names::Names;

/// Where an event stands.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub room: &'a RoomName,
    /// Its index in the log, counted from 1.
    pub head: u64,
    /// The epoch in which it was written.
    pub epoch: Epoch,
}

/// The board does not know the ticket yet: ask again when it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotKnownYet;

/// Appends the messages of an event to `out`; nothing of it when a name is missing.
pub fn translate(
    place: Place<'_>,
    event: &Event,
    names: &dyn Names,
    out: &mut Vec<Message>,
) -> Result<(), NotKnownYet> {
    let before = out.len();
    let mut telling = Telling { place, event, names, out, index: 0 };
    let told = telling.tell();
    if told.is_err() {
        out.truncate(before);
    }
    told
}

struct Telling<'a> {
    place: Place<'a>,
    event: &'a Event,
    names: &'a dyn Names,
    out: &'a mut Vec<Message>,
    index: u8,
}

impl Telling<'_> {
    fn tell(&mut self) -> Result<(), NotKnownYet> {
        let event = self.event;
        match &event.what {
            What::Joined(joined) => {
                let user = self.user(joined.sealed_user.as_deref());
                let about = self.newcomer(joined.ticket, user);
                let fact = Fact::Enqueued {
                    position: Some(joined.waiting_in_lane),
                    waiting: Some(joined.waiting),
                    joined_at: event.at,
                    metadata: joined.metadata.clone(),
                };
                self.put(Kind::Enqueued, Some(about), fact);
            }
            What::Admitted { ticket, joined_at, waiting, why: _, entry, sealed_user } => {
                let user = self.user(sealed_user.as_deref());
                let about = self.about(*ticket, Some(1), user.clone())?;
                let (expires_at, session) = match entry {
                    Entry::MustClaim { by } => (*by, None),
                    Entry::Claimed(session) => (session.pass_expires_at, Some(*session)),
                };
                let pass = session.map(|it| self.names.pass(about.id, user.clone(), &it));
                let waited = event.at.since(*joined_at);
                let fact = Fact::Admitted { waited, waiting: *waiting, expires_at, pass };
                self.put(Kind::Admitted, Some(about), fact);
                if let Some(session) = session {
                    self.started(*ticket, user, session)?;
                }
            }
            What::Claimed { ticket, session } => self.started(*ticket, None, *session)?,
            What::Renewed { ticket, session } => {
                let about = self.about(*ticket, None, None)?;
                self.put(Kind::SessionActive, Some(about), Fact::SessionOn(*session));
            }
            What::Ended {
                ticket,
                was,
                ending,
                waited,
                waiting,
                held_until: _,
                sealed_user,
                by: _,
            } => {
                let user = self.user(sealed_user.as_deref());
                let about = self.about(*ticket, Some(last_seq(*was)), user)?;
                let kind = ended(*was, *ending);
                let fact = match kind {
                    Kind::Expired | Kind::Cancelled => Fact::PlaceOver {
                        ending: Some(*ending),
                        waited: *waited,
                        waiting: Some(*waiting),
                        moved_to: None,
                    },
                    _ => Fact::SessionOver { ending: *ending },
                };
                self.put(kind, Some(about), fact);
            }
            What::Moved { from, to, joined_at, by: _ } => {
                let about = self.about(*from, Some(1), None)?;
                let newcomer = self.newcomer(*to, None);
                let over = Fact::PlaceOver {
                    ending: None,
                    waited: event.at.since(*joined_at),
                    waiting: None,
                    moved_to: Some(newcomer.id),
                };
                self.put(Kind::Cancelled, Some(about), over);
                let fact = Fact::Enqueued {
                    position: None,
                    waiting: None,
                    joined_at: *joined_at,
                    metadata: None,
                };
                self.put(Kind::Enqueued, Some(newcomer), fact);
            }
            // The first event of a log: there was no room before it.
            What::Opened { .. } if self.place.head == 1 => {
                self.room(Kind::RoomCreated, "created", json!({}));
            }
            What::Configured { settings, by } => {
                let details = json!({
                    "title": settings.title,
                    "target_url": settings.target_url,
                    "max_active_users": settings.max_active,
                    "max_queue_size": settings.max_waiting,
                    "by": &*by.0,
                });
                self.room(Kind::RoomUpdated, "settings", details);
            }
            What::Held { hold, by } => {
                let (kind, change) = match hold {
                    Hold::Paused { .. } => (Kind::RoomPaused, "paused"),
                    Hold::Maintenance { .. } => (Kind::RoomMaintenance, "maintenance"),
                    Hold::Draining { .. } => (Kind::RoomUpdated, "draining"),
                };
                self.room(kind, change, json!({ "reason": hold.reason(), "by": &*by.0 }));
            }
            What::Resumed { by } => {
                self.room(Kind::RoomResumed, "resumed", json!({ "by": &*by.0 }));
            }
            What::AdmittedNow { asked: _, granted, by: _ } => {
                self.put(Kind::Capacity, None, Fact::LetIn { granted: *granted });
            }
            What::DoorsOpened => self.room(Kind::RoomUpdated, "doors_opened", json!({})),
            What::SaleStarted => self.room(Kind::RoomUpdated, "sale_started", json!({})),
            What::SaleEnded { cause, reason, closed, by } => {
                let cause = match cause {
                    FinishCause::Schedule => "schedule",
                    FinishCause::SoldOut => "sold_out",
                    FinishCause::Operator => "operator",
                };
                let details =
                    json!({ "cause": cause, "reason": reason, "closed": closed, "by": &*by.0 });
                self.room(Kind::RoomUpdated, "sale_ended", details);
            }
            What::Reopened { by } => {
                self.room(Kind::RoomUpdated, "reopened", json!({ "by": &*by.0 }));
            }
            What::DrawCommitted { .. } => {
                self.room(Kind::RoomUpdated, "draw_committed", json!({}));
            }
            What::DrawClosed { .. } => self.room(Kind::RoomUpdated, "draw_closed", json!({})),
            What::Drawn { .. } => self.room(Kind::RoomUpdated, "drawn", json!({})),
            What::Opened { .. }
            | What::Released { .. }
            | What::HandedOver { .. }
            | What::Bound { .. }
            | What::Sealed { .. }
            | What::ForgotTickets(_)
            | What::ForgotKeys(_) => {}
        }
        Ok(())
    }

    fn started(
        &mut self,
        ticket: Ticket,
        user: Option<String>,
        session: Session,
    ) -> Result<(), NotKnownYet> {
        let about = self.about(ticket, Some(2), user)?;
        self.put(Kind::SessionStarted, Some(about), Fact::SessionOn(session));
        Ok(())
    }

    fn user(&self, sealed: Option<&[u8]>) -> Option<String> {
        self.names.user(sealed?)
    }

    /// A ticket that begins with this event, and so in its epoch.
    fn newcomer(&self, ticket: Ticket, user: Option<String>) -> About {
        let id = self.names.id(ticket, self.place.epoch);
        About { id, seq: Some(0), lane: ticket.lane.0, user }
    }

    fn about(
        &self,
        ticket: Ticket,
        seq: Option<u32>,
        user: Option<String>,
    ) -> Result<About, NotKnownYet> {
        let epoch = self.names.epoch_of(ticket).ok_or(NotKnownYet)?;
        let id = self.names.id(ticket, epoch);
        Ok(About { id, seq, lane: ticket.lane.0, user })
    }

    fn room(&mut self, kind: Kind, change: &'static str, details: serde_json::Value) {
        self.put(kind, None, Fact::Room { change, details });
    }

    fn put(&mut self, kind: Kind, about: Option<About>, fact: Fact) {
        let Place { room, head, .. } = self.place;
        let id = MessageId { room: room.clone(), head, index: self.index };
        self.index += 1;
        self.out.push(Message { id, kind, at: self.event.at, about, fact });
    }
}

/// A life is joined, admitted, claimed, ended: whoever ends earlier has a smaller last number.
fn last_seq(was: Status) -> u32 {
    match was {
        Status::Waiting => 1,
        Status::Admitted => 2,
        _ => 3,
    }
}

/// A checkout may speak of somebody who was admitted and has not claimed: that is a session too.
fn ended(was: Status, ending: Ending) -> Kind {
    match (was, ending) {
        (_, Ending::SessionOver | Ending::CheckoutExpired) => Kind::SessionExpired,
        (_, Ending::Completed | Ending::CheckoutFailed) => Kind::SessionTerminated,
        (Status::Waiting | Status::Admitted, Ending::Left) => Kind::Cancelled,
        (Status::Waiting | Status::Admitted, _) => Kind::Expired,
        _ => Kind::SessionTerminated,
    }
}

/// The wait in whole seconds, as the contract has it.
pub fn seconds(span: Millis) -> u64 {
    span.0 / 1_000
}
