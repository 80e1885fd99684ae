//! `waitroom demo`: a shop, a waiting room before it, a crowd, bots, a console; and the truth.
//!
//! Lives here: bringing all of it up and down in order, and the one loop that watches. The room
//! stands before the shop by the code of `waitroom protect`. The parts: `story.rs` (every number),
//! `buyer.rs` and `bots.rs` (who comes), `live.rs` and `report.rs` (what is told).
//! Up: shop, room, crowd. Down: crowd, room, then the log and the ledger are read by somebody who
//! believes nothing, then the shop.

mod bots;
mod bus;
mod buyer;
mod director;
mod house;
mod live;
mod report;
mod story;
mod wire;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use tokio::sync::watch;
use waitroom_crowd::judge::{Clocks, judge, log};
use waitroom_crowd::{Failed, Mix, Plan, Progress, Remote, Target, run_until};
use waitroom_shop::{
    DoneBy, Door, Hall, Hears, Ledger, Nobody, Postgres, Settings, Shop, Sqlite, Stock,
};
use waitroom_sim::rehearsal::human::parse_number;

use crate::data::{Data, failed, now};
use crate::failure::{Exit, Failure};
use crate::out::Out;
use bots::{Targets, Tries};
use bus::Bus;
use buyer::{AfterDecline, Buyers};
use director::Director;
use house::House;
use live::View;
use report::Seen;
use story::{ROOM, Story, TITLE};

/// Shows the whole thing: a ticket shop, a waiting room before it, a crowd, bots and the console.
///
/// Everything runs on this machine, in a temporary folder, and ends with Ctrl-C and a report. Open
/// the address it prints and stand in line yourself. Exit 1 when something did not hold that was
/// promised: a seat sold twice, a buyer without a pass, a bot that got in, a broken promise.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom demo\n  \
    waitroom demo --fast\n  \
    waitroom demo --fast --bus nats\n  \
    waitroom demo --visitors 10k --seats 5k --stock postgres://me@localhost/test")]
pub struct Demo {
    /// The whole story within a minute, then the report.
    #[arg(long)]
    fast: bool,
    /// How many people come ("3k"). [default: 3000, with --fast 450]
    #[arg(long, value_parser = parse_number, value_name = "PEOPLE")]
    visitors: Option<u64>,
    /// How many seats there are. [default: 2000, with --fast 240]
    #[arg(long, value_parser = parse_number, value_name = "SEATS")]
    seats: Option<u64>,
    /// Where visitors come in. Port 0 picks a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Where operators come in: the console. Port 0 picks a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8081")]
    admin: SocketAddr,
    /// Keeps the stock in PostgreSQL, in a schema of its own that is taken away afterwards.
    #[arg(long, value_name = "URL")]
    stock: Option<String>,
    /// Closes the loop over a bus: the shop says there how checkouts ended, and the room hears it.
    /// `nats` starts a server of its own, `nats=URL` and `kafka=HOST:PORT` use one that runs.
    #[arg(long, value_name = "BUS", value_parser = bus::wanted)]
    bus: Option<bus::Wanted>,
    /// The same seed makes the same people.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// No live view.
    #[arg(long)]
    quiet: bool,
    /// Prints the addresses and the owner's key as one line of JSON on standard output.
    #[arg(long)]
    addresses_json: bool,
    /// Prints the report as one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Demo {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let seats = match self.seats.map(u32::try_from) {
            None => None,
            Some(Ok(seats)) if Hall::new(seats).is_some() => Some(seats),
            Some(_) => {
                let said = "--seats: a hall has between 1 and 200,000 seats";
                return Err(Failure::new(Exit::Usage, said).means("nothing was started"));
            }
        };
        let story = match self.fast {
            true => Story::fast(self.visitors, seats),
            false => Story::leisurely(self.visitors, seats),
        };
        let folder =
            tempfile::Builder::new().prefix("waitroom-demo-").tempdir().map_err(|error| {
                Failure::new(Exit::Io, format!("no temporary folder: {error}"))
                    .means("nothing was started")
            })?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .thread_name("demo")
            .build()
            .map_err(|error| Failure::new(Exit::Io, format!("no threads to run on: {error}")))?;
        runtime.block_on(self.play(&story, folder.path(), out))
    }

    async fn play(&self, story: &Story, folder: &Path, out: &mut Out) -> Result<Exit, Failure> {
        let mut interrupted = Interrupted::listen();
        let bus = match &self.bus {
            Some(wanted) => Some(Bus::start(wanted, folder).await?),
            None => None,
        };
        let shop = Arc::new(self.shop(story, bus.as_ref(), folder).await?);
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let open = waitroom_shop::serve(shop.clone(), here).await.map_err(|error| {
            Failure::new(Exit::Io, format!("the shop has no address: {error}"))
                .means("nothing was started")
        })?;
        let besides = bus.as_ref().map_or(String::new(), Bus::configuration);
        let addresses = [self.listen, self.admin];
        let mut house = House::start(story, &besides, open.address, addresses, folder).await?;
        shop.door.ask_at(house.public);
        self.greet(&house, bus.as_ref(), open.address, out)?;

        let after_decline =
            if bus.is_some() { AfterDecline::Leaves } else { AfterDecline::MayTryAgain };
        let buyers = Arc::new(Buyers::new(house.public, story.thinking, after_decline));
        let (told, tries) = (buyers.told.clone(), Arc::<Tries>::default());
        let history = folder.join("history.jsonl");
        let plan = self.plan(story, &house, buyers, history.clone());
        plan.check(Remote::Refuse)
            .map_err(|wrong| Failure::new(Exit::Usage, wrong.join("\nerror: ")))?;

        let opened = Instant::now();
        let (stop, stopped) = watch::channel(false);
        let targets = Targets { gate: house.public, shop: open.address };
        let bots =
            tokio::spawn(bots::run(targets, story.bot_every, tries.clone(), stopped.clone()));
        let (crowd_at, progress) = watch::channel(Progress::default());
        let director = Director {
            story: story.clone(),
            shop: shop.clone(),
            house: house.eyes(),
            tries: tries.clone(),
            progress,
            began: Instant::now(),
        };
        let directed = tokio::spawn(director.run(View::new(self.quiet), stopped.clone()));

        // The crowd first; then, where a person looks around, until they have seen enough.
        let mut cut_short = false;
        let end = async {
            interrupted.wait().await;
            cut_short = true;
        };
        let crowd = run_until(plan, end, |progress| {
            let _ = crowd_at.send(*progress);
        });
        let crowd = crowd.await.map_err(|failed| match failed {
            Failed::Target(why) => Failure::new(Exit::Unavailable, why),
            Failed::History(why) => Failure::new(Exit::Io, why.to_string()),
        })?;
        if !self.fast && !cut_short {
            eprintln!("\nthe crowd is through; the shop and the console stay open until Ctrl-C");
            interrupted.wait().await;
        }
        let _ = stop.send(true);
        let _ = bots.await;
        let open_for = opened.elapsed();
        let pace = directed.await.unwrap_or_default();
        let heard = match &bus {
            Some(bus) => Some(bus.heard(&house.eyes()).await),
            None => None,
        };
        let room = house.room().await;
        house.end().await?;

        let mut verdict = judge(&[history], Clocks::Each).map_err(|unread| {
            Failure::new(Exit::Io, unread.to_string()).means("the demo ran, but nothing was judged")
        })?;
        let store = Data { dir: folder.join("data") }.open()?;
        let log = now(log::judge_log(&store, &mut verdict));
        let log = log.map_err(|error| failed("read the log", &error))?;
        let broken = |error: waitroom_shop::Error| {
            Failure::new(Exit::Io, format!("the ledger cannot be read: {error}"))
        };
        let orders = shop.stock.orders().await.map_err(broken)?;
        let ledger = Ledger { hall: shop.settings.hall, orders };
        let ledger = match shop.door.keys() {
            Some(keys) => ledger.read(keys, ROOM),
            // Nobody ever showed a pass, so nobody can have bought.
            None => waitroom_shop::Read {
                without_pass: ledger.orders.len() as u64,
                ..Default::default()
            },
        };
        shop.stock.clear_away().await.map_err(broken)?;
        let seen = Seen {
            story,
            seed: self.seed,
            crowd: &crowd,
            told: &told,
            bots: &tries,
            turned_away_by_shop: shop.turned_away(),
            ledger: &ledger,
            room: &room,
            verdict: &verdict,
            log: Some(&log),
            pace: &pace,
            bus: heard.as_ref(),
            open_for,
            cut_short,
        };
        let checks = report::checks(&seen);
        out.tell(report::text(&seen, &checks), &report::json(&seen, &checks))?;
        for wrong in ledger.wrong.iter().chain(&told.strange()) {
            eprintln!("note: {wrong}");
        }
        Ok(if checks.iter().all(|it| it.held) { Exit::Fine } else { Exit::Wrong })
    }

    async fn shop(&self, story: &Story, bus: Option<&Bus>, folder: &Path) -> Result<Shop, Failure> {
        let hall = Hall::new(story.seats).expect("checked when it was read");
        let stock = match &self.stock {
            None => Sqlite::open(&folder.join("stock.sqlite"), hall).map(Stock::Sqlite),
            Some(url) => {
                let schema = format!("waitroom_demo_{}", std::process::id());
                Postgres::open(url, &schema, hall).await.map(Stock::Postgres)
            }
        };
        let stock = stock.map_err(|error| {
            Failure::new(Exit::Unavailable, format!("the stock cannot be opened: {error}"))
                .means("nothing was started")
                .advise("leave --stock out for SQLite, or give postgres://USER@HOST/DATABASE")
        })?;
        let (hears, done_by): (Arc<dyn Hears>, DoneBy) = match bus {
            Some(bus) => (bus.voice(), DoneBy::Checkout),
            None => (Arc::new(Nobody), DoneBy::Header),
        };
        let title = TITLE.into();
        let settings = Settings { title, hall, price_cents: 4_200, hold: story.hold, done_by };
        Ok(Shop::new(settings, stock, Door::of_room(ROOM), hears))
    }

    fn plan(&self, story: &Story, house: &House, buyers: Arc<Buyers>, history: PathBuf) -> Plan {
        let target = Target { host: house.public.ip().to_string(), port: house.public.port() };
        let forever = std::time::Duration::from_secs(24 * 3_600);
        Plan {
            base: "/.waitroom".into(),
            room: ROOM.into(),
            over_ms: story.over.as_millis() as u64,
            shape: story.shape,
            mix: Mix::parse("poll=60,sse=15,ws=25").expect("a constant, and well formed"),
            abandon: 0.12,
            silent: 0.04,
            misbehave: 0.06,
            duration_ms: story.ends_after.unwrap_or(forever).as_millis() as u64,
            own_addresses: true,
            seed: self.seed,
            history: Some(history),
            errand: Some(buyers),
            ..Plan::usual(target, story.visitors)
        }
    }

    /// Where to look, and what with.
    fn greet(
        &self,
        house: &House,
        bus: Option<&Bus>,
        shop: SocketAddr,
        out: &mut Out,
    ) -> Result<(), Failure> {
        if self.addresses_json {
            out.line_now(serde_json::json!({
                "public": house.public.to_string(),
                "admin": house.admin.to_string(),
                "shop": shop.to_string(),
                "key": house.key,
            }))?;
        }
        if !self.quiet {
            eprintln!(
                "waitroom {} demo: a concert, more people than seats",
                env!("CARGO_PKG_VERSION")
            );
            eprintln!("  stand in line   http://{}/", house.public);
            eprintln!("  the console     http://{}/console/", house.admin);
            eprintln!("  its key         {}", house.key);
            eprintln!("  the shop itself http://{shop}/   (serves nobody without a pass)");
            if let Some(bus) = bus {
                let (name, address) = (bus.name(), bus.address());
                eprintln!("  the bus         {name} at {address}: checkouts go through it");
            }
            eprintln!("  Ctrl-C ends it and shows the report");
        }
        Ok(())
    }
}

/// Ctrl-C, or whoever manages us.
struct Interrupted {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Interrupted {
    fn listen() -> Interrupted {
        use tokio::signal::unix::{SignalKind, signal};
        let on = |kind| signal(kind).expect("signals can be listened for");
        Interrupted {
            interrupt: on(SignalKind::interrupt()),
            terminate: on(SignalKind::terminate()),
        }
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
