//! A room that loses its store: a disk that takes no more.

use std::process::Command;

use crate::figures::{page, value};
use crate::instance::{Got, Instance, curl, soon};

/// How large any file of the process may grow from now on, as a full disk would have it.
fn files_may_grow_to(server: &Instance, bytes: &str) {
    let set = Command::new("prlimit")
        .args(["--pid", &server.pid().to_string(), &format!("--fsize={bytes}:unlimited")])
        .status()
        .expect("prlimit is needed for this test: apt-get install util-linux");
    assert!(set.success());
}

fn ready(url: &str) -> Got {
    curl(&[&format!("{url}/health/ready")])
}

#[test]
fn a_full_disk_is_seen_everywhere_and_the_room_comes_back_by_itself() {
    let server = Instance::with(&[("WAITROOM_LIMITS_JOIN", "none")]);
    let join = || server.post("/v1/rooms/default/join", &[]).status;
    assert_eq!(join(), 201);
    assert_eq!((ready(&server.public).status, ready(&server.admin).status), (200, 200));
    files_may_grow_to(&server, "4096");
    soon("a join that finds no room on the disk", || (join() == 503).then_some(()));
    let told = soon("the reason", || Some(ready(&server.admin)).filter(|it| it.status == 503));
    let because = told.json()["because"].to_string();
    assert!(because.contains("default") && because.contains("File too large"), "{because}");
    let told = ready(&server.public);
    assert_eq!(told.status, 503);
    assert!(!told.body.contains("default"), "which rooms there are is nobody's business: {told:?}");
    let lost = page(&server);
    assert_eq!(value(&lost, r#"waitroom_room_open{room="default"}"#), 0.0);
    assert_eq!(value(&lost, "waitroom_ready"), 0.0);
    assert_eq!(value(&lost, r#"waitroom_room_failures_total{room="default"}"#), 1.0);
    files_may_grow_to(&server, "unlimited");
    soon("the room is open again", || (ready(&server.admin).status == 200).then_some(()));
    assert_eq!(join(), 201);
    assert_eq!(value(&page(&server), r#"waitroom_room_open{room="default"}"#), 1.0);
    let said = server.stop();
    assert_eq!(said.matches("room lost the store").count(), 1, "{said}");
    assert_eq!(said.matches("room opened").count(), 2, "{said}");
}
