//! The parts of `bench queue`, each in its own process as the benchmark runs them, with crowds
//! small enough for a test. What the figures are is for a release build to say; here they must
//! be there, be positive, and agree where they can be known.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

fn part(words: &str) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_bench"))
        .args(["queue", "--part", words])
        .output()
        .expect("the benchmark starts");
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a part answers in JSON")
}

fn value(part: &Value, name: &str) -> f64 {
    let measures = part["measures"].as_array().expect("a part has measures");
    let measure = measures.iter().find(|measure| measure["name"] == name);
    let value = measure.and_then(|measure| measure["value"].as_f64());
    value.unwrap_or_else(|| panic!("{name} is not among {measures:?}"))
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("the target folder can be written to");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn every_operation_is_measured() {
    let anonymous = part("operations anonymous 20000");
    for name in [
        "join_ns",
        "position_ns",
        "look_ns",
        "leave_ns",
        "leave_after_publish_ns",
        "admit_1000_us",
        "heartbeat_ns",
        "sweep_ms",
        "snapshot_ms",
        "board_publish_us",
        "public_board_us",
    ] {
        assert!(value(&anonymous, name) > 0.0, "{name}");
    }
    for crowd in ["identity", "key"] {
        let known = part(&format!("operations {crowd} 20000"));
        assert!(value(&known, "join_ns") > 0.0, "{crowd}");
        // Sixteen bytes more for each.
        let more = value(&known, "snapshot_mb") - value(&anonymous, "snapshot_mb");
        assert!((0.3..0.7).contains(&more), "{crowd}: {more} MB");
    }
}

#[test]
fn a_visitor_with_an_identity_costs_what_the_tables_cost() {
    let bytes = |words: &str| value(&part(words), "bytes_per_visitor");
    let more = bytes("memory identity 400000") - bytes("memory anonymous 400000");
    // Sixteen for the identity, eight and a bit for its entry in the table.
    assert!((20.0..40.0).contains(&more), "{more} bytes");
}

#[test]
fn a_draw_is_swapped_in_and_an_always_on_room_forgets() {
    let draw = part("draw 20000");
    assert!(value(&draw, "draw_swap_stall_ms") > 0.0);
    let flat = part("flat 3000001");
    assert!(value(&flat, "flat_resident_mb") < 64.0, "{flat}");
}

#[test]
fn the_slow_operations_of_a_run_are_named() {
    let run = part("stall 300000");
    let measures = run["measures"].as_array().expect("a part has measures");
    for measure in measures {
        let name = measure["name"].as_str().expect("a name");
        assert!(name.contains(", operation "), "{name}");
        assert!(measure["value"].as_f64().expect("a time") >= 0.2, "{name}");
    }
}

#[test]
fn another_process_brings_back_the_same_room() {
    let folder = Folder::new("recovery with a blank");
    let path = folder.0.display();
    let made = part(&format!("prepare identity 20000 {path}"));
    let found = part(&format!("recover all from {path}"));
    assert_eq!(made["digest"].as_str().expect("a digest").len(), 64);
    assert_eq!(made["digest"], found["digest"]);
    assert!(value(&made, "snapshot_peak_mb") > 0.0);
    assert!(value(&found, "recovery_s") > 0.0);
}

#[test]
fn idle_rooms_answer_and_cost_little() {
    let folder = Folder::new("idle rooms");
    let rooms = part(&format!("idle-rooms 20 in {}", folder.0.display()));
    assert!(value(&rooms, "idle_rooms_ack_p99_ms") >= value(&rooms, "idle_rooms_ack_p50_ms"));
    assert!(value(&rooms, "idle_room_kb") < 1_000.0, "{rooms}");
}

#[test]
fn a_part_that_is_not_there_is_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_bench"))
        .args(["queue", "--part", "nothing"])
        .output()
        .expect("the benchmark starts");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("no part"));
}
