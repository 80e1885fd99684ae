//! `waitroom log`: the whole history, in order, readable, and checked.

use crate::sale::{Promise, drawn, queued};
use crate::shell::Folder;

#[test]
fn a_log_reads_from_the_opening_to_the_last_act() {
    let folder = Folder::new();
    queued(&folder.path("data"), "spring-sale", 5);
    let said = folder.run("log --data data --room spring-sale").exits(0).says(&[
        "  opened          epoch 1",
        "  joined          ticket 0:4  waiting_in_lane 5  waiting 5",
        "  ended           ticket 0:0  was waiting  ending left",
        "  paused          reason \"the shop is slow\"  by ops",
        "the chain holds from event 1 to",
    ]);
    assert!(said.out.lines().next().is_some_and(|line| line.trim_start().starts_with("1  20")));
}

#[test]
fn the_json_has_every_event_once_and_ends_with_the_chain() {
    let folder = Folder::new();
    queued(&folder.path("data"), "spring-sale", 5);
    let rooms = folder.run("rooms --data data --json").json();
    let head = rooms["rooms"][0]["head"].as_u64().expect("a head");
    let lines = folder.run("log --data data --room spring-sale --json").exits(0).json_lines();
    let (last, events) = lines.split_last().expect("lines");
    let indices: Vec<u64> = events.iter().filter_map(|it| it["index"].as_u64()).collect();
    assert_eq!(indices, (1..=head).collect::<Vec<u64>>());
    assert_eq!(last["checked"]["chain"], rooms["rooms"][0]["chain"]);
    assert_eq!(events.iter().filter(|it| it["event"] == "joined").count(), 5);
    let line = format!("log --data data --room spring-sale --json --from {}", head - 1);
    let tail = folder.run(&line).exits(0).json_lines();
    assert_eq!(tail[..], lines[lines.len() - 3..]);
}

#[test]
fn a_draw_can_be_followed_in_the_log_but_its_sealed_seed_is_not_shown() {
    let folder = Folder::new();
    let proof = drawn(&folder.path("data"), "spring-sale", Promise::NoBeacon);
    let lines = folder.run("log --data data --room spring-sale --json").exits(0).json_lines();
    let one = |name: &str| lines.iter().find(|it| it["event"] == name).expect(name);
    let shown = serde_json::to_value(&proof).expect("JSON");
    assert_eq!(one("draw_committed")["commitment"], shown["commitment"]);
    assert!(one("draw_committed").get("sealed_seed").is_none());
    assert_eq!(one("draw_closed")["counts"][0]["count"], 40);
    assert_eq!(one("drawn")["seed"], shown["seed"]);
    assert_eq!(one("drawn")["chain"], shown["chain_hash"]);
}

#[test]
fn a_reader_who_has_enough_is_not_an_error_message() {
    let folder = Folder::new();
    queued(&folder.path("data"), "spring-sale", 5);
    let said = folder.run_unread("log --data data --room spring-sale").exits(74);
    assert!(!said.err.contains("error") && !said.err.contains("panicked"), "{said:?}");
}
