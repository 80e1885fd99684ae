//! The two origins, and what each of them saw.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::part::{Part, folder, free_port};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Nginx,
    Node,
}

pub struct Site {
    pub part: Part,
    log: PathBuf,
    pub kind: Kind,
}

/// One request, as the origin read it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    pub url: String,
    /// The header X-Case.
    pub case: String,
}

impl Site {
    pub fn start(kind: Kind) -> Site {
        let (folder, port) = (folder("site"), free_port());
        let log = folder.join("seen.log");
        let command = match kind {
            Kind::Node => {
                let script =
                    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/smuggling/origin.js");
                let mut command = Command::new("node");
                command.arg(script).arg(port.to_string()).arg(&log);
                command
            }
            Kind::Nginx => {
                std::fs::write(folder.join("nginx.conf"), nginx(port)).expect("a file");
                let mut command = Command::new("nginx");
                command.arg("-p").arg(&folder).args(["-c", "nginx.conf"]);
                command
            }
        };
        Site { part: Part::run(command, port, folder), log, kind }
    }

    /// Everything so far. Panics when the origin was sent something that it could not read.
    pub fn seen(&self) -> Vec<Seen> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().filter_map(|line| read(self.kind, line)).collect()
    }
}

/// `None` for a request whose body broke off: nginx logs it, Node does not.
fn read(kind: Kind, line: &str) -> Option<Seen> {
    let seen: Value =
        serde_json::from_str(line).unwrap_or_else(|_| panic!("the origin wrote {line:?}"));
    assert_eq!(seen["broken"], Value::Null, "the origin could not read what it got: {line}");
    let text = |name: &str| seen[name].as_str().unwrap_or_default().to_owned();
    let status = text("status");
    let seen = Seen { method: text("method"), url: text("url"), case: text("case") };
    match &*status {
        "200" => Some(seen),
        "" if kind == Kind::Node => Some(seen),
        // The head was good and is one of ours: what is missing is the end of the body.
        "400" | "408" | "499" if seen.url == "/case" && seen.case.starts_with('c') => None,
        _ => panic!("nginx refused what it got: {line}"),
    }
}

/// Reads a whole request before it answers, as an application would.
fn nginx(port: u16) -> String {
    let inner = free_port();
    let line = r#"{"method":"$request_method","url":"$request_uri","case":"$http_x_case","#;
    let line = format!(r#"{line}"length":"$content_length","status":"$status"}}"#);
    format!(
        "daemon off; master_process off; pid nginx.pid; error_log stderr crit;\n\
         events {{ worker_connections 1024; }}\n\
         http {{ client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;\n\
         uwsgi_temp_path uwsgi; scgi_temp_path scgi; default_type application/json;\n\
         log_format seen escape=json '{line}'; access_log seen.log seen;\n\
         large_client_header_buffers 8 64k;\n\
         server {{ listen 127.0.0.1:{port};\n\
         location / {{ proxy_pass http://127.0.0.1:{inner}; proxy_http_version 1.1; }} }}\n\
         server {{ listen 127.0.0.1:{inner}; access_log off;\n\
         location / {{ add_header X-Origin nginx; return 200 '{line}'; }} }} }}\n"
    )
}
