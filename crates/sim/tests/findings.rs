//! What the model found in the core: each test says what should be, and fails while it is not.
//!
//! A finding that is mended keeps its test; what `tests/model/known.rs` says of it goes.

use waitroom_core::chunked::CHUNK;
use waitroom_core::draw::{self, Assurance, Format, LaneCount, Proof};
use waitroom_core::settings::{DrawSettings, LaneSettings, Returning};
use waitroom_core::{
    Actor, Command, Epoch, Event, FinishCause, Hold, Holder, Identity, Join, JoinKey, LaneId,
    Millis, Phase, Presented, Refusal, Reply, Room, Settings, Status, Ticket, Timestamp, What,
};

const EPOCH: Epoch = Epoch(1);
const SEED: [u8; 32] = [5; 32];
const CHAIN: [u8; 32] = [6; 32];

/// A room and its clock, in seconds from the beginning.
struct Desk {
    room: Room,
    at: Timestamp,
}

impl Desk {
    fn with(settings: Settings) -> Desk {
        let mut desk = Desk { room: Room::new(), at: Timestamp(1_000_000) };
        desk.send(Command::Open { epoch: EPOCH });
        assert_eq!(desk.configure(settings), Reply::Done);
        desk
    }

    fn later(&mut self, seconds: u64) {
        self.at = self.at.after(Millis::from_secs(seconds));
    }

    fn in_seconds(seconds: u64) -> Option<Timestamp> {
        Some(Timestamp(1_000_000 + seconds * 1_000))
    }

    fn ask(&mut self, command: &Command) -> (Reply, Vec<Event>) {
        let mut events = Vec::new();
        let reply = self.room.decide(self.at, command, &mut events);
        events.iter().for_each(|event| self.room.absorb(event));
        (reply, events)
    }

    fn send(&mut self, command: Command) -> Reply {
        self.ask(&command).0
    }

    fn configure(&mut self, settings: Settings) -> Reply {
        self.send(Command::Configure { settings: Box::new(settings), by: by() })
    }

    fn tick(&mut self) -> Vec<Event> {
        let mut all = Vec::new();
        loop {
            let (reply, events) = self.ask(&Command::Tick { entropy: [3; 16] });
            all.extend(events);
            if reply != (Reply::Ticked { again: true }) {
                return all;
            }
        }
    }

    fn join(&mut self, join: Join) -> Reply {
        self.send(Command::Join(join))
    }

    fn joins(&mut self, lane: u8, count: u64) -> Vec<Presented> {
        let lane = LaneId(lane);
        (0..count).map(|_| ticket_of(self.join(Join { lane, ..Join::default() }))).collect()
    }

    fn finish(&mut self) {
        let (cause, reason) = (FinishCause::SoldOut, "sold out".to_owned());
        self.send(Command::Finish { cause, reason, by: by() });
    }

    fn admit(&mut self, count: u64) -> Vec<Ticket> {
        let (_, events) = self.ask(&Command::AdmitNow { count, entropy: [0; 16], by: by() });
        events
            .iter()
            .filter(|it| matches!(it.what, What::Admitted { .. }))
            .filter_map(|it| it.what.ticket())
            .collect()
    }
}

fn by() -> Actor {
    Actor::new("test")
}

fn ticket_of(reply: Reply) -> Presented {
    match reply {
        Reply::Joined { ticket, epoch, .. } => Presented::by_service(ticket, epoch),
        other => panic!("not joined: {other:?}"),
    }
}

/// Everybody waits until an operator lets them in.
fn manual() -> Settings {
    Settings { rate: None, queue_all: true, ..Settings::default() }
}

fn two_lanes() -> Vec<LaneSettings> {
    ["a", "b"].map(|name| LaneSettings { name: name.into(), weight: 1 }).to_vec()
}

fn drawn(beacon: Option<&str>) -> Settings {
    let draw = Some(DrawSettings { beacon: beacon.map(str::to_owned) });
    Settings { draw, starts_at: Desk::in_seconds(60), ..manual() }
}

fn commit(beacon: Option<&str>) -> Command {
    let commitment = draw::commitment(&SEED);
    Command::CommitDraw { commitment, sealed_seed: vec![], beacon: beacon.map(str::to_owned) }
}

fn reveal(beacon: Option<&[u8]>) -> Command {
    let beacon = beacon.map(<[u8]>::to_vec);
    Command::Draw { seed: SEED, chain: CHAIN, beacon, waive_beacon: false, by: by() }
}

#[test]
fn a_forgotten_ticket_stays_forgotten_when_the_sale_ends_a_second_time() {
    let mut desk = Desk::with(Settings { memory: Millis::from_secs(600), ..manual() });
    let ana = desk.joins(0, 1)[0];
    desk.finish();
    desk.send(Command::Reopen { by: by() });
    desk.later(600);
    assert_eq!(desk.send(Command::Leave(ana)), Reply::Refused(Refusal::Forgotten));
    desk.finish();
    assert_eq!(desk.send(Command::Leave(ana)), Reply::Refused(Refusal::Forgotten));
}

#[test]
fn a_forgotten_ticket_is_forgotten_for_older_tokens_too() {
    // Once its block is dropped nothing else can be answered, so nothing else should be before.
    let mut desk = Desk::with(Settings { memory: Millis::from_secs(600), ..manual() });
    let ana = desk.joins(0, 1)[0];
    desk.send(Command::HandOver(ana));
    desk.send(Command::Leave(ana));
    desk.later(600);
    let old_token = Presented { holder: Some(Holder(0)), ..ana };
    assert_eq!(desk.send(Command::Leave(old_token)), Reply::Refused(Refusal::Forgotten));
}

#[test]
fn reopening_before_the_start_does_not_start_the_sale() {
    let mut desk = Desk::with(Settings { starts_at: Desk::in_seconds(3_600), ..manual() });
    desk.finish();
    desk.send(Command::Reopen { by: by() });
    desk.joins(0, 1);
    assert_eq!(desk.admit(1), [], "the start is an hour away");
    assert_eq!(desk.room.state().phase(), Phase::Doors);
}

#[test]
fn settings_changed_during_a_pause_prolong_nobodys_claim() {
    let mut desk = Desk::with(Settings { claim_within: Millis::from_secs(10), ..manual() });
    let ana = desk.joins(0, 1)[0];
    desk.admit(1);
    desk.send(Command::Hold { hold: Hold::Paused { reason: "lunch".into() }, by: by() });
    desk.later(9);
    let settings = Settings::clone(desk.room.state().settings().unwrap());
    desk.configure(Settings { title: "another title".into(), ..settings });
    desk.later(1);
    let late = Refusal::ClaimTooLate { claim_by: desk.at };
    assert_eq!(desk.send(Command::Claim(ana)), Reply::Refused(late));
}

#[test]
fn a_draw_announced_after_windows_were_sealed_lets_in_nobody_who_left() {
    let windows = Settings { shuffle_window: 16, ..drawn(None) };
    let mut desk = Desk::with(Settings { draw: None, ..windows.clone() });
    let people = desk.joins(0, 16);
    desk.tick();
    desk.send(Command::Leave(people[0]));
    if desk.configure(windows) != Reply::Done {
        return; // Refusing the draw now is as good.
    }
    desk.send(commit(None));
    desk.later(60);
    desk.tick();
    desk.send(reveal(None));
    let mut events = Vec::new();
    desk.room.decide(
        desk.at,
        &Command::AdmitNow { count: 20, entropy: [0; 16], by: by() },
        &mut events,
    );
    let admitted: Vec<Ticket> = events.iter().filter_map(|event| event.what.ticket()).collect();
    assert!(!admitted.contains(&people[0].ticket), "who left is let in");
    assert!(people[1..].iter().all(|it| admitted.contains(&it.ticket)), "who waits is left out");
}

#[test]
fn every_draw_that_is_accepted_can_be_verified() {
    let round = "drand:quicknet:77";
    let mut desk = Desk::with(drawn(Some(round)));
    desk.send(commit(Some(round)));
    desk.joins(0, 3);
    desk.later(60);
    desk.tick();
    let empty: &[u8] = b"";
    if desk.send(reveal(Some(empty))) != Reply::Done {
        return; // An empty beacon was refused, as it should be.
    }
    let counts = vec![LaneCount { lane: 0, count: 3 }];
    let proof = Proof {
        format: Format::V1,
        room: "room".into(),
        commitment: draw::commitment(&SEED),
        beacon_round: Some(round.into()),
        final_key: draw::final_key(&SEED, &counts, &CHAIN, Some(empty)),
        counts,
        chain_hash: CHAIN,
        seed: SEED,
        beacon_value: Some(vec![]),
    };
    assert_eq!(proof.check().map(|it| it.assurance()), Ok(Assurance::Verifiable));
}

#[test]
fn a_draw_closed_by_new_settings_counts_the_lanes_that_came_with_them() {
    let mut desk = Desk::with(drawn(None));
    desk.send(commit(None));
    desk.joins(0, 2);
    desk.later(30);
    let new = Settings { lanes: two_lanes(), starts_at: Some(desk.at), ..drawn(None) };
    desk.configure(new);
    desk.tick();
    let counts = &desk.room.state().draw().counts;
    assert_eq!(*counts, [(LaneId(0), 2), (LaneId(1), 0)], "as a tick would have counted");
}

#[test]
fn a_key_whose_ticket_is_long_forgotten_does_not_lock_its_owner_out() {
    let mut desk = Desk::with(Settings { memory: Millis::from_secs(600), ..manual() });
    let key = Some(JoinKey { key: [9; 12], body: [1; 4] });
    let ana = ticket_of(desk.join(Join { key, ..Join::default() }));
    desk.send(Command::Leave(ana));
    desk.later(24 * 3_600);
    desk.tick();
    let again = desk.join(Join { key, ..Join::default() });
    assert!(matches!(again, Reply::Joined { .. }), "{again:?}");
}

#[test]
fn a_moved_ticket_is_found_by_its_old_id_as_long_as_the_new_one_lives() {
    let memory = Millis::from_secs(600);
    let mut desk = Desk::with(Settings { memory, lanes: two_lanes(), ..manual() });
    let people = desk.joins(0, CHUNK);
    desk.send(Command::Move { ticket: people[0], to: LaneId(1), by: by() });
    for gone in &people[1..] {
        desk.send(Command::Leave(*gone));
    }
    desk.later(601);
    desk.tick();
    let waits = Refusal::WrongStatus { status: Status::Waiting };
    assert_eq!(desk.send(Command::Claim(people[0])), Reply::Refused(waits));
}

#[test]
fn tickets_closed_before_a_reopening_are_dropped_with_their_block() {
    let memory = Millis::from_secs(600);
    let mut desk = Desk::with(Settings { memory, ..manual() });
    desk.joins(0, 10);
    desk.finish();
    desk.send(Command::Reopen { by: by() });
    for gone in desk.joins(0, CHUNK) {
        desk.send(Command::Leave(gone));
    }
    desk.later(601);
    let events = desk.tick();
    let forgot = |event: &Event| matches!(event.what, What::ForgotTickets(_));
    assert!(events.iter().any(forgot), "nobody of the block lives, and nobody is remembered");
}

#[test]
fn join_keys_are_forgotten_also_when_the_tick_is_not_the_first_of_its_batch() {
    let mut desk = Desk::with(manual());
    for i in 0..CHUNK {
        let mut key = JoinKey { key: [1; 12], body: [1; 4] };
        key.key[..8].copy_from_slice(&i.to_be_bytes());
        desk.join(Join { key: Some(key), ..Join::default() });
    }
    desk.later(601);
    let mut batch = vec![What::Resumed { by: by() }.at(desk.at)];
    let reply = desk.room.decide(desk.at, &Command::Tick { entropy: [0; 16] }, &mut batch);
    assert_eq!(reply, Reply::Ticked { again: true }, "what is due does not depend on the batch");
}

#[test]
fn an_operator_can_let_in_people_of_a_window_that_never_fills() {
    let mut desk = Desk::with(Settings { shuffle_window: 16, ..manual() });
    desk.joins(0, 5);
    for _ in 0..3 {
        desk.later(60);
        desk.tick();
        desk.admit(5);
    }
    assert_eq!(desk.room.state().waiting(), 0, "five wait, slots are free, and nobody enters");
}

#[test]
fn returning_people_keep_to_their_share_while_any_other_lane_waits() {
    let mut lanes = two_lanes();
    lanes[1].weight = 9;
    let returning = Some(Returning { share: 20, within: Millis::from_secs(600) });
    let mut desk = Desk::with(Settings { lanes, returning, ..manual() });
    for old in desk.joins(0, 100) {
        desk.send(Command::Leave(old));
        desk.join(Join { holding: Some(old), ..Join::default() });
    }
    desk.joins(0, 100);
    let admitted = desk.admit(100);
    let returned = admitted.iter().filter(|ticket| ticket.lane == LaneId::RETURNING).count();
    assert!(returned <= 21, "{returned} of 100 went to those who returned, 20 were promised");
}

#[test]
fn a_known_person_is_never_answered_with_two_live_tickets() {
    let mut desk = Desk::with(manual());
    let anonymous = desk.joins(0, 1)[0];
    let identity = Some(Identity([7; 16]));
    let holding = Some(anonymous);
    let first = ticket_of(desk.join(Join { identity, holding, ..Join::default() }));
    let second = ticket_of(desk.join(Join { identity, ..Join::default() }));
    assert_eq!(first.ticket, second.ticket);
}

#[test]
fn a_restored_room_answers_a_known_person_as_the_live_one_does() {
    let returning = Some(Returning { share: 20, within: Millis::from_secs(600) });
    let mut desk = Desk::with(Settings { returning, ..manual() });
    let identity = Some(Identity([7; 16]));
    let known = ticket_of(desk.join(Join { identity, ..Join::default() }));
    desk.send(Command::Leave(known));
    // They come back without saying who they are, which uses up the credit of the old ticket.
    desk.join(Join { holding: Some(known), ..Join::default() });
    let stranger = desk.joins(0, 1)[0];
    desk.send(Command::Leave(stranger));
    let parts: Vec<Vec<u8>> = desk.room.state().snapshot().collect();
    let restored = Room::restore(parts).expect("a snapshot of ours can be read");
    let join = Command::Join(Join { identity, holding: Some(stranger), ..Join::default() });
    let live = desk.room.decide(desk.at, &join, &mut Vec::new());
    assert_eq!(restored.decide(desk.at, &join, &mut Vec::new()), live);
}
