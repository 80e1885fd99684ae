//! How an event reads: its name and its facts, the same for people and for machines.
//!
//! Stays out, on purpose: metadata, identities and join keys, which are people's, and sealed
//! values, which nobody can read. Whether they are there is told.
//! To add an event: an arm in [`Told::of`].

use serde_json::{Map, Value, json};
use waitroom_core::{AdmitWhy, Ending, Entry, Event, FinishCause, Hold, Session, Status, What};

use waitroom_core::when::utc;

/// An event in words.
#[derive(Debug)]
pub struct Told {
    at_ms: u64,
    name: &'static str,
    facts: Vec<(&'static str, Value)>,
}

impl Told {
    pub fn of(event: &Event) -> Told {
        let (name, facts) = words(&event.what);
        Told { at_ms: event.at.0, name, facts }
    }

    pub fn line(&self, index: u64) -> String {
        let mut line = format!("{index:>10}  {}  {:<14}", utc(self.at_ms), self.name);
        for (key, fact) in self.facts.iter().filter(|(_, fact)| !fact.is_null()) {
            let told = match fact.as_str().filter(|text| is_plain(text)) {
                Some(plain) => plain.to_owned(),
                None => fact.to_string(),
            };
            line += &format!("  {key} {told}");
        }
        line.truncate(line.trim_end().len());
        line
    }

    pub fn json(&self, index: u64) -> Value {
        let mut object = Map::new();
        object.insert("index".into(), index.into());
        object.insert("at".into(), utc(self.at_ms).into());
        object.insert("at_ms".into(), self.at_ms.into());
        object.insert("event".into(), self.name.into());
        object.extend(self.facts.iter().map(|(key, fact)| ((*key).to_owned(), fact.clone())));
        object.into()
    }
}

/// Whether a text can stand in a line without quotes.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "-_:./".contains(c))
}

type Facts = Vec<(&'static str, Value)>;

fn words(what: &What) -> (&'static str, Facts) {
    match what {
        What::Opened { epoch } => ("opened", vec![("epoch", epoch.0.into())]),
        What::Configured { settings, by } => {
            ("configured", vec![("by", by.0.as_ref().into()), ("settings", json!(**settings))])
        }
        What::Joined(it) => {
            let mut facts: Facts = vec![
                ("ticket", it.ticket.to_string().into()),
                ("waiting_in_lane", it.waiting_in_lane.into()),
                ("waiting", it.waiting.into()),
                ("returns", json!(it.returns.map(|it| it.to_string()))),
            ];
            let there = [
                ("identity", it.identity.is_some()),
                ("key", it.key.is_some()),
                ("metadata", it.metadata.is_some()),
                ("sealed_user", it.sealed_user.is_some()),
            ];
            facts.extend(there.into_iter().filter(|it| it.1).map(|it| (it.0, true.into())));
            ("joined", facts)
        }
        What::Admitted { ticket, joined_at, waiting, why, entry, sealed_user: _ } => {
            let mut facts: Facts = vec![
                ("ticket", ticket.to_string().into()),
                ("why", admit_why(*why).into()),
                ("joined_at", utc(joined_at.0).into()),
                ("waiting", (*waiting).into()),
            ];
            match entry {
                Entry::MustClaim { by } => facts.push(("claim_by", utc(by.0).into())),
                Entry::Claimed(it) => facts.extend(session(it)),
            }
            ("admitted", facts)
        }
        What::Claimed { ticket, session: it } => ("claimed", with_session(ticket, it)),
        What::Renewed { ticket, session: it } => ("renewed", with_session(ticket, it)),
        What::Ended { ticket, was, ending, waited, waiting, held_until, sealed_user: _, by } => {
            let facts = vec![
                ("ticket", ticket.to_string().into()),
                ("was", status(*was).into()),
                ("ending", ending_word(*ending).into()),
                ("waited_ms", waited.0.into()),
                ("waiting", (*waiting).into()),
                ("slot_held_until", json!(held_until.map(|it| utc(it.0)))),
                ("by", by.0.as_ref().into()),
            ];
            ("ended", facts)
        }
        What::Released { ticket } => ("released", vec![("ticket", ticket.to_string().into())]),
        What::HandedOver { ticket, holder } => (
            "handed_over",
            vec![("ticket", ticket.to_string().into()), ("holder", holder.0.into())],
        ),
        What::Bound { ticket, identity: _ } => {
            ("bound", vec![("ticket", ticket.to_string().into())])
        }
        What::Moved { from, to, joined_at, by } => {
            let facts = vec![
                ("ticket", from.to_string().into()),
                ("to", to.to_string().into()),
                ("joined_at", utc(joined_at.0).into()),
                ("by", by.0.as_ref().into()),
            ];
            ("moved", facts)
        }
        What::Held { hold, by } => {
            let name = match hold {
                Hold::Paused { .. } => "paused",
                Hold::Maintenance { .. } => "maintenance",
                Hold::Draining { .. } => "draining",
            };
            (name, vec![("reason", hold.reason().into()), ("by", by.0.as_ref().into())])
        }
        What::Resumed { by } => ("resumed", vec![("by", by.0.as_ref().into())]),
        What::AdmittedNow { asked, granted, by } => {
            let facts = vec![
                ("asked", (*asked).into()),
                ("granted", (*granted).into()),
                ("by", by.0.as_ref().into()),
            ];
            ("admitted_now", facts)
        }
        What::DoorsOpened => ("doors_opened", vec![]),
        What::SaleStarted => ("sale_started", vec![]),
        What::SaleEnded { cause, reason, closed, by } => {
            let facts = vec![
                ("cause", finish_cause(*cause).into()),
                ("reason", reason.as_str().into()),
                ("closed", (*closed).into()),
                ("by", by.0.as_ref().into()),
            ];
            ("sale_ended", facts)
        }
        What::Reopened { by } => ("reopened", vec![("by", by.0.as_ref().into())]),
        What::DrawCommitted { commitment, sealed_seed: _, beacon } => {
            ("draw_committed", vec![("commitment", hex(commitment)), ("beacon", json!(beacon))])
        }
        What::DrawClosed { counts } => {
            let count = |(lane, count): &(waitroom_core::LaneId, u64)| json!({ "lane": lane.0, "count": count });
            ("draw_closed", vec![("counts", counts.iter().map(count).collect())])
        }
        What::Drawn { seed, chain, beacon, waived, by } => {
            let facts = vec![
                ("seed", hex(seed)),
                ("chain", hex(chain)),
                ("beacon", json!(beacon.as_deref().map(hex))),
                ("beacon_waived", (*waived).into()),
                ("by", by.0.as_ref().into()),
            ];
            ("drawn", facts)
        }
        What::Sealed { lane, start, len, seed } => {
            let facts = vec![
                ("lane", lane.to_string().into()),
                ("start", start.0.into()),
                ("len", (*len).into()),
                ("seed", hex(seed)),
            ];
            ("window_sealed", facts)
        }
        What::ForgotTickets(it) => (
            "forgot_tickets",
            vec![("lane", it.lane.to_string().into()), ("block", it.index.into())],
        ),
        What::ForgotKeys(it) => {
            ("forgot_keys", vec![("lane", it.lane.to_string().into()), ("block", it.index.into())])
        }
    }
}

fn with_session(ticket: &waitroom_core::Ticket, it: &Session) -> Facts {
    let mut facts: Facts = vec![("ticket", ticket.to_string().into())];
    facts.extend(session(it));
    facts
}

fn session(it: &Session) -> Facts {
    vec![
        ("issued_at", utc(it.issued_at.0).into()),
        ("expires_at", utc(it.expires_at.0).into()),
        ("pass_expires_at", utc(it.pass_expires_at.0).into()),
    ]
}

fn hex(bytes: &[u8]) -> Value {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

fn admit_why(why: AdmitWhy) -> &'static str {
    match why {
        AdmitWhy::Paced => "paced",
        AdmitWhy::Straight => "straight",
        AdmitWhy::Manual => "manual",
    }
}

fn finish_cause(cause: FinishCause) -> &'static str {
    match cause {
        FinishCause::Schedule => "schedule",
        FinishCause::SoldOut => "sold_out",
        FinishCause::Operator => "operator",
    }
}

fn status(status: Status) -> &'static str {
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

fn ending_word(ending: Ending) -> &'static str {
    match ending {
        Ending::Completed => "completed",
        Ending::Left => "left",
        Ending::Silent => "silent",
        Ending::TooOld => "too_old",
        Ending::NoShow => "no_show",
        Ending::SessionOver => "session_over",
        Ending::CheckoutFailed => "checkout_failed",
        Ending::CheckoutExpired => "checkout_expired",
        Ending::Revoked => "revoked",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use waitroom_core::{Actor, Identity, Joined, Ticket, Timestamp};

    #[test]
    fn a_line_names_index_time_event_and_facts() {
        let hold = Hold::Paused { reason: "a queue\nof trucks".into() };
        let event = What::Held { hold, by: Actor::new("ops") }.at(Timestamp(61_000));
        let line = "         7  1970-01-01T00:01:01.000Z  paused          \
                    reason \"a queue\\nof trucks\"  by ops";
        assert_eq!(Told::of(&event).line(7), line);
    }

    #[test]
    fn what_belongs_to_people_is_not_printed() {
        let joined = Joined {
            ticket: Ticket::new(0, 5),
            identity: Some(Identity([0xAB; 16])),
            metadata: Some(b"ana@example.org".as_slice().into()),
            ..Joined::default()
        };
        let told = Told::of(&What::Joined(joined).at(Timestamp(0)));
        let all = told.line(1) + &told.json(1).to_string();
        assert!(all.contains("0:5") && all.contains("\"identity\":true"), "{all}");
        assert!(!all.contains("abab") && !all.contains("ana@"), "{all}");
    }
}
