//! The promises, in words and in races.

use std::collections::BTreeMap;
use std::sync::Arc;

use waitroom_shop::{Buyer, Error, Reserved, Seat, Sold, Stock};

use crate::Database;

pub async fn all(database: &impl Database) {
    a_reservation_that_lapsed_belongs_to_the_next(database).await;
    several_seats_are_held_together_or_not_at_all(database).await;
    a_button_pressed_twice_buys_once(database).await;
    a_hall_that_is_sold_out_says_so_once(database).await;
    no_seat_is_sold_twice_however_many_want_it(database).await;
}

fn buyer(session: &str) -> Buyer<'_> {
    Buyer { session, pass: "a.b.c", name: "Ana" }
}

async fn a_reservation_that_lapsed_belongs_to_the_next(database: &impl Database) {
    let stock = database.fresh(3).open().await;
    let held = stock.reserve("ana", &[Seat(2)], 1_000, 2_000).await;
    assert_eq!(held, Ok(Reserved::Held));
    let early = stock.reserve("bo", &[Seat(2)], 1_999, 3_000).await;
    assert_eq!(early, Ok(Reserved::Taken(vec![Seat(2)])));
    assert_eq!(stock.sell(buyer("ana"), 2_000).await, Ok(Sold::NothingHeld), "a moment too late");
    assert_eq!(stock.gone(Seat(1), Seat(3), 2_000).await, Ok(vec![]), "also when nobody swept");
    assert_eq!(stock.reserve("bo", &[Seat(2)], 2_000, 3_000).await, Ok(Reserved::Held));
    assert_eq!(stock.sell(buyer("ana"), 2_001).await, Ok(Sold::NothingHeld));
    assert_eq!(stock.lapse(2_999).await, Ok(vec![]));
    assert_eq!(stock.lapse(3_000).await, Ok(vec!["bo".to_owned()]));
    assert_eq!(stock.lapse(3_000).await, Ok(vec![]), "told once");
}

async fn several_seats_are_held_together_or_not_at_all(database: &impl Database) {
    let stock = database.fresh(5).open().await;
    let three = [Seat(1), Seat(2), Seat(3)];
    assert_eq!(stock.reserve("ana", &three, 0, 100).await, Ok(Reserved::Held));
    let both = stock.reserve("bo", &[Seat(3), Seat(4)], 0, 100).await;
    assert_eq!(both, Ok(Reserved::Taken(vec![Seat(3)])));
    assert_eq!(stock.held("bo", 0).await.expect("it looks").seats, []);
    // A new wish is instead of the old one, and only if it can be had.
    assert_eq!(stock.reserve("bo", &[Seat(5)], 0, 100).await, Ok(Reserved::Held));
    let worse = stock.reserve("bo", &[Seat(1)], 0, 100).await;
    assert_eq!(worse, Ok(Reserved::Taken(vec![Seat(1)])));
    assert_eq!(stock.held("bo", 0).await.expect("it looks").seats, [Seat(5)]);
    assert_eq!(stock.reserve("bo", &[Seat(4)], 0, 100).await, Ok(Reserved::Held));
    assert_eq!(stock.gone(Seat(1), Seat(5), 0).await, Ok(vec![Seat(1), Seat(2), Seat(3), Seat(4)]));
    assert_eq!(stock.give_back("ana").await, Ok(()));
    assert_eq!(stock.gone(Seat(1), Seat(5), 0).await, Ok(vec![Seat(4)]));
}

async fn a_button_pressed_twice_buys_once(database: &impl Database) {
    let place = database.fresh(4);
    let (one, other) = (place.open().await, place.open().await);
    for round in 0..8u32 {
        let (session, seat) = (format!("ana-{round}"), Seat(round % 4 + 1));
        if round >= 4 {
            let gone = one.reserve(&session, &[seat], 0, 100).await;
            assert_eq!(gone, Ok(Reserved::Taken(vec![seat])));
            continue;
        }
        assert_eq!(one.reserve(&session, &[seat], 0, 100).await, Ok(Reserved::Held));
        let (a, b) = tokio::join!(one.sell(buyer(&session), 1), other.sell(buyer(&session), 1));
        let sold = [a.expect("it sells"), b.expect("it sells")];
        let now = sold.iter().filter(|it| matches!(it, Sold::Now { .. })).count();
        let before = sold.iter().filter(|it| matches!(it, Sold::Before { .. })).count();
        assert_eq!((now, before), (1, 1), "{sold:?}");
    }
    assert_eq!(one.orders().await.expect("a ledger").len(), 4);
}

async fn a_hall_that_is_sold_out_says_so_once(database: &impl Database) {
    let stock = database.fresh(2).open().await;
    for (session, seat, left) in [("ana", 1, 1), ("bo", 2, 0)] {
        assert_eq!(stock.reserve(session, &[Seat(seat)], 0, 100).await, Ok(Reserved::Held));
        let sold = stock.sell(buyer(session), 1).await;
        assert!(matches!(sold, Ok(Sold::Now { left: found, .. }) if found == left), "{sold:?}");
    }
    let count = stock.count(1).await.expect("it counts");
    assert_eq!((count.sold, count.held, count.free()), (2, 0, 0));
}

/// Three shops, sixty people, twenty seats: whoever was told "yours" is the only one.
async fn no_seat_is_sold_twice_however_many_want_it(database: &impl Database) {
    const SEATS: u32 = 20;
    let place = database.fresh(SEATS);
    let mut shops = Vec::new();
    for _ in 0..3 {
        shops.push(Arc::new(place.open().await));
    }
    let mut people = tokio::task::JoinSet::new();
    for person in 0..60u32 {
        let shop = shops[person as usize % shops.len()].clone();
        people.spawn(
            async move { go_shopping(&shop, person, SEATS).await.expect("the stock works") },
        );
    }
    let mut owners: BTreeMap<Seat, u32> = BTreeMap::new();
    while let Some(done) = people.join_next().await {
        let (person, seats) = done.expect("nobody panics");
        for seat in seats {
            let other = owners.insert(seat, person);
            assert_eq!(other, None, "seat {seat} was sold to {other:?} and to {person}");
        }
    }
    let ledger = shops[0].orders().await.expect("a ledger");
    let lines: Vec<Seat> = ledger.iter().flat_map(|order| order.seats.clone()).collect();
    let each: BTreeMap<Seat, ()> = lines.iter().map(|seat| (*seat, ())).collect();
    assert_eq!(lines.len(), each.len(), "the ledger sells a seat twice: {ledger:?}");
    assert_eq!(owners.len(), lines.len(), "everybody was told what the ledger says");
    assert_eq!(owners.len() as u32, SEATS, "with so many people nothing is left over");
}

/// Wants seats near the same place as everybody, as often as it takes until all are gone.
async fn go_shopping(shop: &Stock, person: u32, seats: u32) -> Result<(u32, Vec<Seat>), Error> {
    let session = format!("person-{person}");
    for attempt in 0..200u32 {
        let gone = shop.gone(Seat(1), Seat(seats), 1).await?;
        let free: Vec<Seat> =
            (1..=seats).map(Seat).filter(|it| gone.binary_search(it).is_err()).collect();
        let count = shop.count(1).await?;
        if count.sold == u64::from(seats) {
            break;
        }
        let at = (person + attempt) as usize % free.len().max(1);
        let wanted: Vec<Seat> =
            free.iter().copied().cycle().skip(at).take(2.min(free.len())).collect();
        if wanted.is_empty() {
            tokio::task::yield_now().await;
            continue;
        }
        if shop.reserve(&session, &wanted, 1, 1_000).await? != Reserved::Held {
            continue;
        }
        // Some think better of it.
        if (person + attempt).is_multiple_of(5) {
            shop.give_back(&session).await?;
            continue;
        }
        if let Sold::Now { seats, .. } = shop.sell(buyer(&session), 2).await? {
            return Ok((person, seats));
        }
    }
    Ok((person, Vec::new()))
}
