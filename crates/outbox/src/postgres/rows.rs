//! What a stretch of a log changes in the tables: events folded into rows.
//!
//! Within one stretch a ticket may join, enter and end; a statement can touch a row once only, so
//! they are folded here first. Pure: bytes go out in `write.rs`.
//! Stays out, on purpose: metadata, identities and users' names. The ticket's id is enough to join
//! with a shop's own tables, and what is not copied need not be deleted.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use waitroom_core::{
    AdmitWhy, Ending, Entry, Event, Hold, Session, Status, Ticket, Timestamp, What,
};

use crate::body::ending_word;

#[derive(Debug, Default)]
pub struct Rows {
    pub tickets: BTreeMap<Ticket, TicketRow>,
    pub admissions: Vec<AdmissionRow>,
    pub sessions: BTreeMap<Ticket, SessionRow>,
    pub events: Vec<EventRow>,
    pub room: RoomRow,
    /// The sale ended then: whoever waits so far is closed.
    pub closed_at: Option<Timestamp>,
}

/// What is new about a ticket. `None` means that it stays as it was.
#[derive(Debug, Default)]
pub struct TicketRow {
    pub id: Option<String>,
    pub joined_at: Option<Timestamp>,
    pub joined_by: Option<u64>,
    pub place: Option<u64>,
    pub status: &'static str,
    pub waited_ms: Option<u64>,
    pub ended: Option<Ended>,
}

#[derive(Clone, Copy, Debug)]
pub struct Ended {
    pub at: Timestamp,
    pub from: &'static str,
    pub ending: &'static str,
}

#[derive(Debug)]
pub struct AdmissionRow {
    pub head: u64,
    pub ticket: Ticket,
    pub at: Timestamp,
    pub why: &'static str,
    pub waited_ms: u64,
    pub waiting: u64,
    pub claim_by: Option<Timestamp>,
}

#[derive(Debug, Default)]
pub struct SessionRow {
    pub started_at: Option<Timestamp>,
    pub expires_at: Option<Timestamp>,
    pub renewals: u64,
    pub ended: Option<(Timestamp, &'static str)>,
}

#[derive(Debug)]
pub struct EventRow {
    pub head: u64,
    pub at: Timestamp,
    pub kind: &'static str,
    pub ticket: Option<Ticket>,
    pub data: Option<Value>,
}

#[derive(Debug, Default)]
pub struct RoomRow {
    pub made_at: Option<Timestamp>,
    pub changed_at: Option<Timestamp>,
    pub status: Option<&'static str>,
    pub settings: Option<RoomSettings>,
}

#[derive(Debug)]
pub struct RoomSettings {
    pub title: String,
    pub target_url: String,
    pub max_active: u64,
    pub rate_per_minute: Option<f64>,
}

impl Rows {
    /// Whether these must be written before anything later is folded in: the end of a sale closes
    /// whoever waits, and that is decided by what the table says then.
    pub fn must_be_written(&self) -> bool {
        self.closed_at.is_some()
    }

    /// Folds the event at `head` in. `id` writes a ticket that begins with it.
    pub fn take(&mut self, head: u64, event: &Event, id: impl Fn(Ticket) -> String) {
        let at = event.at;
        match &event.what {
            What::Joined(joined) => {
                self.begins(head, joined.ticket, at, id(joined.ticket));
                self.ticket(joined.ticket, "waiting").place = Some(joined.waiting_in_lane);
            }
            What::Admitted { ticket, joined_at, waiting, why, entry, sealed_user: _ } => {
                let waited_ms = at.since(*joined_at).0;
                let claim_by = match entry {
                    Entry::MustClaim { by } => {
                        self.ticket(*ticket, "admitted");
                        Some(*by)
                    }
                    Entry::Claimed(session) => {
                        self.starts(*ticket, session);
                        None
                    }
                };
                self.waited(*ticket, *joined_at, waited_ms);
                let (ticket, why, waiting) = (*ticket, why_word(*why), *waiting);
                let row = AdmissionRow { head, ticket, at, why, waited_ms, waiting, claim_by };
                self.admissions.push(row);
            }
            What::Claimed { ticket, session } => self.starts(*ticket, session),
            What::Renewed { ticket, session } => {
                let row = self.sessions.entry(*ticket).or_default();
                row.expires_at = Some(session.expires_at);
                row.renewals += 1;
            }
            What::Ended { ticket, was, ending, waited, .. } => {
                let (from, word) = (status_word(*was), ending_word(*ending));
                let row = self.ticket(*ticket, ended_word(*ending));
                row.ended = Some(Ended { at, from, ending: word });
                row.waited_ms = Some(waited.0);
                if *was == Status::Active {
                    self.sessions.entry(*ticket).or_default().ended = Some((at, word));
                }
            }
            What::Moved { from, to, joined_at, by: _ } => {
                let row = self.ticket(*from, "moved");
                row.ended = Some(Ended { at, from: "waiting", ending: "moved" });
                row.waited_ms = Some(at.since(*joined_at).0);
                self.begins(head, *to, *joined_at, id(*to));
            }
            What::SaleEnded { .. } => self.closed_at = Some(at),
            _ => {}
        }
        self.of_room(head, event);
        let (ticket, (kind, data)) = (event.what.ticket(), told(&event.what));
        self.events.push(EventRow { head, at, kind, ticket, data });
    }

    fn ticket(&mut self, ticket: Ticket, status: &'static str) -> &mut TicketRow {
        let row = self.tickets.entry(ticket).or_default();
        row.status = status;
        row
    }

    fn begins(&mut self, head: u64, ticket: Ticket, joined_at: Timestamp, id: String) {
        let row = self.ticket(ticket, "waiting");
        row.id = Some(id);
        row.joined_at = Some(joined_at);
        row.joined_by = Some(head);
    }

    fn waited(&mut self, ticket: Ticket, joined_at: Timestamp, waited_ms: u64) {
        let row = self.tickets.entry(ticket).or_default();
        row.waited_ms = Some(waited_ms);
        row.joined_at = Some(joined_at);
    }

    fn starts(&mut self, ticket: Ticket, session: &Session) {
        self.ticket(ticket, "active");
        let row = self.sessions.entry(ticket).or_default();
        row.started_at = Some(session.issued_at);
        row.expires_at = Some(session.expires_at);
    }

    fn of_room(&mut self, head: u64, event: &Event) {
        let room = &mut self.room;
        let status = match &event.what {
            What::Opened { .. } if head == 1 => {
                room.made_at = Some(event.at);
                "open"
            }
            What::Configured { settings, .. } => {
                room.changed_at = Some(event.at);
                room.settings = Some(RoomSettings {
                    title: settings.title.clone(),
                    target_url: settings.target_url.clone(),
                    max_active: settings.max_active,
                    rate_per_minute: settings.rate.map(|it| per_minute(it.count, it.per.0)),
                });
                return;
            }
            What::Held { hold, .. } => match hold {
                Hold::Paused { .. } => "paused",
                Hold::Maintenance { .. } => "maintenance",
                Hold::Draining { .. } => "draining",
            },
            What::Resumed { .. } | What::Reopened { .. } => "open",
            What::SaleEnded { .. } => "ended",
            _ => return,
        };
        room.status = Some(status);
    }
}

fn per_minute(count: u32, per_ms: u64) -> f64 {
    f64::from(count) * 60_000.0 / per_ms as f64
}

fn why_word(why: AdmitWhy) -> &'static str {
    match why {
        AdmitWhy::Paced => "paced",
        AdmitWhy::Straight => "straight",
        AdmitWhy::Manual => "manual",
    }
}

fn status_word(status: Status) -> &'static str {
    match status {
        Status::Waiting => "waiting",
        Status::Admitted => "admitted",
        Status::Active => "active",
        Status::Completed => "completed",
        Status::Expired => "expired",
        Status::Left => "left",
        Status::Moved => "moved",
        Status::Closed => "closed",
        Status::Revoked => "revoked",
    }
}

/// What a ticket is after it ended so.
fn ended_word(ending: Ending) -> &'static str {
    match ending {
        Ending::Completed => "completed",
        Ending::Left => "left",
        Ending::Revoked => "revoked",
        Ending::Silent
        | Ending::TooOld
        | Ending::NoShow
        | Ending::SessionOver
        | Ending::CheckoutFailed
        | Ending::CheckoutExpired => "expired",
    }
}

/// What an event is called, and what there is to know of it beside its ticket.
fn told(what: &What) -> (&'static str, Option<Value>) {
    match what {
        What::Opened { epoch } => ("opened", Some(json!({ "epoch": epoch.0 }))),
        What::Configured { settings, by } => {
            let rate = settings.rate.map(|it| per_minute(it.count, it.per.0));
            let data = json!({ "rate_per_minute": rate, "max_active": settings.max_active,
                "title": settings.title, "by": &*by.0 });
            ("configured", Some(data))
        }
        What::Joined(it) => ("joined", Some(json!({ "waiting": it.waiting }))),
        What::Admitted { waiting, why, .. } => {
            ("admitted", Some(json!({ "waiting": waiting, "why": why_word(*why) })))
        }
        What::Claimed { .. } => ("claimed", None),
        What::Renewed { .. } => ("renewed", None),
        What::Ended { was, ending, waiting, by, .. } => {
            let data = json!({ "was": status_word(*was), "ending": ending_word(*ending),
                "waiting": waiting, "by": &*by.0 });
            ("ended", Some(data))
        }
        What::Released { .. } => ("released", None),
        What::HandedOver { .. } => ("handed_over", None),
        What::Bound { .. } => ("bound", None),
        What::Moved { to, by, .. } => {
            let data = json!({ "lane": to.lane.0, "number": to.number.0, "by": &*by.0 });
            ("moved", Some(data))
        }
        What::Held { hold, by } => {
            let name = match hold {
                Hold::Paused { .. } => "paused",
                Hold::Maintenance { .. } => "maintenance",
                Hold::Draining { .. } => "draining",
            };
            (name, Some(json!({ "reason": hold.reason(), "by": &*by.0 })))
        }
        What::Resumed { by } => ("resumed", Some(json!({ "by": &*by.0 }))),
        What::AdmittedNow { asked, granted, by } => {
            ("admitted_now", Some(json!({ "asked": asked, "granted": granted, "by": &*by.0 })))
        }
        What::DoorsOpened => ("doors_opened", None),
        What::SaleStarted => ("sale_started", None),
        What::SaleEnded { reason, closed, by, .. } => {
            ("sale_ended", Some(json!({ "reason": reason, "closed": closed, "by": &*by.0 })))
        }
        What::Reopened { by } => ("reopened", Some(json!({ "by": &*by.0 }))),
        What::DrawCommitted { .. } => ("draw_committed", None),
        What::DrawClosed { .. } => ("draw_closed", None),
        What::Drawn { waived, by, .. } => {
            ("drawn", Some(json!({ "beacon_waived": waived, "by": &*by.0 })))
        }
        What::Sealed { .. } => ("window_sealed", None),
        What::ForgotTickets(_) => ("forgot_tickets", None),
        What::ForgotKeys(_) => ("forgot_keys", None),
    }
}
