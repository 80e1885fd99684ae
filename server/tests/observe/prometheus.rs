//! Prometheus itself: takes the rules, scrapes the server, raises alerts; and the dashboard.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use waitroom_api::metrics::FAMILIES;

use crate::figures::repository;
use crate::instance::{Instance, KEY, curl, soon};

fn deploy(path: &str) -> PathBuf {
    repository().join("deploy").join(path)
}

fn promtool(arguments: &[&str], file: &Path) {
    let judged = Command::new("promtool")
        .args(arguments)
        .arg(file)
        .output()
        .expect("promtool is needed for this test: apt-get install prometheus");
    let said = String::from_utf8_lossy(&judged.stdout).into_owned()
        + &String::from_utf8_lossy(&judged.stderr);
    assert!(judged.status.success(), "promtool {arguments:?}: {said}");
}

/// Words that begin as our figures do.
fn figures_in(text: &str) -> BTreeSet<&str> {
    let words = text.split(|it: char| !(it.is_ascii_alphanumeric() || it == '_'));
    words.filter(|it| it.starts_with("waitroom_") || it.starts_with("process_")).collect()
}

/// A family of ours, or a part of a histogram of ours.
fn exists(name: &str) -> bool {
    FAMILIES.iter().any(|family| {
        let parts = match family.kind.word() {
            "histogram" => &["_bucket", "_sum", "_count"][..],
            _ => &[""],
        };
        name.strip_prefix(family.name).is_some_and(|end| parts.contains(&end))
    })
}

fn alerts(rules: &str) -> Vec<&str> {
    rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect()
}

#[test]
fn every_alert_fires_when_it_should_and_keeps_quiet_when_not() {
    promtool(&["check", "rules"], &deploy("prometheus/alerts.yml"));
    promtool(&["test", "rules"], &deploy("prometheus/alerts_test.yml"));
    let rules = fs::read_to_string(deploy("prometheus/alerts.yml")).expect("alerts.yml");
    let tests = fs::read_to_string(deploy("prometheus/alerts_test.yml")).expect("alerts_test.yml");
    let alerts = alerts(&rules);
    assert!(alerts.len() >= 20, "{alerts:?}");
    for alert in alerts {
        for case in [format!("name: {alert} fires\n"), format!("name: {alert} is quiet\n")] {
            assert!(tests.contains(&case), "alerts_test.yml has no case {case:?}");
        }
    }
    for name in figures_in(&rules).union(&figures_in(&tests)) {
        assert!(exists(name), "no figure is called {name}");
    }
}

/// Every expression of the dashboard, with its variables filled in.
fn expressions() -> Vec<String> {
    let text = fs::read_to_string(deploy("grafana/waitroom.json")).expect("waitroom.json");
    let dashboard: Value = serde_json::from_str(&text).expect("the dashboard is JSON");
    for variable in dashboard["templating"]["list"].as_array().expect("variables") {
        let query = variable["query"].as_str().expect("a query");
        assert!(figures_in(query).into_iter().all(exists), "{query}");
    }
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let filled = |target: &Value| {
        let expression = target["expr"].as_str().expect("an expression");
        let expression = expression.replace("$instance", ".*").replace("$room", ".*");
        let expression = expression.replace("$__rate_interval", "1m");
        assert!(!expression.contains('$'), "an unknown variable in {expression}");
        expression
    };
    targets.map(filled).collect()
}

#[test]
fn the_dashboard_shows_only_what_exists_and_leaves_no_figure_out() {
    let expressions = expressions();
    assert!(expressions.len() > 40, "{}", expressions.len());
    let shown: BTreeSet<&str> = expressions.iter().flat_map(|it| figures_in(it)).collect();
    for name in &shown {
        assert!(exists(name), "no figure is called {name}");
    }
    // These say little on a chart of a sale.
    let left_out = [
        "waitroom_admitted",
        "waitroom_completed_total",
        "waitroom_left_total",
        "waitroom_expired_total",
        "waitroom_revoked_total",
        "waitroom_spans_total",
        // Of several instances, which most sales do not have.
        "waitroom_cluster_instances",
        "waitroom_cluster_rooms_owned",
        "waitroom_cluster_requests_total",
        "waitroom_cluster_unanswered_total",
        "waitroom_cluster_moves_total",
        // Of messages to visitors, which few rooms send.
        "waitroom_notices_total",
        "waitroom_notices_waiting",
        "process_threads",
        "process_start_time_seconds",
    ];
    for family in FAMILIES.iter().filter(|family| !left_out.contains(&family.name)) {
        let on_it = shown.iter().any(|name| name.starts_with(family.name));
        assert!(on_it, "{} is on no panel", family.name);
    }
}

/// A Prometheus that scrapes the server every second and knows our rules without their patience.
struct Prometheus {
    child: Child,
    url: String,
    folder: PathBuf,
}

impl Prometheus {
    fn watching(server: &Instance) -> Prometheus {
        let name = format!("prometheus-{}", std::process::id());
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        let example = fs::read_to_string(deploy("prometheus/prometheus.yml")).expect("example");
        let admin = server.admin.strip_prefix("http://").expect("plain HTTP");
        assert!(example.contains("\"127.0.0.1:8081\"") && example.contains(": 15s"));
        let config = example.replace("127.0.0.1:8081", admin).replace(": 15s", ": 1s");
        let rules = fs::read_to_string(deploy("prometheus/alerts.yml")).expect("alerts.yml");
        let patient = |line: &&str| !line.trim_start().starts_with("for: ");
        let rules: Vec<&str> = rules.lines().filter(patient).collect();
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("written");
        write("prometheus.yml", &config);
        write("alerts.yml", &rules.join("\n"));
        write("waitroom.key", KEY);
        promtool(&["check", "config"], &folder.join("prometheus.yml"));
        let port = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
        let address = port.expect("a free port").to_string();
        let child = Command::new("prometheus")
            .arg("--config.file=prometheus.yml")
            .arg("--storage.tsdb.path=data")
            .arg(format!("--web.listen-address={address}"))
            .current_dir(&folder)
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.join("log")).expect("a log"))
            .spawn()
            .expect("prometheus is needed for this test: apt-get install prometheus");
        let url = format!("http://{address}");
        let prometheus = Prometheus { child, url, folder };
        soon("the first scrape", || prometheus.query("up{job=\"waitroom\"} == 1").pop());
        prometheus
    }

    /// What an instant query finds; none while Prometheus does not answer.
    fn query(&self, expression: &str) -> Vec<Value> {
        let url = format!("{}/api/v1/query", self.url);
        let out = Command::new("curl")
            .args(["-sS", "-G", &url, "--data-urlencode", &format!("query={expression}")])
            .output()
            .expect("curl is needed for this test");
        let Ok(answer) = serde_json::from_slice::<Value>(&out.stdout) else { return Vec::new() };
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
        answer["data"]["result"].as_array().cloned().unwrap_or_default()
    }

    fn wait_for(&self, alert: &str) {
        let firing = format!("ALERTS{{alertname=\"{alert}\",alertstate=\"firing\"}}");
        soon(alert, || self.query(&firing).pop());
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_real_prometheus_scrapes_the_server_draws_the_dashboard_and_raises_alerts() {
    let server = Instance::start();
    let prometheus = Prometheus::watching(&server);
    server.join(1);
    for expression in expressions() {
        // Panics when Prometheus cannot read it.
        prometheus.query(&expression);
    }
    // Where nobody paces and nobody waits long, there is nothing to tell.
    let may_be_missing = [
        "waitroom_rate_limit_per_second",
        "waitroom_likely_wait_seconds",
        // And this server tells nobody else of its events.
        "waitroom_events_sent_total",
        "waitroom_events_failures_total",
        "waitroom_events_gaps_total",
        "waitroom_events_dead_letters",
        "waitroom_events_lag",
        "waitroom_checkouts_total",
        // And shares its rooms with nobody.
        "waitroom_cluster_",
        // Nor is anybody written to.
        "waitroom_notices_",
    ];
    soon("a scrape of every figure", || {
        let found = prometheus.query("count by (__name__) ({job=\"waitroom\"})");
        let names: BTreeSet<&str> =
            found.iter().filter_map(|it| it["metric"]["__name__"].as_str()).collect();
        let unknown = FAMILIES
            .iter()
            .filter(|it| !may_be_missing.iter().any(|name| it.name.starts_with(name)));
        let mut unknown = unknown.filter(|it| !names.iter().any(|name| name.starts_with(it.name)));
        unknown.next().is_none().then_some(())
    });
    let waiting = prometheus.query("waitroom_waiting{room=\"default\"} == 1");
    if waiting.is_empty() {
        soon("the join is scraped", || prometheus.query("waitroom_waiting == 1").pop());
    }
    // A room that somebody paused, with people in line.
    server.operate("POST", "/admin/v1/rooms/default/pause", r#"{"reason":"a test"}"#);
    prometheus.wait_for("WaitroomHeldLong");
    // A stranger who tries keys.
    let tried = format!("{}/admin/v1/rooms?n=[1-400]", server.admin);
    curl(&[&tried, "-H", "X-Api-Key: wrong"]);
    prometheus.wait_for("WaitroomKeysTried");
    // And one that is gone.
    drop(server);
    prometheus.wait_for("WaitroomDown");
}
