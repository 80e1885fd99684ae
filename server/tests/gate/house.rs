//! One running gate before an origin, and visitors of it.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::instance::{Got, KEY, curl, soon};

pub struct House {
    pub child: Child,
    pub url: String,
    pub admin: String,
    /// Where gRPC is spoken, if anywhere.
    grpc: Option<String>,
    folder: PathBuf,
}

impl House {
    /// `waitroom protect` with these arguments.
    pub fn protect(origin: &str, more: &[&str]) -> House {
        House::start(&[&["protect", origin, "--listen", "127.0.0.1:0"], more].concat(), "")
    }

    /// `waitroom protect` with a configuration besides.
    pub fn protect_with(origin: &str, config: &str, more: &[&str]) -> House {
        House::start(&[&["protect", origin, "--listen", "127.0.0.1:0"], more].concat(), config)
    }

    /// `waitroom serve` in development with this configuration.
    pub fn serve(config: &str) -> House {
        House::start(
            &["serve", "--dev", "--public", "127.0.0.1:0", "--grpc", "127.0.0.1:0"],
            config,
        )
    }

    fn start(arguments: &[&str], config: &str) -> House {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("gate-{}-{count}", std::process::id());
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("config.toml");
        std::fs::write(
            &file,
            format!("[limits]\njoin = \"none\"\nstatus = \"none\"\nsession = \"none\"\n{config}"),
        )
        .expect("a file");
        let mut child = Command::new(env!("CARGO_BIN_EXE_waitroom"))
            .args(arguments)
            .args(["--admin", "127.0.0.1:0", "--addresses-json", "--config"])
            .arg(&file)
            .arg("--data")
            .arg(folder.join("data"))
            .env("WAITROOM_ADMIN_KEY", KEY)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("stdout is piped");
        let _ = BufReader::new(stdout).read_line(&mut line);
        let Ok(addresses) = serde_json::from_str::<Value>(&line) else {
            let mut said = String::new();
            let _ = child.stderr.take().expect("piped").read_to_string(&mut said);
            panic!("the gate did not start: {said}");
        };
        // Read to the end of its life, or it would stop at a full pipe.
        let mut said = child.stderr.take().expect("stderr is piped");
        std::thread::spawn(move || said.read_to_end(&mut Vec::new()));
        let url = |name: &str| format!("http://{}", addresses[name].as_str().expect("an address"));
        let grpc = addresses["grpc"].as_str().map(str::to_owned);
        House { url: url("public"), admin: url("admin"), grpc, child, folder }
    }

    pub fn address(&self) -> &str {
        self.url.strip_prefix("http://").expect("a plain address")
    }

    #[allow(dead_code)]
    pub fn grpc(&self) -> &str {
        self.grpc.as_deref().expect("it serves gRPC")
    }

    pub fn get(&self, path: &str, more: &[&str]) -> Got {
        let url = format!("{}{path}", self.url);
        curl(&[&["--path-as-is", url.as_str()], more].concat())
    }

    pub fn operate(&self, method: &str, path: &str, body: &str) -> Got {
        let (key, url) = (format!("X-Api-Key: {KEY}"), format!("{}{path}", self.admin));
        curl(&["-X", method, &url, "-H", &key, "-H", "Content-Type: application/json", "-d", body])
    }

    /// Joins the room; the answer of the API.
    pub fn join(&self) -> Value {
        let url = format!("{}/.waitroom/v1/rooms/default/join", self.url);
        let got = curl(&["-X", "POST", &url]);
        assert_eq!(got.status, 201, "{got:?}");
        got.json()
    }

    pub fn claim(&self, ticket: &Value) -> Got {
        let url = format!("{}/.waitroom/v1/rooms/default/claim", self.url);
        let bearer =
            format!("Authorization: Bearer {}", ticket["token"].as_str().expect("a token"));
        curl(&["-X", "POST", &url, "-H", &bearer])
    }

    /// Somebody inside; what to send as a header. A room that has just opened has an empty bucket,
    /// so even the first may wait for a moment.
    pub fn visitor(&self) -> String {
        let ticket = self.join();
        let claimed = soon("the visitor's turn", || {
            let got = self.claim(&ticket);
            (got.status == 200).then(|| got.json())
        });
        format!("Waitroom-Pass: {}", claimed["pass"].as_str().expect("a pass"))
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A JSON answer is what these ask for.
pub const JSON: [&str; 2] = ["-H", "Accept: application/json"];
