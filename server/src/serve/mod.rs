//! `waitroom serve`: brings the instance up, says what is where, and takes it down in order.
//!
//! Lives here: wiring and the order of start and stop. Nothing is decided here.
//! Up: data folder, keys, rooms, then listeners, so that whoever connects finds rooms.
//! Down: listeners stop accepting, live channels say goodbye, requests end, rooms write what is
//! on its way and give their leases back. Each step has a deadline and says how it went.

mod acts;
pub mod copies;
mod hooks;
mod installation;
mod keyring;
mod keys;
mod notices;
mod office;
mod outbox;
mod pen;
mod plan;
mod protects;
mod redis;
mod reload;
mod rooms;
mod say;
mod stage;
mod system;
mod together;
mod turns;
mod upkeep;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use waitroom_api::Desk;
use waitroom_api::admin::Admin;
use waitroom_api::caller::Role;
use waitroom_api::desk::{GateDesk, NoticeDesk};
use waitroom_api::grpc::Grpc;
use waitroom_engine::{Config as EngineConfig, Engine, Peers};
use waitroom_gate::{Front, Gate};
use waitroom_listen::{Listener, Peer};
use waitroom_store::seal::MasterKey;
use waitroom_store::system::System;
use waitroom_store::{Entropy, FileStore, MemoryStore, OsEntropy, RoomName, Seams, Store};

use crate::config::{Config, Environment, StoreKind};
use crate::data::Data;
use crate::failure::{Exit, Failure};
use crate::telemetry::{Exporter, Lines};
use installation::House;
pub use installation::secrets_of;
use plan::Door;
pub use protects::Protects;
use reload::Reload;
use rooms::FileRooms;
pub use stage::Stage;
use together::Together;

/// Serves rooms to visitors, services and operators.
///
/// Ends in order on SIGINT or SIGTERM; reads rooms and certificates again on SIGHUP.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom serve --dev\n  \
    waitroom serve --config waitroom.toml")]
pub struct Serve {
    /// Development: plain HTTP on loopback, cookies without Secure, a room `default` that lets
    /// people in only by hand, and X-Forwarded-For believed from loopback.
    #[arg(long)]
    dev: bool,
    /// Development mode on addresses that others can reach: their passes and tickets travel in
    /// the clear.
    #[arg(long, requires = "dev")]
    dev_anywhere: bool,
    /// Where visitors ask.
    #[arg(long, value_name = "ADDRESS")]
    public: Option<SocketAddr>,
    /// Where operators ask.
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<SocketAddr>,
    /// Where services ask by gRPC.
    #[arg(long, value_name = "ADDRESS")]
    grpc: Option<SocketAddr>,
    /// Where other instances on the same Redis reach this one; they share its rooms.
    #[arg(long, value_name = "ADDRESS")]
    cluster: Option<SocketAddr>,
    /// The data folder; made if there is none.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The configuration file; see `waitroom check` for what can stand in it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Prints the chosen addresses as one line of JSON on standard output.
    #[arg(long)]
    addresses_json: bool,
    /// What `waitroom protect` was asked for; it starts the same server.
    #[arg(skip)]
    protects: Option<Protects>,
    /// Who started it from within this program, and ends it.
    #[arg(skip)]
    stage: Option<Stage>,
}

/// The name under which this process holds leases and writes the audit.
const INSTANCE: &str = "waitroom";

impl Serve {
    /// The server that `waitroom protect` starts.
    pub fn to_protect(
        protects: Protects,
        addresses_json: bool,
        data: Option<PathBuf>,
        config: Option<PathBuf>,
    ) -> Serve {
        Serve {
            dev: false,
            // Plain HTTP to others is said loudly instead: the site behind is plain too.
            dev_anywhere: true,
            public: Some(protects.listen),
            admin: Some(protects.admin),
            grpc: None,
            cluster: None,
            data,
            config,
            addresses_json,
            protects: Some(protects),
            stage: None,
        }
    }

    /// The same server, for somebody in this program: it says nothing, and ends when they say so.
    pub fn staged(self, stage: Stage) -> Serve {
        Serve { stage: Some(stage), ..self }
    }

    pub fn run(&self) -> Result<Exit, Failure> {
        let config = self.configured()?;
        self.check(&config)?;
        let lines = Lines::begin(&config.log);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .thread_name("waitroom")
            .build()
            .map_err(|error| Failure::new(Exit::Io, format!("no threads to run on: {error}")))?;
        runtime.block_on(self.start(config, lines))?;
        Ok(Exit::Fine)
    }

    /// The file and the environment, and what the command line says over both.
    fn configured(&self) -> Result<Config, Failure> {
        let loaded = Config::load(self.config.as_deref(), &Environment::of_this_process());
        let mut config = loaded.map_err(|mistakes| {
            Failure::new(mistakes.exit(), mistakes.to_string()).means("nothing was started")
        })?;
        let server = &mut config.server;
        server.dev |= self.dev;
        server.public = self.public.unwrap_or(server.public);
        server.admin = self.admin.or(server.admin);
        server.grpc = self.grpc.or(server.grpc);
        config.cluster.listen = self.cluster.or(config.cluster.listen);
        if config.cluster.listen.is_some() && config.store.kind != StoreKind::Redis {
            return Err(Failure::new(Exit::Usage, "--cluster needs a store of kind \"redis\"")
                .means("nothing was started"));
        }
        let server = &mut config.server;
        if let Some(data) = &self.data {
            server.data = data.clone();
        }
        if let Some(protects) = &self.protects {
            protects.lay_over(&mut config);
        }
        Ok(config)
    }

    /// Development mode must not be reachable by others by mistake.
    fn check(&self, config: &Config) -> Result<(), Failure> {
        let server = &config.server;
        let doors = [Some(server.public), server.admin, server.grpc, config.cluster.listen];
        let outside = doors.into_iter().flatten().find(|it| !it.ip().is_loopback());
        match outside {
            Some(address) if server.dev && !self.dev_anywhere => {
                let said = format!("development mode is plain HTTP, and {address} is not loopback");
                let advice =
                    "use 127.0.0.1, or leave --dev out, or add --dev-anywhere if you mean it";
                Err(Failure::new(Exit::Usage, said).means("nothing was started").advise(advice))
            }
            _ => Ok(()),
        }
    }

    async fn start(&self, config: Config, lines: Lines) -> Result<(), Failure> {
        let seams = Seams::real();
        match config.store.kind {
            StoreKind::Memory => {
                let master = MasterKey::generate();
                let store = MemoryStore::new(seams.clone());
                self.serve(config, lines, seams, store, master).await
            }
            StoreKind::File => {
                let master = master_key(&config)?;
                let data = Data { dir: config.server.data.clone() };
                let opened = FileStore::open(&data.dir, plan::store(&config), seams.clone());
                let (store, report) = opened.map_err(|error| data.refused(&error))?;
                crate::data::warn(&report);
                self.serve(config, lines, seams, store, master).await
            }
            StoreKind::Redis => {
                let master = master_key(&config)?;
                let store = redis::open(&config, seams.clone()).await?;
                self.serve(config, lines, seams, store, master).await
            }
        }
    }

    async fn serve<S: Store + Clone>(
        &self,
        config: Config,
        lines: Lines,
        seams: Seams,
        store: S,
        master: MasterKey,
    ) -> Result<(), Failure> {
        say::starting(&config);
        let instance = instance(&config);
        let exporter = Exporter::begin(&config.telemetry, &instance);
        let system = System::open(store.clone(), master.clone(), seams.clone(), &instance).await;
        let mut system = system.map_err(|error| {
            Failure::new(Exit::Wrong, format!("the _system log cannot be read: {error}"))
                .coded("WR-2106")
                .means("no room can be served without its keys: the server does not start")
                .advise("mend the store, or restore the newest backup")
        })?;
        let kept: Vec<RoomName> =
            system.rooms().filter_map(|(name, _)| RoomName::parse(name).ok()).collect();
        let among = config.cluster.listen.map(|it| bind(&config, Door::Cluster, it)).transpose()?;
        let cluster = among.as_ref().map(|among| {
            together::cluster(&config, &instance, among, &master, seams.clock.clone())
        });
        let cluster = cluster.transpose()?;
        if cluster.is_some() {
            system.share();
        } else if config.store.kind == StoreKind::Redis {
            redis::wait_for_leases(&store, kept.iter().chain(config.rooms.keys())).await?;
        }
        let mut engine_config =
            plan::engine(&config, EngineConfig::new(&instance, Arc::new(master.clone())));
        engine_config.peers = cluster.clone().map(|cluster| cluster as Arc<dyn Peers>);
        let engine = Engine::new(Arc::new(store.clone()), seams.clone(), engine_config);
        let house = House::new(engine, system, store, &seams, master, &instance, cluster.clone());
        let house = Arc::new(house);
        let mut together = match (cluster, among) {
            (Some(cluster), Some(among)) => Some(Together::join(cluster, among, &house).await?),
            _ => None,
        };
        let up = Up { seams, house, kept, exporter, instance };
        let served = self.attend(config, lines, &up, &mut together).await;
        // However it ended, also on the way up: leases are given back, so that nobody waits for
        // them, and the others do not count with us.
        up.house.engine.stop().await;
        if let Some(together) = together {
            together.leave(&up.house.store).await;
        }
        served?;
        if let Some(exporter) = up.exporter {
            exporter.finish().await;
        }
        say::down();
        Ok(())
    }

    /// Opens rooms and doors, serves until it is asked to end, and closes the doors again.
    async fn attend<S: Store + Clone>(
        &self,
        config: Config,
        lines: Lines,
        up: &Up<S>,
        together: &mut Option<Together>,
    ) -> Result<(), Failure> {
        let Up { seams, house, kept, instance, .. } = up;
        // Bound before rooms are opened, so that a taken port is told at once, and answers know
        // their own address; nobody is answered before the rooms are there.
        let public = bind(&config, Door::Public, config.server.public)?;
        let admin = config.server.admin.map(|it| bind(&config, Door::Admin, it)).transpose()?;
        let services = config.server.grpc.map(|it| bind(&config, Door::Grpc, it)).transpose()?;
        let addresses = say::Addresses {
            public: public.local_addr(),
            admin: admin.as_ref().map(Listener::local_addr),
            grpc: services.as_ref().map(Listener::local_addr),
        };
        let fresh_key = owner_key(&config, house).await?;
        let signatures = keys::signatures(house, &config, seams.clock.wall_ms() / 1_000).await?;
        // Before somebody's site plain HTTP says nothing about who asks.
        let keyless = config.server.dev && self.protects.is_none();
        let manners = plan::manners(&config, addresses.public, keyless);
        let desk = Arc::new(Desk::new(house.clone(), signatures, manners, seams.clock.clone()));
        plan::metrics(&config, &desk, &public, admin.as_ref(), services.as_ref());
        if let Some(together) = together {
            together.attend(house, &desk);
        }
        let file = FileRooms::new(config.rooms.clone());
        let rooms = rooms::open(&desk, kept, &file, config.server.dev).await;
        let rooms = rooms.map_err(|problem| {
            let room = problem.room.as_ref().map(RoomName::as_str).unwrap_or("?");
            let said = format!("room {room:?} cannot be set up: {}", problem.detail);
            Failure::new(Exit::Wrong, said).means("the server does not start")
        })?;
        // Ends with us, also when the rest does not come up.
        let mut opening = JoinSet::new();
        opening.spawn(rooms::keep_trying(desk.clone(), file.clone()));

        house.cluster.iter().for_each(|cluster| cluster.is_up());
        let secrets = keys::gate(house).await?;
        let gate = Gate::new(desk.clone(), config.sites.clone(), &secrets)
            .map_err(|why| Failure::new(Exit::Wrong, why).means("the server does not start"))?;
        let gate = Arc::new(gate);
        let known: Arc<dyn GateDesk> = gate.clone();
        let _ = desk.gate.set(Arc::downgrade(&known));

        let endpoints = hooks::open(&config, house).await?;
        let outbox = outbox::begin(&config, house, &desk, endpoints, instance);
        let notices = notices::open(&config, house).await?.map(|office| {
            let known: Arc<dyn NoticeDesk> = office.clone();
            let _ = desk.notices.set(known);
            tokio::spawn(notices::run(office, desk.clone()))
        });
        let mut ending = Ending::listen();
        match (&self.stage, &self.protects) {
            (Some(stage), _) => stage.is_up(&addresses, fresh_key.as_deref()),
            (None, Some(protects)) => {
                say::protects(&addresses, &config, protects, fresh_key.as_deref())
            }
            (None, None) => say::up(&addresses, &config, rooms, fresh_key.as_deref()),
        }
        if let Some(wanted) = public.limits().connections_wanted {
            say::fewer_connections(wanted, public.limits().connections_max);
        }
        if self.addresses_json {
            addresses.print_json();
        }
        let doors = [Some(&public), admin.as_ref(), services.as_ref()];
        let tls = doors.into_iter().flatten().filter_map(Listener::tls);
        let rotation = plan::key_rotation(&config);
        let reload = Reload::new(self.config.clone(), file, tls.collect(), lines);
        let upkeep = upkeep::run(house.clone(), desk.clone(), reload, rotation);
        let upkeep = tokio::spawn(upkeep);
        let gate_upkeep = tokio::spawn(waitroom_gate::upkeep::run(gate.clone()));

        let trusted = Arc::new(plan::trusted(&config));
        let stop = tokio::sync::watch::Sender::new(false);
        let stopped = || {
            let mut stopped = stop.subscribe();
            async move {
                let _ = stopped.wait_for(|stop| *stop).await;
            }
        };
        let mut serving = Vec::new();
        {
            let gate = gate.clone();
            let public = match waitroom_gate::short_way(&gate, trusted.clone()) {
                Some(quick) => public.with_quick(Arc::new(quick)),
                None => public,
            };
            let make = move |peer: &Peer| Front::new(gate.clone(), peer, trusted.clone());
            serving.push((Door::Public, tokio::spawn(public.serve(make, stopped()))));
        }
        if let Some(admin) = admin {
            let desk = desk.clone();
            let make = move |_: &Peer| Admin::new(desk.clone());
            serving.push((Door::Admin, tokio::spawn(admin.serve(make, stopped()))));
        }
        if let Some(services) = services {
            let envoy = waitroom_gate::authz::service(gate.clone(), desk.manners.body_bytes_max);
            let grpc = Grpc::with(desk.clone(), |services| services.add_service(envoy));
            let make = move |peer: &Peer| grpc.connection(peer);
            serving.push((Door::Grpc, tokio::spawn(services.serve(make, stopped()))));
        }
        let why = match &self.stage {
            Some(stage) => stage.ended().await,
            None => ending.asked().await,
        };
        say::stopping(why, config.server.drain);
        // First of all, while visitors are still served here: nobody should notice.
        if let Some(together) = together {
            together.hand_over().await;
        }
        let _ = desk.draining.send(true);
        let _ = stop.send(true);
        for (door, serving) in serving {
            if let Ok(outcome) = serving.await {
                say::closed(door, &outcome);
            }
        }
        opening.shutdown().await;
        upkeep.abort();
        gate_upkeep.abort();
        outbox.stop().await;
        if let Some(notices) = notices {
            notices.abort();
        }
        house.note_use(true).await;
        Ok(())
    }
}

/// What is there before any room is.
struct Up<S: Store + Clone> {
    seams: Seams,
    house: Arc<House<S>>,
    /// The rooms that the installation has.
    kept: Vec<RoomName>,
    exporter: Option<Exporter>,
    instance: String,
}

/// Who we are to other processes on the same store. Process ids are the same in every container.
fn instance(config: &Config) -> String {
    let pid = std::process::id();
    match config.store.kind {
        StoreKind::Redis => format!("{INSTANCE}-{pid}-{:08x}", OsEntropy.next_u128() as u32),
        StoreKind::File | StoreKind::Memory => format!("{INSTANCE}-{pid}"),
    }
}

/// From the environment, from the file that the configuration names, or from one beside the data
/// that is made at the first start.
pub fn master_key(config: &Config) -> Result<MasterKey, Failure> {
    let refused = |error: waitroom_store::seal::KeyError| {
        Failure::new(Exit::Wrong, format!("the master key cannot be used: {error}"))
            .coded("WR-2102")
            .means("the server does not start")
    };
    if let Some(key) = &config.master_key {
        return Ok(key.clone());
    }
    if let Some(path) = &config.store.master_key_file {
        return MasterKey::from_file(path).map_err(refused);
    }
    let data = &config.server.data;
    std::fs::create_dir_all(data).map_err(|error| {
        Failure::new(Exit::Io, format!("data folder {}: cannot be made: {error}", data.display()))
            .means("the server does not start")
    })?;
    MasterKey::from_file_or_new(&data.join("master.key")).map_err(refused)
}

/// The owner's API key: the one of the environment, or a fresh one that is shown once.
async fn owner_key<S: Store + Clone>(
    config: &Config,
    house: &House<S>,
) -> Result<Option<String>, Failure> {
    let failed = |error: waitroom_store::system::SystemError| {
        Failure::new(Exit::Io, format!("the owner's key cannot be kept: {error}"))
            .means("the server does not start")
    };
    if let Ok(key) = std::env::var("WAITROOM_ADMIN_KEY")
        && !key.is_empty()
    {
        house.ensure_key("owner", &key, Role::Owner).await.map_err(failed)?;
        return Ok(None);
    }
    let has_key = house.system.lock().await.api_keys().any(|key| key.revoked_at_ms.is_none());
    if has_key && !config.server.dev {
        return Ok(None);
    }
    let (_, key) = office::fresh_key();
    house.ensure_key("owner", &key, Role::Owner).await.map_err(failed)?;
    Ok(Some(key))
}

fn bind(config: &Config, door: Door, address: SocketAddr) -> Result<Listener, Failure> {
    let name = door.name();
    Listener::bind(plan::listener(config, door, address)).map_err(|error| {
        Failure::new(Exit::Io, format!("{name} listener: {error}"))
            .means("the server does not start")
            .advise(format!("free {address}, or choose another with --{name}"))
    })
}

/// SIGXFSZ, the same number on every Linux that we build for.
const FILE_TOO_LARGE: i32 = 25;

/// The signals that ask the server to end. Listened for before anybody is told where it is: whoever
/// reads the addresses may end it in the same breath.
struct Ending {
    interrupt: Signal,
    terminate: Signal,
}

impl Ending {
    fn listen() -> Ending {
        let on = |kind| signal(kind).expect("signals can be listened for");
        // A file that may not grow is a full disk, not the end: unless somebody listens, the
        // system would end the process where a write should fail.
        drop(on(SignalKind::from_raw(FILE_TOO_LARGE)));
        Ending { interrupt: on(SignalKind::interrupt()), terminate: on(SignalKind::terminate()) }
    }

    /// Waits for one, and says which.
    async fn asked(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "interrupted",
            _ = self.terminate.recv() => "asked to end",
        }
    }
}
