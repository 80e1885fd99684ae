//! A PostgreSQL of the test's own: a socket in a folder, no port, gone afterwards.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// For machines that do ten other things.
const SOON: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Server {
    child: Child,
    pub url: String,
    _folder: tempfile::TempDir,
}

impl Server {
    pub fn start() -> Server {
        let folder = tempfile::tempdir().expect("a folder");
        let who = who();
        if let Some((user, group)) = who {
            std::os::unix::fs::chown(folder.path(), Some(user), Some(group)).expect("root may");
        }
        let as_them = |program: &str| {
            let mut command = Command::new(programs().join(program));
            if let Some((user, group)) = who {
                command.uid(user).gid(group);
            }
            command.current_dir(folder.path());
            command
        };
        let data = folder.path().join("data");
        let made = as_them("initdb")
            .args([
                "--auth=trust",
                "--username=shop",
                "--no-sync",
                "--encoding=UTF8",
                "--locale=C",
                "-D",
            ])
            .arg(&data)
            .output()
            .expect("initdb runs");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let log = std::fs::File::create(folder.path().join("log")).expect("a log");
        let child = as_them("postgres")
            .arg("-D")
            .arg(&data)
            .args(["-c", "listen_addresses=", "-c", "max_connections=200", "-k"])
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("postgres runs");
        let url = format!("host={} user=shop dbname=postgres", folder.path().display());
        let server = Server { child, url, _folder: folder };
        server.wait();
        server
    }

    fn wait(&self) {
        let until = Instant::now() + SOON;
        let connects = || {
            crate::wait_for(async {
                tokio_postgres::connect(&self.url, tokio_postgres::NoTls).await.map(|_| ())
            })
        };
        while let Err(error) = connects() {
            assert!(Instant::now() < until, "PostgreSQL does not answer: {error}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // At once, and its children with it.
        let _ = Command::new("kill").args(["-QUIT", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
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
    let missing = "PostgreSQL is needed for this test: run cargo xtask setup";
    Some((id(&["-u", "postgres"]).expect(missing), id(&["-g", "postgres"]).expect(missing)))
}

/// Debian keeps them off the path, one folder for each version.
fn programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|it| it.path().join("bin")).collect();
    folders.sort();
    let found = folders.into_iter().rev().find(|it| it.join("initdb").exists());
    let found = found.or_else(|| {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).find(|it: &PathBuf| Path::new(it).join("initdb").exists())
    });
    found.expect("PostgreSQL is needed for this test: run cargo xtask setup")
}
