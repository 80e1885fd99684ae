//! A PostgreSQL of the test's own: a socket in a folder, no port, gone afterwards.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio_postgres::{Client, NoTls};

/// For machines that do ten other things.
const SOON: Duration = Duration::from_secs(60);

pub struct Postgres {
    child: Option<Child>,
    folder: tempfile::TempDir,
    port: Option<u16>,
}

const MISSING: &str = "PostgreSQL is needed for this test: run cargo xtask setup";

impl Postgres {
    pub async fn start() -> Postgres {
        Postgres::start_in(tempfile::tempdir().expect("a folder")).await
    }

    /// In a folder of the caller's choice: benchmarks want a real disk.
    pub async fn start_in(folder: tempfile::TempDir) -> Postgres {
        let mut postgres = Postgres::made(folder);
        postgres.start_again().await;
        postgres
    }

    /// On a port of loopback too, over TLS with the papers of a folder (`ca.pem`, `server.pem`,
    /// `server.key`); `who` is its pg_hba.conf. None if it does not start, as when the port is
    /// taken.
    #[allow(dead_code, reason = "one test of the outbox uses it")]
    pub async fn guarded(port: u16, papers: &Path, who: &str) -> Option<Postgres> {
        let mut postgres = Postgres::made(tempfile::tempdir().expect("a folder"));
        let data = postgres.folder.path().join("data");
        for name in ["ca.pem", "server.pem", "server.key"] {
            let file = data.join(name);
            std::fs::copy(papers.join(name), &file).expect("copied");
            // It takes no key that others can read.
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("ours");
            if let Some((user, group)) = self::who() {
                std::os::unix::fs::chown(&file, Some(user), Some(group)).expect("root may");
            }
        }
        std::fs::write(data.join("pg_hba.conf"), who).expect("written");
        let more = format!(
            "listen_addresses = '127.0.0.1'\nport = {port}\nssl = on\nssl_ca_file = 'ca.pem'\n\
             ssl_cert_file = 'server.pem'\nssl_key_file = 'server.key'\n"
        );
        let file = data.join("postgresql.auto.conf");
        std::fs::write(file, more).expect("written");
        postgres.port = Some(port);
        postgres.spawn();
        postgres.answers().await.then_some(postgres)
    }

    fn made(folder: tempfile::TempDir) -> Postgres {
        if let Some((user, group)) = who() {
            std::os::unix::fs::chown(folder.path(), Some(user), Some(group)).expect("root may");
        }
        let postgres = Postgres { child: None, folder, port: None };
        let made = postgres
            .program("initdb")
            .args(["--auth=trust", "--username=waitroom", "--no-sync"])
            .args(["--encoding=UTF8", "--locale=C", "-D"])
            .arg(postgres.folder.path().join("data"))
            .output()
            .expect("initdb runs");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        postgres
    }

    /// By its socket, which is named after its port.
    pub fn url(&self) -> String {
        let port = self.port.map(|port| format!(" port={port}")).unwrap_or_default();
        format!("host={} user=waitroom dbname=postgres{port}", self.folder.path().display())
    }

    /// The same as an address, for commands that tell databases by it.
    #[allow(dead_code, reason = "the tests of the server use it")]
    pub fn address(&self) -> String {
        let folder = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://waitroom@{folder}/postgres")
    }

    pub async fn start_again(&mut self) {
        self.spawn();
        assert!(self.answers().await, "PostgreSQL does not answer");
    }

    fn spawn(&mut self) {
        let log = std::fs::File::create(self.folder.path().join("log")).expect("a log");
        let mut command = self.program("postgres");
        command.arg("-D").arg(self.folder.path().join("data"));
        if self.port.is_none() {
            command.args(["-c", "listen_addresses="]);
        }
        command.arg("-k").arg(self.folder.path());
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        self.child = Some(child.expect("postgres runs"));
    }

    /// Whether it does before its time is up, or it ends.
    async fn answers(&mut self) -> bool {
        let until = Instant::now() + SOON;
        while tokio_postgres::connect(&self.url(), NoTls).await.is_err() {
            let ended = self.child.as_mut().is_none_or(|it| !matches!(it.try_wait(), Ok(None)));
            if ended || Instant::now() > until {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        true
    }

    /// At once, and its children with it; what it acknowledged is in its folder.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = Command::new("kill").args(["-QUIT", &child.id().to_string()]).status();
            let _ = child.wait();
        }
    }

    pub async fn client(&self) -> Client {
        let (client, connection) =
            tokio_postgres::connect(&self.url(), NoTls).await.expect("it answers");
        tokio::spawn(connection);
        client
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(programs().join(name));
        if let Some((user, group)) = who() {
            command.uid(user).gid(group);
        }
        command.current_dir(self.folder.path());
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
    }
}

/// PostgreSQL refuses to run as root; then it runs as the user that its package made.
fn who() -> Option<(u32, u32)> {
    let id = |arguments: &[&str]| {
        let out = Command::new("id").args(arguments).output().expect("id runs");
        String::from_utf8_lossy(&out.stdout).trim().parse::<u32>().ok()
    };
    if id(&["-u"]) != Some(0) {
        return None;
    }
    Some((id(&["-u", "postgres"]).expect(MISSING), id(&["-g", "postgres"]).expect(MISSING)))
}

/// Debian keeps them off the path, one folder for each version.
fn programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|it| it.path().join("bin")).collect();
    folders.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = folders.into_iter().rev().chain(std::env::split_paths(&path));
    all.into_iter().find(|it: &PathBuf| Path::new(it).join("initdb").exists()).expect(MISSING)
}
