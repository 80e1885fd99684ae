//! A room that cannot be opened costs the others nothing, says why, and is open again once it is
//! mended, all without a restart.

use std::path::{Path, PathBuf};

use crate::server::{OWNER, Server, soon};

/// Small enough that a handful of joins makes a snapshot at each stop.
const CONFIG: &str = "[store]\nsnapshot_every = 1_000\n\n[rooms.spring]\nrate = \"none\"\nqueue_all = true\ntitle = \"Spring\"\n";
/// More than a hundredth of `snapshot_every`.
const JOINS: u32 = 15;

fn start(folder: PathBuf) -> Server {
    Server::in_folder(folder, &["--config", "server.toml"])
}

/// The snapshots of a room, oldest first.
fn snapshots(data: &Path, room: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(data.join("snapshots").join(room)).expect("it has snapshots");
    let mut paths: Vec<PathBuf> = entries.map(|it| it.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|it| it == "snap"));
    paths.sort();
    paths
}

/// A stopped server whose room `spring` begins with a snapshot, because its log was trimmed; the
/// first token of the room, and one of the room `winter`.
fn trimmed() -> (PathBuf, String, String) {
    let server = Server::configured(CONFIG);
    server.own("PUT", "/admin/v1/rooms/winter", r#"{"queue_all":true,"rate":"none"}"#);
    let token = |room| server.join(room, 0).expect(201)["token"].as_str().expect("one").to_owned();
    let (spring, winter) = (token("spring"), token("winter"));
    let mut folder = Some(server);
    for round in 0..2 {
        let server = folder.take().expect("one runs");
        (1..=JOINS).for_each(|who| drop(server.join("spring", JOINS * round + who).expect(201)));
        folder = Some(start(server.stop()));
    }
    (folder.expect("one runs").stop(), spring, winter)
}

#[test]
fn a_room_with_damaged_snapshots_is_not_served_the_others_are_and_mended_it_opens() {
    let (folder, spring, winter) = trimmed();
    let data = folder.join("data");
    let good: Vec<(PathBuf, Vec<u8>)> = snapshots(&data, "spring")
        .into_iter()
        .map(|path| (path.clone(), std::fs::read(path).expect("readable")))
        .collect();
    assert_eq!(good.len(), 2, "the log is trimmed up to the older one");
    for (path, bytes) in &good {
        let mut bytes = bytes.clone();
        *bytes.last_mut().expect("some") ^= 1;
        std::fs::write(path, bytes).expect("writable");
    }
    // Its settings are others by now: it gets them when it opens.
    let changed = CONFIG.replace("\"Spring\"", "\"Spring again\"");
    std::fs::write(folder.join("server.toml"), changed).expect("writable");
    let file = folder.join("server.toml");
    let server = start(folder);

    // The other room is served as ever.
    assert_eq!(server.status("winter", &winter)["position"], 1);
    server.join("winter", 1).expect(201);
    // This one says why, to each as much as is theirs.
    let refused = server.join("spring", 900);
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.head.to_lowercase().contains("retry-after: 10"), "{refused:?}");
    let problem = refused.json();
    assert_eq!((&problem["code"], &problem["room"]), (&"unavailable".into(), &"spring".into()));
    assert!(problem["detail"].as_str().expect("words").contains("WR-2105"), "{problem}");
    assert!(!refused.body.contains("snapshots"), "nothing of the inside: {refused:?}");
    for path in ["/v1/rooms/spring/board", "/v1/rooms/spring/status"] {
        assert_eq!(server.public("", "GET", path, "").status, 503, "{path}");
    }
    let told = server.admin(OWNER, "GET", "/admin/v1/rooms/spring", "");
    assert_eq!(told.status, 503, "{told:?}");
    assert!(told.body.contains("its end is wrong"), "operators hear the cause: {told:?}");
    let list = server.own("GET", "/admin/v1/rooms", "");
    assert_eq!(list["rooms"].as_array().expect("a list").len(), 1, "{list}");
    assert_eq!(list["unopened"][0]["room"], "spring", "{list}");
    let ready = server.public("", "GET", "/health/ready", "");
    assert_eq!(ready.status, 200, "the others should get their visitors: {ready:?}");
    assert!(ready.body.contains("except") && !ready.body.contains("spring"), "{ready:?}");
    let ready = server.admin(OWNER, "GET", "/health/ready", "");
    assert!(ready.body.contains(r#"room \"spring\" cannot be opened"#), "{ready:?}");
    let page = server.admin(OWNER, "GET", "/metrics", "").body;
    assert!(page.contains("waitroom_room_open{room=\"spring\"} 0"), "{page}");
    assert!(page.contains("waitroom_room_open{room=\"winter\"} 1"), "{page}");
    let said = server.said();
    assert!(said.contains("error[WR-2105] room \"spring\": cannot be opened"), "{said}");

    // Its settings change once more while it is closed.
    let changed = CONFIG.replace("\"Spring\"", "\"Spring at last\"");
    std::fs::write(file, changed).expect("writable");
    server.signal("-HUP");
    soon("the file was read again", || {
        server.said().contains("reload refused by room spring").then_some(())
    });

    // Somebody puts the newest one back.
    let (path, bytes) = good.last().expect("two");
    std::fs::write(path, bytes).expect("writable");
    soon("it is open", || (server.join("spring", 901).status == 201).then_some(()));
    assert_eq!(server.status("spring", &spring)["position"], 1, "places are kept");
    // Nobody came in before it had them.
    let room = server.admin(OWNER, "GET", "/admin/v1/rooms/spring", "");
    assert!(room.body.contains("Spring at last"), "{room:?}");
    assert_eq!(server.public("", "GET", "/health/ready", "").body, r#"{"status":"ready"}"#);
    let page = server.admin(OWNER, "GET", "/metrics", "").body;
    assert!(page.contains("waitroom_room_open{room=\"spring\"} 1"), "{page}");
    let said = server.said();
    // Once for each reason: the files that were set aside are not named a second time.
    assert!(said.matches("error[WR-2105]").count() <= 2, "{said}");
    assert!(said.contains("room is open after all"), "{said}");
}

/// A disk that does not hand a file out says nothing about what is in it.
#[test]
fn snapshots_that_cannot_be_read_stay_where_they_are_and_serve_when_they_can() {
    let (folder, spring, winter) = trimmed();
    let data = folder.join("data");
    let paths = snapshots(&data, "spring");
    let aside = |path: &Path| path.with_extension("elsewhere");
    for path in &paths {
        // A folder can be read by nobody as a file, not even by root.
        std::fs::rename(path, aside(path)).expect("it is there");
        std::fs::create_dir(path).expect("the name is free");
    }
    let server = start(folder);
    assert_eq!(server.status("winter", &winter)["position"], 1);
    assert_eq!(server.join("spring", 900).status, 503);
    for path in &paths {
        assert!(path.is_dir(), "it was not touched");
        std::fs::remove_dir(path).expect("it is empty");
        std::fs::rename(aside(path), path).expect("it is there");
    }
    soon("it is open", || (server.join("spring", 901).status == 201).then_some(()));
    assert_eq!(server.status("spring", &spring)["position"], 1, "places are kept");
}
