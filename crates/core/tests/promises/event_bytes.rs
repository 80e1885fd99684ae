//! What the log keeps of an event is the event: bytes and back.
//!
//! The store adds lengths, checksums and the hash chain; here the bytes come as they are, whole,
//! cut, flipped or made up.

use crate::script::T0;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use std::sync::Arc;
use waitroom_core::settings::{
    ClaimMode, DrawSettings, LaneSettings, NoShow, PublicBoardMode, Rate, Returning,
};
use waitroom_core::{
    Actor, AdmitWhy, Block, Ending, Entry, Epoch, Event, FinishCause, Hold, Holder, Identity,
    JoinKey, Joined, LaneId, Millis, Number, Session, Settings, Status, Ticket, Timestamp, What,
    codec,
};

/// Plain joins that one record holds at most, and the fewest bytes such a record takes: tag,
/// flags, lane, number, length, and how many wait. Together they bound what bytes can unfold to.
const RUN_MAX: usize = 1 << 16;
const RUN_BYTES_MIN: usize = 6;

/// How many kinds of events there are. A new one does not compile until `kind` knows it, and
/// fails below until `what` makes it.
const KINDS: usize = 24;

fn kind(what: &What) -> usize {
    match what {
        What::Opened { .. } => 0,
        What::Configured { .. } => 1,
        What::Joined(_) => 2,
        What::Admitted { .. } => 3,
        What::Claimed { .. } => 4,
        What::Renewed { .. } => 5,
        What::Ended { .. } => 6,
        What::Released { .. } => 7,
        What::HandedOver { .. } => 8,
        What::Bound { .. } => 9,
        What::Moved { .. } => 10,
        What::Held { .. } => 11,
        What::Resumed { .. } => 12,
        What::AdmittedNow { .. } => 13,
        What::DoorsOpened => 14,
        What::SaleStarted => 15,
        What::SaleEnded { .. } => 16,
        What::Reopened { .. } => 17,
        What::DrawCommitted { .. } => 18,
        What::DrawClosed { .. } => 19,
        What::Drawn { .. } => 20,
        What::Sealed { .. } => 21,
        What::ForgotTickets(_) => 22,
        What::ForgotKeys(_) => 23,
    }
}

fn ticket() -> impl Strategy<Value = Ticket> {
    (any::<u8>(), number(Number::MAX.0)).prop_map(|(lane, number)| Ticket::new(lane, number))
}

/// Small and large ones alike: each length of a number has its own edges.
fn number(max: u64) -> impl Strategy<Value = u64> {
    (0..=max, 0u32..64).prop_map(|(number, shift)| number >> shift)
}

fn anything() -> impl Strategy<Value = u64> {
    prop_oneof![number(u64::MAX), Just(u64::MAX), T0.0..T0.0 + 1_000_000]
}

fn moment() -> impl Strategy<Value = Timestamp> {
    anything().prop_map(Timestamp)
}

fn actor() -> impl Strategy<Value = Actor> {
    "[a-z é]{0,12}".prop_map(|name| Actor::new(&name))
}

fn text() -> impl Strategy<Value = String> {
    "[ -~ßé票]{0,40}"
}

fn blob() -> impl Strategy<Value = Option<Arc<[u8]>>> {
    prop::option::of(prop::collection::vec(any::<u8>(), 0..200).prop_map(Into::into))
}

fn session() -> impl Strategy<Value = Session> {
    (moment(), moment(), moment()).prop_map(|(issued_at, expires_at, pass_expires_at)| Session {
        issued_at,
        expires_at,
        pass_expires_at,
    })
}

fn hold() -> impl Strategy<Value = Hold> {
    (0..3u8, text()).prop_map(|(kind, reason)| match kind {
        0 => Hold::Paused { reason },
        1 => Hold::Maintenance { reason },
        _ => Hold::Draining { reason },
    })
}

fn block() -> impl Strategy<Value = Block> {
    (any::<u8>(), anything()).prop_map(|(lane, index)| Block { lane: LaneId(lane), index })
}

/// The bytes do not ask whether a room could be set so.
fn settings() -> impl Strategy<Value = Arc<Settings>> {
    let origins = prop::collection::vec(text(), 0..3);
    let words = (text(), text(), prop::collection::vec((text(), any::<u32>()), 0..4), origins);
    let numbers = prop::collection::vec(anything(), 13);
    let options = prop::collection::vec(prop::option::of(anything()), 6);
    let choices = prop::collection::vec(any::<bool>(), 8);
    (words, numbers, options, choices, any::<u32>()).prop_map(|(words, n, o, yes, window)| {
        let (title, target_url, lanes, origins) = words;
        let small = |number: u64| number as u32;
        Arc::new(Settings {
            title,
            target_url: target_url.clone(),
            message: target_url.clone(),
            theme: target_url.clone(),
            template: target_url.clone(),
            lanes: lanes.into_iter().map(|(name, weight)| LaneSettings { name, weight }).collect(),
            returning: o[0].map(|within| Returning { share: window, within: Millis(within) }),
            max_active: n[0],
            max_waiting: n[1],
            rate: o[1].map(|count| Rate { count: small(count), per: Millis(n[2]) }),
            burst: o[2].map(small),
            tick: Millis(n[3]),
            queue_all: yes[0],
            claim: if yes[1] { ClaimMode::Explicit } else { ClaimMode::OnAdmission },
            claim_within: Millis(n[4]),
            session_timeout: Millis(n[5]),
            session_renewal: yes[2],
            pass_life: Millis(n[6]),
            pass_leeway: Millis(n[7]),
            heartbeat_timeout: Millis(n[8]),
            ticket_life: Millis(n[9]),
            memory: Millis(n[10]),
            no_show: if yes[3] { NoShow::Keep } else { NoShow::Return },
            opens_at: o[3].map(Timestamp),
            starts_at: o[4].map(Timestamp),
            ends_at: o[5].map(Timestamp),
            draw: yes[4].then(|| DrawSettings { beacon: yes[5].then_some(target_url) }),
            shuffle_window: window,
            public_board: match n[11] % 3 {
                0 => PublicBoardMode::Full,
                1 => PublicBoardMode::Coarse,
                _ => PublicBoardMode::Off,
            },
            keep_inside: yes[6],
            keep_user_id: yes[7],
            allowed_origins: origins,
            heartbeat_interval: Millis(n[12]),
        })
    })
}

fn identity() -> impl Strategy<Value = Identity> {
    any::<[u8; 16]>().prop_map(Identity)
}

fn key() -> impl Strategy<Value = JoinKey> {
    (any::<[u8; 12]>(), any::<[u8; 4]>()).prop_map(|(key, body)| JoinKey { key, body })
}

fn joined() -> impl Strategy<Value = Joined> {
    let who = (prop::option::of(identity()), prop::option::of(key()));
    let returns = prop::option::of(ticket());
    (ticket(), anything(), anything(), who, blob(), blob(), returns).prop_map(
        |(ticket, waiting_in_lane, waiting, (identity, key), metadata, sealed_user, returns)| {
            Joined {
                ticket,
                waiting_in_lane,
                waiting,
                identity,
                key,
                metadata,
                sealed_user,
                returns,
            }
        },
    )
}

/// One event of any kind at `at`.
fn what(at: Timestamp) -> BoxedStrategy<What> {
    let earlier = move || number(at.0).prop_map(move |before| Timestamp(at.0 - before));
    let why = prop::sample::select(vec![AdmitWhy::Paced, AdmitWhy::Straight, AdmitWhy::Manual]);
    let entry = prop_oneof![
        moment().prop_map(|by| Entry::MustClaim { by }),
        session().prop_map(Entry::Claimed),
    ];
    let was = prop::sample::select(Status::ALL.to_vec());
    let ending = prop::sample::select(Ending::ALL.to_vec());
    let causes = vec![FinishCause::Schedule, FinishCause::SoldOut, FinishCause::Operator];
    let cause = prop::sample::select(causes);
    let secret = any::<[u8; 32]>;
    let bytes = || prop::collection::vec(any::<u8>(), 0..100);
    let counts = prop::collection::vec((any::<u8>().prop_map(LaneId), anything()), 0..5);
    let tickets = prop_oneof![
        (ticket(), earlier(), anything(), why, entry, blob()).prop_map(
            |(ticket, joined_at, waiting, why, entry, sealed_user)| What::Admitted {
                ticket,
                joined_at,
                waiting,
                why,
                entry,
                sealed_user
            }
        ),
        (ticket(), session()).prop_map(|(ticket, session)| What::Claimed { ticket, session }),
        (ticket(), session()).prop_map(|(ticket, session)| What::Renewed { ticket, session }),
        (ticket(), was, ending, (anything(), anything()), prop::option::of(moment()), blob())
            .prop_flat_map(|it| (Just(it), actor()))
            .prop_map(|((ticket, was, ending, n, held_until, sealed_user), by)| What::Ended {
                ticket,
                was,
                ending,
                waited: Millis(n.0),
                waiting: n.1,
                held_until,
                sealed_user,
                by
            }),
        ticket().prop_map(|ticket| What::Released { ticket }),
        (ticket(), any::<u8>())
            .prop_map(|(ticket, holder)| What::HandedOver { ticket, holder: Holder(holder) }),
        (ticket(), identity()).prop_map(|(ticket, identity)| What::Bound { ticket, identity }),
        (ticket(), ticket(), earlier(), actor())
            .prop_map(|(from, to, joined_at, by)| What::Moved { from, to, joined_at, by }),
    ];
    let operators = prop_oneof![
        any::<u32>().prop_map(|epoch| What::Opened { epoch: Epoch(epoch) }),
        (settings(), actor()).prop_map(|(settings, by)| What::Configured { settings, by }),
        (hold(), actor()).prop_map(|(hold, by)| What::Held { hold, by }),
        actor().prop_map(|by| What::Resumed { by }),
        (anything(), anything(), actor()).prop_map(|(asked, granted, by)| What::AdmittedNow {
            asked,
            granted,
            by
        }),
        (cause, text(), anything(), actor()).prop_map(|(cause, reason, closed, by)| {
            What::SaleEnded { cause, reason, closed, by }
        }),
        actor().prop_map(|by| What::Reopened { by }),
    ];
    let room = prop_oneof![
        Just(What::DoorsOpened),
        Just(What::SaleStarted),
        (secret(), bytes(), prop::option::of(text())).prop_map(
            |(commitment, sealed_seed, beacon)| What::DrawCommitted {
                commitment,
                sealed_seed,
                beacon
            }
        ),
        counts.prop_map(|counts| What::DrawClosed { counts }),
        (secret(), secret(), prop::option::of(bytes()), any::<bool>(), actor()).prop_map(
            |(seed, chain, beacon, waived, by)| What::Drawn { seed, chain, beacon, waived, by }
        ),
        (ticket(), any::<u32>(), any::<[u8; 16]>()).prop_map(|(first, len, seed)| {
            What::Sealed { lane: first.lane, start: first.number, len, seed }
        }),
        block().prop_map(What::ForgotTickets),
        block().prop_map(What::ForgotKeys),
    ];
    prop_oneof![
        2 => joined().prop_map(What::Joined),
        8 => tickets,
        7 => operators,
        8 => room,
    ]
    .boxed()
}

/// A stretch of a log: single events, and runs of joins that begin, break off and go on.
fn stretch(at: Timestamp) -> BoxedStrategy<Vec<Event>> {
    let single = what(at).prop_map(move |what| vec![what.at(at)]);
    let first = (0u8..3, 0u64..5, 0u64..9, any::<bool>(), any::<bool>());
    let run = (first, 1u64..20).prop_map(move |((lane, number, others, named, keyed), len)| {
        let join = |i: u64| Joined {
            ticket: Ticket::new(lane, number + i),
            waiting_in_lane: i + 1,
            waiting: i + 1 + others,
            identity: named.then_some(Identity([i as u8; 16])),
            key: keyed.then_some(JoinKey { key: [i as u8; 12], body: [7; 4] }),
            ..Joined::default()
        };
        (0..len).map(|i| What::Joined(join(i)).at(at)).collect()
    });
    // Right beside each other with one thing changed, which must not be folded away.
    let odd = (1u64..4, 0usize..7).prop_map(move |(number, changed)| {
        let plain = |number: u64| Joined {
            ticket: Ticket::new(0, number),
            waiting_in_lane: number,
            waiting: number,
            ..Joined::default()
        };
        let mut odd = plain(number + 1);
        match changed {
            0 => odd.ticket.lane = LaneId(1),
            1 => odd.ticket.number.0 += 1,
            2 => odd.waiting_in_lane += 1,
            3 => odd.waiting += 1,
            4 => odd.identity = Some(Identity([1; 16])),
            5 => odd.key = Some(JoinKey { key: [1; 12], body: [1; 4] }),
            _ => odd.returns = Some(Ticket::new(0, 0)),
        }
        let all = [plain(number), odd, plain(number + 2)];
        all.into_iter().map(|joined| What::Joined(joined).at(at)).collect()
    });
    prop_oneof![4 => single, 2 => run, 1 => odd].boxed()
}

fn log() -> impl Strategy<Value = Vec<Event>> {
    let steps = prop::collection::vec(prop_oneof![Just(0u64), 1u64..300_000], 0..12);
    let begin = prop_oneof![Just(T0.0), Just(0), number(u64::MAX / 2)];
    (begin, steps).prop_flat_map(|(begin, steps)| {
        let mut at = begin;
        let stretches: Vec<_> = steps
            .into_iter()
            .map(|step| {
                at += step;
                stretch(Timestamp(at))
            })
            .collect();
        stretches.prop_map(|stretches| stretches.concat())
    })
}

fn encoded(events: &[Event]) -> Vec<u8> {
    let mut bytes = Vec::new();
    codec::encode(events, &mut bytes);
    bytes
}

/// What was read before the end or before the damage.
fn decoded(bytes: &[u8]) -> (Vec<Event>, Result<(), waitroom_core::Damaged>) {
    let mut events = Vec::new();
    let end = codec::decode(bytes, |event| events.push(event));
    (events, end)
}

fn joins(count: u64, join: impl Fn(u64) -> Joined) -> Vec<Event> {
    (0..count).map(|i| What::Joined(join(i)).at(T0)).collect()
}

fn anonymous(i: u64) -> Joined {
    Joined {
        ticket: Ticket::new(0, i),
        waiting_in_lane: i + 1,
        waiting: i + 1,
        ..Joined::default()
    }
}

/// Bytes that an event holds beside its fixed fields.
fn held_bytes(what: &What) -> usize {
    let blob = |blob: &Option<Arc<[u8]>>| blob.as_ref().map_or(0, |bytes| bytes.len());
    match what {
        What::Configured { settings, .. } => settings.title.len() + settings.target_url.len(),
        What::Joined(joined) => blob(&joined.metadata) + blob(&joined.sealed_user),
        What::Admitted { sealed_user, .. } => blob(sealed_user),
        What::Ended { sealed_user, by, .. } => blob(sealed_user) + by.0.len(),
        What::Held { hold, by } => hold.reason().len() + by.0.len(),
        What::SaleEnded { reason, by, .. } => reason.len() + by.0.len(),
        What::DrawCommitted { sealed_seed, beacon, .. } => {
            sealed_seed.capacity() + beacon.as_ref().map_or(0, String::capacity)
        }
        What::DrawClosed { counts } => counts.len(),
        What::Drawn { beacon, by, .. } => beacon.as_ref().map_or(0, Vec::capacity) + by.0.len(),
        What::Moved { by, .. }
        | What::Resumed { by }
        | What::Reopened { by }
        | What::AdmittedNow { by, .. } => by.0.len(),
        _ => 0,
    }
}

/// Whatever the bytes are: no panic, and nothing larger than the bytes themselves.
fn reads_calmly(bytes: &[u8]) {
    let (mut events, mut held) = (0usize, 0usize);
    let _damage_is_fine = codec::decode(bytes, |event| {
        events += 1;
        held += held_bytes(&event.what);
    });
    assert!(held <= bytes.len(), "{held} bytes held, read from {}", bytes.len());
    let most = bytes.len() / RUN_BYTES_MIN * RUN_MAX + bytes.len();
    assert!(events <= most, "{events} events from {} bytes", bytes.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(events in log()) {
        let bytes = encoded(&events);
        let (read, end) = decoded(&bytes);
        prop_assert_eq!(end, Ok(()));
        prop_assert_eq!(read, events);
    }

    #[test]
    fn a_batch_is_added_behind_what_is_there(events in log()) {
        let mut bytes = b"before".to_vec();
        codec::encode(&events, &mut bytes);
        prop_assert_eq!(bytes.strip_prefix(b"before"), Some(&encoded(&events)[..]));
    }

    /// So a reader that stops at the damage has believed nothing false.
    #[test]
    fn a_batch_that_was_cut_gives_its_first_events_and_no_others(events in log()) {
        let bytes = encoded(&events);
        for cut in 0..bytes.len() {
            let (read, end) = decoded(&bytes[..cut]);
            prop_assert!(events.starts_with(&read), "cut at {}: {:?}", cut, read.last());
            prop_assert!(end.is_err() || read.len() < events.len() || events.is_empty());
        }
    }

    #[test]
    fn a_flipped_bit_is_seen_or_makes_another_event(events in log(), at in any::<usize>()) {
        prop_assume!(!events.is_empty());
        let mut bytes = encoded(&events);
        // A few flips for each log: whole ones would take minutes.
        for step in 0..64 {
            let bit = at.wrapping_add(step * 7_919) % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            reads_calmly(&bytes);
            let (read, end) = decoded(&bytes);
            prop_assert!(end.is_err() || read != events, "bit {} changes nothing", bit);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn any_bytes_are_read_calmly(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        reads_calmly(&bytes);
    }

    /// Each kind gets its share of rubbish; plain chance would hardly come past the first byte.
    #[test]
    fn any_bytes_behind_a_good_beginning_are_read_calmly(
        tag in 0u8..32,
        later in any::<bool>(),
        bytes in prop::collection::vec(prop_oneof![0u8..4, any::<u8>()], 0..80),
    ) {
        let mut batch = vec![codec::FORMAT, 0, if later { tag | 0x80 } else { tag }];
        batch.extend(bytes);
        reads_calmly(&batch);
    }
}

#[test]
fn every_kind_of_event_is_among_those_that_are_tried() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen = [0usize; KINDS];
    for _ in 0..2_000 {
        let what = what(T0).new_tree(&mut runner).expect("a value").current();
        seen[kind(&what)] += 1;
    }
    assert!(seen.iter().all(|times| *times >= 10), "{seen:?}");
}

#[test]
fn a_run_of_joins_costs_bytes_and_not_records() {
    let thousand = encoded(&joins(1_000, anonymous));
    assert!(thousand.len() <= 20, "1,000 joins take {} bytes", thousand.len());
    let many = joins(200_000, anonymous);
    let bytes = encoded(&many);
    assert!(bytes.len() <= 80, "200,000 joins take {} bytes", bytes.len());
    assert_eq!(decoded(&bytes), (many, Ok(())));
}

#[test]
fn a_run_of_known_people_costs_what_names_them() {
    let named = |i: u64| Joined { identity: Some(Identity([i as u8 | 1; 16])), ..anonymous(i) };
    let keyed =
        |i: u64| Joined { key: Some(JoinKey { key: [i as u8 | 1; 12], body: [1; 4] }), ..named(i) };
    for (events, each) in [(joins(1_000, named), 16), (joins(1_000, keyed), 32)] {
        let bytes = encoded(&events);
        assert!(bytes.len() <= 1_000 * each + 20, "{} bytes", bytes.len());
        assert_eq!(decoded(&bytes), (events, Ok(())));
    }
}

#[test]
fn an_empty_batch_is_a_batch() {
    assert_eq!(decoded(&encoded(&[])), (vec![], Ok(())));
}

#[test]
fn a_batch_of_another_format_is_refused_at_once() {
    let mut bytes = encoded(&joins(3, anonymous));
    bytes[0] = codec::FORMAT + 1;
    let (read, end) = decoded(&bytes);
    assert!(read.is_empty() && end.is_err());
    assert!(decoded(&[]).1.is_err(), "no bytes are no batch");
}
