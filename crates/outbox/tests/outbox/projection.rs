//! The tables of PostgreSQL against a second, plain fold of the same log.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use tokio::task::JoinHandle;
use tokio_postgres::Client;
use waitroom_core::settings::{ClaimMode, LaneSettings};
use waitroom_core::{
    Actor, Command, EndHow, Ending, Entry, Event, FinishCause, Hold, Join, LaneId, Presented,
    Reply, Settings, Status, What,
};
use waitroom_outbox::carry::Errand;
use waitroom_outbox::postgres::{Link, Projection};
use waitroom_outbox::{Carry, Filter, Keeper, Pace, SinkFigures, Whole};
use waitroom_store::{FileStore, RoomName};

use crate::database::Postgres;
use crate::house::{House, SOON, TestRoom, sink_name};

pub fn link(postgres: &Postgres) -> Link {
    Link { url: postgres.url(), password_file: None }
}

pub fn errand(house: &House, room: &TestRoom, sink: &str) -> Errand<FileStore> {
    Errand {
        store: house.store.clone(),
        room: room.handle.name().clone(),
        name: sink_name(sink),
        names: room.names.clone(),
        filter: Filter::everything(),
        pace: Pace {
            read_bytes: 2 << 10,
            advance_every: Duration::from_millis(20),
            retry_most: Duration::from_millis(300),
            ..Pace::default()
        },
        figures: Arc::new(SinkFigures::default()),
    }
}

fn carried(house: &House, room: &TestRoom, postgres: &Postgres) -> JoinHandle<()> {
    let keeper = Arc::new(Whole::new(Projection::new(link(postgres))));
    tokio::spawn(keeper.carry(errand(house, room, "postgres")))
}

/// A ticket as a reader of the log would write it down.
#[derive(Clone, Debug, Default, PartialEq)]
struct Line {
    id: Option<String>,
    joined_ms: Option<u64>,
    place: Option<i64>,
    status: String,
    waited_ms: Option<i64>,
    ended: Option<(u64, String, String)>,
    admitted: Option<(u64, String, i64)>,
    session: Option<(u64, u64, i64)>,
    session_over: Option<(u64, String)>,
}

type Book = BTreeMap<(i16, i64), Line>;

fn word(ending: Ending) -> &'static str {
    match ending {
        Ending::Completed => "completed",
        Ending::Left => "left",
        Ending::Silent => "silent",
        Ending::TooOld => "too_old",
        Ending::NoShow => "no_show",
        Ending::SessionOver => "session_over",
        Ending::CheckoutFailed => "checkout_failed",
        Ending::CheckoutExpired => "checkout_expired",
        Ending::Revoked => "revoked",
    }
}

/// The log, event by event, without any of the projection's code.
async fn book(house: &House, room: &TestRoom) -> Book {
    let mut book = Book::new();
    for (_, epoch, Event { at, what }) in house.log(room.handle.name()).await {
        let key = |it: waitroom_core::Ticket| (i16::from(it.lane.0), it.number.0 as i64);
        let named = |it| Some(waitroom_outbox::Names::id(&*room.names, it, epoch).to_string());
        match what {
            What::Joined(it) => {
                let line = book.entry(key(it.ticket)).or_default();
                line.id = named(it.ticket);
                line.joined_ms = Some(at.0);
                line.place = Some(it.waiting_in_lane as i64);
                line.status = "waiting".into();
            }
            What::Admitted { ticket, joined_at, why, entry, .. } => {
                let line = book.entry(key(ticket)).or_default();
                let waited = (at.0 - joined_at.0) as i64;
                let why = format!("{why:?}").to_lowercase();
                line.admitted = Some((at.0, why, waited));
                line.waited_ms = Some(waited);
                line.status = "admitted".into();
                if let Entry::Claimed(it) = entry {
                    line.status = "active".into();
                    line.session = Some((it.issued_at.0, it.expires_at.0, 0));
                }
            }
            What::Claimed { ticket, session } => {
                let line = book.entry(key(ticket)).or_default();
                line.status = "active".into();
                line.session = Some((session.issued_at.0, session.expires_at.0, 0));
            }
            What::Renewed { ticket, session } => {
                let line = book.entry(key(ticket)).or_default();
                let kept = line.session.as_mut().expect("only sessions are renewed");
                (kept.1, kept.2) = (session.expires_at.0, kept.2 + 1);
            }
            What::Ended { ticket, was, ending, waited, .. } => {
                let line = book.entry(key(ticket)).or_default();
                let from = format!("{was:?}").to_lowercase();
                line.ended = Some((at.0, from, word(ending).into()));
                line.waited_ms = Some(waited.0 as i64);
                line.status = match ending {
                    Ending::Completed | Ending::Left | Ending::Revoked => word(ending),
                    _ => "expired",
                }
                .into();
                if was == Status::Active {
                    line.session_over = Some((at.0, word(ending).into()));
                }
            }
            What::Moved { from, to, joined_at, .. } => {
                let line = book.entry(key(from)).or_default();
                line.status = "moved".into();
                line.ended = Some((at.0, "waiting".into(), "moved".into()));
                line.waited_ms = Some((at.0 - joined_at.0) as i64);
                let line = book.entry(key(to)).or_default();
                line.id = named(to);
                line.joined_ms = Some(joined_at.0);
                line.status = "waiting".into();
            }
            What::SaleEnded { .. } => {
                for line in book.values_mut().filter(|it| it.status == "waiting") {
                    line.status = "closed".into();
                    line.ended = Some((at.0, "waiting".into(), "closed".into()));
                    line.waited_ms = line.joined_ms.map(|joined| (at.0 - joined) as i64);
                }
            }
            _ => {}
        }
    }
    book
}

fn ms(at: std::time::SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as u64
}

/// The same from the tables.
async fn tables(client: &Client, room: &RoomName) -> Book {
    let rows = client
        .query(
            "SELECT t.lane, t.number, t.id::text, t.joined_at, t.place, t.status, t.waited_ms,
                    t.ended_at, t.ended_from, t.ending, a.at, a.why, a.waited_ms, s.started_at,
                    s.expires_at, s.renewals, s.ended_at, s.ending
             FROM waitroom.tickets t
             LEFT JOIN waitroom.admissions a USING (room, lane, number)
             LEFT JOIN waitroom.sessions s USING (room, lane, number)
             WHERE t.room = $1",
            &[&room.as_str()],
        )
        .await
        .expect("the tables are there");
    let when = |row: &tokio_postgres::Row, column: usize| -> Option<u64> {
        row.get::<_, Option<std::time::SystemTime>>(column).map(ms)
    };
    let line = |row: &tokio_postgres::Row| Line {
        id: row.get(2),
        joined_ms: when(row, 3),
        place: row.get(4),
        status: row.get(5),
        waited_ms: row.get(6),
        ended: when(row, 7).map(|at| (at, row.get(8), row.get(9))),
        admitted: when(row, 10).map(|at| (at, row.get(11), row.get(12))),
        session: when(row, 13)
            .map(|at| (at, when(row, 14).expect("a session has an end"), row.get(15))),
        session_over: when(row, 16).map(|at| (at, row.get(17))),
    };
    rows.iter().map(|row| ((row.get(0), row.get(1)), line(row))).collect()
}

/// Waits until the tables are told everything, and compares.
async fn judge(house: &House, room: &TestRoom, postgres: &Postgres) -> usize {
    let name = room.handle.name();
    let client = postgres.client().await;
    let log = house.log(name).await;
    told(&client, name, log.len() as u64).await;
    let (should, is) = (book(house, room).await, tables(&client, name).await);
    for (key, line) in &should {
        assert_eq!(is.get(key), Some(line), "ticket {key:?}");
    }
    assert_eq!(is.len(), should.len(), "nobody who never joined");
    // The events are all there, once, and in their place.
    let rows = client
        .query(
            "SELECT head, at FROM waitroom.events WHERE room = $1 ORDER BY head",
            &[&name.as_str()],
        )
        .await
        .expect("readable");
    let heads: Vec<(u64, u64)> =
        rows.iter().map(|it| (it.get::<_, i64>(0) as u64, ms(it.get(1)))).collect();
    let should_heads: Vec<(u64, u64)> =
        log.iter().map(|(head, _, event)| (*head, event.at.0)).collect();
    assert_eq!(heads, should_heads);
    // And the room itself agrees.
    let counts = room.handle.board_at(log.len() as u64).await.state().counts();
    let of = |status: &str| should.values().filter(|it| it.status == status).count() as u64;
    for (status, count) in [
        ("waiting", counts.waiting),
        ("admitted", counts.admitted),
        ("active", counts.active),
        ("completed", counts.completed),
        ("left", counts.left),
        ("expired", counts.expired),
        ("moved", counts.moved),
        ("closed", counts.closed),
        ("revoked", counts.revoked),
    ] {
        assert_eq!(of(status), count, "{status}");
    }
    should.len()
}

pub async fn told(client: &Client, room: &RoomName, head: u64) {
    let until = Instant::now() + SOON;
    loop {
        let look = "SELECT head FROM waitroom.rooms WHERE room = $1";
        let row = client.query_opt(look, &[&room.as_str()]).await;
        let at = row.ok().flatten().map_or(0, |row| row.get::<_, i64>(0));
        if at as u64 == head {
            return;
        }
        assert!(Instant::now() < until, "told up to {at} of {head}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A day in which everything happens that can.
struct Day {
    rng: u64,
    known: Vec<Presented>,
}

impl Day {
    fn new(seed: u64) -> Day {
        Day { rng: seed, known: Vec::new() }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.rng = self.rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        (self.rng >> 33) % n
    }

    fn settings(&mut self) -> Settings {
        let claim = if self.below(2) == 0 { ClaimMode::Explicit } else { ClaimMode::OnAdmission };
        let lane = |name: &str| LaneSettings { name: name.into(), weight: 1 };
        Settings {
            queue_all: true,
            rate: None,
            max_active: 100_000,
            lanes: vec![lane("all"), lane("members")],
            claim,
            ..Settings::default()
        }
    }

    async fn step(&mut self, room: &TestRoom) {
        let by = || Actor::new("test");
        let kind = self.below(16);
        let some = |day: &mut Day| {
            let at = day.below(day.known.len().max(1) as u64) as usize;
            day.known.get(at).copied()
        };
        let command = match kind {
            0..=4 => {
                let lane = LaneId(self.below(2) as u8);
                let joins = vec![Command::Join(Join { lane, ..Join::default() }); 8];
                for answer in room.handle.send_many(joins).await.expect("they join") {
                    if let Reply::Joined { ticket, epoch, .. } = answer.reply {
                        self.known.push(Presented::by_service(ticket, epoch));
                    }
                }
                return;
            }
            5 | 6 => Command::AdmitNow { count: 1 + self.below(9), entropy: [1; 16], by: by() },
            7 => Command::Configure { settings: Box::new(self.settings()), by: by() },
            8 => Command::Hold { hold: Hold::Paused { reason: "a pause".into() }, by: by() },
            9 => Command::Resume { by: by() },
            10 if self.below(4) == 0 => {
                let reason = "enough".to_owned();
                Command::Finish { cause: FinishCause::Operator, reason, by: by() }
            }
            10 => Command::Reopen { by: by() },
            other => {
                let Some(ticket) = some(self) else { return };
                match other {
                    11 => Command::Claim(ticket),
                    12 => Command::Leave(ticket),
                    13 => Command::Renew(ticket),
                    14 => {
                        let all = [EndHow::Completed, EndHow::Revoked, EndHow::CheckoutFailed];
                        let how = all[self.below(3) as usize];
                        Command::End { ticket, how, by: by() }
                    }
                    _ => Command::Move { ticket, to: LaneId(1), by: by() },
                }
            }
        };
        // Whatever the room says to it.
        let _ = room.handle.send(command).await.expect("the store takes it");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tables_equal_the_log_after_kills_of_everybody() {
    let mut postgres = Postgres::start().await;
    let house = House::new();
    let room = house.room("spring-sale").await;
    let mut day = Day::new(7);
    for round in 0..30u64 {
        let carrying = carried(&house, &room, &postgres);
        for _ in 0..12 {
            day.step(&room).await;
        }
        tokio::time::sleep(Duration::from_micros(round * 7_919 % 60_000)).await;
        if round % 10 == 9 {
            postgres.kill();
            day.step(&room).await;
            postgres.start_again().await;
        }
        carrying.abort();
        let _ = carrying.await;
    }
    let carrying = carried(&house, &room, &postgres);
    let tickets = judge(&house, &room, &postgres).await;
    assert!(tickets > 300, "a day worth telling: {tickets}");
    carrying.abort();
    house.stop().await;
}

/// What every table holds, in one number each.
async fn sums(client: &Client) -> Vec<(String, String)> {
    let mut sums = Vec::new();
    for (table, order) in [
        ("rooms", "room"),
        ("tickets", "room, lane, number"),
        ("admissions", "room, head"),
        ("sessions", "room, lane, number"),
        ("events", "room, head"),
    ] {
        let sum = format!(
            "SELECT count(*) || ' ' || coalesce(md5(string_agg(t::text, '|' ORDER BY {order})), '')
             FROM waitroom.{table} t"
        );
        let row = client.query_one(&sum, &[]).await.expect("readable");
        sums.push((table.to_owned(), row.get(0)));
    }
    sums
}

#[tokio::test(flavor = "multi_thread")]
async fn forgotten_and_told_again_the_tables_are_the_same() {
    let postgres = Postgres::start().await;
    let house = House::new();
    let room = house.room("spring-sale").await;
    let mut day = Day::new(11);
    for _ in 0..200 {
        day.step(&room).await;
    }
    let carrying = carried(&house, &room, &postgres);
    judge(&house, &room, &postgres).await;
    let client = postgres.client().await;
    let before = sums(&client).await;
    carrying.abort();
    let _ = carrying.await;

    // By the room, as an operator does it; and by the whole schema, as an accident does.
    let keeper = Projection::new(link(&postgres));
    keeper.forget(room.handle.name()).await.expect("forgotten");
    assert!(sums(&client).await.iter().all(|(_, sum)| sum.starts_with("0 ")), "all gone");
    for drop in ["SELECT 1", "DROP SCHEMA waitroom CASCADE"] {
        client.batch_execute(drop).await.expect("gone");
        let carrying = carried(&house, &room, &postgres);
        judge(&house, &room, &postgres).await;
        assert_eq!(sums(&client).await, before, "after {drop}");
        carrying.abort();
        let _ = carrying.await;
    }
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_another_history_are_left_alone() {
    let postgres = Postgres::start().await;
    let (one, other) = (House::new(), House::new());
    let (first, second) = (one.room("sale").await, other.room("sale").await);
    first.join_many(3).await;
    let carrying = carried(&one, &first, &postgres);
    judge(&one, &first, &postgres).await;
    carrying.abort();
    let _ = carrying.await;
    let client = postgres.client().await;
    let before = sums(&client).await;

    // Its batches begin at the same events; only the chain tells.
    second.join_many(3).await;
    second.join_many(50).await;
    let errand = errand(&other, &second, "postgres");
    let figures = errand.figures.clone();
    let keeper = Arc::new(Whole::new(Projection::new(link(&postgres))));
    let carrying = tokio::spawn(keeper.carry(errand));
    let trouble = crate::house::soon("it is said", || figures.trouble()).await;
    assert!(trouble.contains("another history of room sale"), "{trouble}");
    assert_eq!(sums(&client).await, before, "nothing is mixed");
    carrying.abort();
    one.stop().await;
    other.stop().await;
}
