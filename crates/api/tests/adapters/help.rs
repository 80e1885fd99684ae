//! A small installation in memory behind a real listener, a clock that can be moved, and clients
//! that speak HTTP and WebSocket in as few lines as that takes.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use waitroom_api::caller::{ApiCaller, Role};
use waitroom_api::desk::{Installation, Manners, Pending, RoomKit, Signatures};
use waitroom_api::limits::Limits;
use waitroom_api::public::Public;
use waitroom_api::quick::ShortWay;
use waitroom_api::{Desk, Problem, RoomDesk};
use waitroom_core::id::IdKey;
use waitroom_core::settings::ClaimMode;
use waitroom_core::{Actor, Command, Millis, Settings};
use waitroom_engine::{Config, Engine};
use waitroom_listen::{Listener, Nets, Peer, Plain, Quick, Quickly};
use waitroom_pass::{
    AdapterKey, AdapterTokens, Alg, JoinTokens, LiveTickets, Passes, Rotation, TicketTokens,
};
use waitroom_store::seal::MasterKey;
use waitroom_store::{Clock, MachineClock, MemoryStore, OsEntropy, RoomName, Seams};

pub const OWNER: (&str, &str) = ("X-Admin-Key", "owner-key");
pub const OPERATOR: (&str, &str) = ("X-Api-Key", "operator-key");
pub const VIEWER: (&str, &str) = ("X-Admin-Key", "viewer-key");

/// Nothing in these tests takes longer, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Goes with the machine's clock, and ahead of it when told to.
#[derive(Debug, Default)]
pub struct MovableClock {
    machine: MachineClock,
    ahead_ms: AtomicU64,
}

impl Clock for MovableClock {
    fn now_ms(&self) -> u64 {
        self.machine.now_ms() + self.ahead_ms.load(Ordering::SeqCst)
    }

    fn wall_ms(&self) -> u64 {
        self.machine.wall_ms() + self.ahead_ms.load(Ordering::SeqCst)
    }
}

struct House {
    engine: Engine<MemoryStore>,
    master: MasterKey,
    audit: std::sync::Mutex<Vec<(String, Value)>>,
}

impl Installation for House {
    fn open_room<'a>(
        &'a self,
        room: &'a RoomName,
        _who: &'a str,
    ) -> Pending<'a, Result<RoomKit, Problem>> {
        Box::pin(async move {
            let handle = self.engine.open(room).await.expect("memory always opens");
            Ok(RoomKit {
                handle,
                ids: IdKey::derive(&self.master.hash_key("ids").hash(room.as_str().as_bytes())),
                identities: self.master.hash_key(&format!("identity/{room}")),
                users: MasterKey::from_bytes([9; 32]),
            })
        })
    }

    fn api_key(&self, secret: &str) -> Option<ApiCaller> {
        let (word, rest) = secret.split_once('-')?;
        let role = Role::parse(word).filter(|_| rest == "key")?;
        Some(ApiCaller { id: word.into(), role })
    }

    fn audit<'a>(
        &'a self,
        who: &'a str,
        _room: Option<&'a RoomName>,
        action: &'a str,
        detail: Value,
    ) -> Pending<'a, Result<(), Problem>> {
        Box::pin(async move {
            let mut audit = self.audit.lock().expect("nobody panics while holding it");
            audit.push((format!("{who} {action}"), detail));
            Ok(())
        })
    }
}

/// How a test wants its installation.
pub struct Wanted {
    pub dev: bool,
    pub limits: Limits,
}

impl Default for Wanted {
    fn default() -> Wanted {
        Wanted { dev: false, limits: Limits::none() }
    }
}

pub struct Site {
    pub desk: Arc<Desk>,
    house: Arc<House>,
    clock: Arc<MovableClock>,
    pub address: SocketAddr,
    /// The short way, as the server has it.
    pub quick: Arc<Counting>,
    stop: Option<oneshot::Sender<()>>,
}

/// The short way, and how many requests took it.
#[derive(Debug)]
pub struct Counting {
    way: ShortWay,
    taken: AtomicU64,
}

impl Counting {
    fn new(desk: Arc<Desk>, trusted: Arc<Nets>) -> Counting {
        Counting {
            way: ShortWay::new(desk, trusted, &["", "/.waitroom"]),
            taken: AtomicU64::new(0),
        }
    }

    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::SeqCst)
    }
}

impl Quick for Counting {
    fn answer(&self, peer: &Peer, request: &Plain<'_>, out: &mut Vec<u8>) -> Quickly {
        let answer = self.way.answer(peer, request, out);
        if !matches!(answer, Quickly::NotMine) {
            self.taken.fetch_add(1, Ordering::SeqCst);
        }
        answer
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }
}

/// A room where nobody enters but by hand, and the claim is part of the admission.
pub fn by_hand() -> Settings {
    Settings {
        target_url: "https://shop.example/sale?x=1".into(),
        queue_all: true,
        rate: None,
        heartbeat_timeout: Millis::from_secs(3_600),
        claim: ClaimMode::OnAdmission,
        ..Settings::default()
    }
}

impl Site {
    /// With the room `default`.
    pub async fn open() -> Site {
        Site::with(Wanted::default(), by_hand()).await
    }

    pub async fn with(wanted: Wanted, settings: Settings) -> Site {
        let clock = Arc::new(MovableClock::default());
        let seams = Seams { clock: clock.clone(), entropy: Arc::new(OsEntropy) };
        let master = MasterKey::from_bytes([7; 32]);
        // The housekeeper stays out of the way; tests sweep when they want to.
        let config = Config {
            sweep_every: Duration::from_secs(3_600),
            board_every: Duration::from_millis(20),
            ..Config::new("test", Arc::new(master.clone()))
        };
        let store = Arc::new(MemoryStore::new(seams.clone()));
        let engine = Engine::new(store, seams, config);
        let house = Arc::new(House { engine, master, audit: Default::default() });
        let key = [(1, [3; 32])];
        let signatures = Signatures {
            tokens: TicketTokens::new(&key).expect("one key"),
            adapter_tokens: AdapterTokens::new(vec![AdapterKey::Secret(1, [4; 32])], 300)
                .expect("one key"),
            join_tokens: JoinTokens::default(),
            live_tickets: LiveTickets::new(&key, 100).expect("one key"),
            passes: Arc::new(Passes::generate(
                Alg::Es256,
                Rotation::default(),
                clock.wall_ms() / 1_000,
            )),
        };
        let manners = Manners {
            dev: wanted.dev,
            keyless: wanted.dev,
            limits: wanted.limits,
            body_bytes_max: 16 * 1024,
            admin_body_bytes_max: 64 * 1024,
            bind: Default::default(),
            body_timeout: Duration::from_secs(5),
            public_url: String::new(),
        };
        let desk = Arc::new(Desk::new(house.clone(), signatures, manners, clock.clone()));
        let address = "127.0.0.1:0".parse().expect("an address");
        let listener = Listener::bind(waitroom_listen::Settings::new(vec![address]));
        let listener = listener.expect("a free port");
        let address = listener.local_addr();
        let (stop, stopped) = oneshot::channel();
        let serving = desk.clone();
        let trusted = Arc::new(Nets::loopback());
        let quick = Arc::new(Counting::new(desk.clone(), trusted.clone()));
        let listener = listener.with_quick(quick.clone());
        tokio::spawn(listener.serve(
            move |peer: &Peer| Public::new(serving.clone(), peer, trusted.clone()),
            async move {
                let _ = stopped.await;
            },
        ));
        let site = Site { desk, house, clock, address, quick, stop: Some(stop) };
        site.room("default", settings).await;
        site
    }

    /// A room of this name with these settings, new or changed.
    pub async fn room(&self, name: &str, settings: Settings) -> Arc<RoomDesk> {
        let name = RoomName::parse(name).expect("a good name");
        let room = self.desk.open(&name, "test").await.expect("memory always opens");
        self.send(&room, Command::Configure { settings: Box::new(settings), by: actor() }).await;
        room
    }

    /// Sends a command, and waits until everybody can see what it did.
    pub async fn send(&self, room: &RoomDesk, command: Command) {
        let answer = room.send(command).await.expect("the command is taken");
        room.board_since(answer.version).await;
    }

    pub fn default_room(&self) -> Arc<RoomDesk> {
        self.desk.room("default").expect("it was made")
    }

    pub async fn admit(&self, room: &RoomDesk, count: u64) {
        self.send(room, Command::AdmitNow { count, entropy: [1; 16], by: actor() }).await;
    }

    /// Lets time pass, and everything happen that is due by then.
    pub async fn pass_s(&self, seconds: u64) {
        self.clock.ahead_ms.fetch_add(seconds * 1_000, Ordering::SeqCst);
        for room in self.desk.rooms() {
            // A command that does nothing wakes the writer, which sees what time it is.
            self.send(&room, Command::Release { tickets: Vec::new() }).await;
            waitroom_engine::sweep(room.handle().clone()).await;
            room.board_since(room.handle().committed()).await;
        }
    }

    pub fn now_ms(&self) -> u64 {
        self.clock.wall_ms()
    }

    pub fn audited(&self) -> Vec<(String, Value)> {
        self.house.audit.lock().expect("nobody panics while holding it").clone()
    }

    pub async fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        self.ask("POST", path, headers, body).await
    }

    pub async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Reply {
        self.ask("GET", path, headers, "").await
    }

    /// One request on a connection of its own.
    pub async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let mut text = format!("{method} {path} HTTP/1.1\r\nHost: waiting.example\r\n");
        text += "Connection: close\r\n";
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() {
            text += &format!("Content-Length: {}\r\n", body.len());
        }
        text += &format!("\r\n{body}");
        within(async {
            let mut socket = TcpStream::connect(self.address).await.expect("it listens");
            socket.write_all(text.as_bytes()).await.expect("it reads");
            let mut bytes = Vec::new();
            socket.read_to_end(&mut bytes).await.expect("it answers");
            Reply::read(&bytes)
        })
        .await
    }

    /// Enqueues somebody and returns the answer.
    pub async fn enqueue(&self, room: &str) -> Value {
        let path = format!("/api/v1/queues/{room}/enqueue");
        self.post(&path, &[], "").await.expect(201)
    }
}

pub fn actor() -> Actor {
    Actor::new("test")
}

pub fn bearer(token: &Value) -> String {
    format!("Bearer {}", token.as_str().expect("a token is text"))
}

/// A field that is text.
pub fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}"))
}

/// The claims of a JWT, unchecked.
pub fn claims(token: &str) -> Value {
    use base64::Engine as _;
    let payload = token.split('.').nth(1).expect("three parts");
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(payload).expect("base64");
    serde_json::from_slice(&bytes).expect("claims are JSON")
}

pub async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("it happens in time")
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Reply {
    pub fn read(bytes: &[u8]) -> Reply {
        let text = String::from_utf8(bytes.to_vec()).expect("answers are text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let headers = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        Reply { status: status.expect("a status line"), headers, body: body.to_owned() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The JSON of an answer that must have this status.
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        self.json()
    }

    /// Checks an error of the queue API.
    pub fn expect_error(&self, status: u16, code: &str) -> Value {
        let document = self.expect(status);
        assert_eq!(document["error"]["code"], code, "{document}");
        assert!(!text(&document["error"], "message").is_empty());
        assert!(document["error"]["details"].is_object(), "{document}");
        assert_eq!(text(&document, "request_id").len(), 32);
        document
    }
}

/// A WebSocket client that masks, reads whole frames, and answers nothing by itself.
pub struct Socket {
    tcp: TcpStream,
    bytes: Vec<u8>,
}

/// What came over the socket.
#[derive(Debug, PartialEq)]
pub enum Came {
    Text(Value),
    Close(u16),
}

impl Socket {
    /// Opens it, or returns the answer that refused it.
    pub async fn open(site: &Site, path: &str, headers: &[(&str, &str)]) -> Result<Socket, Reply> {
        let mut text = format!("GET {path} HTTP/1.1\r\nHost: waiting.example\r\n");
        text += "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
        text += "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        text += "\r\n";
        within(async {
            let mut tcp = TcpStream::connect(site.address).await.expect("it listens");
            tcp.write_all(text.as_bytes()).await.expect("it reads");
            let mut bytes = Vec::new();
            while !bytes.windows(4).any(|four| four == b"\r\n\r\n") {
                assert_ne!(tcp.read_buf(&mut bytes).await.expect("it answers"), 0);
            }
            let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("found") + 4;
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            if !head.starts_with("http/1.1 101") {
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                let length: usize = length.expect("a length").parse().expect("a number");
                while bytes.len() < end + length {
                    assert_ne!(tcp.read_buf(&mut bytes).await.expect("it answers"), 0);
                }
                return Err(Reply::read(&bytes));
            }
            assert!(
                head.contains("s3pplmbitxaq9kygzzhzrbk+xoo="),
                "the accept of RFC 6455: {head}"
            );
            bytes.drain(..end);
            Ok(Socket { tcp, bytes })
        })
        .await
    }

    pub async fn say(&mut self, text: &str) {
        let mask = [1u8, 2, 3, 4];
        let mut frame = vec![0x81, 0x80 | u8::try_from(text.len()).expect("short")];
        assert!(text.len() < 126);
        frame.extend(mask);
        frame.extend(text.bytes().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        self.tcp.write_all(&frame).await.expect("it reads");
    }

    /// The next text or close; pings are passed over.
    pub async fn next(&mut self) -> Came {
        within(async {
            loop {
                if let Some(came) = self.take() {
                    if let Some(came) = came {
                        return came;
                    }
                    continue;
                }
                let read = self.tcp.read_buf(&mut self.bytes).await.expect("it sends");
                assert_ne!(read, 0, "it closed without a word");
            }
        })
        .await
    }

    /// The next frame of this type, whatever comes before it.
    pub async fn next_of(&mut self, kind: &str) -> Value {
        loop {
            match self.next().await {
                Came::Text(frame) if frame["type"] == kind => return frame["data"].clone(),
                Came::Text(_) => {}
                Came::Close(code) => panic!("closed with {code} before any {kind}"),
            }
        }
    }

    fn take(&mut self) -> Option<Option<Came>> {
        let (&first, &second) = (self.bytes.first()?, self.bytes.get(1)?);
        let (length, at) = match second {
            126 => {
                let high = u16::from(*self.bytes.get(2)?);
                (usize::from(high << 8 | u16::from(*self.bytes.get(3)?)), 4)
            }
            short => (usize::from(short), 2),
        };
        if self.bytes.len() < at + length {
            return None;
        }
        let payload: Vec<u8> = self.bytes.drain(..at + length).skip(at).collect();
        Some(match first & 0x0F {
            1 => Some(Came::Text(serde_json::from_slice(&payload).expect("frames are JSON"))),
            8 => Some(Came::Close(u16::from_be_bytes([payload[0], payload[1]]))),
            _ => None,
        })
    }
}
