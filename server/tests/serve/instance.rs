//! One running server, and curl to talk to it with.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

pub const KEY: &str = "black-box-owner-key";

pub struct Instance {
    child: Child,
    pub public: String,
    pub admin: String,
    pub data: PathBuf,
    stderr: Option<JoinHandle<String>>,
    stopped: bool,
}

/// What curl got.
#[derive(Debug)]
pub struct Got {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Got {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    pub fn header(&self, name: &str) -> Option<String> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    }
}

/// A moment is enough for what should happen; this is for machines that do ten other things.
pub const SOON: Duration = Duration::from_secs(60);

impl Instance {
    pub fn start() -> Instance {
        Instance::with(&[])
    }

    /// A development server with these variables set besides.
    pub fn with(variables: &[(&str, &str)]) -> Instance {
        Instance::asked(&[], variables)
    }

    /// The same, with more on its command line.
    pub fn asked(arguments: &[&str], variables: &[(&str, &str)]) -> Instance {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("serve-{}-{count}", std::process::id());
        let data = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&data);
        Instance::on(data, arguments, variables)
    }

    /// `kill -9`, and another one on the same folder.
    pub fn kill_and_start_again(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.stopped = true;
        let data = std::mem::take(&mut self.data);
        *self = Instance::on(data, &[], &[]);
    }

    /// On a folder that is there, or is made.
    pub fn on(data: PathBuf, arguments: &[&str], variables: &[(&str, &str)]) -> Instance {
        let mut child = Command::new(env!("CARGO_BIN_EXE_waitroom"))
            .args(["serve", "--dev", "--addresses-json"])
            .args(arguments)
            .args(["--public", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--grpc", "127.0.0.1:0"])
            .arg("--data")
            .arg(&data)
            .env("WAITROOM_ADMIN_KEY", KEY)
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut said = child.stderr.take().expect("stderr is piped");
        let stderr = std::thread::spawn(move || {
            let mut all = String::new();
            let _ = said.read_to_string(&mut all);
            all
        });
        let mut line = String::new();
        let stdout = child.stdout.take().expect("stdout is piped");
        let _ = BufReader::new(stdout).read_line(&mut line);
        let Ok(addresses) = serde_json::from_str::<Value>(&line) else {
            let _ = child.kill();
            panic!("the server did not start: {}", stderr.join().expect("it was read"));
        };
        let url = |name: &str| format!("http://{}", addresses[name].as_str().expect("an address"));
        let (public, admin) = (url("public"), url("admin"));
        Instance { child, public, admin, data, stderr: Some(stderr), stopped: false }
    }

    pub fn get(&self, path: &str, more: &[&str]) -> Got {
        let url = format!("{}{path}", self.public);
        curl(&[&[url.as_str()], more].concat())
    }

    pub fn post(&self, path: &str, more: &[&str]) -> Got {
        let url = format!("{}{path}", self.public);
        curl(&[&["-X", "POST", url.as_str()], more].concat())
    }

    /// An operator's request with the owner's key.
    pub fn operate(&self, method: &str, path: &str, body: &str) -> Got {
        let key = format!("X-Api-Key: {KEY}");
        let url = format!("{}{path}", self.admin);
        let json = "Content-Type: application/json";
        curl(&["-X", method, &url, "-H", &key, "-H", json, "-d", body])
    }

    /// Joins the default room from an address of its own; returns the answer.
    pub fn join(&self, who: u32) -> Value {
        let from = format!("X-Forwarded-For: 10.0.{}.{}", who / 250, who % 250 + 1);
        let got = self.post("/v1/rooms/default/join", &["-H", &from]);
        assert_eq!(got.status, 201, "{got:?}");
        got.json()
    }

    pub fn status(&self, token: &str) -> Value {
        let bearer = format!("Authorization: Bearer {token}");
        self.get("/v1/rooms/default/status", &["-H", &bearer]).json()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end, and returns what it said.
    pub fn stop(mut self) -> String {
        let pid = self.pid().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let ended = self.child.wait().expect("it can be waited for");
        self.stopped = true;
        let said = self.stderr.take().expect("it is read once").join().expect("it was read");
        assert!(ended.success(), "it ended badly: {said}");
        said
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if !self.stopped {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if !self.data.as_os_str().is_empty() {
            let _ = std::fs::remove_dir_all(&self.data);
        }
    }
}

pub fn curl(arguments: &[&str]) -> Got {
    let out = Command::new("curl")
        .args(["-sS", "-i", "--max-time", "60", "-H", "Expect:"])
        .args(arguments)
        .output()
        .expect("curl is needed for this test: apt-get install curl");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let error = String::from_utf8_lossy(&out.stderr);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("curl: {error}"));
    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no status in {head}"));
    Got { status, head: head.to_owned(), body: body.to_owned() }
}

/// Waits until `found` finds something; panics with `what` when it does not within [`SOON`].
pub fn soon<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + SOON;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < until, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}
