//! A copy of an example with its libraries, made once for each content under `target/tools`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use aws_lc_rs::digest::{Context, SHA256};

pub struct Workshop {
    pub language: &'static str,
    folder: PathBuf,
}

impl Workshop {
    /// Copies `examples/pass-check/<language>` and runs `commands` there, unless that was done
    /// for just these files and commands.
    pub fn of(language: &'static str, commands: &[&[&str]]) -> Workshop {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/pass-check");
        let files = files_of(&source.join(language));
        let mut content = Context::new(&SHA256);
        content.update(format!("{commands:?}").as_bytes());
        for (name, bytes) in &files {
            content.update(format!("{}\n{}\n", name.display(), bytes.len()).as_bytes());
            content.update(bytes);
        }
        let name: String =
            content.finish().as_ref()[..6].iter().map(|byte| format!("{byte:02x}")).collect();
        let folder = tools().join(format!("pass-check/{language}-{name}"));
        let made = Workshop { language, folder };
        let done = made.folder.join("made");
        if !done.exists() {
            forget_older(language);
            for (name, bytes) in &files {
                let to = made.folder.join(name);
                fs::create_dir_all(to.parent().expect("it is in a folder")).expect("a folder");
                fs::write(to, bytes).expect("a copy");
            }
            for command in commands {
                made.say(command);
            }
            fs::write(done, "").expect("a mark");
        }
        made
    }

    /// Runs a command here to its end and returns what it printed.
    pub fn say(&self, line: &[&str]) -> String {
        let mut command = self.command();
        let out = command.args(line).stdin(Stdio::null()).output().expect("env is everywhere");
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        let error = String::from_utf8_lossy(&out.stderr);
        assert!(
            out.status.success(),
            "{}: {} ended with {}; if a program is missing: cargo xtask setup\n{said}\n{error}",
            self.language,
            line.join(" "),
            out.status
        );
        said
    }

    /// A command that runs here, with all downloads kept under `target/tools`; its arguments are
    /// the program and the program's own.
    pub fn command(&self) -> Command {
        let mut command = Command::new("env");
        let maven = format!("-Dmaven.repo.local={}", tools().join("maven").display());
        command
            .current_dir(&self.folder)
            .env("npm_config_cache", tools().join("npm"))
            .env("PIP_CACHE_DIR", tools().join("pip"))
            .env("GOMODCACHE", tools().join("go/mod"))
            .env("GOCACHE", tools().join("go/build"))
            // Otherwise nobody could delete `target`: Go makes its downloads read-only.
            .env("GOFLAGS", "-modcacherw")
            .env("MAVEN_OPTS", maven);
        command
    }

    /// A new empty folder for one run.
    pub fn scratch(&self) -> PathBuf {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("pass-check-{}-{}-{count}", self.language, std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    /// The name of a copy of `file` in which each text is replaced; all must be there.
    pub fn rewritten(&self, file: &str, swaps: &[(&str, &str)]) -> String {
        let mut text = fs::read_to_string(self.folder.join(file)).expect("a file of the example");
        for (from, to) in swaps {
            assert!(text.contains(from), "{file} does not say {from}");
            text = text.replace(from, to);
        }
        let name = format!("run-{}-{file}", std::process::id());
        fs::write(self.folder.join(&name), text).expect("a copy");
        name
    }
}

fn tools() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target is above it").join("tools")
}

/// What was made for earlier contents of an example is of no use any more.
fn forget_older(language: &str) {
    let older = fs::read_dir(tools().join("pass-check")).into_iter().flatten().flatten();
    for entry in older {
        let name = entry.file_name();
        if name.to_string_lossy().rsplit_once('-').is_some_and(|(of, _)| of == language) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn files_of(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut open = vec![folder.to_owned()];
    let mut files = vec![];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).expect("the example is there").flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_none_or(|it| it != "md") {
                // Words about an example are no reason to fetch its libraries again.
                let name = path.strip_prefix(folder).expect("it was found below").to_owned();
                files.push((name, fs::read(&path).expect("a file")));
            }
        }
    }
    files.sort();
    files
}
