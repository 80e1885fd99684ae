//! One running server on a folder of its own, a few lines of HTTP to ask it, and our own commands
//! run against it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

pub const OWNER: &str = "operators-test-owner-key";

/// A moment is enough for what should happen; this is for machines that do ten other things.
const SOON: Duration = Duration::from_secs(20);

pub struct Server {
    child: Option<Child>,
    pub public: String,
    pub admin: String,
    pub folder: PathBuf,
    said: Arc<Mutex<String>>,
}

/// What was answered.
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

    #[track_caller]
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        if self.body.is_empty() { Value::Null } else { self.json() }
    }
}

/// A folder that is new.
pub fn fresh_folder() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("operators-{}-{count}", std::process::id());
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

impl Server {
    pub fn start() -> Server {
        Server::in_folder(fresh_folder(), &[])
    }

    /// With `server.toml` of this text.
    pub fn configured(text: &str) -> Server {
        let folder = fresh_folder();
        std::fs::write(folder.join("server.toml"), text).expect("it can be written");
        Server::in_folder(folder, &["--config", "server.toml"])
    }

    pub fn in_folder(folder: PathBuf, more: &[&str]) -> Server {
        let command = Server::command(&folder, more);
        Server::spawn(folder, command).unwrap_or_else(|said| panic!("it did not start: {said}"))
    }

    /// How a server is started; a test may put something around it.
    pub fn command(folder: &Path, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_waitroom"));
        command
            .args(["serve", "--dev", "--addresses-json", "--data", "data"])
            .args(["--public", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--grpc", "127.0.0.1:0"])
            .args(more)
            .current_dir(folder)
            .env("WAITROOM_ADMIN_KEY", OWNER);
        command
    }

    /// Starts it, or tells what it said instead.
    pub fn spawn(folder: PathBuf, mut command: Command) -> Result<Server, String> {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let said = Arc::new(Mutex::new(String::new()));
        let heard = said.clone();
        let mut stderr = BufReader::new(child.stderr.take().expect("stderr is piped"));
        let listening = std::thread::spawn(move || {
            let mut line = String::new();
            while stderr.read_line(&mut line).is_ok_and(|read| read > 0) {
                heard.lock().expect("nobody panics with it").push_str(&line);
                line.clear();
            }
        });
        let mut line = String::new();
        let stdout = child.stdout.take().expect("stdout is piped");
        let _ = BufReader::new(stdout).read_line(&mut line);
        let Ok(addresses) = serde_json::from_str::<Value>(&line) else {
            let _ = child.wait();
            let _ = listening.join();
            let said = said.lock().expect("nobody panics with it").clone();
            return Err(said);
        };
        let address = |name: &str| addresses[name].as_str().expect("an address").to_owned();
        let (public, admin) = (address("public"), address("admin"));
        Ok(Server { child: Some(child), public, admin, folder, said })
    }

    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// What it said on stderr so far.
    pub fn said(&self) -> String {
        self.said.lock().expect("nobody panics with it").clone()
    }

    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.pid().to_string()]).status();
        assert!(sent.expect("kill is there").success());
    }

    /// Ends it in order; the folder stays for whoever comes next.
    pub fn stop(mut self) -> PathBuf {
        self.signal("-TERM");
        let ended = self.child.take().expect("it runs").wait().expect("it can be waited for");
        assert!(ended.success(), "it ended badly: {}", self.said());
        std::mem::take(&mut self.folder)
    }

    /// `kill -9`; the folder stays.
    pub fn kill(mut self) -> PathBuf {
        let mut child = self.child.take().expect("it runs");
        let _ = child.kill();
        let _ = child.wait();
        std::mem::take(&mut self.folder)
    }

    pub fn raw(&self, address: &str, method: &str, path: &str, headers: &str, body: &str) -> Got {
        ask(address, method, path, headers, body)
    }

    /// An operator's request.
    pub fn admin(&self, key: &str, method: &str, path: &str, body: &str) -> Got {
        let key = format!("X-Api-Key: {key}\r\n");
        ask(&self.admin, method, path, &key, body)
    }

    /// The owner's request, which must be fine.
    #[track_caller]
    pub fn own(&self, method: &str, path: &str, body: &str) -> Value {
        let got = self.admin(OWNER, method, path, body);
        assert!((200..300).contains(&got.status), "{method} {path}: {got:?}");
        if got.body.is_empty() { Value::Null } else { got.json() }
    }

    pub fn public(&self, headers: &str, method: &str, path: &str, body: &str) -> Got {
        ask(&self.public, method, path, headers, body)
    }

    /// Somebody joins a room from an address of their own.
    pub fn join(&self, room: &str, who: u32) -> Got {
        let from = format!("X-Forwarded-For: 10.0.{}.{}\r\n", who / 250, who % 250 + 1);
        self.public(&from, "POST", &format!("/v1/rooms/{room}/join"), "")
    }

    pub fn status(&self, room: &str, token: &str) -> Value {
        let bearer = format!("Authorization: Bearer {token}\r\n");
        self.public(&bearer, "GET", &format!("/v1/rooms/{room}/status"), "").json()
    }

    /// One of our commands, against this server.
    pub fn run(&self, line: &[&str]) -> Said {
        self.run_with(OWNER, line)
    }

    pub fn run_with(&self, key: &str, line: &[&str]) -> Said {
        let out = Command::new(env!("CARGO_BIN_EXE_waitroom"))
            .args(line)
            .current_dir(&self.folder)
            .env("WAITROOM_SERVER", format!("http://{}", self.admin))
            .env("WAITROOM_ADMIN_KEY", key)
            .output()
            .expect("the binary was built with this test");
        Said::of(out)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if !self.folder.as_os_str().is_empty() && !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// What one of our commands said.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    fn of(out: Output) -> Said {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        Said {
            code: out.status.code().expect("it ended by itself"),
            out: text(out.stdout),
            err: text(out.stderr),
        }
    }

    #[track_caller]
    pub fn exits(self, code: i32) -> Said {
        assert_eq!(self.code, code, "{self:?}");
        self
    }

    /// The last line of stdout as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        let line = self.out.lines().last().unwrap_or_default();
        serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }
}

/// A command on a data folder, without a server.
pub fn offline(folder: &Path, line: &[&str]) -> Said {
    let out = Command::new(env!("CARGO_BIN_EXE_waitroom"))
        .args(line)
        .current_dir(folder)
        .output()
        .expect("the binary was built with this test");
    Said::of(out)
}

pub fn ask(address: &str, method: &str, path: &str, headers: &str, body: &str) -> Got {
    let got = try_ask(address, method, path, headers, body);
    got.unwrap_or_else(|| panic!("{method} {path}: no answer"))
}

/// None when the server went away before it answered.
pub fn try_ask(address: &str, method: &str, path: &str, headers: &str, body: &str) -> Option<Got> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time-out");
    let mut text =
        format!("{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{headers}");
    if !body.is_empty() {
        text += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    }
    text += &format!("\r\n{body}");
    stream.write_all(text.as_bytes()).ok()?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8(bytes).expect("answers are text");
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status line");
    Some(Got { status, head: head.to_owned(), body: body.to_owned() })
}

/// Waits until `found` finds something; panics with `what` when it does not in time.
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
