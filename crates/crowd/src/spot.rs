//! What a single visitor can see to be wrong, on the spot.
//!
//! The judge looks at the whole history later; here is what no honest client would swallow: an
//! answer of the wrong shape, a position that rises, a version that falls without saying so.

use crate::wire::{Answer, Reply, Ticket};

/// What this visitor was told last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spot {
    newest: u64,
    position: Option<u64>,
}

/// Whether a question said which version was seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Since,
    Plainly,
}

const STATUSES: [&str; 9] =
    ["waiting", "admitted", "active", "completed", "expired", "left", "moved", "closed", "revoked"];
const ROOM_STATUSES: [&str; 8] =
    ["scheduled", "held", "drawing", "running", "paused", "maintenance", "draining", "ended"];

impl Spot {
    /// The newest version that was heard of.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// What is wrong with an answer's outside.
    pub fn shape(reply: &Reply, answer: &Answer) -> Option<String> {
        match answer {
            Answer::Strange(why) => Some(why.clone()),
            Answer::Problem(problem) if problem.status != reply.http => {
                Some(format!("{} with a problem of status {}", reply.http, problem.status))
            }
            Answer::Problem(_) if !reply.content_type.starts_with("application/problem+json") => {
                Some(format!("a problem as {:?}", reply.content_type))
            }
            _ => None,
        }
    }

    /// Takes an answer of this visitor's own ticket; says what is wrong with it.
    pub fn take(&mut self, room: &str, ticket: &Ticket, asked: Asked) -> Option<String> {
        let wrong = self.wrong(room, ticket, asked);
        let version = ticket.version.unwrap_or(0);
        if version >= self.newest {
            self.newest = version;
            self.position = ticket.position.or(self.position);
        }
        wrong
    }

    fn wrong(&self, room: &str, ticket: &Ticket, asked: Asked) -> Option<String> {
        let Some(version) = ticket.version else {
            return Some("an answer without a version".into());
        };
        if ticket.ticket.is_empty() || ticket.room != room {
            return Some(format!("ticket {:?} of room {:?}", ticket.ticket, ticket.room));
        }
        if !STATUSES.contains(&ticket.status.as_str()) {
            return Some(format!("status {:?}", ticket.status));
        }
        if !ROOM_STATUSES.contains(&ticket.room_status.as_str()) {
            return Some(format!("room_status {:?}", ticket.room_status));
        }
        if version < self.newest && !ticket.stale && asked == Asked::Since {
            return Some(format!("version {version} after {}, and not stale", self.newest));
        }
        if version >= self.newest
            && let (Some(was), Some(is)) = (self.position, ticket.position)
            && is > was
        {
            return Some(format!(
                "position {was} by version {}, {is} in version {version}",
                self.newest
            ));
        }
        self.figures(ticket)
    }

    fn figures(&self, ticket: &Ticket) -> Option<String> {
        let waiting = ticket.status == "waiting";
        match (ticket.position, ticket.is_inside()) {
            (Some(0) | None, true) => {}
            (Some(position), true) => return Some(format!("inside, at position {position}")),
            (Some(0), false) if waiting => return Some("waiting at position 0".into()),
            (None, false) if waiting && !ticket.draw_pending => {
                return Some("waiting without a position, and no draw is pending".into());
            }
            _ => {}
        }
        if let (Some(position), Some(ahead)) = (ticket.position, ticket.ahead)
            && waiting
            && ahead + 1 != position
        {
            return Some(format!("position {position} with {ahead} ahead"));
        }
        if waiting && ticket.wait.is_none() == ticket.wait_unknown_because.is_none() {
            return Some("a wait must be known or unknown for a reason".into());
        }
        if let Some(wait) = ticket.wait
            && !(wait.low_s <= wait.likely_s && wait.likely_s <= wait.high_s)
        {
            return Some(format!(
                "a wait of {} to {} to {}",
                wait.low_s, wait.likely_s, wait.high_s
            ));
        }
        if waiting && ticket.next_check_ms.is_none_or(|ms| ms == 0) {
            return Some("waiting, and not told when to look again".into());
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(version: u64, position: u64) -> Ticket {
        Ticket {
            ticket: "t".into(),
            room: "r".into(),
            version: Some(version),
            status: "waiting".into(),
            position: Some(position),
            ahead: Some(position - 1),
            wait_unknown_because: Some("no_data".into()),
            next_check_ms: Some(1_000),
            room_status: "running".into(),
            ..Ticket::default()
        }
    }

    #[test]
    fn an_ordinary_wait_is_fine() {
        let mut spot = Spot::default();
        for (version, position) in [(3, 9), (3, 9), (7, 4), (8, 4), (20, 1)] {
            assert_eq!(spot.take("r", &waiting(version, position), Asked::Since), None);
        }
        assert_eq!(spot.newest(), 20);
    }

    #[test]
    fn a_rise_by_one_and_a_version_that_falls_by_one_are_noticed() {
        let mut spot = Spot::default();
        assert_eq!(spot.take("r", &waiting(7, 4), Asked::Since), None);
        assert!(spot.take("r", &waiting(7, 5), Asked::Since).is_some());
        assert!(spot.take("r", &waiting(6, 5), Asked::Since).is_some());
        assert_eq!(spot.take("r", &waiting(6, 5), Asked::Plainly), None);
        assert_eq!(spot.take("r", &Ticket { stale: true, ..waiting(6, 5) }, Asked::Since), None);
    }

    #[test]
    fn what_cannot_be_is_noticed() {
        let fine = || waiting(7, 4);
        let wrong = [
            Ticket { version: None, ..fine() },
            Ticket { room: "other".into(), ..fine() },
            Ticket { status: "lost".into(), ..fine() },
            Ticket { ahead: Some(4), ..fine() },
            Ticket { position: Some(0), ..fine() },
            Ticket { position: None, ahead: None, ..fine() },
            Ticket { status: "active".into(), ..fine() },
            Ticket { wait_unknown_because: None, ..fine() },
            Ticket { next_check_ms: None, ..fine() },
            Ticket { room_status: "on fire".into(), ..fine() },
        ];
        for ticket in wrong {
            assert!(Spot::default().take("r", &ticket, Asked::Since).is_some(), "{ticket:?}");
        }
    }
}
