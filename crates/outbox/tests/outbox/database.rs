//! A PostgreSQL of the test's own: a socket in a folder, no port, gone afterwards.

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
}

const MISSING: &str = "PostgreSQL is needed for this test: run cargo xtask setup";

impl Postgres {
    pub async fn start() -> Postgres {
        let folder = tempfile::tempdir().expect("a folder");
        if let Some((user, group)) = who() {
            std::os::unix::fs::chown(folder.path(), Some(user), Some(group)).expect("root may");
        }
        let mut postgres = Postgres { child: None, folder };
        let made = postgres
            .program("initdb")
            .args(["--auth=trust", "--username=waitroom", "--no-sync"])
            .args(["--encoding=UTF8", "--locale=C", "-D"])
            .arg(postgres.folder.path().join("data"))
            .output()
            .expect("initdb runs");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        postgres.start_again().await;
        postgres
    }

    pub fn url(&self) -> String {
        format!("host={} user=waitroom dbname=postgres", self.folder.path().display())
    }

    /// The same as an address, for commands that tell databases by it.
    #[allow(dead_code, reason = "the tests of the server use it")]
    pub fn address(&self) -> String {
        let folder = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://waitroom@{folder}/postgres")
    }

    pub async fn start_again(&mut self) {
        let log = std::fs::File::create(self.folder.path().join("log")).expect("a log");
        let child = self
            .program("postgres")
            .arg("-D")
            .arg(self.folder.path().join("data"))
            .args(["-c", "listen_addresses=", "-k"])
            .arg(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("postgres runs");
        self.child = Some(child);
        let until = Instant::now() + SOON;
        while let Err(error) = tokio_postgres::connect(&self.url(), NoTls).await {
            assert!(Instant::now() < until, "PostgreSQL does not answer: {error}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
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
