//! `bench cluster`: durable joins through engines on one redis-server, beside the classic design on
//! another one: what both cost Redis in CPU time and in bytes, and how long a takeover takes.
//!
//! Instances are processes of their own (`instance.rs`), each an engine on the store on Redis at
//! `redis-sync`: no replica, every write on the disk before it is answered. The peer's writes are
//! synced once a second. First each instance has a room of its own (`instance.rs`), then all share
//! one, and those who do not own it send joins on (`member.rs`).

mod hand;
mod instance;
mod member;

use std::time::{Duration, Instant};

use self::hand::Hand;
use super::Scale;
use super::classic::{Classic, Settings};
use super::cpu::{Cores, ROUNDS};
use super::redis::server::{AppendOnly, Server};
use super::report::{Better, Expected, Figure, Measure};
use crate::failure::{Failure, OrFail, Outcome};

pub use self::instance::part;

/// Each waits for its answer before it asks again. So many together, however many instances.
const PRODUCERS: usize = 4_000;
const INSTANCES: [usize; 3] = [1, 2, 3];

/// How much is done.
struct Sizes {
    round: Duration,
    people: u64,
}

impl Sizes {
    fn of(scale: Scale) -> Sizes {
        match scale {
            Scale::Full => Sizes { round: Duration::from_secs(2), people: 1_000_000 },
            Scale::Quick => Sizes { round: Duration::from_millis(500), people: 100_000 },
        }
    }
}

/// Which rooms instances write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rooms {
    /// Each its own.
    Own,
    /// All the same.
    Shared,
}

fn room_of(instance: usize) -> String {
    format!("sale-{instance}")
}

pub fn run(scale: Scale) -> Outcome<Vec<Figure>> {
    let sizes = Sizes::of(scale);
    let (mut rates, mut shared) = (Vec::new(), Vec::new());
    for instances in INSTANCES {
        rates.push(joins(instances, Rooms::Own, &sizes)?);
        shared.push(joins(instances, Rooms::Shared, &sizes)?);
    }
    let handover = handover()?;
    let anonymous = bytes("anonymous", &sizes)?;
    let known = bytes("known", &sizes)?;
    let takeover = takeover(&sizes)?;
    let warm_takeover = warm_takeover(&sizes)?;
    let classic = Classic::measure(&Settings::new(scale, AppendOnly::EverySecond))?;

    let per_cpu = |name: &str, value: f64| Measure::new(name, value, "1/cpu s");
    let classic_cpu = || per_cpu("classic_joins_per_cpu_s_everysec", classic.joins.per_cpu_second);
    let size = |name: &str, value: f64| Measure::new(name, value, "bytes");
    let classic_size = || size("classic_bytes_per_member", classic.bytes_per_member);
    let most = rates.last().expect("there are instances");
    let mut figures = vec![
        Figure::beside(
            per_cpu("joins_per_redis_cpu_vs_classic", most.per_redis_cpu),
            classic_cpu(),
            Better::Higher,
        )
        .expect(Expected::RatioAtLeast(5.0)),
        Figure::beside(
            size("bytes_in_redis_vs_classic", anonymous.settled),
            classic_size(),
            Better::Lower,
        )
        .expect(Expected::RatioAtLeast(10.0)),
        // The classic design does not know whether somebody has a place already; this does.
        Figure::beside(
            size("bytes_in_redis_vs_classic_identity", known.settled),
            classic_size(),
            Better::Lower,
        )
        .expect(Expected::RatioAtLeast(5.0)),
        Figure::alone("takeover_ms_1m", takeover.total, "ms").expect(Expected::AtMost(3_000.0)),
        Figure::alone("takeover_open_ms_1m", takeover.open, "ms"),
        Figure::alone("takeover_warm_ms_1m", warm_takeover, "ms").expect(Expected::AtMost(3_000.0)),
        Figure::of(size("bytes_in_redis_most", anonymous.most)),
        Figure::of(size("bytes_in_redis_most_identity", known.most)),
        Figure::of(size("network_bytes_per_join", most.bytes_sent)),
    ];
    for (word, rates) in [("", &rates), ("_shared", &shared)] {
        for (instances, rate) in INSTANCES.iter().zip(rates) {
            let name = format!("joins_per_redis_cpu{word}_{instances}_instances");
            figures.push(Figure::beside(
                per_cpu(&name, rate.per_redis_cpu),
                classic_cpu(),
                Better::Higher,
            ));
            let name = format!("joins_per_s{word}_{instances}_instances");
            figures.push(Figure::alone(&name, rate.per_second, "1/s"));
        }
    }
    figures.push(Figure::alone("handover_join_p99_ms", handover.p99, "ms"));
    figures.push(Figure::alone("handover_join_slowest_ms", handover.slowest, "ms"));
    figures.push(Figure::alone("handover_ms", handover.took, "ms"));
    Ok(figures)
}

/// The best of five rounds, by each measure.
struct Reached {
    per_second: f64,
    per_redis_cpu: f64,
    /// What Redis read from the network for one join.
    bytes_sent: f64,
}

fn start(core: usize) -> Outcome<Server> {
    Server::start(AppendOnly::Always, core)
}

fn joins(instances: usize, rooms: Rooms, sizes: &Sizes) -> Outcome<Reached> {
    let cores = Cores::split()?;
    let server = start(cores.server)?;
    let each = PRODUCERS / instances;
    let which = if rooms == Rooms::Own { "a room each" } else { "one room" };
    eprintln!(
        "{instances} instances with {which} and {each} producers each on core {}, {} on core {}, \
         {ROUNDS} rounds of {:?}",
        cores.client,
        server.line(),
        cores.server,
        sizes.round
    );
    let mut hands: Vec<Hand> = match rooms {
        Rooms::Shared => members(instances, each, &server, cores.client)?,
        Rooms::Own => {
            let own = |number| {
                let (address, room) = (server.address(), room_of(number));
                Hand::start(&format!("instance {address} {room} {each} anonymous"), cores.client)
            };
            (0..instances).map(own).collect::<Outcome<_>>()?
        }
    };
    let mut best = Reached { per_second: 0.0, per_redis_cpu: 0.0, bytes_sent: f64::MAX };
    for _ in 0..ROUNDS {
        let (cpu, read, began) = (server.cpu()?, server.bytes_read()?, Instant::now());
        for hand in &mut hands {
            hand.say(&format!("round {}", sizes.round.as_millis()))?;
        }
        let mut joins = 0.0;
        for hand in &mut hands {
            joins += hand.number()?;
        }
        let wall = began.elapsed().as_secs_f64();
        let spent = (server.cpu()? - cpu).as_secs_f64();
        best.per_second = best.per_second.max(joins / wall);
        best.per_redis_cpu = best.per_redis_cpu.max(joins / spent);
        best.bytes_sent = best.bytes_sent.min((server.bytes_read()? - read) as f64 / joins);
    }
    hands.into_iter().try_for_each(Hand::end)?;
    Ok(best)
}

/// Instances that share a room, when all of them agree on whose it is.
fn members(count: usize, producers: usize, server: &Server, core: usize) -> Outcome<Vec<Hand>> {
    let words = format!("member {} {} {producers}", server.address(), room_of(0));
    let mut hands =
        (0..count).map(|_| Hand::start(&words, core)).collect::<Outcome<Vec<Hand>>>()?;
    owner(&mut hands)?;
    Ok(hands)
}

/// Which of them owns the room, for good.
fn owner(hands: &mut [Hand]) -> Outcome<usize> {
    let count = hands.len();
    let mut owner = None;
    for (at, hand) in hands.iter_mut().enumerate() {
        hand.say(&format!("settled {count}"))?;
        if hand.number()? > 0.0 {
            owner = Some(at);
        }
    }
    owner.ok_or_else(|| Failure::new("the instances do not agree on an owner"))
}

/// What people notice of a planned handover.
struct Handover {
    p99: f64,
    slowest: f64,
    took: f64,
}

/// How long people join while the room changes hands.
const AROUND: Duration = Duration::from_secs(2);

fn handover() -> Outcome<Handover> {
    let cores = Cores::split()?;
    let server = start(cores.server)?;
    eprintln!("three instances, and people who join at two while the third hands the room over");
    let mut hands = members(3, 1, &server, cores.client)?;
    let at = owner(&mut hands)?;
    let mut giver = hands.remove(at);
    for hand in &mut hands {
        hand.say(&format!("slow {}", AROUND.as_millis()))?;
    }
    std::thread::sleep(AROUND / 2);
    giver.say("give")?;
    let took = giver.number()?;
    let (mut p99, mut slowest) = (0.0f64, 0.0f64);
    for hand in &mut hands {
        p99 = p99.max(hand.number()?);
        hand.say("slowest")?;
        slowest = slowest.max(hand.number()?);
    }
    hands.into_iter().chain([giver]).try_for_each(Hand::end)?;
    Ok(Handover { p99, slowest, took })
}

/// What Redis says it allocated for one waiting visitor.
struct Held {
    /// When nothing is written any more.
    settled: f64,
    /// At most on the way there: a snapshot is written before the one it replaces goes.
    most: f64,
}

/// How long Redis must stay at what it is before that counts.
const SETTLED: Duration = Duration::from_secs(2);
const SETTLE_LIMIT: Duration = Duration::from_secs(60);

fn bytes(who: &str, sizes: &Sizes) -> Outcome<Held> {
    let cores = Cores::split()?;
    let server = start(cores.server)?;
    let people = sizes.people;
    eprintln!("{people} people ({who}) join one room, then what they are in Redis");
    let words = format!("instance {} {} 1 {who}", server.address(), room_of(0));
    // Of a server that nobody has used yet: buffers of connections would hide what people cost.
    let before = server.used_memory()?;
    let mut hand = Hand::start(&words, cores.client)?;
    hand.say(&format!("join {people}"))?;
    hand.number()?;
    let began = Instant::now();
    let (mut since, mut last, mut most) = (Instant::now(), 0u64, 0u64);
    while since.elapsed() < SETTLED {
        if began.elapsed() > SETTLE_LIMIT {
            return Err(Failure::new("what Redis holds does not settle"));
        }
        let now = server.used_memory()?;
        // Buffers of connections come and go.
        if now.abs_diff(last) > last / 100 {
            since = Instant::now();
            last = now;
        }
        most = most.max(now);
        std::thread::sleep(Duration::from_millis(50));
    }
    hand.end()?;
    let each = |used: u64| used.saturating_sub(before) as f64 / people as f64;
    Ok(Held { settled: each(last), most: each(most) })
}

struct Takeover {
    /// From the death of the owner to the first join that the next one acknowledges.
    total: f64,
    /// Of that, what the next one did once the lease was free.
    open: f64,
}

fn takeover(sizes: &Sizes) -> Outcome<Takeover> {
    let cores = Cores::split()?;
    let server = start(cores.server)?;
    let (address, room) = (server.address(), room_of(0));
    eprintln!("a room with {} people whose owner is killed", sizes.people);
    let mut owner = Hand::start(&format!("instance {address} {room} 1 known"), cores.client)?;
    let mut next = Hand::start(&format!("next {address} {room} {}", sizes.people), cores.client)?;
    owner.say(&format!("join {}", sizes.people))?;
    owner.number()?;
    let began = Instant::now();
    owner.kill().or_fail(|| "kill the owner")?;
    next.say("take")?;
    let open = next.number()?;
    let total = began.elapsed().as_secs_f64() * 1e3;
    next.end()?;
    Ok(Takeover { total, open })
}

/// The same where the next one has followed the room: from the death of the owner to the first join
/// that is acknowledged, in milliseconds.
fn warm_takeover(sizes: &Sizes) -> Outcome<f64> {
    let cores = Cores::split()?;
    let server = start(cores.server)?;
    eprintln!("a room with {} people whose owner is killed, and who followed it", sizes.people);
    let mut hands = members(2, 1, &server, cores.client)?;
    let at = owner(&mut hands)?;
    let mut owner = hands.remove(at);
    let mut next = hands.remove(0);
    owner.say(&format!("fill {}", sizes.people))?;
    let version = owner.number()?;
    next.say(&format!("seen {version}"))?;
    next.number()?;
    let began = Instant::now();
    owner.kill().or_fail(|| "kill the owner")?;
    next.say("first")?;
    next.number()?;
    let total = began.elapsed().as_secs_f64() * 1e3;
    next.end()?;
    Ok(total)
}
