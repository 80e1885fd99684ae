//! The page of figures, and its documentation.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use waitroom_api::metrics::FAMILIES;

use crate::instance::{Got, Instance, KEY, curl, soon};

pub fn page(server: &Instance) -> String {
    let key = format!("Authorization: Bearer {KEY}");
    let got = curl(&[&format!("{}/metrics", server.admin), "-H", &key]);
    assert_eq!(got.status, 200, "{got:?}");
    got.body
}

/// The value of the one series that begins so.
pub fn value(page: &str, series: &str) -> f64 {
    let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    let line = line.unwrap_or_else(|| panic!("{series} is not in:\n{page}"));
    line.parse().expect("a number")
}

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("server/ is in it").to_owned()
}

#[test]
fn promtool_accepts_the_page_and_it_holds_exactly_what_is_documented() {
    let server = Instance::start();
    server.join(1);
    let page = page(&server);
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is needed for this test: apt-get install prometheus");
    let mut stdin = promtool.stdin.take().expect("piped");
    stdin.write_all(page.as_bytes()).expect("it reads");
    drop(stdin);
    let judged = promtool.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&judged.stdout).into_owned()
        + &String::from_utf8_lossy(&judged.stderr);
    assert!(judged.status.success() && said.trim().is_empty(), "promtool: {said}");
    let told: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let known: BTreeSet<&str> = FAMILIES.iter().map(|family| family.name).collect();
    assert_eq!(told, known);
}

#[test]
fn every_figure_is_documented() {
    const BEGIN: &str = "<!-- figures -->\n";
    const END: &str = "<!-- end of figures -->";
    let path = repository().join("docs/metrics.md");
    let document = std::fs::read_to_string(&path).expect("docs/metrics.md");
    let (head, rest) = document.split_once(BEGIN).expect("the mark where the table begins");
    let (_, tail) = rest.split_once(END).expect("the mark where the table ends");
    let mut table = String::from("| name | kind | labels | meaning |\n|---|---|---|---|\n");
    for family in FAMILIES {
        let labels = family.labels.join(", ");
        let (name, kind, help) = (family.name, family.kind.word(), family.help);
        table += &format!("| `{name}` | {kind} | {labels} | {help} |\n");
    }
    let whole = format!("{head}{BEGIN}{table}{END}{tail}");
    if std::env::var_os("WAITROOM_BLESS").is_some() {
        std::fs::write(&path, whole).expect("it can be written");
        return;
    }
    let advice = "docs/metrics.md is out of date: run this test with WAITROOM_BLESS=1";
    assert!(document == whole, "{advice}");
}

#[test]
fn figures_say_what_happened() {
    let server = Instance::start();
    let first = server.join(1);
    let auth = format!("Authorization: Bearer {}", first["token"].as_str().expect("a token"));
    server.join(2);
    server.join(3);
    server.operate("POST", "/admin/v1/rooms/default/admit", r#"{"count":1}"#);
    server.post("/v1/rooms/default/claim", &["-H", &auth]);
    server.post("/v1/rooms/default/leave", &["-H", &auth]);
    server.get("/v1/rooms/default/status", &[]);
    server.get("/v1/rooms/default/status?wait=0", &["-H", "Authorization: Bearer wt1_forged"]);
    let page = soon("the board shows it", || {
        let page = page(&server);
        (value(&page, r#"waitroom_completed_total{room="default"}"#) == 1.0).then_some(page)
    });
    for (series, expected) in [
        (r#"waitroom_waiting{room="default"}"#, 2.0),
        (r#"waitroom_lane_waiting{room="default",lane="main"}"#, 2.0),
        (r#"waitroom_joined_total{room="default"}"#, 3.0),
        (r#"waitroom_admissions_total{room="default"}"#, 1.0),
        (r#"waitroom_endings_total{room="default",reason="completed"}"#, 1.0),
        (r#"waitroom_endings_total{room="default",reason="no_show"}"#, 0.0),
        (r#"waitroom_wait_seconds_count{room="default"}"#, 1.0),
        (r#"waitroom_room_open{room="default"}"#, 1.0),
        (r#"waitroom_room_status{room="default",status="running"}"#, 1.0),
        ("waitroom_ready", 1.0),
        ("waitroom_passes_signed_total", 1.0),
        (&route("/v1/rooms/{room}/join", "2xx"), 3.0),
        (&route("/v1/rooms/{room}/claim", "2xx"), 1.0),
        (&route("/v1/rooms/{room}/status", "4xx"), 1.0),
        (&route("/v1/rooms/{room}/status?wait", "4xx"), 1.0),
        (r#"waitroom_problems_total{code="token_missing"}"#, 1.0),
        (r#"waitroom_problems_total{code="token_invalid"}"#, 1.0),
        (r#"waitroom_tokens_refused_total{kind="ticket",reason="invalid"}"#, 1.0),
        (r#"waitroom_tokens_refused_total{kind="ticket",reason="missing"}"#, 1.0),
    ] {
        assert_eq!(value(&page, series), expected, "{series}");
    }
    let admit = r#"{listener="admin",route="POST /admin/v1/rooms/{room}/admit",status="2xx"}"#;
    assert_eq!(value(&page, &format!("waitroom_requests_total{admit}")), 1.0);
    let appends = value(&page, r#"waitroom_journal_append_seconds_count{room="default"}"#);
    let events = value(&page, r#"waitroom_journal_batch_events_sum{room="default"}"#);
    // The first event of the epoch is written before the room is open.
    assert!(appends >= 6.0 && events + 1.0 >= value(&page, r#"waitroom_version{room="default"}"#));
    assert!(value(&page, r#"waitroom_listener_accepted_total{listener="public"}"#) >= 7.0);
    assert!(value(&page, "process_resident_memory_bytes") > 1e6);
}

fn route(route: &str, status: &str) -> String {
    format!(r#"waitroom_requests_total{{listener="public",route="{route}",status="{status}"}}"#)
}

#[test]
fn the_page_takes_a_key_unless_it_is_open() {
    let metrics = |server: &Instance| curl(&[&format!("{}/metrics", server.admin)]);
    let refused: Got = metrics(&Instance::start());
    assert_eq!(refused.status, 401);
    assert_eq!(refused.json()["code"], "api_key_missing");
    let open = metrics(&Instance::with(&[("WAITROOM_METRICS_OPEN", "true")]));
    assert_eq!(open.status, 200);
    assert!(open.header("content-type").is_some_and(|it| it.contains("version=0.0.4")));
}
