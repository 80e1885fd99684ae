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
const PATIENCE: Duration = Duration::from_secs(90);

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

/// A second port of the same server, `{tls}` in its settings, is so far above its own.
pub const TLS_ABOVE: u16 = 10_000;

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
            let tls = (port + TLS_ABOVE).to_string();
            let mut args: Vec<String> =
                settings.iter().map(|it| it.replace("{tls}", &tls)).collect();
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

    /// The same, but as a replica of that one, whatever it was before.
    pub fn restart_as_replica_of(&mut self, primary: u16) {
        if let Some(at) = self.args.iter().position(|arg| arg == "--replicaof") {
            self.args.drain(at..at + 3);
        }
        let follows = ["--replicaof", "127.0.0.1", &primary.to_string()].map(str::to_owned);
        self.args.extend(follows);
        self.restart();
    }

    /// Whether it takes itself for a primary.
    pub fn is_primary(&self) -> bool {
        say(self.port, "ROLE").is_some_and(|said| said.starts_with("master"))
    }

    /// Whether a replica of it is there and has all of it.
    pub fn is_followed(&self) -> bool {
        say(self.port, "INFO replication").is_some_and(|said| said.contains("state=online"))
    }

    /// Whether it was started and not ended by us.
    pub fn runs(&self) -> bool {
        self.child.is_some()
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

    /// Sentinels that see to nothing by themselves: a busy machine is not a dead one.
    pub fn start(settings: &[&str]) -> Sentinels {
        Sentinels::watching(settings, 60_000)
    }

    /// Sentinels that promote the replica when the primary is silent for so long.
    pub fn watching(settings: &[&str], down_after_ms: u32) -> Sentinels {
        let primary = Server::redis(settings);
        let (to_replica, to_sentinels) = (primary.port, primary.port);
        Sentinels::around(primary, to_replica, to_sentinels, settings, down_after_ms)
    }

    /// The same around a primary that replica and sentinels reach at ports of their own.
    pub fn around(
        primary: Server,
        to_replica: u16,
        to_sentinels: u16,
        settings: &[&str],
        down_after_ms: u32,
    ) -> Sentinels {
        let port = to_replica.to_string();
        let replica = Server::redis(&[settings, &["--replicaof", "127.0.0.1", &port]].concat());
        until("a replica is online", || primary.is_followed());
        let sentinels = (0..3).map(|_| sentinel(to_sentinels, down_after_ms)).collect();
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

    /// The port that most sentinels name as the primary's.
    pub fn named(&self) -> u16 {
        let ask = format!("SENTINEL GET-MASTER-ADDR-BY-NAME {}", Sentinels::NAME);
        let named = |sentinel: &Server| -> Option<u16> {
            say(sentinel.port, &ask)?.lines().nth(1)?.trim().parse().ok()
        };
        let mut named: Vec<u16> = self.sentinels.iter().filter_map(named).collect();
        named.sort_unstable();
        named.get(named.len() / 2).copied().unwrap_or_default()
    }

    /// Where in `servers` the primary is that the sentinels name.
    pub fn primary(&self) -> usize {
        let named = self.named();
        let is_it = |server: &Server| server.port == named;
        self.servers.iter().position(is_it).expect("the sentinels name one of ours")
    }

    /// Waits until the other one is the primary for all.
    pub fn until_promoted(&self, from: usize) -> usize {
        let other = 1 - from;
        until("the replica is promoted", || {
            self.named() == self.servers[other].port && self.servers[other].is_primary()
        });
        other
    }
}

fn sentinel(primary: u16, down_after_ms: u32) -> Server {
    // A sentinel writes its configuration, so it has one as a file, and its port in it.
    let deadline = Instant::now() + PATIENCE;
    loop {
        let port = some_port();
        let dir = folder(port);
        let config = dir.join("sentinel.conf");
        let name = Sentinels::NAME;
        let text = format!(
            "sentinel monitor {name} 127.0.0.1 {primary} 2\n\
             sentinel down-after-milliseconds {name} {down_after_ms}\n\
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
    /// One that sees to nothing by itself: a busy machine is not a dead one.
    pub fn start(settings: &[&str]) -> Cluster {
        Cluster::watching(settings, 60_000)
    }

    /// One that promotes a replica when its primary is silent for so long.
    pub fn watching(settings: &[&str], timeout_ms: u32) -> Cluster {
        let timeout_ms = timeout_ms.to_string();
        let cluster = [
            "--cluster-enabled",
            "yes",
            "--cluster-config-file",
            "nodes.conf",
            "--cluster-node-timeout",
            &timeout_ms,
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
        let cluster = Cluster { servers };
        cluster.until_whole();
        cluster
    }

    /// Waits until all agree that nothing is missing, and every primary is followed.
    pub fn until_whole(&self) {
        until("the cluster is whole", || {
            let whole = |server: &Server| {
                say(server.port, "CLUSTER INFO").is_some_and(|said| {
                    said.contains("cluster_state:ok") && said.contains("cluster_size:3")
                })
            };
            let followed = |server: &&Server| server.is_primary() && server.is_followed();
            self.servers.iter().all(whole) && self.servers.iter().filter(followed).count() == 3
        });
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
