//! The verdict: facts in, a value out. No I/O, no clock, nothing is written.
//!
//! A pass is looked for in the header `Waitroom-Pass`, in the query (`wr_pass`, once, on the way
//! from the waiting page), in the gate's own cookie and in the pass's cookie, in this order; the
//! first good one counts. A good pass whose session ended early is known by the board, and a
//! board that is behind never refuses: what it does not know yet is decided by the signature.
//! Staff, crawlers and rules that let by are bypasses, each by its own name, all counted.

use http::header;
use waitroom_api::binding;
use waitroom_core::id::TicketId;
use waitroom_core::{Session, Status, Timestamp};
use waitroom_pass::{CheckedPasses, Pass, Presented, Refused, StaffPasses, Verifier};
use waitroom_store::RoomName;

use crate::cookies;
use crate::facts::{Facts, PASS, STAFF};
use crate::path::Path;
use crate::site::{Crawlers, Site};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Inside: on to the origin.
    Pass(Passed),
    /// No good pass: to the waiting room.
    Wait(Why),
    /// Shows something that no honest browser has, or nobody may come in now.
    Refuse(Refusal),
    /// Not the room's business.
    Bypass(Bypass),
}

/// Somebody inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    pub ticket: TicketId,
    /// The end of the pass that was shown.
    pub expires_s: u64,
    /// The pass, when its signature was looked at just now.
    pub checked_now: Option<Box<Pass>>,
    /// The session as the board knows it; none when the board is behind.
    pub session: Option<Session>,
}

/// Why somebody waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    NoPass,
    /// The pass is over, not yet begun, of another room or browser, or of a key that went.
    PassOver(Refused),
    /// The session ended before its pass.
    SessionEnded,
    /// Nobody can be asked about the room.
    RoomAway,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The pass was never written by us, or was altered.
    Forged(Refused),
    /// The house is closed, also for those inside.
    Maintenance { reason: String },
}

/// Why a request needs no pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bypass {
    /// No room protects it.
    NoRoom,
    /// A rule of the site lets it by.
    Rule,
    Crawler,
    Staff,
    /// The room could not be asked, and the site fails open.
    FailOpen,
}

impl Bypass {
    pub const ALL: [Bypass; 5] =
        [Bypass::NoRoom, Bypass::Rule, Bypass::Crawler, Bypass::Staff, Bypass::FailOpen];

    pub fn word(self) -> &'static str {
        match self {
            Bypass::NoRoom => "bypass_no_room",
            Bypass::Rule => "bypass_rule",
            Bypass::Crawler => "bypass_crawler",
            Bypass::Staff => "bypass_staff",
            Bypass::FailOpen => "bypass_fail_open",
        }
    }
}

/// What a request of a site is held against.
#[derive(Clone, Copy, Debug)]
pub enum Ruled<'a> {
    Room(&'a RoomName),
    By(Bypass),
}

/// Which room a request belongs to, if any.
pub fn rule<'a>(site: &'a Site, facts: &Facts<'_>) -> Ruled<'a> {
    let path = Path::of(facts.path);
    let Some(room) = site.room_of(facts, &path) else { return Ruled::By(Bypass::NoRoom) };
    if site.lets_by(facts, &path) {
        return Ruled::By(Bypass::Rule);
    }
    if site.crawlers == Crawlers::Pass && facts.only_looks() && is_crawler(facts) {
        return Ruled::By(Bypass::Crawler);
    }
    Ruled::Room(room)
}

/// What passes of a room are checked with.
#[derive(Clone, Copy, Debug)]
pub struct Papers<'a> {
    pub room: &'a str,
    pub verifier: &'a Verifier,
    pub checked: &'a CheckedPasses,
    pub staff: Option<&'a StaffPasses>,
    pub dev: bool,
}

/// How a ticket stands, as far as this gate knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stand {
    /// Inside, with its times; or not known here, which is for the signature to decide.
    Inside(Option<Session>),
    Ended,
    /// This gate is cut off, and does not know it as somebody inside: it may have ended.
    Unsure,
}

impl Stand {
    pub fn of(status: Option<Status>, session: Option<Session>) -> Stand {
        match status {
            // A claim is answered before the board that shows it: these may be inside already.
            None | Some(Status::Waiting | Status::Admitted | Status::Active) => {
                Stand::Inside(session)
            }
            Some(
                Status::Completed
                | Status::Expired
                | Status::Left
                | Status::Moved
                | Status::Closed
                | Status::Revoked,
            ) => Stand::Ended,
        }
    }
}

impl Stand {
    /// The same at a gate that is cut off from those who free slots: what it does not know it must
    /// not take for good. Whoever is inside in its picture stays inside, until the pass ends that
    /// the picture knows of; a pass of after the cut is none here.
    pub fn when_cut_off(self, status: Option<Status>, now: Timestamp) -> Stand {
        match self {
            Stand::Inside(Some(session))
                if status == Some(Status::Active) && now < session.pass_expires_at =>
            {
                Stand::Inside(Some(session))
            }
            Stand::Inside(_) | Stand::Unsure => Stand::Unsure,
            Stand::Ended => Stand::Ended,
        }
    }
}

/// The verdict on a request of this room. `stands` is asked only about tickets of genuine passes.
pub fn judge(
    papers: &Papers<'_>,
    facts: &Facts<'_>,
    stands: impl Fn(TicketId) -> Stand,
) -> Verdict {
    let shown = cookies::shown(facts.headers, papers.room, papers.dev);
    let staff = facts.header(STAFF).or(shown.staff);
    if let (Some(staff), Some(text)) = (papers.staff, staff)
        && staff.read(papers.room, text, facts.now_s).is_some()
    {
        return Verdict::Bypass(Bypass::Staff);
    }
    let presented = presented(facts, shown.nonce);
    let by_signature = [facts.header(PASS), facts.query_value("wr_pass")];
    let mut refused = None;
    for text in by_signature.into_iter().flatten() {
        match papers.verifier.verify(text, facts.now_s, &presented) {
            Ok(pass) => return inside(Found::now(pass), &stands),
            Err(why) => refused = refused.or(Some(why)),
        }
    }
    if let Some(text) = shown.checked
        && let Some(known) = papers.checked.read(papers.room, text, facts.now_s, &presented)
    {
        let found =
            Found { ticket: Some(known.ticket), expires_s: known.expires_s.into(), now: None };
        return inside(found, &stands);
    }
    if let Some(text) = shown.pass {
        match papers.verifier.verify(text, facts.now_s, &presented) {
            Ok(pass) => return inside(Found::now(pass), &stands),
            Err(why) => refused = refused.or(Some(why)),
        }
    }
    match refused {
        None => Verdict::Wait(Why::NoPass),
        Some(why) if is_forged(why) => Verdict::Refuse(Refusal::Forged(why)),
        Some(why) => Verdict::Wait(Why::PassOver(why)),
    }
}

/// What a request shows of what its pass may be tied to.
pub fn presented<'a>(facts: &Facts<'a>, nonce: Option<&'a str>) -> Presented<'a> {
    binding::shown(facts.headers, facts.client, nonce)
}

struct Found {
    ticket: Option<TicketId>,
    expires_s: u64,
    now: Option<Box<Pass>>,
}

impl Found {
    fn now(pass: Pass) -> Found {
        let ticket = TicketId::parse(&pass.ticket).ok();
        Found { ticket, expires_s: pass.expires_at, now: Some(Box::new(pass)) }
    }
}

fn inside(found: Found, stands: impl Fn(TicketId) -> Stand) -> Verdict {
    let Some(ticket) = found.ticket else {
        return Verdict::Refuse(Refusal::Forged(Refused::ClaimsWrong));
    };
    match stands(ticket) {
        Stand::Ended => Verdict::Wait(Why::SessionEnded),
        Stand::Unsure => Verdict::Wait(Why::RoomAway),
        Stand::Inside(session) => Verdict::Pass(Passed {
            ticket,
            expires_s: found.expires_s,
            checked_now: found.now,
            session,
        }),
    }
}

/// Whether an honest browser can come to show such a pass: an old one, yes; an altered one, no.
fn is_forged(why: Refused) -> bool {
    match why {
        Refused::TooLong
        | Refused::Malformed
        | Refused::TypeWrong
        | Refused::CritUnknown
        | Refused::AlgWrong
        | Refused::SignatureWrong
        | Refused::ClaimsWrong => true,
        Refused::KeyUnknown
        | Refused::RoomOther
        | Refused::NotYet
        | Refused::Expired
        | Refused::BindingMissing
        | Refused::BindingWrong => false,
    }
}

/// By what they call themselves. Anybody can; that is why it is a policy and not a proof.
fn is_crawler(facts: &Facts<'_>) -> bool {
    const NAMES: [&str; 8] = [
        "Googlebot",
        "bingbot",
        "DuckDuckBot",
        "Applebot",
        "YandexBot",
        "Baiduspider",
        "Qwantify",
        "Slurp",
    ];
    let agent = facts.header(header::USER_AGENT).unwrap_or_default();
    NAMES.iter().any(|name| agent.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_that_is_cut_off_knows_those_inside_until_their_passes_end_and_nobody_else() {
        let at = Timestamp;
        let session =
            Session { issued_at: at(0), expires_at: at(9_000), pass_expires_at: at(5_000) };
        let stand = |status, now| {
            let known = Stand::of(status, Some(session).filter(|_| status.is_some()));
            known.when_cut_off(status, at(now))
        };
        assert_eq!(stand(Some(Status::Active), 4_999), Stand::Inside(Some(session)));
        // The pass it shows may have been renewed since, elsewhere: nobody told us.
        assert_eq!(stand(Some(Status::Active), 5_000), Stand::Unsure);
        // A claim that came after the cut, or a ticket that did.
        for status in [Some(Status::Admitted), Some(Status::Waiting), None] {
            assert_eq!(stand(status, 1_000), Stand::Unsure, "{status:?}");
        }
        assert_eq!(stand(Some(Status::Revoked), 1_000), Stand::Ended);
    }
}
