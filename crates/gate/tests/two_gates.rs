//! A slot is free only when no gate can accept its pass any more.
//!
//! A real room, real passes and two gates, of which one is cut off: its picture of the room stops
//! coming. Time is a number that the test moves. After every step each gate's own verdict is held
//! against the room: whoever passes anywhere must hold a slot.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method};
use waitroom_core::id::{IdKey, TicketId};
use waitroom_core::{
    Actor, Board, Command, EndHow, Epoch, Join, LaneId, Millis, Number, Presented, Reply, Room,
    Session, Settings, Ticket, Timestamp,
};
use waitroom_gate::Facts;
use waitroom_gate::confirm::Confirmations;
use waitroom_gate::verdict::{Papers, Stand, Verdict, Why, judge};
use waitroom_pass::{Alg, CheckedPasses, PassClaims, Passes, Rotation, Verifier};

const ROOM: &str = "spring";
const BEGIN_MS: u64 = 1_790_000_000_000;

struct House {
    room: Room,
    now: Timestamp,
    version: u64,
    ids: IdKey,
    passes: Passes,
    gates: [Gate; 2],
    confirmations: Confirmations,
}

struct Gate {
    name: &'static str,
    verifier: Verifier,
    board: Arc<Board>,
    cut_off: bool,
}

/// Somebody inside, with the pass as a header and as the gate's own cookie.
struct Visitor {
    ticket: Presented,
    pass: String,
}

impl House {
    fn open() -> House {
        let now = Timestamp(BEGIN_MS);
        let passes = Passes::generate(Alg::EdDsa, Rotation::default(), BEGIN_MS / 1_000);
        let room = Room::new();
        let board = Arc::new(Board::new(room.state().clone(), 0, now));
        let gate = |name| Gate {
            name,
            verifier: passes.verifier(ROOM),
            board: board.clone(),
            cut_off: false,
        };
        let gates = [gate("one"), gate("two")];
        let confirmations = Confirmations::default();
        gates.iter().for_each(|gate| confirmations.register(gate.name));
        let ids = IdKey::derive(&[7; 32]);
        let mut house = House { room, now, version: 0, ids, passes, gates, confirmations };
        house.act(Command::Open { epoch: Epoch(1) });
        let settings = Settings {
            max_active: 1,
            rate: Some(waitroom_core::settings::Rate { count: 100, per: Millis(1_000) }),
            session_timeout: Millis(60_000),
            session_renewal: false,
            pass_leeway: Millis(5_000),
            ..Settings::default()
        };
        let by = Actor::new("test");
        house.act(Command::Configure { settings: Box::new(settings), by });
        house
    }

    fn act(&mut self, command: Command) -> Reply {
        let mut events = Vec::new();
        let reply = self.room.decide(self.now, &command, &mut events);
        for event in &events {
            self.room.absorb(event);
            self.version += 1;
        }
        reply
    }

    fn later(&mut self, ms: u64) {
        self.now = Timestamp(self.now.0 + ms);
        while let Reply::Ticked { again: true, .. } = self.act(Command::Tick { entropy: [0; 16] }) {
            self.check();
        }
        self.check();
    }

    fn join(&mut self) -> Presented {
        match self.act(Command::Join(Join::default())) {
            Reply::Joined { ticket, epoch, .. } => Presented::by_service(ticket, epoch),
            other => panic!("{other:?}"),
        }
    }

    fn enter(&mut self) -> Visitor {
        let ticket = self.join();
        self.later(200);
        let Reply::Claimed { session, .. } = self.act(Command::Claim(ticket)) else {
            panic!("it was not their turn");
        };
        let pass = self.sign(ticket, &session);
        self.share();
        Visitor { ticket, pass }
    }

    fn sign(&self, ticket: Presented, session: &Session) -> String {
        let Ticket { lane, number } = ticket.ticket;
        let id = self.ids.name(lane.0, ticket.epoch.0, number.0).expect("an id");
        self.passes.sign(&PassClaims::of(id, ROOM, session))
    }

    /// Gates get the newest picture and say so, but for the one that is cut off; what all of them
    /// refuse is released.
    fn share(&mut self) {
        let newest = Arc::new(Board::new(self.room.state().clone(), self.version, self.now));
        for gate in self.gates.iter_mut().filter(|gate| !gate.cut_off) {
            gate.board = newest.clone();
            self.confirmations.confirm(gate.name, newest.version());
        }
        let tickets = self.confirmations.released(&newest);
        self.act(Command::Release { tickets });
        self.check();
    }

    fn verdict(&self, gate: &Gate, visitor: &Visitor) -> Verdict {
        let mut headers = HeaderMap::new();
        headers.insert("waitroom-pass", HeaderValue::from_str(&visitor.pass).expect("a header"));
        let facts = Facts {
            host: "shop.example",
            path: "/",
            query: None,
            method: &Method::GET,
            headers: &headers,
            client: [127, 0, 0, 1].into(),
            now_s: self.now.0 / 1_000,
        };
        let checked = CheckedPasses::new(&[(1, [9; 32])]).expect("a key");
        let (verifier, checked) = (&gate.verifier, &checked);
        let papers = Papers { room: ROOM, verifier, checked, staff: None, dev: false };
        judge(&papers, &facts, |id: TicketId| {
            let named = self.ids.read(&id).expect("our own id");
            let ticket = Ticket { lane: LaneId(named.lane), number: Number(named.number) };
            let presented = Presented::by_service(ticket, Epoch(named.epoch));
            match gate.board.look(self.now, &presented) {
                Ok(view) => Stand::of(Some(view.status), view.session),
                Err(_) => Stand::Inside(None),
            }
        })
    }

    fn passes_at(&self, gate: usize, visitor: &Visitor) -> bool {
        matches!(self.verdict(&self.gates[gate], visitor), Verdict::Pass(_))
    }

    fn free(&self) -> u64 {
        self.room.state().openings(self.now).expect("the room admits").0
    }

    /// Never more inside than one.
    fn check(&self) {
        assert!(self.room.state().slots_taken() <= 1);
    }

    fn end(&mut self, visitor: &Visitor, how: EndHow) {
        let (ticket, by) = (visitor.ticket, Actor::new("origin"));
        assert!(!matches!(self.act(Command::End { ticket, how, by }), Reply::Refused(_)));
    }
}

#[test]
fn a_completed_and_a_revoked_session_free_their_slot_once_every_gate_refuses_the_pass() {
    for how in [EndHow::Completed, EndHow::Revoked] {
        let mut house = House::open();
        let visitor = house.enter();
        assert!(house.passes_at(0, &visitor) && house.passes_at(1, &visitor));
        house.end(&visitor, how);
        assert_eq!(house.free(), 0, "gates still accept it");
        assert!(house.passes_at(0, &visitor));
        house.share();
        assert_eq!(house.verdict(&house.gates[0], &visitor), Verdict::Wait(Why::SessionEnded));
        assert!(!house.passes_at(1, &visitor));
        assert_eq!(house.free(), 1, "both refuse it: the next may come");
    }
}

#[test]
fn while_one_gate_is_cut_off_the_slot_is_held_until_the_pass_is_over() {
    for how in [EndHow::Completed, EndHow::Revoked] {
        let mut house = House::open();
        let visitor = house.enter();
        house.gates[1].cut_off = true;
        house.end(&visitor, how);
        for _ in 0..50 {
            house.share();
            house.later(1_000);
            assert!(!house.passes_at(0, &visitor));
            assert!(house.passes_at(1, &visitor), "the one that is cut off knows nothing");
            assert_eq!(house.free(), 0, "so the slot is not free");
        }
        // The pass ends at 60 s; the leeway is for a gate whose clock is slow.
        let mut freed_at = None;
        for second in 50..80 {
            house.later(1_000);
            house.share();
            if house.free() == 1 {
                freed_at.get_or_insert(second);
                assert!(!house.passes_at(1, &visitor), "free, and yet a gate accepts it");
            }
        }
        let freed_at = freed_at.expect("nothing sticks: the pass ends for everybody");
        assert!((63..70).contains(&freed_at), "{freed_at}");
    }
}

#[test]
fn a_session_that_ran_out_frees_its_slot_when_no_clock_can_take_its_pass_for_good() {
    let mut house = House::open();
    let visitor = house.enter();
    house.gates[1].cut_off = true;
    for _ in 0..80 {
        house.later(1_000);
        house.share();
        let passes = house.passes_at(0, &visitor) || house.passes_at(1, &visitor);
        assert!(!passes || house.free() == 0, "free, and yet a gate accepts it");
    }
    assert_eq!(house.free(), 1);
}

#[test]
fn a_gate_that_comes_back_is_enough_and_one_that_is_new_counts_at_once() {
    let mut house = House::open();
    let visitor = house.enter();
    house.gates[1].cut_off = true;
    house.end(&visitor, EndHow::Completed);
    house.share();
    assert_eq!(house.free(), 0);
    house.gates[1].cut_off = false;
    house.confirmations.register("three");
    house.share();
    assert_eq!(house.free(), 0, "the third has confirmed nothing yet");
    house.confirmations.confirm("three", house.version);
    house.share();
    assert_eq!(house.free(), 1);
}
