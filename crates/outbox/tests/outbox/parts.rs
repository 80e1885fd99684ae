//! Real buses on loopback. Each is a child that ends when the test process does, however that ends:
//! a shell holds its pid and waits for our end of a pipe to close.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// `target/tmp`. Benchmarks use this file too, and have to find it themselves.
fn temporary() -> PathBuf {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/tmp");
    PathBuf::from(option_env!("CARGO_TARGET_TMPDIR").unwrap_or(beside))
}

/// A folder of this test's own below `target`, on a real disk.
pub fn scratch(what: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{what}-{}-{count}", std::process::id());
    let folder = temporary().join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// A program that was started and is ended with this, or with the process.
pub struct Part {
    watcher: Child,
}

impl Part {
    /// `words` is the program and its arguments.
    pub fn start(words: &[&str], folder: &Path) -> Part {
        let log = fs::File::create(folder.join("log")).expect("a log");
        // The shell is killed by nobody, so it always gets to end the part.
        let script = "\"$@\" & part=$!; read -r line; kill -9 $part; wait $part";
        let watcher = Command::new("sh")
            .args(["-c", script, "part"])
            .args(words)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .spawn()
            .expect("a shell");
        Part { watcher }
    }

    /// `kill -9`, and it is gone when this returns.
    pub fn kill(&mut self) {
        drop(self.watcher.stdin.take());
        let _ = self.watcher.wait();
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A NATS server with JetStream.
pub struct Nats {
    part: Option<Part>,
    folder: PathBuf,
    port: u16,
}

impl Nats {
    pub fn start() -> Nats {
        let mut nats = Nats { part: None, folder: scratch("nats"), port: 0 };
        nats.start_again();
        nats
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// `kill -9`; what it acknowledged is in its folder.
    pub fn kill(&mut self) {
        self.part = None;
    }

    /// On the same folder, and on the same port if it had one.
    pub fn start_again(&mut self) {
        for old in ports_files(&self.folder) {
            let _ = fs::remove_file(old);
        }
        let port = if self.port == 0 { "-1".to_owned() } else { self.port.to_string() };
        let folder = self.folder.to_str().expect("a plain path");
        let words = [
            "nats-server",
            "-a",
            "127.0.0.1",
            "-p",
            &port,
            "-js",
            "-sd",
            folder,
            "--ports_file_dir",
            folder,
        ];
        self.part = Some(Part::start(&words, &self.folder));
        let said = wait_for("nats-server (cargo xtask setup installs it)", &self.folder, || {
            let file = ports_files(&self.folder).pop()?;
            serde_json::from_str::<serde_json::Value>(&fs::read_to_string(file).ok()?).ok()
        });
        let url = said["nats"][0].as_str().expect("its address");
        let port = url.rsplit(':').next().and_then(|port| port.parse().ok());
        self.port = port.unwrap_or_else(|| panic!("no port in {url}"));
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn ports_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|it| it.path())
        .filter(|it| it.extension().is_some_and(|it| it == "ports"))
        .collect()
}

/// A Kafka broker, KRaft, one node.
pub struct Kafka {
    part: Option<Part>,
    folder: PathBuf,
    port: u16,
    guarded: Option<Guarded>,
}

/// Ways in that are guarded, beside the open one.
#[derive(Clone, Debug)]
pub struct Guarded {
    /// TLS, for whoever has a certificate of the authority.
    pub tls: u16,
    /// TLS, for whoever knows a user's password.
    pub known: u16,
    /// Holds `ca.pem`, `server.pem` and `server.key`.
    pub papers: PathBuf,
}

impl Guarded {
    pub const USER: &str = "waitroom";
    pub const PASSWORD: &str = "open sesame";
}

impl Kafka {
    /// The one that tests share: it takes its seconds to start.
    pub fn shared() -> &'static Kafka {
        static SHARED: OnceLock<Kafka> = OnceLock::new();
        SHARED.get_or_init(Kafka::start)
    }

    pub fn start() -> Kafka {
        Kafka::start_with(None)
    }

    /// With the papers of this folder.
    pub fn guarded(papers: &Path) -> Kafka {
        Kafka::start_with(Some(papers))
    }

    fn start_with(papers: Option<&Path>) -> Kafka {
        // A broker must be told its ports. Between our look and its own somebody may take one;
        // then it ends, and others are tried.
        for _ in 0..4 {
            let guarded = papers.map(|papers| Guarded {
                tls: free_port(),
                known: free_port(),
                papers: papers.to_owned(),
            });
            let (folder, port) = (scratch("kafka"), free_port());
            let mut kafka = Kafka { part: None, folder, port, guarded };
            kafka.format(free_port());
            kafka.start_again();
            if kafka.is_up() {
                return kafka;
            }
        }
        panic!("no Kafka broker would start");
    }

    pub fn brokers(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Where it is reached with TLS, and with TLS and a password.
    pub fn guards(&self) -> &Guarded {
        self.guarded.as_ref().expect("it was started with papers")
    }

    pub fn kill(&mut self) {
        self.part = None;
    }

    pub fn start_again(&mut self) {
        let words = java("kafka.Kafka", &["server.properties"]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.part = Some(Part::start(&words, &self.folder));
    }

    fn format(&self, controller: u16) {
        let (folder, broker) = (self.folder.display(), self.port);
        let (guards, how) = self.guarded.as_ref().map(guarding).unwrap_or_default();
        let properties = format!(
            "process.roles=broker,controller\nnode.id=1\n{how}\
             listeners=PLAINTEXT://127.0.0.1:{broker}{guards},CONTROLLER://127.0.0.1:{controller}\n\
             advertised.listeners=PLAINTEXT://127.0.0.1:{broker}{guards}\n\
             controller.quorum.voters=1@127.0.0.1:{controller}\n\
             controller.listener.names=CONTROLLER\nlog.dirs={folder}/data\n\
             offsets.topic.replication.factor=1\noffsets.topic.num.partitions=1\n\
             transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n\
             group.initial.rebalance.delay.ms=0\nlog.cleaner.enable=false\n\
             num.network.threads=2\nnum.io.threads=2\n"
        );
        fs::write(self.folder.join("server.properties"), properties).expect("a file");
        let mut cluster = vec!["format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", "server.properties"];
        let (user, password) = (Guarded::USER, Guarded::PASSWORD);
        let users = ["256", "512"]
            .map(|bits| format!("SCRAM-SHA-{bits}=[name={user},password={password}]"));
        if self.guarded.is_some() {
            cluster.extend(users.iter().flat_map(|user| ["--add-scram", user.as_str()]));
        }
        let words = java("kafka.tools.StorageTool", &cluster);
        let made = Command::new(&words[0]).args(&words[1..]).current_dir(&self.folder).output();
        let made = made.expect("java is needed for this test: cargo xtask setup");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    /// Whether it listens within its time.
    fn is_up(&self) -> bool {
        let until = Instant::now() + Duration::from_secs(60);
        while Instant::now() < until {
            if std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        false
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The listeners of a guarded broker, and how they are guarded.
fn guarding(of: &Guarded) -> (String, String) {
    let papers = &of.papers;
    // Key and certificates are one file to it.
    let read = |name: &str| fs::read_to_string(papers.join(name)).expect("papers");
    let both = papers.join("broker.pem");
    fs::write(&both, read("server.key") + &read("server.pem")).expect("a file");
    let (tls, known, both, ca) = (of.tls, of.known, both.display(), papers.join("ca.pem"));
    let (ca, user, password) = (ca.display(), Guarded::USER, Guarded::PASSWORD);
    let modules = "org.apache.kafka.common.security";
    let scram = |bits| {
        let name = format!("listener.name.known.scram-sha-{bits}.sasl.jaas.config");
        format!("{name}={modules}.scram.ScramLoginModule required;\n")
    };
    let how = format!(
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:SSL,\
         KNOWN:SASL_SSL\ninter.broker.listener.name=PLAINTEXT\n\
         ssl.keystore.type=PEM\nssl.keystore.location={both}\n\
         ssl.truststore.type=PEM\nssl.truststore.location={ca}\n\
         listener.name.tls.ssl.client.auth=required\n\
         sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512\n\
         listener.name.known.plain.sasl.jaas.config={modules}.plain.PlainLoginModule required \
         user_{user}=\"{password}\";\n{}{}",
        scram(256),
        scram(512),
    );
    (format!(",TLS://127.0.0.1:{tls},KNOWN://127.0.0.1:{known}"), how)
}

pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address").port()
}

/// A small heap and no second compiler: it starts in half the time and serves a test well.
fn java(class: &str, arguments: &[&str]) -> Vec<String> {
    let class_path = format!("{}/*", jars().display());
    let flags = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", &class_path];
    let words = ["java"].into_iter().chain(flags).chain([class]).chain(arguments.iter().copied());
    words.map(str::to_owned).collect()
}

/// The broker's jars, fetched once into `target/tools`.
fn jars() -> &'static Path {
    static JARS: OnceLock<PathBuf> = OnceLock::new();
    JARS.get_or_init(|| {
        let tools = temporary().parent().expect("target").join("tools");
        let jars = tools.join("kafka-3.9.1");
        let done = jars.join("made");
        if !done.exists() {
            // Below `crates/outbox` or `server`: both are used from there.
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
            let pom = "crates/outbox/tests/outbox/kafka-broker/pom.xml";
            let pom = root.map(|it| it.join(pom)).find(|it| it.exists()).expect("the list of jars");
            let fetched = Command::new("mvn")
                .args(["-q", "-B", "-f"])
                .arg(&pom)
                .arg(format!("-Dmaven.repo.local={}", tools.join("maven").display()))
                .arg("dependency:copy-dependencies")
                .arg(format!("-DoutputDirectory={}", jars.display()))
                .output()
                .expect("mvn is needed for this test: cargo xtask setup");
            let said = String::from_utf8_lossy(&fetched.stdout);
            assert!(fetched.status.success(), "the jars of Kafka could not be fetched: {said}");
            fs::write(done, "").expect("a mark");
        }
        jars
    })
}

fn wait_for<T>(what: &str, folder: &Path, mut found: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = found() {
            return found;
        }
        let log = || fs::read_to_string(folder.join("log")).unwrap_or_default();
        assert!(Instant::now() < until, "{what} did not start: {}", log());
        std::thread::sleep(Duration::from_millis(20));
    }
}
