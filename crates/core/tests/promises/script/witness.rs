//! Watches a room from outside, event by event, and knows only what the events say.
//!
//! Lives here: plain maps, no bitmaps; what must hold at every event, whatever the test is about.
//! Each `assert` names its promise of design.md. Stays out: why the room decided as it did.

use std::collections::BTreeMap;
use std::sync::Arc;
use waitroom_core::{
    AdmitWhy, Counts, Ending, Entry, Event, Hold, Identity, LaneId, Settings, State, Status,
    Ticket, Timestamp, What,
};

/// Comparing every position after every event is for small rooms; larger ones are sampled.
const POSITIONS_MAX: usize = 64;

#[derive(Debug, Default)]
pub struct Witness {
    pub lives: BTreeMap<Ticket, Life>,
    pub settings: Option<Arc<Settings>>,
    /// Paced admissions and, as -1, tokens given back.
    pub pace: Vec<(Timestamp, i64)>,
    counts: BTreeMap<LaneId, Counts>,
    waiting: u64,
    slots: u64,
    running: bool,
    /// The sale is over; what `running` was when it ended.
    ended: Option<bool>,
    draw_closed: bool,
    hold: Option<Hold>,
    drawn: bool,
    epoch: u32,
    last_at: Timestamp,
    positions: BTreeMap<Ticket, u64>,
}

#[derive(Clone, Debug)]
pub struct Life {
    pub status: Status,
    pub identity: Option<Identity>,
    joined_at: Timestamp,
    admitted_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    paced: bool,
    holds_slot: bool,
}

impl Witness {
    pub fn live(&self) -> impl Iterator<Item = (Ticket, &Life)> {
        self.lives.iter().filter(|(_, life)| life.status.is_live()).map(|(t, life)| (*t, life))
    }

    pub fn see(&mut self, event: &Event) {
        let at = event.at;
        assert!(at >= self.last_at, "time runs backwards at {event:?}");
        self.last_at = at;
        match &event.what {
            What::Opened { epoch } => {
                assert!(epoch.0 > self.epoch, "promise 14: epochs never go down, {event:?}");
                self.epoch = epoch.0;
            }
            What::Configured { settings, .. } => self.settings = Some(settings.clone()),
            What::Joined(joined) => {
                self.begins(at, joined.ticket, joined.identity);
                assert_eq!(joined.waiting, self.waiting, "how many wait after {event:?}");
                let in_lane = self.counts[&joined.ticket.lane].waiting;
                assert_eq!(joined.waiting_in_lane, in_lane, "how many wait after {event:?}");
                assert!(self.returns_once(joined.returns), "a credit counts once: {event:?}");
            }
            What::Admitted { ticket, joined_at, waiting, why, entry, .. } => {
                self.admitted(at, *ticket, *why, *entry);
                assert_eq!(*waiting, self.waiting, "how many wait after {event:?}");
                assert_eq!(*joined_at, self.lives[ticket].joined_at, "{event:?}");
            }
            What::Bound { ticket, identity } => {
                self.alone(*ticket, *identity);
                let life = self.lives.get_mut(ticket).expect("only known tickets are bound");
                assert!(life.status.is_live() && life.identity.is_none(), "{event:?}");
                life.identity = Some(*identity);
            }
            What::Claimed { ticket, session } => {
                self.change(*ticket, Status::Admitted, Status::Active);
                assert!(session.expires_at > at && session.pass_expires_at > at, "{event:?}");
            }
            What::Renewed { ticket, session } => {
                self.change(*ticket, Status::Active, Status::Active);
                assert!(session.expires_at > at, "{event:?}");
            }
            What::Ended { ticket, ending, waited, waiting, held_until, .. } => {
                let life = self.ended(at, *ticket, *ending, held_until.is_some());
                let until = life.admitted_at.unwrap_or(at);
                assert_eq!(*waited, until.since(life.joined_at), "how long it waited: {event:?}");
                assert_eq!(*waiting, self.waiting, "how many wait after {event:?}");
            }
            What::Released { ticket } => {
                let life = self.lives.get_mut(ticket).expect("only known tickets are released");
                assert!(life.holds_slot && !life.status.is_live(), "no slot to free: {event:?}");
                life.holds_slot = false;
                self.slots -= 1;
            }
            What::HandedOver { ticket, .. } => {
                assert!(self.lives[ticket].status.is_live(), "{event:?}");
            }
            What::Moved { from, to, joined_at, .. } => {
                assert_eq!(*joined_at, self.lives[from].joined_at, "{event:?}");
                let identity = self.lives[from].identity;
                self.change(*from, Status::Waiting, Status::Moved);
                self.lives.get_mut(from).expect("it was there").ended_at = Some(at);
                self.waiting -= 1;
                self.begins(at, *to, identity);
            }
            What::Held { hold, .. } => {
                self.hold = Some(hold.clone()).filter(waitroom_core::Hold::stops_admissions);
            }
            What::Resumed { .. } => self.hold = None,
            What::AdmittedNow { asked, granted, .. } => assert!(granted <= asked, "{event:?}"),
            What::DoorsOpened | What::DrawCommitted { .. } | What::ForgotKeys(_) => {}
            What::SaleStarted => {
                assert!(self.settings.as_ref().is_some_and(|it| it.draw.is_none()), "{event:?}");
                self.running = true;
            }
            What::DrawClosed { counts } => {
                self.draw_closed = true;
                for (lane, n) in counts {
                    assert_eq!(*n, self.counts.get(lane).map_or(0, |counts| counts.joined));
                }
            }
            What::Drawn { .. } => {
                assert!(self.draw_closed && !self.drawn, "a draw is closed, then made: {event:?}");
                self.running = self.ended.is_none();
                self.drawn = true;
            }
            What::SaleEnded { closed, .. } => {
                assert!(self.ended.is_none(), "a sale ends once: {event:?}");
                self.ended = Some(std::mem::take(&mut self.running));
                assert_eq!(*closed, self.waiting, "how many were closed: {event:?}");
                let waiting: Vec<Ticket> = self.waiting_tickets().collect();
                for ticket in waiting {
                    self.change(ticket, Status::Waiting, Status::Closed);
                    self.lives.get_mut(&ticket).expect("it was there").ended_at = Some(at);
                }
                self.waiting = 0;
            }
            What::Reopened { .. } => {
                let was_running = self.ended.take().expect("only a sale that ended goes on");
                assert!(!self.draw_closed || self.drawn, "without its order: {event:?}");
                // Where it ended; a draw that was made meanwhile is behind it.
                self.running = was_running || self.drawn;
            }
            What::Sealed { .. } => {}
            What::ForgotTickets(block) => {
                let memory = self.settings.as_ref().expect("settings came first").memory;
                let first = block.first().0;
                let numbers = first..first + waitroom_core::chunked::CHUNK;
                for (ticket, life) in &self.lives {
                    if ticket.lane == block.lane && numbers.contains(&ticket.number.0) {
                        let ended = life.ended_at.is_some_and(|ended| ended.after(memory) <= at);
                        assert!(ended && !life.holds_slot, "{ticket} is forgotten too early");
                    }
                }
                self.lives.retain(|ticket, _| {
                    ticket.lane != block.lane || !numbers.contains(&ticket.number.0)
                });
            }
        }
    }

    /// What the room says of itself agrees with what its events said.
    pub fn compare(&mut self, state: &State) {
        for (lane, counts) in &self.counts {
            assert_eq!(state.lane_counts(*lane), *counts, "the counts of lane {lane}");
            assert_eq!(state.issued(*lane), counts.joined, "the numbers given in lane {lane}");
        }
        assert!(state.counts().balance(), "promise 13: {:?}", state.counts());
        assert_eq!(state.waiting(), self.waiting);
        assert_eq!(state.slots_taken(), self.slots);
        let waiting: Vec<Ticket> = self.waiting_tickets().take(POSITIONS_MAX).collect();
        for ticket in waiting {
            let now = state.position(ticket);
            match (self.positions.get(&ticket), now) {
                (Some(before), Some(now)) => {
                    assert!(now <= *before, "promise 8: {ticket} went from {before} to {now}");
                }
                (Some(_), None) => panic!("promise 8: the position of {ticket} is unknown again"),
                (None, _) => {}
            }
            if let Some(now) = now {
                self.positions.insert(ticket, now);
            }
        }
    }

    /// Promise 5, over every pair of admissions: paced ones minus returned ones.
    /// For a room whose pace did not change.
    pub fn pace_is_kept(&self) {
        let settings = self.settings.as_ref().expect("a room that admits has settings");
        let rate = settings.rate.expect("a room without a rate admits nobody by pace");
        let per = rate.per.0 as u128;
        // In units of which an admission costs `per`, so that nothing is rounded here either.
        let burst = match settings.burst {
            Some(burst) => burst as u128 * per,
            None => per.max(rate.count as u128 * settings.tick.0 as u128),
        };
        for (i, (from, _)) in self.pace.iter().enumerate() {
            let mut admitted = 0i128;
            for (to, n) in &self.pace[i..] {
                admitted += *n as i128;
                let arrived = to.since(*from).0 as u128 * rate.count as u128;
                let may = (arrived + burst) as i128;
                let took = admitted * per as i128;
                assert!(took <= may, "promise 5: {admitted} from {} to {}", from.0, to.0);
            }
        }
    }

    fn waiting_tickets(&self) -> impl Iterator<Item = Ticket> {
        let waits = |(_, life): &(&Ticket, &Life)| life.status == Status::Waiting;
        self.lives.iter().filter(waits).map(|(ticket, _)| *ticket)
    }

    fn begins(&mut self, at: Timestamp, ticket: Ticket, identity: Option<Identity>) {
        if let Some(identity) = identity {
            self.alone(ticket, identity);
        }
        let counts = self.counts.entry(ticket.lane).or_default();
        assert_eq!(ticket.number.0, counts.joined, "promise 14: numbers are dense, {ticket}");
        counts.joined += 1;
        counts.waiting += 1;
        self.waiting += 1;
        let life = Life {
            status: Status::Waiting,
            identity,
            joined_at: at,
            admitted_at: None,
            ended_at: None,
            paced: false,
            holds_slot: false,
        };
        let before = self.lives.insert(ticket, life);
        assert!(before.is_none(), "promise 14: {ticket} was given twice");
    }

    fn alone(&self, ticket: Ticket, identity: Identity) {
        let twin = self.live().find(|(_, life)| life.identity == Some(identity));
        assert!(twin.is_none(), "promise 2: {ticket} beside {twin:?}");
    }

    /// A credit belongs to a ticket that is over, was not moved, and did not itself return.
    fn returns_once(&self, old: Option<Ticket>) -> bool {
        let Some(old) = old else { return true };
        let over = [Status::Expired, Status::Left, Status::Completed];
        over.contains(&self.lives[&old].status) && old.lane != LaneId::RETURNING
    }

    fn admitted(&mut self, at: Timestamp, ticket: Ticket, why: AdmitWhy, entry: Entry) {
        assert!(self.hold.is_none(), "promise 9: {ticket} was admitted by a held room");
        assert!(self.running, "{ticket} was admitted outside the sale");
        let settings = self.settings.clone().expect("settings came first");
        let max_active = settings.max_active;
        assert!(self.slots < max_active, "promise 4: {ticket} got slot {}", self.slots + 1);
        self.slots += 1;
        let status = match entry {
            Entry::MustClaim { .. } => Status::Admitted,
            Entry::Claimed(_) => Status::Active,
        };
        if settings.shuffle_window == 1 && !self.drawn {
            let before = self.waiting_tickets().find(|other| other.lane == ticket.lane);
            assert_eq!(before, Some(ticket), "promise 6: {ticket} went before {before:?}");
        }
        self.change(ticket, Status::Waiting, status);
        self.counts.get_mut(&ticket.lane).expect("it was there").admissions += 1;
        self.waiting -= 1;
        let paced = why != AdmitWhy::Manual;
        if paced {
            self.pace.push((at, 1));
        }
        let life = self.lives.get_mut(&ticket).expect("change found it");
        assert!(life.admitted_at.is_none(), "promise 3: {ticket} was admitted twice");
        life.admitted_at = Some(at);
        life.paced = paced;
        life.holds_slot = true;
    }

    fn ended(&mut self, at: Timestamp, ticket: Ticket, ending: Ending, holds_slot: bool) -> Life {
        let was = self.lives.get(&ticket).expect("only known tickets end").status;
        assert!(was.is_live(), "{ticket} ended twice");
        self.change(ticket, was, ending.status());
        if was == Status::Waiting {
            self.waiting -= 1;
            assert!(!holds_slot, "{ticket} never had a slot");
        } else if !holds_slot {
            self.slots -= 1;
        }
        let settings = self.settings.as_ref().expect("settings came first");
        let life = self.lives.get_mut(&ticket).expect("change found it");
        life.ended_at = Some(at);
        life.holds_slot = holds_slot;
        if ending == Ending::NoShow {
            self.counts.get_mut(&ticket.lane).expect("it was there").no_shows += 1;
            if life.paced && settings.no_show == waitroom_core::settings::NoShow::Return {
                self.pace.push((at, -1));
            }
        }
        life.clone()
    }

    fn change(&mut self, ticket: Ticket, from: Status, to: Status) {
        let life = self.lives.get_mut(&ticket).expect("only known tickets change");
        assert_eq!(life.status, from, "{ticket} cannot become {to:?}");
        life.status = to;
        let counts = self.counts.get_mut(&ticket.lane).expect("it was there");
        *count(counts, from) -= 1;
        *count(counts, to) += 1;
        if to != Status::Waiting {
            self.positions.remove(&ticket);
        }
    }
}

fn count(counts: &mut Counts, status: Status) -> &mut u64 {
    match status {
        Status::Waiting => &mut counts.waiting,
        Status::Admitted => &mut counts.admitted,
        Status::Active => &mut counts.active,
        Status::Completed => &mut counts.completed,
        Status::Expired => &mut counts.expired,
        Status::Left => &mut counts.left,
        Status::Moved => &mut counts.moved,
        Status::Closed => &mut counts.closed,
        Status::Revoked => &mut counts.revoked,
    }
}
