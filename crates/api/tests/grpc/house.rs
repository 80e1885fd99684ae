//! A whole instance in this process: rooms in memory, the gRPC listener on a free port, and a
//! client that speaks the contract.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::uri::PathAndQuery;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status, Streaming};
use waitroom_api::caller::{ApiCaller, Role};
use waitroom_api::desk::{Installation, Manners, Pending, RoomKit, Signatures};
use waitroom_api::grpc::Grpc;
use waitroom_api::grpc::proto::*;
use waitroom_api::limits::Limits;
use waitroom_api::{Code, Desk, Problem, RoomDesk};
use waitroom_core::id::{IdKey, TicketId};
use waitroom_core::settings::ClaimMode;
use waitroom_core::{Actor, Command, EndHow, Settings};
use waitroom_engine::{Config, Engine};
use waitroom_listen::{Listener, Outcome, Peer, Protocols, Settings as ListenSettings, TlsFiles};
use waitroom_pass::{
    AdapterKey, AdapterTokens, Alg, JoinTokens, LiveTickets, Passes, Rotation, TicketTokens,
};
use waitroom_store::seal::MasterKey;
use waitroom_store::{Clock, MachineClock, MemoryStore, OsEntropy, RoomName, Seams};

pub const OPERATOR: &str = "wrk_operator";
pub const VIEWER: &str = "wrk_viewer";
pub const PUBLIC_URL: &str = "https://wait.example";

/// Longer than anything here takes on a busy machine.
pub const SOON: Duration = Duration::from_secs(20);

/// Waits for what must come, and fails where it does not.
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, what).await.expect("it comes within twenty seconds")
}

/// The machine's clock, which a test can put forward.
pub struct Ahead {
    machine: MachineClock,
    ms: AtomicU64,
}

impl Clock for Ahead {
    fn now_ms(&self) -> u64 {
        self.machine.now_ms() + self.ms.load(Ordering::SeqCst)
    }

    fn wall_ms(&self) -> u64 {
        self.machine.wall_ms() + self.ms.load(Ordering::SeqCst)
    }
}

struct Memory {
    engine: Engine<MemoryStore>,
    master: MasterKey,
}

impl Installation for Memory {
    fn open_room<'a>(
        &'a self,
        room: &'a RoomName,
        _: &'a str,
    ) -> Pending<'a, Result<RoomKit, Problem>> {
        Box::pin(async move {
            let opened = self.engine.open(room).await;
            let handle =
                opened.map_err(|error| Problem::new(Code::Unavailable, error.to_string()))?;
            let secret = self.master.hash_key(&format!("ids/{room}"));
            Ok(RoomKit {
                handle,
                ids: IdKey::derive(secret.bytes()),
                identities: self.master.hash_key(&format!("identity/{room}")),
                users: MasterKey::from_bytes([9; 32]),
            })
        })
    }

    fn api_key(&self, secret: &str) -> Option<ApiCaller> {
        let caller = |id: &str, role| Some(ApiCaller { id: id.into(), role });
        match secret {
            OPERATOR => caller("shop", Role::Operator),
            VIEWER => caller("screen", Role::Viewer),
            _ => None,
        }
    }

    fn audit<'a>(
        &'a self,
        _: &'a str,
        _: Option<&'a RoomName>,
        _: &'a str,
        _: serde_json::Value,
    ) -> Pending<'a, Result<(), Problem>> {
        Box::pin(async { Ok(()) })
    }
}

/// How an instance is to be.
#[derive(Default)]
pub struct Wishes {
    pub dev: bool,
    pub tls: Option<TlsFiles>,
    pub body_timeout: Option<Duration>,
}

/// An instance that serves.
pub struct House {
    pub desk: Arc<Desk>,
    pub address: SocketAddr,
    clock: Arc<Ahead>,
    store: Arc<Memory>,
    stop: tokio::sync::oneshot::Sender<()>,
    serving: JoinHandle<Outcome>,
}

/// Nobody enters but by hand.
pub fn by_hand() -> Settings {
    Settings {
        queue_all: true,
        rate: None,
        claim: ClaimMode::OnAdmission,
        keep_user_id: true,
        target_url: "https://shop.example/checkout".into(),
        ..Settings::default()
    }
}

impl House {
    pub async fn open() -> House {
        House::with(Wishes::default()).await
    }

    pub async fn with(wishes: Wishes) -> House {
        let clock = Arc::new(Ahead { machine: MachineClock::new(), ms: AtomicU64::new(0) });
        let seams = Seams { clock: clock.clone(), entropy: Arc::new(OsEntropy) };
        let master = MasterKey::from_bytes([7; 32]);
        let engine = Engine::new(
            Arc::new(MemoryStore::new(seams.clone())),
            seams,
            Config::new("test", Arc::new(master.clone())),
        );
        let store = Arc::new(Memory { engine, master });
        let manners = Manners {
            dev: wishes.dev,
            keyless: wishes.dev,
            limits: Limits::default(),
            body_bytes_max: 16 * 1024,
            admin_body_bytes_max: 256 * 1024,
            bind: Default::default(),
            body_timeout: wishes.body_timeout.unwrap_or(Duration::from_secs(10)),
            public_url: PUBLIC_URL.to_owned(),
        };
        let desk =
            Arc::new(Desk::new(store.clone(), signatures(clock.wall_ms()), manners, clock.clone()));
        let mut settings = ListenSettings::new(vec!["127.0.0.1:0".parse().expect("an address")]);
        settings.protocols = Protocols::Http2;
        settings.tls = wishes.tls;
        let listener = Listener::bind(settings).expect("a free port");
        let address = listener.local_addr();
        let grpc = Grpc::new(desk.clone());
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let serving = tokio::spawn(
            listener.serve(move |peer: &Peer| grpc.connection(peer), async { drop(stopped.await) }),
        );
        House { desk, address, clock, store, stop, serving }
    }

    pub async fn room(&self, name: &str, settings: Settings) -> Arc<RoomDesk> {
        let room = self.bare_room(name).await;
        let settings = Box::new(settings);
        self.send(&room, Command::Configure { settings, by: Actor::new("test") }).await;
        room
    }

    /// A room that nobody gave settings.
    pub async fn bare_room(&self, name: &str) -> Arc<RoomDesk> {
        let name = RoomName::parse(name).expect("a plain name");
        self.desk.open(&name, "test").await.expect("the room opens")
    }

    /// Sends a command, and waits until readers know what it did.
    pub async fn send(&self, room: &RoomDesk, command: Command) {
        let answer = room.send(command).await.expect("it is done");
        soon(room.board_since(answer.version)).await;
    }

    pub async fn admit(&self, room: &RoomDesk, count: u64) {
        let by = Actor::new("test");
        self.send(room, Command::AdmitNow { count, entropy: [3; 16], by }).await;
    }

    pub async fn end(&self, session_id: &str, how: EndHow) {
        let id = TicketId::parse(session_id).expect("an id");
        let (room, ticket) = self.desk.find(id).expect("one of ours");
        self.send(&room, Command::End { ticket, how, by: Actor::new("test") }).await;
    }

    pub fn put_forward(&self, by: Duration) {
        self.clock.ms.fetch_add(by.as_millis() as u64, Ordering::SeqCst);
    }

    pub async fn client(&self) -> Client {
        let mut client = self.nobody().await;
        client.metadata = vec![("x-api-key", OPERATOR)];
        client
    }

    /// Somebody without a key.
    pub async fn nobody(&self) -> Client {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address)).expect("a URI");
        Client::over(soon(endpoint.connect()).await.expect("connected"))
    }

    /// The instance begins to go down, as `waitroom serve` does it.
    pub fn drain(&self) {
        self.desk.draining.send_replace(true);
    }

    /// Rooms that take no command any more, as after a failure of the store.
    pub async fn lose_rooms(&self) {
        self.store.engine.stop().await;
    }

    pub async fn stop(self) -> Outcome {
        self.drain();
        let _ = self.stop.send(());
        let outcome = soon(self.serving).await.expect("it served to the end");
        self.store.engine.stop().await;
        outcome
    }
}

fn signatures(now_ms: u64) -> Signatures {
    let keys = [(1, [5; 32])];
    Signatures {
        tokens: TicketTokens::new(&keys).expect("keys"),
        adapter_tokens: AdapterTokens::new(vec![AdapterKey::Secret(1, [6; 32])], 300)
            .expect("keys"),
        join_tokens: JoinTokens::default(),
        live_tickets: LiveTickets::new(&keys, 100).expect("keys"),
        passes: Arc::new(Passes::generate(Alg::Es256, Rotation::default(), now_ms / 1_000)),
    }
}

/// Speaks the contract.
#[derive(Clone)]
pub struct Client {
    pub channel: Channel,
    pub metadata: Vec<(&'static str, &'static str)>,
}

impl Client {
    pub fn over(channel: Channel) -> Client {
        Client { channel, metadata: Vec::new() }
    }

    pub fn with(&self, metadata: &[(&'static str, &'static str)]) -> Client {
        Client { channel: self.channel.clone(), metadata: metadata.to_vec() }
    }

    pub fn request<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        for (name, value) in &self.metadata {
            request.metadata_mut().insert(*name, value.parse().expect("metadata"));
        }
        request
    }

    pub async fn call<Q, R>(&self, method: &'static str, message: Q) -> Result<R, Status>
    where
        Q: prost::Message + Send + Sync + 'static,
        R: prost::Message + Default + Send + Sync + 'static,
    {
        self.send(method, self.request(message)).await
    }

    pub async fn send<Q, R>(&self, method: &'static str, request: Request<Q>) -> Result<R, Status>
    where
        Q: prost::Message + Send + Sync + 'static,
        R: prost::Message + Default + Send + Sync + 'static,
    {
        let mut grpc = tonic::client::Grpc::new(self.channel.clone());
        soon(grpc.ready()).await.expect("connected");
        let codec = tonic_prost::ProstCodec::default();
        let answer = soon(grpc.unary(request, path(method), codec)).await?;
        Ok(answer.into_inner())
    }

    pub async fn open<Q, R>(
        &self,
        method: &'static str,
        request: Request<Q>,
    ) -> Result<Streaming<R>, Status>
    where
        Q: prost::Message + Send + Sync + 'static,
        R: prost::Message + Default + Send + Sync + 'static,
    {
        let mut grpc = tonic::client::Grpc::new(self.channel.clone());
        soon(grpc.ready()).await.expect("connected");
        let codec = tonic_prost::ProstCodec::default();
        let answer = soon(grpc.server_streaming(request, path(method), codec)).await?;
        Ok(answer.into_inner())
    }

    pub async fn join(&self, user_id: &str, event_id: &str) -> Result<JoinQueueResponse, Status> {
        let request = JoinQueueRequest {
            user_id: user_id.into(),
            event_id: event_id.into(),
            user_agent: "curl".into(),
            ip_address: "192.0.2.1".into(),
        };
        self.call("JoinQueue", request).await
    }

    pub async fn status(&self, session_id: &str) -> Result<GetQueueStatusResponse, Status> {
        self.call("GetQueueStatus", GetQueueStatusRequest { session_id: session_id.into() }).await
    }

    pub async fn leave(&self, session_id: &str) -> Result<LeaveQueueResponse, Status> {
        self.call("LeaveQueue", LeaveQueueRequest { session_id: session_id.into() }).await
    }

    pub async fn positions(
        &self,
        session_id: &str,
    ) -> Result<Streaming<StreamQueuePositionResponse>, Status> {
        let request = StreamQueuePositionRequest { session_id: session_id.into() };
        self.open("StreamQueuePosition", self.request(request)).await
    }
}

/// A method of our service by its name, of another by its whole path.
fn path(method: &'static str) -> PathAndQuery {
    match method.starts_with('/') {
        true => PathAndQuery::from_static(method),
        false => format!("/waitroom.v1.WaitroomService/{method}").parse().expect("a path"),
    }
}

/// The next message, which must come.
pub async fn next<M>(stream: &mut Streaming<M>) -> M {
    soon(stream.message()).await.expect("a message, not a status").expect("not the end")
}
