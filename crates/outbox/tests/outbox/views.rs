//! The views for people who ask about a sale, on a sale small enough to work out by hand.

use waitroom_core::settings::Rate;
use waitroom_core::{
    Actor, AdmitWhy, Ending, Entry, Epoch, Event, FinishCause, Joined, LaneId, Millis, Number,
    Session, Settings, Status, Ticket, Timestamp, What, codec,
};
use waitroom_outbox::Keeper;
use waitroom_outbox::postgres::Projection;
use waitroom_outbox::sale::{Counting, Sale};
use waitroom_store::{Chain, Head, Link, Stored};

use crate::database::Postgres;
use crate::house::{TestNames, room_name};

/// 2026-05-01 10:00:00 UTC.
const OPENING_MS: u64 = 1_777_629_600_000;

fn at(second: u64) -> Timestamp {
    Timestamp(OPENING_MS + second * 1_000)
}

fn ticket(number: u64) -> Ticket {
    Ticket { lane: LaneId(0), number: Number(number) }
}

fn session(second: u64) -> Session {
    let (issued_at, expires_at) = (at(second), at(second + 600));
    Session { issued_at, expires_at, pass_expires_at: expires_at }
}

fn paces(second: u64, per_minute: u32) -> Event {
    let rate = Some(Rate { count: per_minute, per: Millis(60_000) });
    let settings = Settings { rate, ..Settings::default() }.into();
    What::Configured { settings, by: Actor::new("ops") }.at(at(second))
}

fn joins(second: u64, number: u64) -> Event {
    let joined = Joined { ticket: ticket(number), waiting: 1, ..Joined::default() };
    What::Joined(joined).at(at(second))
}

fn admits(second: u64, number: u64, why: AdmitWhy) -> Event {
    // Number n joins in second n.
    let (joined_at, entry) = (at(number), Entry::MustClaim { by: at(second + 60) });
    let ticket = ticket(number);
    What::Admitted { ticket, joined_at, waiting: 0, why, entry, sealed_user: None }.at(at(second))
}

fn claims(second: u64, number: u64) -> Event {
    What::Claimed { ticket: ticket(number), session: session(second) }.at(at(second))
}

fn ends(second: u64, number: u64, was: Status, ending: Ending) -> Event {
    let (held_until, sealed_user, by) = (None, None, Actor::new("test"));
    let (ticket, waited, waiting) = (ticket(number), Millis(1_000), 0);
    What::Ended { ticket, was, ending, waited, waiting, held_until, sealed_user, by }.at(at(second))
}

/// Seven people: 0 buys, 1 does not show up, 2 leaves, 3 is let in by hand and runs out of time,
/// 4 buys although let in before 3, 5 falls silent, 6 still waits when it is over.
fn sale() -> Vec<Event> {
    let over = What::SaleEnded {
        cause: FinishCause::SoldOut,
        reason: "sold out".into(),
        closed: 1,
        by: Actor::new("ops"),
    };
    let mut sale = vec![What::Opened { epoch: Epoch(1) }.at(at(0)), paces(0, 2)];
    sale.extend((0..7).map(|number| joins(number, number)));
    sale.extend([
        admits(10, 0, AdmitWhy::Paced),
        claims(12, 0),
        admits(20, 1, AdmitWhy::Paced),
        ends(30, 2, Status::Waiting, Ending::Left),
        ends(40, 0, Status::Active, Ending::Completed),
        paces(61, 5),
        admits(62, 4, AdmitWhy::Paced),
        claims(63, 4),
        admits(65, 3, AdmitWhy::Manual),
        claims(66, 3),
        ends(80, 1, Status::Admitted, Ending::NoShow),
        ends(90, 5, Status::Waiting, Ending::Silent),
        ends(100, 4, Status::Active, Ending::Completed),
        ends(200, 3, Status::Active, Ending::SessionOver),
        over.at(at(210)),
    ]);
    sale
}

/// A log of it, in batches of four.
fn log(room: &str) -> Vec<Stored> {
    let room = room_name(room);
    let (mut after, mut chain) = (Head::EMPTY, Chain::START);
    let mut log = Vec::new();
    for (number, events) in (0..).zip(sale().chunks(4)) {
        let mut payload = Vec::new();
        codec::encode(events, &mut payload);
        let link = Link { epoch: 1, nonce: 9, number, after, events: events.len() as u32 };
        chain = chain.next(&room, &link, &payload);
        log.push(Stored {
            after,
            head: link.head(),
            epoch: 1,
            nonce: 9,
            number,
            events: link.events,
            at_ms: 0,
            payload,
            chain,
        });
        after = link.head();
    }
    log
}

#[tokio::test(flavor = "multi_thread")]
async fn every_view_says_what_one_works_out_by_hand() {
    let postgres = Postgres::start().await;
    let keeper = Projection::new(crate::projection::link(&postgres));
    let names = TestNames(None);
    keeper.keep(&room_name("sale"), &names, &log("sale")).await.expect("kept");
    // Another room's people are nobody here.
    keeper.keep(&room_name("other"), &names, &log("other")[..3]).await.expect("kept");
    let client = postgres.client().await;
    client.batch_execute("SET timezone = 'UTC'").await.expect("a setting");
    for (view, columns, should) in [
        (
            "waits",
            "lane, admitted, p50_ms, p90_ms, p95_ms, p99_ms, longest_ms",
            &["0 4 19000 62000 62000 62000 62000"][..],
        ),
        (
            "waits_by_minute",
            "to_char(minute, 'HH24:MI'), admitted, p50_ms, p90_ms, p99_ms, longest_ms",
            &["10:00 2 10000 19000 19000 19000", "10:01 2 58000 62000 62000 62000"],
        ),
        (
            "conversion",
            "joined, admitted, started, completed, round(admitted_share::numeric, 4),
             completed_share",
            &["7 4 3 2 0.5714 0.5"],
        ),
        (
            "drop_off",
            "stage, ending, tickets",
            &[
                "active session_over 1",
                "admitted no_show 1",
                "waiting closed 1",
                "waiting left 1",
                "waiting silent 1",
            ],
        ),
        ("no_shows", "admitted, no_shows, share", &["4 1 0.25"]),
        (
            "throughput",
            "to_char(minute, 'HH24:MI'), paced, by_hand, limit_per_minute",
            &["10:00 2 0 2", "10:01 1 1 5"],
        ),
        // Ranks 1 2 3 4 against 1 2 4 3.
        ("fairness", "lane, admitted, round(rank_correlation::numeric, 6)", &["0 4 0.800000"]),
    ] {
        let all = format!(
            "SELECT concat_ws(' ', {columns}) FROM waitroom.{view} WHERE room = 'sale' ORDER BY 1"
        );
        let rows = client.query(&all, &[]).await.unwrap_or_else(|error| panic!("{view}: {error}"));
        let rows: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(rows, should, "{view}");
    }
    let row = client
        .query_one(
            "SELECT concat_ws(' ', status, head, max_active, rate_per_minute)
             FROM waitroom.rooms WHERE room = 'sale'",
            &[],
        )
        .await
        .expect("the room");
    let max_active = Settings::default().max_active;
    assert_eq!(row.get::<_, String>(0), format!("ended 24 {max_active} 5"));

    // A report comes out the same from the tables and from the log.
    let link = crate::projection::link(&postgres);
    let told = waitroom_outbox::postgres::sale::read(&link, &room_name("sale")).await;
    let told = told.expect("readable").expect("known");
    assert_eq!(told, counted());
    let nobody = waitroom_outbox::postgres::sale::read(&link, &room_name("nowhere")).await;
    assert_eq!(nobody, Ok(None));
}

fn counted() -> Sale {
    let mut counting = Counting::after(0);
    sale().iter().for_each(|event| counting.take(event));
    counting.finish("sale")
}

#[test]
fn the_figures_of_a_log_are_what_one_works_out_by_hand() {
    let sale = counted();
    let people = (sale.joined, sale.admitted, sale.started, sale.completed, sale.no_shows);
    assert_eq!(people, (7, 4, 3, 2, 1));
    let waits = &sale.waits[0];
    assert_eq!((waits.p50_ms, waits.p90_ms, waits.longest_ms), (19_000, 62_000, 62_000));
    assert_eq!(sale.fairness[0].rank_correlation, Some(0.8));
    let gone: Vec<String> = sale
        .drop_off
        .iter()
        .map(|it| format!("{} {} {}", it.stage, it.ending, it.tickets))
        .collect();
    let should = [
        "active session_over 1",
        "admitted no_show 1",
        "waiting closed 1",
        "waiting left 1",
        "waiting silent 1",
    ];
    assert_eq!(gone, should);
    let minutes: Vec<_> = sale
        .minutes
        .iter()
        .map(|it| (it.joined, it.paced, it.by_hand, it.limit_per_minute, it.p50_ms, it.p90_ms))
        .collect();
    let should = [
        (7, 2, 0, Some(2.0), Some(10_000), Some(19_000)),
        (0, 1, 1, Some(5.0), Some(58_000), Some(62_000)),
    ];
    assert_eq!(minutes, should);
}
