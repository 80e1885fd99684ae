//! A foreign client: Python's grpcio, with code generated from the `.proto` file, talks to the
//! real binary. What our own client library and our server might both get wrong shows here.
//!
//! Needs `python3` with `venv`; grpcio is installed below `target/` once. There is no skipping: a
//! machine without Python cannot say that the contract is kept.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const KEY: &str = "wrk_0123456789abcdef0123456789abcdef";

/// Pinned, so that the test means the same tomorrow.
const PACKAGES: [&str; 4] = [
    "grpcio==1.85.1",
    "grpcio-tools==1.85.1",
    "grpcio-reflection==1.85.0",
    "grpcio-health-checking==1.85.0",
];

/// The server, ended by its id when the test is over, however it ends.
struct Server {
    child: Child,
    addresses: serde_json::Value,
}

impl Server {
    fn start(data: &Path) -> Server {
        let any = "127.0.0.1:0";
        let mut child = Command::new(env!("CARGO_BIN_EXE_waitroom"))
            .args(["serve", "--dev", "--public", any, "--admin", any, "--grpc", any])
            .args(["--addresses-json", "--data"])
            .arg(data)
            .env("WAITROOM_ADMIN_KEY", KEY)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built with this test");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let addresses = serde_json::from_str(&line).unwrap_or_else(|error| {
            child.kill().expect("it runs");
            let mut said = String::new();
            let _ = child.stderr.take().expect("piped").read_to_string(&mut said);
            panic!("no addresses ({error}) in {line:?}; it said:\n{said}")
        });
        Server { child, addresses }
    }

    fn address(&self, listener: &str) -> &str {
        self.addresses[listener].as_str().unwrap_or_else(|| panic!("no {listener} address"))
    }

    fn signal_to_end(&self) {
        let pid = self.child.id().to_string();
        let ended = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(ended.expect("kill runs").success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn target() -> PathBuf {
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    tmp.parent().expect("target/tmp lies in target").to_owned()
}

fn done(what: &str, output: std::io::Result<Output>) -> String {
    let output = output.unwrap_or_else(|error| panic!("{what}: {error}"));
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what} failed:\n{out}\n{said}");
    out
}

/// Python with grpcio, made the first time.
fn python() -> PathBuf {
    let venv = target().join("python-grpc");
    let python = venv.join("bin/python");
    if !python.exists() {
        let made = Command::new("python3").args(["-m", "venv"]).arg(&venv).output();
        done("python3 -m venv (this test needs Python; install python3 and python3-venv)", made);
    }
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(PACKAGES);
    done("pip install grpcio", pip.output());
    python
}

/// The client's code, generated from the contract.
fn generated(python: &Path, into: &Path) {
    let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/api/proto");
    let mut protoc = Command::new(python);
    protoc.args(["-m", "grpc_tools.protoc"]);
    for (flag, value) in [("-I", &*proto), ("--python_out=", into), ("--grpc_python_out=", into)] {
        protoc.arg(format!("{flag}{}", value.display()));
    }
    done("protoc", protoc.arg("waitroom/v1/waitroom.proto").output());
}

#[test]
fn a_python_client_keeps_the_contract_with_the_real_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let python = python();
    generated(&python, folder.path());
    let mut server = Server::start(&folder.path().join("data"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/grpc/client.py");
    // The script has a deadline on every call; this one is for the script.
    let mut client = Command::new("timeout");
    client.arg("120").arg(&python).arg(script).arg(folder.path());
    client.args([server.address("grpc"), server.address("admin"), KEY]);
    let pid = server.child.id().to_string();
    let said = done("client.py", client.arg(pid).output());
    assert!(said.ends_with("all promises kept\n"), "{said}");
    // The script ended the server with a stream open: it must go down in order.
    let status = server.child.wait().expect("it ends");
    let mut told = String::new();
    server.child.stderr.take().expect("piped").read_to_string(&mut told).expect("text");
    assert!(status.success(), "{told}");
    let closed = told.lines().find(|line| line.contains("door=\"grpc\" served="));
    assert!(closed.is_some_and(|line| line.ends_with("cut=0")), "{told}");
}

#[test]
fn the_server_ends_when_asked_without_any_client() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Server::start(folder.path());
    server.signal_to_end();
    assert!(server.child.wait().expect("it ends").success());
}
