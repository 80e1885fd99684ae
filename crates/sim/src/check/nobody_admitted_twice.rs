//! Promise 3: at most one admission per ticket; repeats of a claim return the same one.
//!
//! A ticket that was moved is the same person's, so its successors count with it.
//! A claim or renewal that was answered carries the times of a session that the log has, and that
//! was in force at some point between sending and answering. A reopening, a hold or new settings
//! give those inside more time without a new pass: after one of them the end of the session may
//! differ from the event's, the pass may not.

use waitroom_core::{Entry, Fresh, Reply, Session, Ticket, What};

use super::horizon::Horizon;
use super::quick::{Map, Set};
use super::told::Tickets;
use crate::history::{History, Outcome, Violation};

const PROMISE: u8 = 3;

pub fn check(history: &History) -> Vec<Violation> {
    let tickets = Tickets::of(history);
    let mut found = Vec::new();
    let mut admitted: Map<Ticket, u64> = Map::default();
    let mut sessions = Sessions::default();
    for it in &history.log {
        match &it.event.what {
            What::Admitted { ticket, entry, .. } => {
                if let Some(first) = admitted.insert(tickets.root(*ticket), it.index) {
                    found.push(Violation::new(
                        PROMISE,
                        format!(
                            "event {}: {ticket} was admitted before, by event {first}",
                            it.index
                        ),
                    ));
                }
                if let Entry::Claimed(session) = entry {
                    sessions.begin(*ticket, it.index, *session, &mut found);
                }
            }
            What::Claimed { ticket, session } => {
                if !admitted.contains_key(&tickets.root(*ticket)) {
                    found.push(Violation::new(
                        PROMISE,
                        format!("event {}: {ticket} is claimed and was not admitted", it.index),
                    ));
                }
                sessions.begin(*ticket, it.index, *session, &mut found);
            }
            What::Renewed { ticket, session } => {
                let times = Times { index: it.index, session: *session, renewal: true };
                sessions.by_ticket.entry(*ticket).or_default().push(times);
            }
            What::Opened { .. }
            | What::Configured { .. }
            | What::Held { .. }
            | What::Resumed { .. } => sessions.graces.push(it.index),
            _ => {}
        }
    }
    // After a loss the sessions that people remember may be those of a log that is no more.
    if !history.store_lost_data {
        answers(history, &tickets, &sessions, &mut found);
    }
    found
}

#[derive(Default)]
struct Sessions {
    by_ticket: Map<Ticket, Vec<Times>>,
    /// Events that may have given those inside more time.
    graces: Vec<u64>,
}

struct Times {
    index: u64,
    session: Session,
    renewal: bool,
}

impl Sessions {
    fn begin(&mut self, ticket: Ticket, index: u64, session: Session, found: &mut Vec<Violation>) {
        let times = self.by_ticket.entry(ticket).or_default();
        if let Some(first) = times.first() {
            found.push(Violation::new(
                PROMISE,
                format!("event {index}: {ticket} was claimed before, by event {}", first.index),
            ));
        }
        times.push(Times { index, session, renewal: false });
    }

    /// Whether these are the times of the ticket's session somewhere between two versions.
    fn fit(&self, told: &Said, over: u64) -> bool {
        let all = self.by_ticket.get(&told.ticket).map_or(&[][..], |all| all);
        all.iter().enumerate().any(|(i, times)| {
            let replaced = all.get(i + 1).map_or(u64::MAX, |next| next.index).min(over);
            let log = times.session;
            let in_force = times.index <= told.to && replaced > told.from;
            // A claim that says it is new made the event itself, behind all that was known.
            let made = !told.new || !times.renewal && times.index > told.from;
            in_force
                && made
                && log.issued_at == told.session.issued_at
                && log.pass_expires_at == told.session.pass_expires_at
                && (log.expires_at == told.session.expires_at || self.graced(times.index, told.to))
        })
    }

    fn graced(&self, after: u64, to: u64) -> bool {
        let next = self.graces.partition_point(|index| *index <= after);
        self.graces.get(next).is_some_and(|index| *index <= to)
    }
}

/// A session as a client was told of it, decided between the versions `from` and `to`.
struct Said {
    ticket: Ticket,
    session: Session,
    new: bool,
    from: u64,
    to: u64,
}

fn answers(
    history: &History,
    tickets: &Tickets<'_>,
    sessions: &Sessions,
    found: &mut Vec<Violation>,
) {
    let horizon = Horizon::of(history);
    let mut claimed = Set::default();
    for call in &history.calls {
        let Outcome::Answered { reply, version, .. } = &call.outcome else { continue };
        let (ticket, session, new) = match *reply {
            Reply::Claimed { ticket, session, fresh } => (ticket, session, fresh == Fresh::New),
            Reply::Renewed { ticket, session } => (ticket, session, false),
            _ => continue,
        };
        if new && !claimed.insert(ticket) {
            found.push(Violation::new(PROMISE, format!("{ticket} was newly claimed twice")));
        }
        let (from, to) = (horizon.before(call.sent), *version);
        let over = tickets.get(ticket).and_then(|told| told.over).unwrap_or(u64::MAX);
        if !sessions.fit(&Said { ticket, session, new, from, to }, over) {
            found.push(Violation::new(
                PROMISE,
                format!(
                    "client {} was told of a session of {ticket} that the log does not have \
                     between versions {from} and {to}: {session:?}",
                    call.client
                ),
            ));
        }
    }
}
