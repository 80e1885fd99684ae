//! A request of a site whose room is elsewhere.

use std::net::IpAddr;
use std::sync::Arc;

use http::request::Parts;
use http::{HeaderValue, Response, header};
use hyper::body::Incoming;

use super::{Elsewhere, Remote, RemoteRoom, ask};
use crate::BASE;
use crate::body::Body;
use crate::cookies::{self, Kind};
use crate::facts::{Facts, PASS};
use crate::framing::Addressed;
use crate::gate::{Gate, SiteGate};
use crate::negotiate::{Taste, Wants, wants};
use crate::proxy::Going;
use crate::render;
use crate::target;
use crate::verdict::{self, Papers, Passed, Refusal, Ruled, Verdict, Why};

/// Who asks, as far as the listener knows.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    pub client: IpAddr,
    pub https: bool,
}

/// Our own addresses are the owner's.
pub async fn own(
    gate: Arc<Gate>,
    remote: &Remote,
    to: Addressed,
    head: Parts,
    body: Incoming,
    Caller { client, https }: Caller,
) -> Response<Body> {
    let at = remote.door.clone();
    let (visitor, elsewhere, fresh) = (None, None, Vec::new());
    let (authority, ours) = (to.authority, true);
    let going = Going { gate, at, visitor, fresh, head, client, https, authority, elsewhere, ours };
    going.go(body).await
}

pub async fn visit(
    gate: Arc<Gate>,
    at: Arc<SiteGate>,
    to: Addressed,
    head: Parts,
    body: Incoming,
    Caller { client, https }: Caller,
) -> Response<Body> {
    let facts = Facts {
        host: &to.host,
        path: head.uri.path(),
        query: head.uri.query(),
        method: &head.method,
        headers: &head.headers,
        client,
        now_s: gate.desk.now_s(),
    };
    let (room, verdict, fresh) = judge(&gate, &at, &facts).await;
    at.counts.note(&verdict);
    if let (Some(room), Verdict::Pass(passed), true, Some(text)) =
        (room, &verdict, facts.only_looks(), facts.query_value("wr_pass"))
    {
        let mut response = render::see_other(&target::cleaned(facts.path, facts.query));
        let life_s = passed.expires_s.saturating_sub(facts.now_s);
        let cookie = cookies::set(Kind::Pass, room.name.as_str(), text, life_s, gate.dev());
        response.headers_mut().extend(cookie.map(|cookie| (header::SET_COOKIE, cookie)));
        return response;
    }
    match (&verdict, room) {
        (Verdict::Pass(_) | Verdict::Bypass(_), _) => {}
        (Verdict::Refuse(Refusal::Forged(_)), Some(room)) if wants(&facts) == Wants::Page => {
            let mut response = wait(&at, room, &facts);
            forget(&gate, room, &mut response);
            return response;
        }
        (Verdict::Refuse(refusal), _) => {
            return render::trouble(&Taste::of(&facts), render::refused(refusal));
        }
        (Verdict::Wait(why), Some(room)) => {
            let mut response = wait(&at, room, &facts);
            if !matches!(why, Why::NoPass | Why::RoomAway) {
                forget(&gate, room, &mut response);
            }
            return response;
        }
        (Verdict::Wait(_), None) => {
            let taste = Taste::of(&facts);
            return render::trouble(&taste, render::room_away());
        }
    }
    let elsewhere = match (&verdict, room) {
        (Verdict::Pass(passed), Some(room)) => {
            let Passed { ticket, expires_s, .. } = *passed;
            Some(Elsewhere { room: room.name.clone(), ticket, expires_s })
        }
        _ => None,
    };
    let (visitor, fresh) = (None, fresh.into_iter().collect());
    let (at, authority, ours) = (at.clone(), to.authority, false);
    let going = Going { gate, at, visitor, fresh, head, client, https, authority, elsewhere, ours };
    going.go(body).await
}

async fn judge<'a>(
    gate: &Gate,
    at: &'a SiteGate,
    facts: &Facts<'_>,
) -> (Option<&'a RemoteRoom>, Verdict, Option<HeaderValue>) {
    let Some(remote) = &at.remote else { return (None, Verdict::Wait(Why::RoomAway), None) };
    let room = match verdict::rule(&at.site, facts) {
        Ruled::By(why) => return (None, Verdict::Bypass(why), None),
        Ruled::Room(name) => remote.rooms.get(name.as_str()),
    };
    let Some(room) = room else { return (None, Verdict::Wait(Why::RoomAway), None) };
    let away = || gate.without_room(at, Why::RoomAway);
    // Before the owner was first heard nothing is known of those who ended.
    let Some(verifier) = room.verifier.get().filter(|_| room.known.version().is_some()) else {
        return (Some(room), away(), None);
    };
    let papers = Papers {
        room: room.name.as_str(),
        verifier,
        checked: &room.checked,
        staff: None,
        dev: gate.dev(),
    };
    let passed = match verdict::judge(&papers, facts, |ticket| room.known.stand(ticket)) {
        Verdict::Pass(passed) => passed,
        verdict => return (Some(room), verdict, None),
    };
    if room.known.is_known(passed.ticket, facts.now_s) {
        return (Some(room), Verdict::Pass(passed), None);
    }
    let Some(pass) = shown(&papers, &passed, facts) else {
        return (Some(room), away(), None);
    };
    match ask::about(remote, room, pass, facts).await {
        Some((true, cookie)) => {
            let until_s = facts.now_s + at.site.checked_for.as_secs();
            let verdict = match room.known.said_yes(passed.ticket, until_s) {
                true => Verdict::Pass(passed),
                false => Verdict::Wait(Why::SessionEnded),
            };
            (Some(room), verdict, cookie)
        }
        Some((false, _)) => (Some(room), Verdict::Wait(Why::SessionEnded), None),
        None => (Some(room), away(), None),
    }
}

/// The text of the pass that was good.
fn shown<'a>(papers: &Papers<'_>, passed: &Passed, facts: &Facts<'a>) -> Option<&'a str> {
    let cookies = cookies::shown(facts.headers, papers.room, papers.dev);
    let texts = [facts.header(PASS), facts.query_value("wr_pass"), cookies.pass];
    let presented = crate::verdict::presented(facts, cookies.nonce);
    let ticket = passed.ticket.to_string();
    texts.into_iter().flatten().find(|text| {
        let good = papers.verifier.verify(text, facts.now_s, &presented);
        good.is_ok_and(|pass| *pass.ticket == *ticket)
    })
}

/// To the owner's waiting page, which stands under our own addresses.
fn wait(at: &SiteGate, room: &RemoteRoom, facts: &Facts<'_>) -> Response<Body> {
    let back_to = target::cleaned(facts.path, facts.query);
    match wants(facts) {
        Wants::Page => render::see_other(&format!("{BASE}/wait?to={}", target::encode(&back_to))),
        Wants::Json => render::waiting_document(at, room.name.as_str(), &back_to),
        Wants::Nothing => render::nothing(at.site.waiting_status),
    }
}

fn forget(gate: &Gate, room: &RemoteRoom, response: &mut Response<Body>) {
    for cookie in gate.forget(room.name.as_str()) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
}
