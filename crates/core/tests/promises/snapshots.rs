//! The whole room as bytes: what a snapshot says is the room, and the digest is over all of it.
//!
//! That every field is in the digest is shown through the bytes: whatever bit of a snapshot is
//! flipped, it is refused or makes a room with another digest. `any_sequence.rs` restores rooms at
//! any moment of any history and lets them go on beside the live one.

use crate::script::{Bare, World};
use proptest::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use waitroom_core::{
    Block, Command, Damaged, Epoch, Identity, Join, JoinKey, LaneId, Millis, Room, settings,
};

/// Tickets are dropped in blocks of this many.
const BLOCK: u64 = 2048;

type Parts = Vec<Vec<u8>>;

fn parts(room: &Room) -> Parts {
    room.state().snapshot().collect()
}

/// A sale with everything that a room can hold at once, after its draw.
fn after_a_draw() -> World {
    let mut world = World::room(
        "lanes=3:1 returning=20%/300s window=16 starts_at=60s ends_at=9000s draw=drand:1 \
         rate=2/1s burst=3 max_active=20 claim_within=60s pass_life=100s pass_leeway=5s \
         memory=600s",
    );
    for line in [
        "1s commit beacon=drand:1",
        "1s join ana id=ann key=k1 meta=20 user=10",
        "1s join a*30",
        "2s join b*5 lane=1",
        "2s join bo id=bob lane=1",
        "3s leave a3",
        "60s tick",
        "61s join c*20 key=crowd",
        "62s draw beacon=b62",
        "63s admit 9",
        "64s join cy id=cyd user=5",
        "65s open 2",
        "65s join d*20",
        "66s hand_over a7 to=phone service",
        "67s move a9 lane=1 to=a9b service",
        "68s lapse a11 d4",
        "69s tick",
    ] {
        let said = world.line(line);
        let allowed = ["hand_over", "move"].iter().any(|word| line.contains(word));
        assert!(allowed || !said.starts_with("refused"), "{line}: {said}");
    }
    // Of those inside one stays, one goes and still holds the slot, one never comes.
    let inside: Vec<String> =
        (1..=30).map(|i| format!("a{i}")).filter(|name| is_admitted(&world, name)).collect();
    assert!(inside.len() >= 3, "the draw let {inside:?} in");
    world.line(&format!("70s claim {} service", inside[0]));
    world.line(&format!("70s claim {} service", inside[1]));
    world.line(&format!("71s complete {} service", inside[1]));
    world.line(&format!("72s join x holding={}", inside[1]));
    world.line("130s tick");
    world.line("131s sold_out gone");
    world.line("132s reopen");
    world.line("133s join e*3");
    world.line("134s pause jam at the till");
    world
}

fn is_admitted(world: &World, name: &str) -> bool {
    world.room.state().status(world.ticket(name)) == Some(waitroom_core::Status::Admitted)
}

/// In the middle of a draw, under maintenance for all.
fn in_a_draw() -> World {
    let mut world = World::room("lanes=1:1 starts_at=60s draw=committed keep_inside=no");
    world.line("1s commit");
    world.line("1s join a*9 id=ann");
    world.line("1s join b*3 lane=1");
    world.line("60s tick");
    world.line("61s join c*4");
    world.line("62s maintenance tills down");
    world
}

/// Sold out.
fn over() -> World {
    let mut world = World::room("max_active=2");
    world.line("1s join a*5");
    world.line("1s tick");
    world.line("2s sold_out all gone");
    world
}

/// With a block forgotten, the keys of another dropped, and windows gone with their tickets.
fn forgetful() -> Bare {
    let mut bare = Bare::room("rate=none memory=600s window=1024");
    bare.join(BLOCK);
    bare.tick();
    bare.ask(&Command::Open { epoch: Epoch(3) });
    for i in 1..=BLOCK {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&i.to_be_bytes());
        let key = JoinKey { key: [bytes[7]; 12], body: [bytes[6] + 1; 4] };
        // A few are enough: each flip below restores all of them.
        let identity = i.is_multiple_of(64).then_some(Identity(bytes));
        let key = (i == BLOCK).then_some(key);
        bare.ask(&Command::Join(Join { identity, key, ..Join::default() }));
    }
    bare.tick();
    bare.lapse(0..BLOCK);
    bare.join(3);
    bare.now = bare.now.after(Millis::from_secs(700));
    bare.tick();
    let state = bare.room.state();
    assert!(!state.remembers(Block { lane: LaneId(0), index: 0 }), "a block is forgotten");
    bare
}

fn rooms() -> Vec<(&'static str, Room)> {
    let mut rooms = vec![("new", Room::new())];
    rooms.push(("after_a_draw", after_a_draw().room));
    rooms.push(("in_a_draw", in_a_draw().room));
    rooms.push(("over", over().room));
    rooms.push(("forgetful", forgetful().room));
    rooms
}

#[test]
fn a_snapshot_is_the_room() {
    for (name, room) in rooms() {
        let parts = parts(&room);
        let restored = Room::restore(&parts).expect("a snapshot of ours");
        assert_eq!(restored.state().digest(), room.state().digest(), "{name}");
        assert_eq!(restored.state().snapshot().collect::<Parts>(), parts, "{name}");
        assert_eq!(room.state().clone().into_snapshot().collect::<Parts>(), parts, "{name}");
        let now = room.state().last_at();
        assert_eq!(restored.next_deadline(now), room.next_deadline(now), "{name}");
        assert_eq!(restored.state().counts(), room.state().counts(), "{name}");
    }
}

#[test]
fn a_restored_room_knows_its_people_and_what_they_asked() {
    let mut world = World::room("rate=none");
    world.line("1s join ana id=ann key=k1");
    world.line("1s join bo id=bob");
    world.line("1s join cy key=k2");
    world.go_on_beside_a_restored_room();
    assert_eq!(world.line("2s join x id=ann"), "repeat ana");
    assert_eq!(world.line("2s join y id=bob key=k3"), "repeat bo");
    assert_eq!(world.line("2s join z key=k2"), "repeat cy");
    assert_eq!(world.line("2s join dee id=dee key=k4"), "joined dee");
    world.the_restored_room_is_the_same();
}

#[test]
fn a_restored_room_forgets_whom_the_end_closed_and_nobody_who_came_later() {
    let mut world = World::room("rate=none memory=600s");
    world.line(&format!("1s join a*{BLOCK}"));
    world.line("9s finish");
    world.line("10s reopen");
    world.line(&format!("11s join b*{BLOCK}"));
    world.go_on_beside_a_restored_room();
    assert_eq!(world.line("609s tick"), "forgot_tickets 0:0");
    assert_eq!(world.line("5000s tick"), "nothing");
    assert_eq!(world.line("5001s leave b7"), "left b7");
    world.the_restored_room_is_the_same();
}

#[test]
fn rooms_that_differ_have_digests_that_differ() {
    let mut digests: Vec<_> = rooms().iter().map(|(_, room)| room.state().digest()).collect();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), rooms().len());
}

#[test]
fn parts_are_made_as_they_are_asked_for_and_stay_small() {
    let mut world = Bare::room("rate=none");
    world.join(300_000);
    let sizes: Vec<usize> = world.room.state().snapshot().map(|part| part.len()).collect();
    assert!(sizes.len() >= 3, "{sizes:?}");
    assert!(sizes.iter().all(|size| *size <= 1_100_000), "{sizes:?}");
    let restored = Room::restore(world.room.state().snapshot()).expect("a snapshot of ours");
    assert_eq!(restored.state().digest(), world.room.state().digest());
}

/// What became of a damaged snapshot.
enum Outcome {
    Refused,
    Restored([u8; 32]),
    Panicked(String),
}

fn restore(parts: &Parts) -> Outcome {
    let restored =
        catch_unwind(AssertUnwindSafe(|| Room::restore(parts).map(|room| room.state().digest())));
    match restored {
        Ok(Ok(digest)) => Outcome::Restored(digest),
        Ok(Err(Damaged(_))) => Outcome::Refused,
        Err(panic) => {
            let words = panic.downcast_ref::<String>().cloned();
            let words = words.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).into()));
            Outcome::Panicked(words.unwrap_or_default())
        }
    }
}

#[test]
fn a_flipped_bit_is_refused_or_makes_another_digest() {
    let mut wrong = Vec::new();
    for (name, room) in rooms() {
        let digest = room.state().digest();
        let mut parts = parts(&room);
        for part in 0..parts.len() {
            let bits = parts[part].len() * 8;
            // All small fields are in the head; of long columns a share is enough.
            let long = part > 0 && bits > 16_384;
            for bit in (0..bits).filter(|bit| !long || *bit < 512 || bit % 1_021 == 0) {
                parts[part][bit / 8] ^= 1 << (bit % 8);
                match restore(&parts) {
                    Outcome::Restored(other) if other == digest => {
                        wrong.push(format!("{name}: part {part}, bit {bit}: the same digest"));
                    }
                    Outcome::Panicked(words) => {
                        wrong.push(format!("{name}: part {part}, bit {bit}: panics: {words}"));
                    }
                    _ => {}
                }
                parts[part][bit / 8] ^= 1 << (bit % 8);
            }
        }
    }
    // Enough to see what they have in common.
    let shown: Vec<&String> = wrong.iter().take(40).collect();
    assert!(wrong.is_empty(), "{} flips: {shown:#?}", wrong.len());
}

#[test]
fn a_snapshot_that_was_cut_is_refused_or_another_room() {
    for (name, room) in rooms() {
        let digest = room.state().digest();
        let parts = parts(&room);
        for part in 0..parts.len() {
            for cut in (0..parts[part].len()).filter(|cut| *cut < 600 || cut % 997 == 0) {
                let mut cut_parts = parts.clone();
                cut_parts[part].truncate(cut);
                match restore(&cut_parts) {
                    Outcome::Restored(other) => assert_ne!(other, digest, "{name} {part} {cut}"),
                    Outcome::Panicked(words) => panic!("{name}: part {part} cut at {cut}: {words}"),
                    Outcome::Refused => {}
                }
            }
        }
    }
}

#[test]
fn a_snapshot_with_a_part_left_out_is_refused_or_another_room() {
    for (name, room) in rooms() {
        let digest = room.state().digest();
        let parts = parts(&room);
        for left_out in 0..parts.len() {
            let mut fewer = parts.clone();
            fewer.remove(left_out);
            match restore(&fewer) {
                Outcome::Restored(other) => assert_ne!(other, digest, "{name} {left_out}"),
                Outcome::Panicked(words) => panic!("{name} without part {left_out}: {words}"),
                Outcome::Refused => {}
            }
        }
    }
}

/// The head of a new room: format, kind, then nothing but zeros, one byte each. Behind four times,
/// settings, phase, hold, end and the draw's four fields stands the number of slots.
const SLOTS_AT: usize = 2 + 4 + 4 + 4;

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// A damaged length must not cost memory: nobody can have more slots than `max_active` ever was.
#[test]
fn more_slots_than_a_room_can_have_are_refused() {
    let mut head = parts(&Room::new()).remove(0);
    assert_eq!(head.len(), SLOTS_AT + 7, "the head of a new room has another shape");
    head.splice(SLOTS_AT..=SLOTS_AT, varint(settings::ACTIVE_MAX + 1));
    assert!(Room::restore([head]).is_err());
}

/// A lane whose head says how many tickets it gave, and whose counts say that nobody ever joined.
#[test]
fn more_tickets_than_people_joined_are_refused() {
    let mut head = parts(&Room::new()).remove(0);
    *head.last_mut().expect("it ends with the number of lanes") = 1;
    head.extend([0, 0]);
    head.extend(varint(1 << 31));
    head.extend([0; 13 + 1 + 1 + 12]);
    assert!(Room::restore([head]).is_err());
}

#[derive(Clone, Debug)]
enum Harm {
    Byte { part: usize, at: usize, value: u8 },
    Cut { part: usize, at: usize },
    Insert { part: usize, at: usize, value: u8 },
    Remove { part: usize, at: usize },
    Swap(usize, usize),
    Twice(usize),
}

fn harm() -> impl Strategy<Value = Harm> {
    let place = || (any::<usize>(), any::<usize>());
    // Seven bits, so that a number grows by a digit at most: a length out of all proportion is
    // what the two tests above are about.
    let value = || 0u8..0x80;
    prop_oneof![
        6 => (place(), value()).prop_map(|((part, at), value)| Harm::Byte { part, at, value }),
        1 => place().prop_map(|(part, at)| Harm::Cut { part, at }),
        2 => (place(), value()).prop_map(|((part, at), value)| Harm::Insert { part, at, value }),
        2 => place().prop_map(|(part, at)| Harm::Remove { part, at }),
        1 => place().prop_map(|(one, other)| Harm::Swap(one, other)),
        1 => any::<usize>().prop_map(Harm::Twice),
    ]
}

fn harmed(mut parts: Parts, harms: &[Harm]) -> Parts {
    for harm in harms {
        let count = parts.len();
        let within = |part: usize, at: usize, parts: &Parts| {
            let part = part % count;
            (part, at % parts[part].len().max(1))
        };
        match harm {
            Harm::Byte { part, at, value } => {
                let (part, at) = within(*part, *at, &parts);
                if let Some(byte) = parts[part].get_mut(at) {
                    *byte = *value;
                }
            }
            Harm::Cut { part, at } => {
                let (part, at) = within(*part, *at, &parts);
                parts[part].truncate(at);
            }
            Harm::Insert { part, at, value } => {
                let (part, at) = within(*part, *at, &parts);
                parts[part].insert(at, *value);
            }
            Harm::Remove { part, at } => {
                let (part, at) = within(*part, *at, &parts);
                if at < parts[part].len() {
                    parts[part].remove(at);
                }
            }
            Harm::Swap(one, other) => parts.swap(one % count, other % count),
            Harm::Twice(part) => parts.push(parts[part % count].clone()),
        }
    }
    parts
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn a_harmed_snapshot_never_panics(
        room in 0usize..4,
        harms in prop::collection::vec(harm(), 1..5),
    ) {
        thread_local! {
            static PARTS: Vec<Parts> = rooms().iter().take(4).map(|(_, room)| parts(room)).collect();
        }
        let parts = PARTS.with(|all| harmed(all[room].clone(), &harms));
        if let Outcome::Panicked(words) = restore(&parts) {
            prop_assert!(false, "panics: {}", words);
        }
    }

    #[test]
    fn any_bytes_are_no_snapshot(
        parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..4),
    ) {
        prop_assert!(!matches!(restore(&parts), Outcome::Panicked(_)));
    }
}

#[test]
fn no_parts_are_no_room() {
    assert!(Room::restore(Parts::new()).is_err());
}
