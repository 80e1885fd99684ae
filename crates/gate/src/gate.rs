//! The gate: sites, their rooms, and the verdict on a request.
//!
//! Lives here: what is kept between requests. Stays out: what is answered (`render.rs`) and how a
//! request gets to the origin (`proxy.rs`).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use http::HeaderValue;
use serde_json::{Map, Value, json};
use waitroom_api::Desk;
use waitroom_api::desk::GateDesk;
use waitroom_core::Session;
use waitroom_core::id::TicketId;
use waitroom_pages::By;
use waitroom_pass::{CheckedPasses, Pass, Presented, StaffPass, StaffPasses};

use crate::adaptive::{Following, Signals};
use crate::confirm::Confirmations;
use crate::cookies::{self, Kind};
use crate::counts::Counts;
use crate::facts::Facts;
use crate::origin::Origins;
use crate::reach::Cap;
use crate::remote::Remote;
use crate::room::{GateRoom, View};
use crate::session;
use crate::site::{Fail, Site};
use crate::verdict::{self, Bypass, Papers, Passed, Refusal, Ruled, Verdict, Why};

/// What the gate signs with, for itself only.
#[derive(Clone)]
pub struct Secrets {
    pub checked: [u8; 32],
    pub staff: [u8; 32],
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets")
    }
}

#[derive(Debug)]
pub struct Gate {
    pub desk: Arc<Desk>,
    pub sites: Vec<Arc<SiteGate>>,
    checked: CheckedPasses,
    staff: StaffPasses,
    rooms: ArcSwap<HashMap<Box<str>, Arc<GateRoom>>>,
    /// Which gates of a room have seen what; see `confirm.rs`.
    confirmations: ArcSwap<HashMap<Box<str>, Arc<Confirmations>>>,
    /// Sites that other proxies ask for by the name of a room.
    bare: ArcSwap<HashMap<String, Arc<SiteGate>>>,
}

/// One site, and what happens at it.
#[derive(Debug)]
pub struct SiteGate {
    pub site: Site,
    pub origins: Origins,
    pub counts: Counts,
    pub signals: Signals,
    pub following: Following,
    /// Its rooms, when they are run elsewhere.
    pub remote: Option<Remote>,
    cap: Cap,
}

impl SiteGate {
    /// The error is for the operator.
    pub fn new(site: Site) -> Result<SiteGate, String> {
        let named = |why: String| format!("site {:?}: {why}", site.name);
        let origins = Origins::new(&site.origins, site.manners.clone()).map_err(named)?;
        let remote = site.room_at.as_ref().map(|at| Remote::new(&site, at));
        let remote = remote.transpose().map_err(named)?;
        let (counts, signals, following, cap) = Default::default();
        Ok(SiteGate { site, origins, counts, signals, following, remote, cap })
    }
}

/// More rooms than this are not asked for by name; a stranger could make up any number.
const BARE_MAX: usize = 1_000;

/// The name of this gate among those that confirm.
pub const HERE: &str = "here";

impl Gate {
    /// The error is for the operator: a site whose origins cannot be spoken to.
    pub fn new(desk: Arc<Desk>, sites: Vec<Site>, secrets: &Secrets) -> Result<Gate, String> {
        let good = "one key of one generation is a good set";
        let sites = sites.into_iter().map(|site| SiteGate::new(site).map(Arc::new));
        let gate = Gate {
            desk,
            sites: sites.collect::<Result<_, _>>()?,
            checked: CheckedPasses::new(&[(1, secrets.checked)]).expect(good),
            staff: StaffPasses::new(&[(1, secrets.staff)]).expect(good),
            rooms: ArcSwap::default(),
            confirmations: ArcSwap::default(),
            bare: ArcSwap::default(),
        };
        // From the first moment on: after a restart nobody's slot is free before they confirm.
        for at in gate.sites.iter().filter(|at| at.remote.is_none()) {
            for room in at.site.rooms() {
                let confirmations = gate.confirmations(room.as_str());
                at.site.gates.iter().for_each(|name| confirmations.register(name));
            }
        }
        Ok(gate)
    }

    pub fn dev(&self) -> bool {
        self.desk.manners.dev
    }

    /// By which ways a room can tell its visitors that their turn comes near.
    pub fn notices_of(&self, room: &GateRoom) -> Vec<By> {
        let notices = self.desk.notices.get();
        notices.map(|it| By::of_channels(&it.channels(room.desk.name()))).unwrap_or_default()
    }

    /// The site of a host: the first that names it.
    pub fn site(&self, host: &str) -> Option<&Arc<SiteGate>> {
        self.sites.iter().find(|it| it.site.has_host(host))
    }

    /// A site without an origin, made when it is first asked for and kept for its counts.
    pub fn bare_site(&self, site: Site) -> Arc<SiteGate> {
        if let Some(found) = self.bare.load().get(&site.name) {
            return found.clone();
        }
        let made = SiteGate::new(site).expect("a site without origins needs no certificates");
        let made = Arc::new(made);
        let known = self.desk.room(&made.site.name).is_ok();
        if known && self.bare.load().len() < BARE_MAX {
            self.bare.rcu(|all| {
                let mut all = HashMap::clone(all);
                all.insert(made.site.name.clone(), made.clone());
                all
            });
        }
        made
    }

    /// The room, if it is open here.
    pub fn room(&self, name: &str) -> Option<Arc<GateRoom>> {
        if let Some(room) = self.rooms.load().get(name) {
            return Some(room.clone());
        }
        let desk = self.desk.room(name).ok()?;
        let room = Arc::new(GateRoom::new(desk, View::Here));
        self.confirmations(name).register(HERE);
        self.rooms.rcu(|rooms| {
            let mut rooms = HashMap::clone(rooms);
            rooms.entry(name.into()).or_insert_with(|| room.clone());
            rooms
        });
        self.rooms.load().get(name).cloned()
    }

    /// Every room that somebody came for so far, or that a site names.
    pub fn rooms(&self) -> Vec<Arc<GateRoom>> {
        let here = self.sites.iter().filter(|at| at.remote.is_none());
        let named = here.flat_map(|it| it.site.rooms());
        for name in named {
            let _ = self.room(name.as_str());
        }
        self.rooms.load().values().cloned().collect()
    }

    pub fn confirmations(&self, room: &str) -> Arc<Confirmations> {
        if let Some(found) = self.confirmations.load().get(room) {
            return found.clone();
        }
        self.confirmations.rcu(|all| {
            let mut all = HashMap::clone(all);
            all.entry(room.into()).or_default();
            all
        });
        self.confirmations.load().get(room).cloned().expect("it was put there")
    }

    /// The verdict on a request of this site, with the room it is about. Counted.
    pub fn judge(&self, at: &SiteGate, facts: &Facts<'_>) -> (Option<Arc<GateRoom>>, Verdict) {
        let (room, verdict) = match verdict::rule(&at.site, facts) {
            Ruled::By(why) => (None, Verdict::Bypass(why)),
            Ruled::Room(name) => match self.room(name.as_str()) {
                Some(room) => {
                    let verdict = self.judge_in(at, &room, facts);
                    (Some(room), verdict)
                }
                None => (None, self.without_room(at, Why::RoomAway)),
            },
        };
        at.counts.note(&verdict);
        if let Verdict::Pass(Passed { checked_now: Some(_), .. }) = &verdict {
            crate::counts::one_more(&at.counts.signatures);
        }
        (room, verdict)
    }

    fn judge_in(&self, at: &SiteGate, room: &GateRoom, facts: &Facts<'_>) -> Verdict {
        let papers = Papers {
            room: room.name(),
            verifier: room.desk.verifier(),
            checked: &self.checked,
            staff: Some(&self.staff),
            dev: self.dev(),
        };
        match verdict::judge(&papers, facts, |ticket| room.stand_at(&at.site, ticket)) {
            Verdict::Pass(passed) => match room.frozen() {
                Some(reason) => Verdict::Refuse(Refusal::Maintenance { reason }),
                None => Verdict::Pass(passed),
            },
            Verdict::Wait(_) if room.reach.is_away() => self.without_room(at, Why::RoomAway),
            verdict => verdict,
        }
    }

    /// Nobody can be asked. A forged pass never comes here: it is refused whatever the room says.
    pub fn without_room(&self, at: &SiteGate, why: Why) -> Verdict {
        match at.site.fail {
            Fail::Open { per_s } if at.cap.take(self.desk.clock.now_ms(), per_s) => {
                Verdict::Bypass(Bypass::FailOpen)
            }
            _ => Verdict::Wait(why),
        }
    }

    /// Somebody inside did something: notes it, and says which cookies the answer should bring.
    pub fn inside(
        &self,
        at: &SiteGate,
        room: &GateRoom,
        passed: &Passed,
        facts: &Facts<'_>,
    ) -> Vec<HeaderValue> {
        let mut fresh = Vec::new();
        if let Some(session) = &passed.session {
            let presented = room.desk.presented(passed.ticket, None);
            let due = room.look(|board| {
                let settings = board.state().settings();
                settings.is_some_and(|it| session::is_due(room.desk.now(), session, it))
            });
            if let (true, Some(presented)) = (due, presented) {
                room.activity.note(presented.ticket);
            }
            // The session was renewed since this pass was signed: a newer one goes along.
            if session.pass_expires_at.0 / 1_000 > passed.expires_s {
                let (ticket, expires_at) = (passed.ticket, session.pass_expires_at);
                return room.renewed.cookies(ticket, expires_at, facts.now_s, || {
                    let nonce = cookies::shown(facts.headers, room.name(), self.dev()).nonce;
                    self.fresh_pass(at, room, ticket, session, facts, nonce)
                });
            }
        }
        if let Some(pass) = &passed.checked_now {
            let presented = presented(facts, room.name(), self.dev());
            self.push_checked(at, room, pass, facts, &presented, &mut fresh);
        }
        fresh
    }

    /// The cookies of a pass that is signed now, tied to what the request shows and to this nonce.
    pub fn fresh_pass(
        &self,
        at: &SiteGate,
        room: &GateRoom,
        ticket: TicketId,
        session: &Session,
        facts: &Facts<'_>,
        nonce: Option<&str>,
    ) -> Vec<HeaderValue> {
        let mut fresh = Vec::new();
        let presented = Presented { nonce, ..verdict::presented(facts, None) };
        let binding = self.desk.manners.bind.binding(ticket, &presented);
        let text = self.desk.pass(&room.desk, ticket, session, binding);
        let life_s = (session.pass_expires_at.0 / 1_000).saturating_sub(facts.now_s);
        fresh.extend(cookies::set(Kind::Pass, room.name(), &text, life_s, self.dev()));
        if let Ok(pass) = room.desk.verifier().verify(&text, facts.now_s, &presented) {
            self.push_checked(at, room, &pass, facts, &presented, &mut fresh);
        }
        fresh
    }

    fn push_checked(
        &self,
        at: &SiteGate,
        room: &GateRoom,
        pass: &Pass,
        facts: &Facts<'_>,
        presented: &Presented<'_>,
        fresh: &mut Vec<HeaderValue>,
    ) {
        let until_s = facts.now_s + at.site.checked_for.as_secs();
        if let Some(text) = self.checked.write(pass, presented, until_s) {
            let life_s = at.site.checked_for.as_secs();
            fresh.extend(cookies::set(Kind::Checked, room.name(), &text, life_s, self.dev()));
        }
    }

    /// A pass that came in the query moves to a cookie.
    pub fn pass_cookie(
        &self,
        room: &GateRoom,
        pass: &str,
        expires_s: u64,
        now_s: u64,
    ) -> Option<HeaderValue> {
        let life_s = expires_s.saturating_sub(now_s);
        cookies::set(Kind::Pass, room.name(), pass, life_s, self.dev())
    }

    /// Takes the pass away from the browser of somebody who is no longer inside.
    pub fn forget(&self, room: &str) -> [HeaderValue; 2] {
        [Kind::Pass, Kind::Checked].map(|kind| cookies::clear(kind, room, self.dev()))
    }

    pub fn staff_cookie(&self, room: &str, text: &str, now_s: u64) -> Option<HeaderValue> {
        let pass = self.staff.read(room, text, now_s)?;
        let life_s = u64::from(pass.expires_s).saturating_sub(now_s);
        cookies::set(Kind::Staff, room, text, life_s, self.dev())
    }
}

impl GateDesk for Gate {
    fn report(&self) -> Value {
        let bare = self.bare.load();
        let sites = self.sites.iter().chain(bare.values()).map(|at| {
            let counts: Map<String, Value> =
                at.counts.now().into_iter().map(|(name, count)| (name.into(), count.into())).collect();
            let now_ms = self.desk.clock.now_ms();
            let origins: Vec<Value> = at
                .origins
                .all
                .iter()
                .map(|it| {
                    let (address, lives) = (it.host_header.to_str(), it.health.lives(now_ms));
                    json!({ "address": address.unwrap_or_default(), "lives": lives, "in_use": it.in_use() })
                })
                .collect();
            json!({
                "site": at.site.name,
                "counts": counts,
                "in_flight": at.origins.in_flight(),
                "origins": origins,
            })
        });
        json!({ "sites": sites.collect::<Vec<_>>() })
    }

    fn origin(&self, room: &str) -> Option<Value> {
        let serves = |at: &&Arc<SiteGate>| {
            !at.site.origins.is_empty() && at.site.rooms().any(|it| it.as_str() == room)
        };
        let sites: Vec<_> = self.sites.iter().filter(serves).collect();
        if sites.is_empty() {
            return None;
        }
        let now_ms = self.desk.clock.now_ms();
        let sum = |of: fn(&Counts) -> &AtomicU64| -> u64 {
            sites.iter().map(|at| of(&at.counts).load(Ordering::Relaxed)).sum()
        };
        let all = || sites.iter().flat_map(|at| &at.origins.all);
        Some(json!({
            "asked": sum(|it| &it.origin_asked),
            "bad": sum(|it| &it.origin_bad),
            "busy": sum(|it| &it.origin_busy),
            "ms": sum(|it| &it.origin_ms),
            "in_flight": sites.iter().map(|at| at.origins.in_flight()).sum::<usize>(),
            "origins": all().count(),
            "living": all().filter(|it| it.health.lives(now_ms)).count(),
        }))
    }

    fn hear(&self, room: &str, gate: &str, confirmed: u64) -> Option<Value> {
        let names = |at: &&Arc<SiteGate>| {
            let gates = at.remote.is_none() && at.site.gates.iter().any(|it| it == gate);
            gates && at.site.rooms().any(|it| it.as_str() == room)
        };
        self.sites.iter().find(names)?;
        let room = self.room(room)?;
        let board = room.desk.handle().board();
        let confirmations = self.confirmations(room.name());
        confirmations.in_epoch(board.state().epoch());
        // A version that is not there yet is one of a log that was cut since: what will be behind
        // that number was never seen at the gate.
        if confirmed <= board.version() {
            confirmations.confirm(gate, confirmed);
        }
        let held = board.state().held();
        let ended: Vec<Value> =
            held.filter_map(|it| Some(room.desk.id_of(&board, it)?.to_string().into())).collect();
        let settings = board.state().settings();
        // A pass ends with its session at the latest; a clock that is slow has the leeway.
        let keep = settings.map_or(0, |it| it.session_timeout.0 + 2 * it.pass_leeway.0);
        let keys = self.desk.signatures.passes.jwks();
        let keys: Value = serde_json::from_str(&keys).unwrap_or_default();
        Some(json!({
            "version": board.version(),
            "ended": ended,
            "keep_s": keep / 1_000 + 1,
            "keys": keys,
        }))
    }

    fn staff_pass(&self, room: &str, number: u64, expires_s: u32) -> String {
        self.staff.write(room, StaffPass { number, expires_s }).to_string()
    }
}

pub fn presented<'a>(facts: &Facts<'a>, room: &str, dev: bool) -> Presented<'a> {
    verdict::presented(facts, cookies::shown(facts.headers, room, dev).nonce)
}
