//! The log by itself: what is folded, what is refused, what two instances do to each other.

use super::*;
use crate::{
    contract_tests::wait,
    file::{FileStore, Options},
    memory::MemoryStore,
    seams::ManualClock,
    verify,
};

fn seams() -> Seams {
    Seams::seeded(ManualClock::at(1_000), 1)
}

fn open(store: &MemoryStore, seams: &Seams, instance: &str) -> System<MemoryStore> {
    let master = MasterKey::from_bytes([7; 32]);
    wait(System::open(store.clone(), master, seams.clone(), instance)).expect("readable")
}

fn key<'a>(id: &'a str, secret: &'a str, role: &'a str) -> NewKey<'a> {
    NewKey { id, secret, role, note: "for ana", expires_at_ms: None }
}

fn room(name: &str) -> RoomName {
    RoomName::parse(name).unwrap()
}

#[test]
fn whoever_opens_the_log_knows_what_was_written() {
    let seams = seams();
    let store = MemoryStore::new(seams.clone());
    let mut system = open(&store, &seams, "one");
    wait(async {
        system.create_room("root", &room("sale")).await?;
        system.create_room("root", &room("old")).await?;
        system.remove_room("root", &room("old")).await?;
        system.create_api_key("root", &key("k1", "s3cret", "operator")).await?;
        system.create_api_key("root", &key("k2", "other", "viewer")).await?;
        system.revoke_api_key("k1", "k2").await?;
        system.keep_secret("root", "signing/1", b"private key").await?;
        system.keep_secret("root", "id/sale", b"aes key").await?;
        system.retire_secret("root", "id/sale").await?;
        system.audit("k1", Some(&room("sale")), "pause", serde_json::json!({"reason": "x"})).await
    })
    .expect("written");
    let again = open(&store, &seams, "two");
    assert_eq!(again.rooms().map(|(room, _)| room).collect::<Vec<_>>(), ["sale"]);
    assert_eq!(again.api_key("s3cret").map(|key| &*key.role), Some("operator"));
    assert_eq!(again.api_key("other"), None, "revoked");
    assert_eq!(again.api_key("guess"), None);
    assert_eq!(again.api_keys().count(), 2);
    assert_eq!(again.secret("signing/1"), Ok(Some(b"private key".to_vec())));
    assert_eq!(again.secret("id/sale"), Ok(None));
    assert_eq!(again.folded, system.folded);
    let trail = wait(again.entries_after(Head(9), 1 << 20)).expect("readable");
    assert_eq!(trail.len(), 1);
    assert_eq!((trail[0].0, &*trail[0].1.who), (Head(10), "k1"));
    assert_eq!(wait(verify::chain(&store, &RoomName::system())), Ok(system.tip()));
}

#[test]
fn neither_keys_nor_secrets_stand_in_the_log() {
    let seams = seams();
    let store = MemoryStore::new(seams.clone());
    let mut system = open(&store, &seams, "one");
    wait(system.create_api_key("root", &key("k1", "s3cret-key", "owner"))).expect("written");
    wait(system.keep_secret("root", "signing/1", b"private-key-bytes")).expect("written");
    let stored = wait(store.read(&RoomName::system(), Head(0), usize::MAX)).expect("readable");
    let all: Vec<u8> = stored.into_iter().flat_map(|stored| stored.payload).collect();
    let text = String::from_utf8(all).expect("JSON");
    assert!(!text.contains("s3cret-key") && !text.contains("private-key-bytes"));
    assert!(!text.contains(&to_hex(b"private-key-bytes")));
    let wrong = MasterKey::from_bytes([8; 32]);
    let other = wait(System::open(store, wrong, seams, "two")).expect("readable");
    assert_eq!(other.secret("signing/1"), Err(SystemError::Sealed { name: "signing/1".into() }));
    assert_eq!(other.api_key("s3cret-key"), None);
}

#[test]
fn two_instances_take_turns_and_lose_nothing() {
    let clock = ManualClock::at(1_000);
    let seams = Seams::seeded(clock.clone(), 1);
    let store = MemoryStore::new(seams.clone());
    let (mut one, mut two) = (open(&store, &seams, "one"), open(&store, &seams, "two"));
    let act = |system: &mut System<MemoryStore>, what: &str| {
        wait(system.audit("me", None, what, serde_json::Value::Null))
    };
    act(&mut one, "a").expect("free");
    assert_eq!(act(&mut two, "b"), Err(SystemError::Busy { left_ms: 2_000 }));
    clock.advance(2_000);
    act(&mut two, "b").expect("free again");
    clock.advance(2_000);
    act(&mut one, "c").expect("caught up and went on");
    wait(two.catch_up()).expect("readable");
    assert_eq!(two.tip(), one.tip());
    let trail = wait(two.entries_after(Head(0), 1 << 20)).expect("readable");
    let actions: Vec<String> = trail
        .into_iter()
        .filter_map(|(_, entry)| match entry.what {
            What::Audit { action, .. } => Some(action),
            _ => None,
        })
        .collect();
    assert_eq!(actions, ["a", "b", "c"]);
}

#[test]
fn of_two_instances_that_make_the_same_room_one_is_refused() {
    let clock = ManualClock::at(1_000);
    let seams = Seams::seeded(clock.clone(), 1);
    let store = MemoryStore::new(seams.clone());
    let (mut one, mut two) = (open(&store, &seams, "one"), open(&store, &seams, "two"));
    wait(one.audit("me", None, "first", serde_json::Value::Null)).expect("free");
    clock.advance(2_000);
    wait(two.create_room("two", &room("sale"))).expect("free");
    clock.advance(2_000);
    // `one` has not read that yet and still believes that it may write.
    let again = wait(one.create_room("one", &room("sale")));
    assert!(matches!(again, Err(SystemError::Refused { .. })), "{again:?}");
    assert_eq!(wait(store.committed_head(&RoomName::system())), Ok(Head(2)));
}

#[test]
fn an_instance_whose_write_failed_keeps_nobody_waiting() {
    let seams = seams();
    let disk = crate::sim_disk::SimDisk::new();
    let opened = FileStore::inline(disk.clone(), Options::default(), seams.clone());
    let (store, _) = opened.expect("a new disk");
    let open = |instance: &str| {
        let master = MasterKey::from_bytes([7; 32]);
        let opened = System::open(store.clone(), master, seams.clone(), instance);
        let mut system = wait(opened).expect("readable");
        system.share();
        system
    };
    let (mut one, mut two) = (open("one"), open("two"));
    wait(one.take_up()).expect("free");
    disk.fail_next_writes(1);
    let failed = wait(one.audit("me", None, "lost", serde_json::Value::Null));
    assert!(failed.is_err(), "the disk took nothing: {failed:?}");
    // No time has passed: it was given back.
    wait(two.make_secret("two", "ids", b"theirs")).expect("free at once");
    wait(two.put_down());
    // And it knows that it has to look again.
    let late = wait(one.make_secret("one", "ids", b"ours"));
    assert!(matches!(late, Err(SystemError::Refused { .. })), "{late:?}");
    assert_eq!(one.secret("ids"), Ok(Some(b"theirs".to_vec())));
}

#[test]
fn what_makes_no_sense_is_refused_and_leaves_no_entry() {
    let seams = seams();
    let store = MemoryStore::new(seams.clone());
    let mut system = open(&store, &seams, "one");
    wait(system.create_room("root", &room("sale"))).expect("written");
    let refused = |done: Result<(), SystemError>| matches!(done, Err(SystemError::Refused { .. }));
    assert!(refused(wait(system.create_room("root", &room("sale")))));
    assert!(refused(wait(system.remove_room("root", &room("other")))));
    assert!(refused(wait(system.revoke_api_key("root", "k1"))));
    assert_eq!(system.tip().head, Head(1));
}

#[test]
fn an_entry_of_a_newer_release_is_skipped_and_kept() {
    let text = br#"[{"v":2,"at_ms":5,"who":"x","what":{"kind":"teleported","to":"mars"}}]"#;
    let entries = entries(text, Head(1)).expect("understood as far as possible");
    assert_eq!(entries[0].what, What::Unknown);
    let mut folded = Folded::default();
    folded.absorb(&entries[0]);
    assert_eq!(folded, Folded::default());
}

#[test]
fn a_key_ends_when_it_expires_and_when_it_is_revoked() {
    let clock = ManualClock::at(1_000);
    let seams = Seams::seeded(clock.clone(), 1);
    let store = MemoryStore::new(seams.clone());
    let mut system = open(&store, &seams, "one");
    let short = NewKey { expires_at_ms: Some(5_000), ..key("k1", "one", "viewer") };
    wait(system.create_api_key("root", &short)).expect("written");
    wait(system.create_api_key("root", &key("k2", "two", "owner"))).expect("written");
    assert!(system.api_key("one").is_some() && system.api_key("two").is_some());
    clock.advance(3_999);
    assert!(system.api_key("one").is_some());
    clock.advance(1);
    assert!(system.api_key("one").is_none(), "its last moment has passed");
    wait(system.revoke_api_key("k2", "k2")).expect("written");
    assert!(system.api_key("two").is_none());
    let again = open(&store, &seams, "two");
    assert_eq!(again.folded, system.folded);
}

#[test]
fn a_key_and_the_one_that_follows_it_work_side_by_side_until_the_overlap_ends() {
    let clock = ManualClock::at(1_000);
    let seams = Seams::seeded(clock.clone(), 1);
    let store = MemoryStore::new(seams.clone());
    let mut system = open(&store, &seams, "one");
    wait(system.create_api_key("root", &key("k1", "one", "operator"))).expect("written");
    let next = key("k2", "two", "ignored");
    wait(system.rotate_api_key("root", "k1", 61_000, &next)).expect("written");
    for (secret, id) in [("one", "k1"), ("two", "k2")] {
        let found = system.api_key(secret).expect("live");
        assert_eq!((&*found.id, &*found.role, &*found.note), (id, "operator", "for ana"));
    }
    let followed = system.api_key_named("k1").expect("known");
    assert_eq!(followed.replaced_by.as_deref(), Some("k2"));
    let refused = |done| matches!(done, Err(SystemError::Refused { .. }));
    let third = key("k3", "three", "");
    assert!(
        refused(wait(system.rotate_api_key("root", "k1", 61_000, &third))),
        "it has a follower"
    );
    clock.advance(60_000);
    assert!(system.api_key("one").is_none() && system.api_key("two").is_some());
    assert!(refused(wait(system.rotate_api_key("root", "k1", 99_000, &third))), "it has ended");
    // One entry for the pair, and it is one act of the audit.
    let trail = wait(system.entries_after(Head(1), 1 << 20)).expect("readable");
    let lines: Vec<_> = trail.iter().filter_map(|(at, it)| AuditLine::of(*at, it)).collect();
    assert_eq!((lines.len(), &*lines[0].action, &*lines[0].who), (1, "key_rotate", "root"));
}

#[test]
fn what_is_nobodys_act_is_not_in_the_audit() {
    let seams = seams();
    let store = MemoryStore::new(seams.clone());
    let mut system = open(&store, &seams, "one");
    wait(async {
        system.create_room("server", &room("sale")).await?;
        system.keep_secret("server", "room/sale/ids", b"bytes").await?;
        system.note_use("server", [("k1".to_owned(), 5)].into()).await?;
        let detail =
            serde_json::json!({ "before": null, "after": { "rate": "5/s" }, "version": 7 });
        system.audit("k1", Some(&room("sale")), "configure", detail).await
    })
    .expect("written");
    let trail = wait(system.entries_after(Head(0), 1 << 20)).expect("readable");
    let lines: Vec<_> = trail.iter().filter_map(|(at, it)| AuditLine::of(*at, it)).collect();
    assert_eq!(lines.len(), 1);
    assert_eq!((lines[0].index, &*lines[0].action), (4, "configure"));
    assert_eq!(lines[0].after, serde_json::json!({ "rate": "5/s" }));
    assert_eq!((system.audited("sale"), system.audited("other")), (7, 0));
}
