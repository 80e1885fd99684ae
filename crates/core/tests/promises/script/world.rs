//! One room, a script's names for its tickets, and its log: runs one line at a time.
//!
//! The only place of these tests that touches the core's API. Every command is decided twice, once
//! into an empty list and once behind another event: `decide` adds and looks at nothing there.

use super::settings::{apply, moment, plain, span};
use super::witness::Witness;
use super::words::{numbered, time};
use std::collections::BTreeMap;
use std::sync::Arc;
use waitroom_core::{
    Actor, Command, EndHow, Epoch, Event, FinishCause, Fresh, Hold, Holder, Identity, Join,
    JoinKey, LaneId, Presented, Reply, Room, Settings, Ticket, Timestamp, What, draw,
};

/// `0s` of every script. Far from zero, so that a forgotten offset shows.
pub const T0: Timestamp = Timestamp(1_800_000_000_000);

/// The draw's secret and the hash of the log in all scripts.
pub const SEED: [u8; 32] = [7; 32];
pub const CHAIN: [u8; 32] = [9; 32];

#[derive(Debug)]
pub struct World {
    pub room: Room,
    pub log: Vec<Event>,
    pub now: Timestamp,
    pub witness: Witness,
    /// What was asked last, as the core saw it.
    pub asked: Option<Command>,
    /// A room that was restored from this one's snapshot and goes on beside it.
    twin: Option<Room>,
    names: BTreeMap<String, Presented>,
    tickets: BTreeMap<Ticket, String>,
    ticks: u64,
}

impl World {
    pub fn empty() -> World {
        World {
            room: Room::new(),
            log: Vec::new(),
            now: T0,
            witness: Witness::default(),
            asked: None,
            twin: None,
            names: BTreeMap::new(),
            tickets: BTreeMap::new(),
            ticks: 0,
        }
    }

    /// An opened room with these settings, in words.
    pub fn room(words: &str) -> World {
        let mut world = World::empty();
        world.line(&format!("room {words}"));
        world
    }

    /// Runs one line without its expectation and says what came of it.
    pub fn line(&mut self, line: &str) -> String {
        let mut words = line.split_whitespace();
        let first = words.next().expect("a line has words");
        if first == "room" {
            let opened = self.ask(&Command::Open { epoch: Epoch(1) });
            assert!(!opened.starts_with("refused"), "a room line comes first: {opened}");
            return self.configure(plain(), words.collect());
        }
        self.now = moment(first);
        let words: Vec<&str> = words.collect();
        self.run(&words)
    }

    pub fn run(&mut self, words: &[&str]) -> String {
        let (verb, args) = words.split_first().expect("a line has a command after its time");
        let given =
            |key: &str| args.iter().find_map(|arg| arg.strip_prefix(key)?.strip_prefix('='));
        let first = args.first().copied().unwrap_or("");
        let by = || Actor::new("operator");
        match *verb {
            "open" => {
                let epoch = Epoch(first.parse().expect("open takes an epoch"));
                self.ask(&Command::Open { epoch })
            }
            "set" => {
                let old = self.room.state().settings().expect("set changes settings");
                self.configure(old.as_ref().clone(), args.to_vec())
            }
            "join" => self.join(first, args),
            "claim" => self.ask(&Command::Claim(self.presented(first, args))),
            "leave" => self.ask(&Command::Leave(self.presented(first, args))),
            "renew" => self.ask(&Command::Renew(self.presented(first, args))),
            "complete" => self.end(first, args, EndHow::Completed),
            "checkout_fails" => self.end(first, args, EndHow::CheckoutFailed),
            "checkout_expires" => self.end(first, args, EndHow::CheckoutExpired),
            "revoke" => self.end(first, args, EndHow::Revoked),
            "lapse" => self.ask(&Command::Lapse { tickets: self.named(args) }),
            "release" => self.ask(&Command::Release { tickets: self.named(args) }),
            "hand_over" => {
                let old = self.presented(first, args);
                let (reply, words) = self.asked(&Command::HandOver(old));
                if let Reply::HandedOver { holder, .. } = reply {
                    let to = given("to").expect("hand_over names the new device with to=");
                    let new = Presented { holder: Some(holder), ..old };
                    self.names.insert(to.into(), new);
                }
                words
            }
            "move" => {
                let ticket = self.presented(first, args);
                let to = lane(given("lane").expect("move takes lane="));
                let mut events = Vec::new();
                let reply = self.decide(&Command::Move { ticket, to, by: by() }, &mut events);
                if let Reply::Moved { to, epoch } = reply
                    && let Some(name) = given("to")
                {
                    self.bind(name, to, epoch, ticket.holder.unwrap_or_default());
                }
                self.tell(reply, &events).1
            }
            "pause" => {
                let hold = Hold::Paused { reason: args.join(" ") };
                self.ask(&Command::Hold { hold, by: by() })
            }
            "maintenance" => {
                let hold = Hold::Maintenance { reason: args.join(" ") };
                self.ask(&Command::Hold { hold, by: by() })
            }
            "drain" => {
                let hold = Hold::Draining { reason: args.join(" ") };
                self.ask(&Command::Hold { hold, by: by() })
            }
            "resume" => self.ask(&Command::Resume { by: by() }),
            "admit" => {
                let count = first.parse().expect("admit takes a count");
                self.ask(&Command::AdmitNow { count, entropy: [0; 16], by: by() })
            }
            "finish" | "sold_out" => {
                let cause = match *verb {
                    "finish" => FinishCause::Operator,
                    _ => FinishCause::SoldOut,
                };
                self.ask(&Command::Finish { cause, reason: args.join(" "), by: by() })
            }
            "reopen" => self.ask(&Command::Reopen { by: by() }),
            "commit" => self.ask(&Command::CommitDraw {
                commitment: draw::commitment(&seed(given("seed"))),
                sealed_seed: vec![1; given("sealed").map_or(40, |n| n.parse().expect("a size"))],
                beacon: given("beacon").map(Into::into),
            }),
            "draw" => self.ask(&Command::Draw {
                seed: seed(given("seed")),
                chain: CHAIN,
                beacon: given("beacon").map(|value| value.as_bytes().to_vec()),
                waive_beacon: args.contains(&"waive"),
                by: by(),
            }),
            // The work for the draw is done beside the writer, from the line as it is now.
            "prepare_draw" => {
                let prepared = self.room.draw_job(&SEED, &CHAIN, None).run();
                self.room.offer_draw(prepared);
                "prepared".into()
            }
            "tick" => self.tick(),
            // The store loses the newest events, and the room is rebuilt from what is left.
            "lose" => self.lose(first.parse().expect("lose takes a count of events")),
            "position" => {
                let said = expand(args).into_iter().map(|name| {
                    let at = self.position(self.names[name.as_str()].ticket);
                    format!("{name}={}", at.map_or("unknown".into(), |at| at.to_string()))
                });
                said.collect::<Vec<_>>().join(" ")
            }
            "next" => self.room.next_deadline(self.now).map_or("never".into(), time),
            "inside" => self.room.state().slots_taken().to_string(),
            "counts" => self.counts(),
            _ => panic!("{verb}: no such command"),
        }
    }

    /// All that is due now, in as many steps as it takes.
    fn tick(&mut self) -> String {
        let mut all = Vec::new();
        loop {
            let mut events = Vec::new();
            let entropy = [self.ticks as u8; 16];
            self.ticks += 1;
            match self.decide(&Command::Tick { entropy }, &mut events) {
                Reply::Ticked { again: true } => all.append(&mut events),
                reply if all.is_empty() => return self.reply_in_words(&reply),
                _ => break,
            }
        }
        let next = self.room.next_deadline(self.now);
        assert!(next.is_none_or(|next| next > self.now), "nothing is left to do, yet {next:?}");
        self.events_in_words(&all)
    }

    /// `join ana id=ann key=k body=b lane=1 holding=bo meta=100 user=100`; `join a*5` is a crowd.
    fn join(&mut self, name: &str, args: &[&str]) -> String {
        let given =
            |key: &str| args.iter().find_map(|arg| arg.strip_prefix(key)?.strip_prefix('='));
        let bytes = |key| {
            given(key).map(|size| {
                let size = size.parse().expect("a size in bytes");
                Arc::<[u8]>::from(vec![b'x'; size])
            })
        };
        let join = Join {
            lane: given("lane").map_or(LaneId(0), lane),
            identity: given("id").map(identity),
            key: given("key").map(|key| JoinKey {
                key: padded(key),
                body: padded(given("body").unwrap_or("b")),
            }),
            holding: given("holding").map(|name| self.presented(name, &[])),
            metadata: bytes("meta"),
            sealed_user: bytes("user"),
        };
        let crowd: Vec<String> = match name.split_once('*') {
            Some((prefix, count)) => {
                let count: u64 = count.parse().expect("a crowd is written a*5");
                let from = self.names.keys().filter_map(|name| numbered(name));
                let from = from.filter(|(it, _)| *it == prefix).map(|(_, n)| n).max().unwrap_or(0);
                (from + 1..=from + count).map(|i| format!("{prefix}{i}")).collect()
            }
            None => vec![name.into()],
        };
        let mut all = Vec::new();
        for name in &crowd {
            let mut events = Vec::new();
            let reply = self.decide(&Command::Join(join.clone()), &mut events);
            if let Reply::Joined { ticket, epoch, holder, .. } = reply {
                self.bind(name, ticket, epoch, holder);
            }
            if events.is_empty() && all.is_empty() {
                return self.reply_in_words(&reply);
            }
            all.extend(events);
        }
        self.events_in_words(&all)
    }

    fn end(&mut self, name: &str, args: &[&str], how: EndHow) -> String {
        let ticket = self.presented(name, args);
        self.ask(&Command::End { ticket, how, by: Actor::new("origin") })
    }

    fn configure(&mut self, mut settings: Settings, words: Vec<&str>) -> String {
        for word in words {
            apply(&mut settings, word);
        }
        let by = Actor::new("operator");
        self.ask(&Command::Configure { settings: Box::new(settings), by })
    }

    fn lose(&mut self, count: usize) -> String {
        self.log.truncate(self.log.len() - count);
        let log = std::mem::take(&mut self.log);
        self.room = Room::new();
        self.twin = None;
        self.witness = Witness::default();
        for event in &log {
            self.absorb(event);
        }
        let state = self.room.state();
        self.tickets.retain(|ticket, _| ticket.number.0 < state.issued(ticket.lane));
        "lost".into()
    }

    fn counts(&self) -> String {
        let counts = self.room.state().counts();
        let all = [
            ("joined", counts.joined),
            ("waiting", counts.waiting),
            ("admitted", counts.admitted),
            ("active", counts.active),
            ("completed", counts.completed),
            ("left", counts.left),
            ("expired", counts.expired),
            ("revoked", counts.revoked),
            ("moved", counts.moved),
            ("closed", counts.closed),
            ("admissions", counts.admissions),
            ("no_shows", counts.no_shows),
        ];
        let some = all.iter().filter(|(_, n)| *n > 0).map(|(word, n)| format!("{word}={n}"));
        some.collect::<Vec<_>>().join(" ")
    }

    pub fn position(&self, ticket: Ticket) -> Option<u64> {
        self.room.state().position(ticket)
    }

    pub fn ask(&mut self, command: &Command) -> String {
        self.asked(command).1
    }

    fn asked(&mut self, command: &Command) -> (Reply, String) {
        let mut events = Vec::new();
        let reply = self.decide(command, &mut events);
        self.tell(reply, &events)
    }

    fn tell(&self, reply: Reply, events: &[Event]) -> (Reply, String) {
        let words = match events {
            [] => self.reply_in_words(&reply),
            events => self.events_in_words(events),
        };
        (reply, words)
    }

    /// Decides, absorbs, and looks that answer and events tell the same story.
    pub fn decide(&mut self, command: &Command, events: &mut Vec<Event>) -> Reply {
        self.asked = Some(command.clone());
        let reply = self.room.decide(self.now, command, events);
        let other = What::DoorsOpened.at(T0);
        let mut behind = vec![other.clone()];
        let again = self.room.decide(self.now, command, &mut behind);
        assert_eq!(again, reply, "{command:?}: the answer depends on what was decided before");
        assert_eq!(behind[1..], events[..], "{command:?}: depends on what was decided before");
        assert_eq!(behind[0], other, "{command:?}: changed an event that was there");
        if let Some(twin) = &self.twin {
            let mut theirs = Vec::new();
            let answer = twin.decide(self.now, command, &mut theirs);
            assert_eq!(answer, reply, "{command:?}: a restored room answers otherwise");
            assert_eq!(theirs, *events, "{command:?}: a restored room decides otherwise");
        }
        agree(command, &reply, events);
        for event in events.iter() {
            self.absorb(event);
        }
        reply
    }

    fn absorb(&mut self, event: &Event) {
        self.witness.see(event);
        self.room.absorb(event);
        if let Some(twin) = &mut self.twin {
            twin.absorb(event);
            let (ours, theirs) = (&self.room, &*twin);
            assert_eq!(theirs.next_deadline(self.now), ours.next_deadline(self.now), "{event:?}");
        }
        self.log.push(event.clone());
        self.witness.compare(self.room.state());
    }

    /// From here on a room restored from the snapshot is asked the same and must do the same.
    pub fn go_on_beside_a_restored_room(&mut self) {
        let twin = Room::restore(self.room.state().snapshot()).expect("a snapshot of ours");
        assert_eq!(twin.state().digest(), self.room.state().digest());
        self.twin = Some(twin);
    }

    /// Promise 15: snapshot and tail make the same room as the live one.
    pub fn the_restored_room_is_the_same(&self) {
        let twin = self.twin.as_ref().expect("there is a restored room");
        assert_eq!(twin.state().digest(), self.room.state().digest());
    }

    /// The log alone makes the same room.
    pub fn replays_to_the_same(&self) {
        let mut replayed = Room::new();
        for event in &self.log {
            replayed.absorb(event);
        }
        assert_eq!(replayed.state().digest(), self.room.state().digest());
    }

    pub fn bind(&mut self, name: &str, ticket: Ticket, epoch: Epoch, holder: Holder) {
        let presented = Presented { ticket, epoch, holder: Some(holder) };
        self.names.insert(name.into(), presented);
        self.tickets.entry(ticket).or_insert_with(|| name.into());
    }

    /// A name for a ticket that nobody was given, written `lane:number@epoch`.
    pub fn name_nobodys(&mut self, name: &str, ticket: &str) {
        let presented = self.presented(ticket, &[]);
        self.names.insert(name.into(), presented);
    }

    pub fn ticket(&self, name: &str) -> Ticket {
        self.names[name].ticket
    }

    pub fn name_of(&self, ticket: Ticket) -> String {
        self.tickets.get(&ticket).cloned().unwrap_or_else(|| ticket.to_string())
    }

    /// A name, with the token it holds, or with `service` as an API key shows it; or a ticket
    /// nobody was given, written `lane:number@epoch`.
    fn presented(&self, name: &str, args: &[&str]) -> Presented {
        let presented = match name.split_once(':') {
            Some((lane, rest)) => {
                let (number, epoch) = rest.split_once('@').expect("lane:number@epoch");
                let number = number.parse().expect("a number");
                let ticket = Ticket::new(lane.parse().expect("a lane"), number);
                Presented::by_service(ticket, Epoch(epoch.parse().expect("an epoch")))
            }
            None => *self.names.get(name).unwrap_or_else(|| panic!("{name}: nobody of that name")),
        };
        match args.contains(&"service") {
            true => Presented { holder: None, ..presented },
            false => presented,
        }
    }

    fn named(&self, args: &[&str]) -> Vec<Ticket> {
        expand(args).iter().map(|name| self.presented(name, &[]).ticket).collect()
    }
}

/// An answer says no more and no less than the events beside it.
fn agree(command: &Command, reply: &Reply, events: &[Event]) {
    let first = events.first().map(|event| &event.what);
    let ok = match (reply, first) {
        (Reply::Refused(_), first) => first.is_none(),
        (Reply::Joined { ticket, fresh, .. }, first) => match (fresh, first) {
            (Fresh::New, Some(What::Joined(joined))) => joined.ticket == *ticket,
            (Fresh::Repeat, None) => true,
            // Their place, and from now on in their name.
            (Fresh::Repeat, Some(What::Bound { ticket: t, .. })) => {
                t == ticket && events.len() == 1
            }
            _ => false,
        },
        (Reply::Claimed { ticket, session, fresh }, first) => match (fresh, first) {
            (Fresh::New, Some(What::Claimed { ticket: t, session: s })) => {
                t == ticket && s == session
            }
            (Fresh::Repeat, None) => true,
            _ => false,
        },
        (Reply::Over { ticket, status, fresh }, first) => match (fresh, first) {
            (Fresh::New, Some(What::Ended { ticket: t, ending, .. })) => {
                t == ticket && ending.status() == *status
            }
            (Fresh::Repeat, None) => true,
            _ => false,
        },
        (Reply::Renewed { ticket, session }, Some(What::Renewed { ticket: t, session: s })) => {
            t == ticket && s == session
        }
        (Reply::Moved { to, .. }, Some(What::Moved { to: t, .. })) => t == to,
        (Reply::Admitted { count }, Some(_)) => by_hand(events) == Some(*count),
        (Reply::Lapsed { count } | Reply::Released { count }, _) => events.len() as u64 == *count,
        (Reply::Ticked { again }, first) => *again == first.is_some(),
        _ => true,
    };
    assert!(ok, "{command:?} answers {reply:?} beside {events:?}");
}

/// How many an operator let in: windows that were sealed for it, the act itself, its admissions.
fn by_hand(events: &[Event]) -> Option<u64> {
    let sealed = events.iter().take_while(|event| matches!(event.what, What::Sealed { .. }));
    let (act, admitted) = events[sealed.count()..].split_first()?;
    let What::AdmittedNow { granted, .. } = act.what else { return None };
    let all = admitted.iter().all(|event| matches!(event.what, What::Admitted { .. }));
    (all && admitted.len() as u64 == granted).then_some(granted)
}

/// `a1..a3` is `a1 a2 a3`; words with `=` are not names.
fn expand(args: &[&str]) -> Vec<String> {
    let mut names = Vec::new();
    for arg in args.iter().filter(|arg| !arg.contains('=')) {
        match arg.split_once("..") {
            Some((from, to)) => {
                let (prefix, from) = numbered(from).expect("a crowd's names end in a number");
                let (_, to) = numbered(to).expect("a crowd's names end in a number");
                names.extend((from..=to).map(|i| format!("{prefix}{i}")));
            }
            None => names.push((*arg).into()),
        }
    }
    names
}

fn lane(word: &str) -> LaneId {
    match word {
        "returning" => LaneId::RETURNING,
        word => LaneId(word.parse().expect("a lane is a number or `returning`")),
    }
}

fn identity(word: &str) -> Identity {
    match word {
        "nobody" => Identity::default(),
        word => Identity(padded(word)),
    }
}

fn seed(word: Option<&str>) -> [u8; 32] {
    word.map_or(SEED, padded)
}

fn padded<const N: usize>(word: &str) -> [u8; N] {
    let mut bytes = [0; N];
    let len = word.len().min(N);
    bytes[..len].copy_from_slice(&word.as_bytes()[..len]);
    bytes
}

#[test]
fn spans_have_units() {
    assert_eq!(span("1.5s").0, 1_500);
    assert_eq!(span("200ms").0, 200);
    assert_eq!(time(moment("90s")), "90s");
    assert_eq!(time(moment("1.25s")), "1.25s");
}
