//! `cargo xtask setup`: what the tests and benchmarks need besides Rust.
//!
//! Installs only what is missing, and says what for. To add a need: a line in [`NEEDS`].

use crate::failure::{Failure, OrFail, Outcome};
use crate::shell::{Run, find_program};

/// A program that some test or benchmark starts, and the Debian package that carries it.
#[derive(Debug, Clone, Copy)]
struct Need {
    program: &'static str,
    package: &'static str,
    because: &'static str,
}

const NEEDS: &[Need] = &[
    Need {
        program: "redis-server",
        package: "redis-server",
        because: "a store of ours, and the peer that the benchmarks are held against",
    },
    Need {
        program: "redis-sentinel",
        package: "redis-sentinel",
        because: "watches the primary in the tests of the store on Redis",
    },
    Need {
        program: "valkey-server",
        package: "valkey-server",
        because: "can say what is on disks (WAITAOF), which Debian's Redis cannot",
    },
    Need {
        program: "redis-cli",
        package: "redis-tools",
        because: "makes a cluster in the tests of the store on Redis",
    },
    Need {
        program: "nginx",
        package: "nginx",
        because: "a web server that the HTTP benchmark is held against",
    },
    Need {
        program: "curl",
        package: "curl",
        because: "a client that is not ours, for the tests of the server",
    },
    Need {
        program: "caddy",
        package: "caddy",
        because: "a proxy that asks us, for the tests of deploy/",
    },
    Need {
        program: "haproxy",
        package: "haproxy",
        because: "a proxy that checks passes itself, for the tests of deploy/",
    },
    Need {
        program: "node",
        package: "nodejs",
        because: "builds the console, drives the browser, and is an origin with a parser of its own",
    },
    Need {
        program: "npm",
        package: "npm",
        because: "fetches what the console is built from and what drives the browser",
    },
    Need {
        program: "openssl",
        package: "openssl",
        because: "turns our public keys into files for HAProxy",
    },
    Need {
        program: "chromium",
        package: "chromium",
        because: "a browser, for the tests of the server and of its pages",
    },
    Need {
        // The program alone comes with others; this comes with the package.
        program: "/usr/share/doc/python3-venv/copyright",
        package: "python3-venv",
        because: "foreign gRPC and OpenAPI clients, in virtual environments of their own",
    },
    Need {
        program: "go",
        package: "golang-go",
        because: "the example in Go, and what reads the compose file of deploy/",
    },
    Need {
        program: "kill",
        package: "procps",
        because: "ends, holds and wakes what tests started",
    },
    Need { program: "systemd-analyze", package: "systemd", because: "judges the unit of deploy/" },
    Need { program: "java", package: "default-jdk-headless", because: "the example in Java" },
    Need { program: "mvn", package: "maven", because: "the libraries of that example" },
    Need { program: "php", package: "php-cli", because: "the example in PHP" },
    Need {
        program: "/usr/lib/nginx/modules/ngx_http_js_module.so",
        package: "libnginx-mod-http-js",
        because: "the example for nginx is a module in its JavaScript",
    },
    Need {
        program: "promtool",
        package: "prometheus",
        because: "scrapes the server and judges the alert rules, for the tests of the server",
    },
    Need {
        program: "pg_ctlcluster",
        package: "postgresql",
        because: "a database, for the stock of the demo's shop and for the tests of the outbox",
    },
    Need {
        program: "tmux",
        package: "tmux",
        because: "a terminal to look at `waitroom top` in, for the tests of the server",
    },
    Need {
        program: "nats-server",
        package: "nats-server",
        because: "a bus, for the tests of the outbox",
    },
    Need { program: "make", package: "make", because: "the Kafka library is built with it" },
    Need { program: "c++", package: "g++", because: "the Kafka library is built with it" },
    Need {
        program: "/usr/include/zlib.h",
        package: "zlib1g-dev",
        because: "the Kafka library is built with it",
    },
    Need {
        program: "/usr/include/openssl/ssl.h",
        package: "libssl-dev",
        because: "the Kafka library is built with it, to speak TLS",
    },
    Need {
        program: "pkg-config",
        package: "pkg-config",
        because: "finds OpenSSL for the Kafka library",
    },
    Need {
        program: "git",
        package: "git",
        because: "results carry their commit, and tidy looks at tracked files",
    },
];

pub fn run() -> Outcome {
    install(NEEDS.iter())
}

/// Only these of the programs that [`NEEDS`] knows, for a chore that needs no others.
pub fn only(programs: &[&str]) -> Outcome {
    install(NEEDS.iter().filter(|need| programs.contains(&need.program)))
}

fn install<'a>(needs: impl Iterator<Item = &'a Need>) -> Outcome {
    let missing: Vec<&Need> = needs.filter(|need| find_program(need.program).is_none()).collect();
    if missing.is_empty() {
        eprintln!("setup: nothing is missing");
        return Ok(());
    }
    for need in &missing {
        eprintln!("setup: {} is missing: {}", need.program, need.because);
    }
    let packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
    let install = Run::new("apt-get install -y --no-install-recommends")
        .args(packages)
        .env("DEBIAN_FRONTEND", "noninteractive");
    if find_program("apt-get").is_none() {
        return Err(Failure::new("this is not a Debian machine: please install the above by hand"));
    }
    if !is_root() {
        return Err(Failure::new(format!(
            "only root may install packages; please run: sudo apt-get update && sudo {}",
            install.line()
        )));
    }
    Run::new("apt-get update").run()?;
    let wanted = missing.iter().any(|need| need.package == BACKPORTED);
    if wanted && Run::new("apt-cache show").arg(BACKPORTED).read().is_err() {
        add_backports()?;
    }
    install.run()?;
    // A package that installs cleanly under another program name would otherwise be found out
    // minutes later, by a benchmark.
    match missing.iter().find(|need| find_program(need.program).is_none()) {
        Some(need) => Err(Failure::new(format!(
            "the package {} brought no program {}",
            need.package, need.program
        ))),
        None => Ok(()),
    }
}

/// Not in Debian 12 itself, but in its backports, which apt takes when nobody else has it.
const BACKPORTED: &str = "valkey-server";
const SOURCES: &str = "/etc/apt/sources.list.d";

const DEBIAN: &str = "Types: deb\nURIs: http://deb.debian.org/debian\nSuites: stable\n\
    Components: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n";

/// Adds the backports of this release, from where the release itself comes.
fn add_backports() -> Outcome {
    let read = |file: &str| std::fs::read_to_string(file).or_fail(|| format!("read {file}"));
    let release = read("/etc/os-release")?;
    let name = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let name = name.ok_or_else(|| Failure::new("/etc/os-release names no release"))?;
    // A machine with the older kind of list gets what Debian itself would write.
    let listed = std::fs::read_to_string(format!("{SOURCES}/debian.sources"));
    let text = backports(listed.as_deref().unwrap_or(DEBIAN), name);
    let file = format!("{SOURCES}/backports.sources");
    std::fs::write(&file, text).or_fail(|| format!("write {file}"))?;
    Run::new("apt-get update").run()
}

/// The first of the sources, for the backports of a release.
fn backports(sources: &str, release: &str) -> String {
    let first = sources.lines().skip_while(|line| line.is_empty());
    let first =
        first.take_while(|line| !line.is_empty()).map(|line| match line.starts_with("Suites:") {
            true => format!("Suites: {release}-backports\n"),
            false => format!("{line}\n"),
        });
    first.collect()
}

fn is_root() -> bool {
    Run::new("id -u").read().is_ok_and(|id| id.trim() == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backports_come_from_where_the_release_comes_from() {
        let sources = "Types: deb\nURIs: http://mirror/debian\nSuites: bookworm bookworm-updates\n\
                       Components: main\nSigned-By: keyring\n\nTypes: deb\nSuites: security\n";
        let wanted = "Types: deb\nURIs: http://mirror/debian\nSuites: bookworm-backports\n\
                      Components: main\nSigned-By: keyring\n";
        assert_eq!(backports(sources, "bookworm"), wanted);
    }
}
