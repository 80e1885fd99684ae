//! Any sequence of steps, held against a stock that is a map in memory.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use waitroom_shop::{Buyer, Reserved, Seat, Sold, Stock};

use crate::{Database, wait_for};

const SEATS: u32 = 6;

#[derive(Clone, Debug)]
enum Step {
    Reserve { who: u8, seats: Vec<u32>, for_ms: u64 },
    Sell { who: u8 },
    GiveBack { who: u8 },
    Lapse,
    Wait { ms: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let who = 0..4u8;
    prop_oneof![
        4 => (who.clone(), proptest::collection::btree_set(1..=SEATS, 1..4), 1..40u64).prop_map(
            |(who, seats, for_ms)| Step::Reserve { who, seats: seats.into_iter().collect(), for_ms }
        ),
        3 => who.clone().prop_map(|who| Step::Sell { who }),
        1 => who.prop_map(|who| Step::GiveBack { who }),
        1 => Just(Step::Lapse),
        2 => (1..30u64).prop_map(|ms| Step::Wait { ms }),
    ]
}

/// Seats by who holds or bought them.
#[derive(Default)]
struct Model {
    held: BTreeMap<Seat, (u8, u64)>,
    sold: BTreeMap<Seat, u8>,
    now: u64,
}

impl Model {
    fn held_by(&self, who: u8) -> Vec<Seat> {
        let live = self.held.iter().filter(|(_, (by, until))| *by == who && *until > self.now);
        live.map(|(seat, _)| *seat).collect()
    }

    fn gone(&self) -> Vec<Seat> {
        let live = self.held.iter().filter(|(_, (_, until))| *until > self.now).map(|it| *it.0);
        let mut gone: Vec<Seat> = live.chain(self.sold.keys().copied()).collect();
        gone.sort();
        gone
    }

    fn reserve(&mut self, who: u8, seats: &[Seat], until: u64) -> Reserved {
        let mine = self.held_by(who);
        let gone = self.gone();
        let taken: Vec<Seat> =
            seats.iter().copied().filter(|it| gone.contains(it) && !mine.contains(it)).collect();
        if !taken.is_empty() {
            return Reserved::Taken(taken);
        }
        self.held.retain(|_, (by, _)| *by != who);
        for seat in seats {
            self.held.insert(*seat, (who, until));
        }
        Reserved::Held
    }

    /// The seats that were bought now, or those that were bought before.
    fn sell(&mut self, who: u8) -> Result<Vec<Seat>, Vec<Seat>> {
        let before: Vec<Seat> =
            self.sold.iter().filter(|(_, by)| **by == who).map(|(seat, _)| *seat).collect();
        if !before.is_empty() {
            return Err(before);
        }
        let seats = self.held_by(who);
        for seat in &seats {
            self.held.remove(seat);
            self.sold.insert(*seat, who);
        }
        Ok(seats)
    }
}

pub fn compare(database: &impl Database, cases: u32) {
    let mut runner =
        TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let steps = proptest::collection::vec(step(), 1..40);
    let ran = runner.run(&steps, |steps| {
        wait_for(async {
            let stock = database.fresh(SEATS).open().await;
            let mut model = Model { now: 1, ..Model::default() };
            for step in &steps {
                take(&stock, &mut model, step).await;
                let gone = stock.gone(Seat(1), Seat(SEATS), model.now).await.expect("it looks");
                assert_eq!(gone, model.gone(), "after {step:?}");
            }
        });
        Ok(())
    });
    if let Err(found) = ran {
        panic!("{found}");
    }
}

async fn take(stock: &Stock, model: &mut Model, step: &Step) {
    let name = |who: u8| format!("visitor-{who}");
    match step {
        Step::Reserve { who, seats, for_ms } => {
            let seats: Vec<Seat> = seats.iter().copied().map(Seat).collect();
            let until = model.now + for_ms;
            let done = stock.reserve(&name(*who), &seats, model.now, until).await;
            assert_eq!(done, Ok(model.reserve(*who, &seats, until)), "{step:?}");
        }
        Step::Sell { who } => {
            let session = name(*who);
            let buyer = Buyer { session: &session, pass: "a.b.c", name: "" };
            let expected = model.sell(*who);
            match (stock.sell(buyer, model.now).await.expect("it sells"), expected) {
                (Sold::Now { seats, left, .. }, Ok(expected)) => {
                    assert_eq!(seats, expected);
                    assert_eq!(left, u64::from(SEATS) - model.sold.len() as u64);
                }
                (Sold::Before { seats, .. }, Err(before)) => assert_eq!(seats, before),
                (Sold::NothingHeld, Ok(none)) if none.is_empty() => {}
                (got, expected) => panic!("{step:?}: {got:?} instead of {expected:?}"),
            }
        }
        Step::GiveBack { who } => {
            stock.give_back(&name(*who)).await.expect("it gives back");
            model.held.retain(|_, (by, _)| by != who);
        }
        Step::Lapse => {
            let now = model.now;
            let mut late: Vec<String> =
                model.held.values().filter(|it| it.1 <= now).map(|it| name(it.0)).collect();
            late.sort();
            late.dedup();
            assert_eq!(stock.lapse(now).await, Ok(late));
            model.held.retain(|_, (_, until)| *until > now);
        }
        Step::Wait { ms } => model.now += ms,
    }
}
