//! A small site of the test's own, and a browser that visits it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// Serves pages by their path and collects what they report (`POST /report`) and every address
/// that is asked for and is none of them.
pub struct Site {
    pub origin: String,
    pub told: mpsc::Receiver<String>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    pages: Mutex<BTreeMap<String, String>>,
    reload: AtomicBool,
}

impl Site {
    pub fn open() -> Site {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let origin = format!("http://{}", listener.local_addr().expect("an address"));
        let (tell, told) = mpsc::channel();
        let shared = Arc::new(Shared::default());
        let of_thread = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, tell) = (of_thread.clone(), tell.clone());
                std::thread::spawn(move || answer(stream, &shared, &tell));
            }
        });
        Site { origin, told, shared }
    }

    pub fn put(&self, path: &str, page: String) {
        self.shared.pages.lock().expect("nobody panics here").insert(path.to_owned(), page);
    }

    /// The answer to the next report says so; the page's own script does it.
    pub fn reload_the_page(&self) {
        self.shared.reload.store(true, Ordering::SeqCst);
    }

    /// Waits for a report or an address that begins so, and returns it.
    pub fn hear(&self, start: &str, within: Duration) -> String {
        let mut before = Vec::new();
        loop {
            let said = self.told.recv_timeout(within);
            let said = said.unwrap_or_else(|_| panic!("nothing begins {start}; {before:#?}"));
            if said.starts_with(start) {
                return said;
            }
            before.push(said);
        }
    }
}

fn answer(mut stream: TcpStream, shared: &Shared, tell: &mpsc::Sender<String>) -> Option<()> {
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
    let path = first.split(' ').nth(1)?;
    let page = shared.pages.lock().expect("nobody panics here").get(path).cloned();
    let kind = if path.ends_with(".js") { "text/javascript" } else { "text/html" };
    let body = if path == "/report" {
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let said = String::from_utf8(body).ok()?;
        // Sent so that there is something to answer; it says nothing.
        if said != "still" {
            tell.send(said).ok()?;
        }
        if shared.reload.swap(false, Ordering::SeqCst) { "reload" } else { "" }.to_owned()
    } else {
        page.or_else(|| tell.send(path.to_owned()).ok().map(|()| String::new()))?
    };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n");
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).ok()
}

/// Chromium without a window, with a profile of its own.
pub struct Browser {
    child: Child,
    profile: PathBuf,
}

impl Browser {
    pub fn visit(address: &str) -> Browser {
        let profile = new_profile();
        let child = chromium(&profile)
            .arg("--remote-debugging-port=0")
            .arg(address)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromium is needed for this test: apt-get install chromium");
        Browser { child, profile }
    }

    /// The page as it stands after its scripts ran.
    pub fn page_of(address: &str) -> String {
        let profile = new_profile();
        let out = chromium(&profile)
            .args(["--dump-dom", address])
            .output()
            .expect("chromium is needed for this test: apt-get install chromium");
        let _ = std::fs::remove_dir_all(&profile);
        String::from_utf8_lossy(&out.stdout).into_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

fn new_profile() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("browser-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn chromium(profile: &std::path::Path) -> Command {
    let mut command = Command::new("chromium");
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", profile.display()));
    command
}
