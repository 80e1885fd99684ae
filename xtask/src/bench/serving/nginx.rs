//! nginx with one static answer: what a well-made server needs to say anything at all. Or as a
//! plain reverse proxy: what it needs to say what somebody else says.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use super::child::{Child, free_address, quiet};
use crate::failure::{Failure, OrFail, Outcome};

#[derive(Debug)]
pub struct Nginx {
    child: Child,
    pub address: SocketAddr,
}

/// Somebody may take the free port before nginx does; then the next is tried.
const START_TRIES: usize = 5;

impl Nginx {
    /// Starts nginx on `core`; it answers everything with `body`.
    pub fn start(folder: &Path, body: &str, core: usize) -> Outcome<Self> {
        if body.contains(['\'', '$', '\\']) {
            return Err(Failure::new("nginx would read this body as something else"));
        }
        Self::with(folder, "", &format!("return 200 '{body}';"), core)
    }

    /// Starts nginx on `core` as a plain reverse proxy to `origin`, over connections that stay
    /// open, telling it who asks.
    pub fn proxy(folder: &Path, origin: SocketAddr, core: usize) -> Outcome<Self> {
        let upstream = format!(
            "upstream origin {{ server {origin}; keepalive 64; keepalive_requests 1000000000; }}"
        );
        let location = "proxy_pass http://origin; proxy_http_version 1.1;\n\
            proxy_set_header Connection \"\"; proxy_set_header Host $host;\n\
            proxy_set_header X-Forwarded-For $remote_addr;\n\
            proxy_set_header X-Forwarded-Proto $scheme; proxy_set_header X-Forwarded-Host $host;";
        Self::with(folder, &upstream, location, core)
    }

    fn with(folder: &Path, above: &str, location: &str, core: usize) -> Outcome<Self> {
        fs::create_dir_all(folder).or_fail(|| format!("create {}", folder.display()))?;
        for _ in 0..START_TRIES {
            let address = free_address()?;
            let file = folder.join("nginx.conf");
            fs::write(&file, config(address, folder, above, location))
                .or_fail(|| format!("write {}", file.display()))?;
            let mut command = quiet("nginx");
            command.arg("-p").arg(folder).arg("-c").arg(&file);
            command.stderr(std::process::Stdio::null());
            let mut child = Child::start("nginx", command, Some(core))?;
            if child.until_listening(address)? {
                return Ok(Self { child, address });
            }
        }
        Err(Failure::new(format!("nginx did not start on {START_TRIES} different ports")))
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

/// One process, no log, connections that stay open however much they ask.
fn config(address: SocketAddr, folder: &Path, above: &str, location: &str) -> String {
    let folder = folder.display();
    format!(
        "daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\n\
         events {{ worker_connections 4096; }}\n\
         http {{ access_log off; keepalive_requests 1000000000; default_type application/json;\n\
         client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;\n\
         uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n\
         {above}\n\
         server {{ listen {address}; location / {{ {location} }} }} }}\n"
    )
}
