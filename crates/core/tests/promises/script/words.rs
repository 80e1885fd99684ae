//! Events and replies in the words of scripts.

use super::world::{T0, World};
use waitroom_core::{
    AdmitWhy, DrawRefusal, Ending, Entry, Event, FinishCause, Hold, Refusal, Reply, Session,
    Status, Ticket, Timestamp, What,
};

/// One event: a verb, the name it is about if any, and the rest. Kept apart, so that neighbours
/// that differ only in the number of their name fold into `joined a1..a5`.
struct Said {
    verb: String,
    name: Option<String>,
    rest: String,
}

impl World {
    pub fn events_in_words(&self, events: &[Event]) -> String {
        let said: Vec<Said> = events.iter().map(|event| self.event(&event.what)).collect();
        let mut parts = Vec::new();
        let mut i = 0;
        while i < said.len() {
            let mut last = i;
            while last + 1 < said.len() && follows(&said[last], &said[last + 1]) {
                last += 1;
            }
            let mut part = said[i].verb.clone();
            if let Some(name) = &said[i].name {
                part.push_str(&format!(" {name}"));
                if last > i {
                    let end = said[last].name.as_ref().expect("only named events fold");
                    part.push_str(&format!("..{end}"));
                }
            }
            part.push_str(&said[i].rest);
            parts.push(part);
            i = last + 1;
        }
        parts.join(", ")
    }

    fn event(&self, what: &What) -> Said {
        let about = |verb: &str, ticket: &Ticket, rest: String| Said {
            verb: verb.into(),
            name: Some(self.name_of(*ticket)),
            rest,
        };
        let plain = |words: String| Said { verb: words, name: None, rest: String::new() };
        match what {
            What::Opened { epoch } => plain(format!("opened epoch={}", epoch.0)),
            What::Configured { .. } => plain("configured".into()),
            What::Joined(joined) => {
                let mut rest = lane_if_other(joined.ticket);
                if let Some(old) = joined.returns {
                    rest.push_str(&format!(" returns={}", self.name_of(old)));
                }
                about("joined", &joined.ticket, rest)
            }
            What::Admitted { ticket, why, entry, .. } => {
                let mut rest = match entry {
                    Entry::MustClaim { by } => format!(" claim_by={}", time(*by)),
                    Entry::Claimed(session) => session_words(session),
                };
                rest.push_str(match why {
                    AdmitWhy::Paced => "",
                    AdmitWhy::Straight => " straight",
                    AdmitWhy::Manual => " manual",
                });
                about("admitted", ticket, rest)
            }
            What::Bound { ticket, .. } => about("bound", ticket, String::new()),
            What::Claimed { ticket, session } => about("claimed", ticket, session_words(session)),
            What::Renewed { ticket, session } => about("renewed", ticket, session_words(session)),
            What::Ended { ticket, ending, held_until, .. } => {
                let held = held_until.map(|until| format!(" held={}", time(until)));
                about(ending_word(*ending), ticket, held.unwrap_or_default())
            }
            What::Released { ticket } => about("released", ticket, String::new()),
            What::HandedOver { ticket, holder } => {
                about("handed_over", ticket, format!(" holder={}", holder.0))
            }
            What::Moved { from, to, .. } => {
                about("moved", from, format!(" to={}{}", self.name_of(*to), lane_if_other(*to)))
            }
            What::Held { hold, .. } => plain(hold_words(hold)),
            What::Resumed { .. } => plain("resumed".into()),
            What::AdmittedNow { asked, granted, .. } => {
                plain(format!("admitted_now asked={asked} granted={granted}"))
            }
            What::DoorsOpened => plain("doors_opened".into()),
            What::SaleStarted => plain("sale_started".into()),
            What::SaleEnded { cause, closed, .. } => {
                let cause = match cause {
                    FinishCause::Schedule => "schedule",
                    FinishCause::SoldOut => "sold_out",
                    FinishCause::Operator => "operator",
                };
                plain(format!("sale_ended {cause} closed={closed}"))
            }
            What::Reopened { .. } => plain("reopened".into()),
            What::DrawCommitted { .. } => plain("draw_committed".into()),
            What::DrawClosed { counts } => {
                let counts = counts.iter().map(|(lane, n)| format!(" {lane}={n}"));
                plain(format!("draw_closed{}", counts.collect::<String>()))
            }
            What::Drawn { waived, .. } => {
                plain(if *waived { "drawn waived".into() } else { "drawn".into() })
            }
            What::Sealed { lane, start, len, .. } => {
                plain(format!("sealed {lane}:{} len={len}", start.0))
            }
            What::ForgotTickets(block) => {
                plain(format!("forgot_tickets {}:{}", block.lane, block.index))
            }
            What::ForgotKeys(block) => plain(format!("forgot_keys {}:{}", block.lane, block.index)),
        }
    }

    /// An answer to a command that led to no event.
    pub fn reply_in_words(&self, reply: &Reply) -> String {
        match reply {
            Reply::Done => "done".into(),
            Reply::Joined { ticket, .. } => format!("repeat {}", self.name_of(*ticket)),
            Reply::Claimed { ticket, session, .. } => {
                format!("repeat {}{}", self.name_of(*ticket), session_words(session))
            }
            Reply::Renewed { ticket, session } => {
                format!("unchanged {}{}", self.name_of(*ticket), session_words(session))
            }
            Reply::Over { ticket, status, .. } => {
                format!("over {} {}", self.name_of(*ticket), status_word(*status))
            }
            Reply::Moved { to, .. } => format!("stays {}", self.name_of(*to)),
            Reply::HandedOver { ticket, .. } => format!("handed {}", self.name_of(*ticket)),
            Reply::Admitted { count } | Reply::Lapsed { count } | Reply::Released { count } => {
                assert_eq!(*count, 0, "a count without events");
                "nothing".into()
            }
            Reply::Ticked { again } => {
                assert!(!again, "again, but nothing was done");
                "nothing".into()
            }
            Reply::Refused(refusal) => format!("refused {}", refusal_words(refusal)),
        }
    }
}

pub fn time(at: Timestamp) -> String {
    if at.0 == u64::MAX {
        return "never".into();
    }
    let ms = at.0 - T0.0;
    if ms.is_multiple_of(1_000) {
        format!("{}s", ms / 1_000)
    } else {
        format!("{}s", ms as f64 / 1_000.0)
    }
}

pub fn status_word(status: Status) -> &'static str {
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

fn hold_words(hold: &Hold) -> String {
    match hold {
        Hold::Paused { reason } => format!("paused {reason}"),
        Hold::Maintenance { reason } => format!("maintenance {reason}"),
        Hold::Draining { reason } => format!("draining {reason}"),
    }
}

fn session_words(session: &Session) -> String {
    let mut words = format!(" until={}", time(session.expires_at));
    if session.pass_expires_at != session.expires_at {
        words.push_str(&format!(" pass={}", time(session.pass_expires_at)));
    }
    words
}

fn lane_if_other(ticket: Ticket) -> String {
    if ticket.lane.0 == 0 { String::new() } else { format!(" lane={}", ticket.lane) }
}

fn refusal_words(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NotReady => "not_ready".into(),
        Refusal::NotOpenYet { opens_at } => format!("not_open_yet opens_at={}", time(*opens_at)),
        Refusal::NotStarted => "not_started".into(),
        Refusal::DrawPending => "draw_pending".into(),
        Refusal::Paused { reason } => format!("paused {reason}"),
        Refusal::Maintenance { reason } => format!("maintenance {reason}"),
        Refusal::Draining { reason } => format!("draining {reason}"),
        Refusal::Finished { reason } => format!("finished {reason}").trim_end().into(),
        Refusal::Full { max_waiting } => format!("full max_waiting={max_waiting}"),
        Refusal::UnknownLane { lane } => format!("unknown_lane lane={lane}"),
        Refusal::UnknownTicket => "unknown_ticket".into(),
        Refusal::PlaceLost => "place_lost".into(),
        Refusal::Forgotten => "forgotten".into(),
        Refusal::MovedElsewhere => "moved_elsewhere".into(),
        Refusal::WrongStatus { status } => format!("wrong_status status={}", status_word(*status)),
        Refusal::ClaimTooLate { claim_by } => {
            format!("claim_too_late claim_by={}", time(*claim_by))
        }
        Refusal::KeyReused => "key_reused".into(),
        Refusal::MetadataTooLarge { bytes_max } => {
            format!("metadata_too_large bytes_max={bytes_max}")
        }
        Refusal::NobodyIsNobody => "nobody_is_nobody".into(),
        Refusal::Settings(wrong) => {
            let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
            format!("settings {}", wrong.join("; "))
        }
        Refusal::StaleEpoch { newest } => format!("stale_epoch newest={}", newest.0),
        Refusal::Draw(why) => format!("draw {}", draw_refusal(*why)),
        Refusal::HandedOverTooOften => "handed_over_too_often".into(),
    }
}

fn draw_refusal(why: DrawRefusal) -> &'static str {
    match why {
        DrawRefusal::NoDraw => "no_draw",
        DrawRefusal::AlreadyCommitted => "already_committed",
        DrawRefusal::AlreadyDrawn => "already_drawn",
        DrawRefusal::NotClosed => "not_closed",
        DrawRefusal::WrongSeed => "wrong_seed",
        DrawRefusal::WrongBeaconRound => "wrong_beacon_round",
        DrawRefusal::BeaconMissing => "beacon_missing",
        DrawRefusal::BeaconNotAsked => "beacon_not_asked",
        DrawRefusal::TooLate => "too_late",
        DrawRefusal::SealedSeedTooLarge => "sealed_seed_too_large",
    }
}

fn follows(one: &Said, next: &Said) -> bool {
    let (Some(a), Some(b)) = (&one.name, &next.name) else { return false };
    let (Some((a, i)), Some((b, j))) = (numbered(a), numbered(b)) else { return false };
    one.verb == next.verb && one.rest == next.rest && a == b && i + 1 == j
}

/// `a12` is the twelfth of the crowd `a`.
pub fn numbered(name: &str) -> Option<(&str, u64)> {
    let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = name[prefix.len()..].parse().ok()?;
    prefix.chars().all(|c| c.is_ascii_alphabetic()).then_some((prefix, number))
}
