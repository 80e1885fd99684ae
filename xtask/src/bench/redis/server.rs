//! A redis-server of our own: on loopback, on a free port, in its own folder, ours to stop.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::thread::Pid;

use super::super::cpu;
use super::super::data::DataFolder;
use super::super::process::{cpu_of, resident_of};
use super::resp::{Connection, Reply};
use crate::failure::{Failure, OrFail, Outcome};

/// How Redis keeps its append-only file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendOnly {
    /// Memory only.
    No,
    /// Synced about once a second: up to a second of acknowledged writes may be lost.
    EverySecond,
    /// Synced before every reply.
    Always,
}

impl AppendOnly {
    fn flags(self) -> [&'static str; 4] {
        match self {
            Self::No => ["--appendonly", "no", "--appendfsync", "no"],
            Self::EverySecond => ["--appendonly", "yes", "--appendfsync", "everysec"],
            Self::Always => ["--appendonly", "yes", "--appendfsync", "always"],
        }
    }
}

#[derive(Debug)]
pub struct Server {
    child: Child,
    address: SocketAddr,
    version: String,
    append_only: AppendOnly,
    /// Declared last: the folder goes after the process that writes to it.
    folder: DataFolder,
}

/// Starting takes some ten milliseconds; a machine under load may take a hundred times that.
const START_LIMIT: Duration = Duration::from_secs(10);
/// Somebody may take the free port before redis does; then the next is tried.
const START_TRIES: usize = 5;

impl Server {
    /// Starts a server pinned to `core`, with nothing in it.
    pub fn start(append_only: AppendOnly, core: usize) -> Outcome<Self> {
        for _ in 0..START_TRIES {
            if let Some(server) = Self::try_start(append_only, core)? {
                return Ok(server);
            }
        }
        Err(Failure::new(format!("redis-server did not start on {START_TRIES} different ports")))
    }

    fn try_start(append_only: AppendOnly, core: usize) -> Outcome<Option<Self>> {
        let folder = DataFolder::new("redis")?;
        let address = free_address().or_fail(|| "find a free port on loopback")?;
        let log = File::create(folder.path().join("redis.log")).or_fail(|| "create redis.log")?;
        let child = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &address.port().to_string()])
            // No snapshots and no rewriting of the append-only file: both are a second process
            // beside the server and would only slow the peer down.
            .args(["--save", "", "--auto-aof-rewrite-percentage", "0"])
            .args(append_only.flags())
            .arg("--dir")
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(Stdio::inherit())
            .spawn()
            .or_fail(|| "start redis-server (is it installed? `cargo xtask setup`)")?;
        let mut server = Self { child, address, version: String::new(), append_only, folder };
        let pid = Pid::from_raw(server.child.id().cast_signed());
        cpu::pin(pid, core)?;
        let began = Instant::now();
        while began.elapsed() < START_LIMIT {
            let ended = server.child.try_wait().or_fail(|| "look after redis-server")?;
            if ended.is_some() {
                return Ok(None);
            }
            if let Ok(version) = server.connect_and_ask("redis_version") {
                server.version = version;
                return Ok(Some(server));
            }
            // A server that is not listening yet refuses at once; do not spin on its core.
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(Failure::new(format!("redis-server gave no answer within {START_LIMIT:?}")))
    }

    pub fn connect(&self) -> Outcome<Connection> {
        Connection::open(self.address).or_fail(|| format!("connect to redis at {}", self.address))
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// CPU time of the whole server so far, its background threads included.
    pub fn cpu(&self) -> Outcome<Duration> {
        cpu_of(self.id())
    }

    pub fn resident(&self) -> Outcome<u64> {
        resident_of(self.id())
    }

    /// Bytes that Redis says it has allocated.
    pub fn used_memory(&self) -> Outcome<u64> {
        let text = self.connect_and_ask("used_memory")?;
        text.parse().or_fail(|| format!("read used_memory of {text:?}"))
    }

    /// Bytes that Redis read from the network so far.
    pub fn bytes_read(&self) -> Outcome<u64> {
        let text = self.connect_and_ask("total_net_input_bytes")?;
        text.parse().or_fail(|| format!("read total_net_input_bytes of {text:?}"))
    }

    /// The settings, for the reader of the figures.
    pub fn line(&self) -> String {
        format!("redis-server {}, {:?}, on loopback", self.version, self.append_only)
    }

    /// One line of INFO.
    fn connect_and_ask(&self, key: &str) -> Outcome<String> {
        let info = self.connect()?.call(&["INFO"]).or_fail(|| "ask redis for INFO")?;
        let Reply::Bulk(bytes) = info else {
            return Err(Failure::new(format!("INFO was answered with {info:?}")));
        };
        let text = String::from_utf8_lossy(&bytes);
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        value.map(str::to_owned).ok_or_else(|| Failure::new(format!("INFO has no {key}")))
    }
}

impl Drop for Server {
    /// Ends the child by its id and waits for it, so that no benchmark leaves a server behind.
    fn drop(&mut self) {
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait()) {
            let folder = self.folder.path().display();
            eprintln!("note: redis-server {} in {folder} lives on: {error}", self.child.id());
        }
    }
}

/// Redis takes no port 0, so the kernel is asked for a free one that is then given back.
fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}
