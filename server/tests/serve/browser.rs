//! A real browser: joins across origins, opens a WebSocket with a live ticket, hears that it may
//! come in.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use crate::instance::{Instance, SOON};

/// What the page does. It reports each step to the test's own small server.
const PAGE: &str = r#"<!doctype html><script>
const room = "WAITROOM/v1/rooms/web";
const report = (step, value) => fetch("/report", {method: "POST", body: JSON.stringify({step, value})});
(async () => {
  const joined = await (await fetch(room + "/join", {method: "POST"})).json();
  await report("joined", joined.position);
  const live = await (await fetch(room + "/live-ticket",
    {method: "POST", headers: {Authorization: "Bearer " + joined.token}})).json();
  const socket = new WebSocket(room.replace("http", "ws") + "/live?live_ticket=" + live.live_ticket);
  socket.onmessage = event => {
    const frame = JSON.parse(event.data);
    report(frame.type, frame.type === "ticket" ? frame.status : frame.board.lanes[0].waiting);
    socket.send(JSON.stringify({type: "beat"}));
  };
  socket.onclose = event => report("closed", event.code);
  socket.onopen = () => {
    const again = new WebSocket(room.replace("http", "ws") + "/live?live_ticket=" + live.live_ticket);
    again.onerror = () => report("second use refused", true);
    again.onopen = () => report("second use opened", true);
  };
})().catch(error => report("failed", String(error)));
</script>"#;

#[test]
fn a_browser_hears_by_websocket_that_it_may_come_in() {
    let pages = TcpListener::bind("127.0.0.1:0").expect("a port");
    let origin = format!("http://{}", pages.local_addr().expect("an address"));
    let server = Instance::start();
    let room = format!(
        r#"{{"queue_all":true,"rate":null,"claim":"on_admission","allowed_origins":["{origin}"]}}"#
    );
    assert_eq!(server.operate("PUT", "/admin/v1/rooms/web", &room).status, 201);
    let page = PAGE.replace("WAITROOM", &server.public);
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || serve_page(&pages, &page, &tell));
    let profile = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("chromium-{}", std::process::id()));
    let mut browser = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg("--remote-debugging-port=0")
        .arg(&origin)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("chromium is needed for this test: apt-get install chromium");
    let wait_for = |step: &str, value: Value| {
        let mut seen = Vec::new();
        loop {
            let report: Value = told
                .recv_timeout(SOON * 3)
                .unwrap_or_else(|_| panic!("no {step} {value}; the page said {seen:?}"));
            if report["step"] == step && report["value"] == value {
                return;
            }
            assert_ne!(report["step"], "failed", "{report}");
            assert_ne!(report["step"], "second use opened", "a live ticket opens one channel");
            seen.push(report);
        }
    };
    wait_for("joined", 1.into());
    wait_for("ticket", "waiting".into());
    wait_for("second use refused", true.into());
    server.operate("POST", "/admin/v1/rooms/web/admit", r#"{"count":1}"#);
    wait_for("ticket", "active".into());
    server.stop();
    wait_for("closed", 1001.into());
    let _ = browser.kill();
    let _ = browser.wait();
    let _ = std::fs::remove_dir_all(profile);
}

/// The page for GET, a report for POST; nothing else is asked here.
fn serve_page(pages: &TcpListener, page: &str, tell: &mpsc::Sender<Value>) {
    for stream in pages.incoming().flatten() {
        let (page, tell) = (page.to_owned(), tell.clone());
        std::thread::spawn(move || answer(stream, &page, &tell));
    }
}

fn answer(mut stream: TcpStream, page: &str, tell: &mpsc::Sender<Value>) -> Option<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let body = if first.starts_with("POST /report") {
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        tell.send(serde_json::from_slice(&body).ok()?).ok()?;
        ""
    } else {
        page
    };
    let length = body.len();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n";
    write!(stream, "{head}Content-Length: {length}\r\n\r\n{body}").ok()
}
