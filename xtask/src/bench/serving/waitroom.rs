//! Our own server, the real one: `waitroom serve`, from beside the benchmark's own program.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::Deserialize;

use super::child::{Child, START_LIMIT, quiet};
use crate::failure::{Failure, OrFail, Outcome};

/// The owner's key of every server that a benchmark starts.
pub const KEY: &str = "wrk_0123456789abcdef0123456789abcdef";
/// The room that development mode makes: everyone queues, only operators let people in.
pub const ROOM: &str = "default";

#[derive(Debug)]
pub struct Waitroom {
    child: Child,
    pub addresses: Addresses,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Addresses {
    pub public: SocketAddr,
    pub admin: SocketAddr,
    /// Builds without gRPC say none.
    pub grpc: Option<SocketAddr>,
}

/// How to start it.
#[derive(Debug, Clone, Default)]
pub struct Start {
    pub core: Option<usize>,
    /// How much it steps back for others, as `nice` has it.
    pub nice: Option<i32>,
    /// Settings by their name in the environment, such as `WAITROOM_LIMITS_JOIN`.
    pub settings: Vec<(&'static str, String)>,
    /// Addresses it had before, so that clients find it again.
    pub at: Option<Addresses>,
    /// A configuration file.
    pub config: Option<PathBuf>,
}

impl Waitroom {
    /// Starts a server with its data in `folder`, what it says on stderr in `FOLDER.log`.
    pub fn start(folder: &Path, start: &Start) -> Outcome<Self> {
        let log = folder.with_extension("log");
        let file = File::options().create(true).append(true).open(&log);
        let mut command = match start.nice {
            None => quiet(program()?),
            // It becomes the server: same process, same id.
            Some(nice) => {
                let mut command = quiet("nice");
                command.args(["-n", &nice.to_string()]).arg(program()?);
                command
            }
        };
        let (public, admin, grpc) = match start.at {
            None => (any_port(), any_port(), any_port()),
            Some(at) => (at.public, at.admin, at.grpc.unwrap_or_else(any_port)),
        };
        command
            .args(["serve", "--dev", "--addresses-json"])
            .args(["--public", &public.to_string(), "--admin", &admin.to_string()])
            .args(["--grpc", &grpc.to_string(), "--data"])
            .arg(folder)
            .args(start.config.iter().flat_map(|file| ["--config".as_ref(), file.as_os_str()]))
            .env("WAITROOM_ADMIN_KEY", KEY)
            .envs(start.settings.iter().map(|(key, value)| (key, value)))
            .stdout(Stdio::piped())
            .stderr(file.or_fail(|| format!("create {}", log.display()))?);
        let child = Child::start("waitroom", command, start.core)?;
        let line = child.line(START_LIMIT).map_err(|failure| {
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            Failure::new(format!("{failure}; it said: {said}"))
        })?;
        let addresses = serde_json::from_str(&line).or_fail(|| format!("read {line:?}"))?;
        Ok(Self { child, addresses })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as a power cut would.
    pub fn kill(&mut self) -> Outcome {
        self.child.kill()
    }
}

/// `waitroom` as built with us: same profile, same target folder.
pub fn program() -> Outcome<PathBuf> {
    let ours = std::env::current_exe().or_fail(|| "find our own program")?;
    let program = ours.with_file_name("waitroom");
    if program.is_file() {
        return Ok(program);
    }
    Err(Failure::new(format!(
        "{} is not there; `cargo xtask bench` builds it, by hand: cargo build --release -p waitroom",
        program.display()
    )))
}

fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}
