//! Real servers for tests: Redis, Valkey, sentinels, a Cluster, on free ports of this machine.
//!
//! Lives here: starting and ending them. Uses the standard library only, so that the tests of the
//! server can have it by its path. A missing program fails the test and says what to install.
//! Each server is ended by its process id: when its value is dropped, and, for those that live as
//! long as the test program, by a watchman that notices the program's end however it comes.

#![allow(dead_code, reason = "each test file uses its own part of this")]

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// How long anything here may take before the test fails.
const PATIENCE: Duration = Duration::from_secs(40);

/// One server with its folder.
#[derive(Debug)]
pub struct Server {
    pub port: u16,
    program: String,
    config: Option<PathBuf>,
    args: Vec<String>,
    dir: PathBuf,
    child: Option<Child>,
}

/// Settings with which every acknowledged write is on this server's disk.
pub const DURABLE: [&str; 6] = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""];

impl Server {
    /// A Redis, or what `WAITROOM_TEST_REDIS` names: `valkey-server` takes the same settings.
    pub fn redis(settings: &[&str]) -> Server {
        let other = std::env::var("WAITROOM_TEST_REDIS").ok();
        Server::start(other.as_deref().unwrap_or("redis-server"), settings)
    }

    /// Starts a server on a port that it got itself: one that is taken is noticed by its own
    /// failure to bind, not by looking before.
    pub fn start(program: &str, settings: &[&str]) -> Server {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let port = some_port();
            let dir = folder(port);
            let mut args: Vec<String> = settings.iter().map(|it| it.to_string()).collect();
            args.extend(["--repl-diskless-sync-delay".into(), "0".into()]);
            let program = program.to_owned();
            let mut server = Server { port, program, config: None, args, dir, child: None };
            if server.begin() {
                return server;
            }
            assert!(Instant::now() < deadline, "no server came up");
        }
    }

    /// Starts the program again in the same folder on the same port, until it is up.
    pub fn restart(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while !self.begin() {
            assert!(Instant::now() < deadline, "{} {} did not come back", self.program, self.port);
        }
    }

    /// Whether it came up. A server that could not bind ends by itself.
    fn begin(&mut self) -> bool {
        let mut child = Command::new(&self.program)
            .args(&self.config)
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--dir"])
            .arg(&self.dir)
            .args(["--logfile", "log", "--daemonize", "no"])
            .args(&self.args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}: apt-get install it", self.program));
        watch(child.id());
        let deadline = Instant::now() + PATIENCE;
        let ours = format!("process_id:{}\r", child.id());
        while Instant::now() < deadline {
            if child.try_wait().expect("our child").is_some() {
                return false;
            }
            // By its own id: another program's server may be on that port.
            let up = |said: String| said.contains(&ours) && !said.contains("loading:1");
            if say(self.port, "INFO").is_some_and(up) {
                self.child = Some(child);
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = child.kill();
        let _ = child.wait();
        false
    }

    /// kill -9, and gone when this returns.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Sends a signal by name: STOP holds it, CONT lets it go on.
    pub fn signal(&self, signal: &str) {
        let pid = self.child.as_ref().expect("it runs").id().to_string();
        let sent = Command::new("kill").args([&format!("-{signal}"), &pid]).status();
        assert!(sent.expect("kill is there").success(), "kill -{signal} {pid}");
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Says one line of plain words, and gives back the answer as it came.
    pub fn say(&self, words: &str) -> String {
        say(self.port, words).unwrap_or_else(|| panic!("{} says nothing to {words}", self.port))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// A primary, a replica, and three sentinels.
#[derive(Debug)]
pub struct Sentinels {
    pub servers: Vec<Server>,
    pub sentinels: Vec<Server>,
}

impl Sentinels {
    pub const NAME: &'static str = "shop";

    pub fn start(settings: &[&str]) -> Sentinels {
        let primary = Server::redis(settings);
        let port = primary.port.to_string();
        let replica = Server::redis(&[settings, &["--replicaof", "127.0.0.1", &port]].concat());
        until("a replica is online", || primary.say("INFO replication").contains("state=online"));
        let sentinels = (0..3).map(|_| sentinel(&port)).collect();
        let all = Sentinels { servers: vec![primary, replica], sentinels };
        until("the sentinels know each other and the replica", || {
            all.sentinels.iter().all(|sentinel| {
                let said = sentinel.say(&format!("SENTINEL MASTER {}", Sentinels::NAME));
                let has = |field: &str, value: &str| {
                    let mut lines = said.lines();
                    lines.any(|line| line == field) && lines.next() == Some(value)
                };
                has("num-other-sentinels", "2") && has("num-slaves", "1")
            })
        });
        all
    }

    pub fn urls(&self) -> Vec<String> {
        self.sentinels.iter().map(Server::url).collect()
    }
}

fn sentinel(primary: &str) -> Server {
    // A sentinel writes its configuration, so it has one as a file, and its port in it.
    let deadline = Instant::now() + PATIENCE;
    loop {
        let port = some_port();
        let dir = folder(port);
        let config = dir.join("sentinel.conf");
        let name = Sentinels::NAME;
        let text = format!(
            "sentinel monitor {name} 127.0.0.1 {primary} 2\n\
             sentinel down-after-milliseconds {name} 60000\n\
             sentinel failover-timeout {name} 3000\n"
        );
        fs::write(&config, text).expect("a new folder is writable");
        let (program, args) = ("redis-sentinel".to_owned(), Vec::new());
        let mut server = Server { port, program, config: Some(config), args, dir, child: None };
        if server.begin() {
            return server;
        }
        assert!(Instant::now() < deadline, "no sentinel came up");
    }
}

/// Three primaries with a replica each.
#[derive(Debug)]
pub struct Cluster {
    pub servers: Vec<Server>,
}

impl Cluster {
    pub fn start(settings: &[&str]) -> Cluster {
        let cluster = [
            "--cluster-enabled",
            "yes",
            "--cluster-config-file",
            "nodes.conf",
            "--cluster-node-timeout",
            "60000",
        ];
        let settings = [settings, &cluster].concat();
        let servers: Vec<Server> = (0..6).map(|_| Server::redis(&settings)).collect();
        let made = Command::new("redis-cli")
            .args(["--cluster", "create"])
            .args(servers.iter().map(|server| format!("127.0.0.1:{}", server.port)))
            .args(["--cluster-replicas", "1", "--cluster-yes"])
            .output()
            .expect("redis-cli is needed for this test: apt-get install redis-tools");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
        until("the cluster is whole", || {
            let whole = |server: &Server| {
                let said = server.say("CLUSTER INFO");
                said.contains("cluster_state:ok") && said.contains("cluster_size:3")
            };
            let followed =
                |server: &&Server| server.say("INFO replication").contains("state=online");
            servers.iter().all(whole) && servers.iter().filter(followed).count() == 3
        });
        Cluster { servers }
    }

    pub fn urls(&self) -> Vec<String> {
        self.servers.iter().map(Server::url).collect()
    }
}

/// Waits until something holds, or fails and says what did not.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "not in {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Says one line to a server; nothing if nobody answers. The answer is as it came, or, of several
/// parts, a line for each.
pub fn say(port: u16, words: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    stream.write_all(format!("{words}\r\n").as_bytes()).ok()?;
    answer(&mut BufReader::new(stream))
}

fn answer(from: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    from.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    let rest = line.get(1..)?.trim_end().to_owned();
    match line.as_bytes()[0] {
        b'$' => {
            let Ok(length) = rest.parse::<usize>() else { return Some(String::new()) };
            let mut bytes = vec![0; length + 2];
            from.read_exact(&mut bytes).ok()?;
            bytes.truncate(length);
            Some(String::from_utf8_lossy(&bytes).into_owned())
        }
        b'*' => {
            let parts = rest.parse::<usize>().unwrap_or(0);
            let parts: Option<Vec<String>> = (0..parts).map(|_| answer(from)).collect();
            Some(parts?.join("\n"))
        }
        _ => Some(rest),
    }
}

/// A port below those that the system hands out to clients, and so is the cluster's own,
/// which is 10,000 above it.
fn some_port() -> u16 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.subsec_nanos());
    let mixed = (u64::from(std::process::id()) << 32 | u64::from(now)).wrapping_add(next);
    let mixed = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    12_000 + (mixed % 10_000) as u16
}

/// A new folder beside the build: the system's own for temporary files is often memory, where a
/// sync proves nothing.
fn folder(port: u16) -> PathBuf {
    let name = format!("redis-{}-{port}", std::process::id());
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("the build's folder is writable");
    path
}

/// Tells the watchman of a process. He reads ids until this program is gone, then ends those that
/// are still servers.
fn watch(pid: u32) {
    static WATCHMAN: OnceLock<Mutex<ChildStdin>> = OnceLock::new();
    let watchman = WATCHMAN.get_or_init(|| {
        let script = "while read pid; do all=\"$all $pid\"; done; for pid in $all; do \
                      case \"$(cat /proc/$pid/comm 2>/dev/null)\" in \
                      redis-*|valkey-*) kill -9 $pid;; esac; done";
        let child = Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn();
        Mutex::new(child.expect("sh is there").stdin.expect("it is piped"))
    });
    let mut watchman = watchman.lock().expect("nobody panics while writing a line");
    writeln!(watchman, "{pid}").expect("the watchman reads");
}
