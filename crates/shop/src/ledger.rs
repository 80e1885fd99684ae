//! The ledger, read again by somebody who believes nothing: what was sold, to whom, by which pass.

use std::collections::BTreeMap;

use waitroom_verifier::{Keys, Presented, Rules, Unseen, Verifier};

use crate::seat::{Hall, Seat};

/// One order as the ledger has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub id: u64,
    /// The ticket that the shop wrote down.
    pub session: String,
    pub pass: String,
    pub paid_at_ms: u64,
    pub seats: Vec<Seat>,
}

#[derive(Clone, Debug)]
pub struct Ledger {
    pub hall: Hall,
    pub orders: Vec<Order>,
}

/// What the ledger says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    pub orders: u64,
    /// Seats that were sold, each counted once.
    pub seats: u64,
    /// Seats that were sold again, or that are not in the hall.
    pub oversold: u64,
    /// Orders whose pass is not good at the time of the payment, is another room's, or names
    /// another ticket; and orders that share a pass.
    pub without_pass: u64,
    /// The first few of what is wrong.
    pub wrong: Vec<String>,
}

const WRONG_KEPT: usize = 10;

impl Ledger {
    /// Looks at every order by the public keys of a room.
    pub fn read(&self, keys: &Keys, room: &str) -> Read {
        // The gate looked at what only the gate can see.
        let rules = Rules::of_room(room).unseen(Unseen { nonce: true, ip: true, user_agent: true });
        let verifier = Verifier::with(keys.clone(), rules);
        let mut read = Read { orders: self.orders.len() as u64, ..Read::default() };
        let (mut sold, mut buyers) = (BTreeMap::new(), BTreeMap::new());
        for order in &self.orders {
            let pass =
                verifier.verify(&order.pass, order.paid_at_ms / 1_000, &Presented::default());
            let why = match pass {
                Err(refused) => Some(format!("its pass is refused: {}", refused.code())),
                Ok(pass) if pass.ticket != order.session => {
                    Some(format!("it names {}, its pass {}", order.session, pass.ticket))
                }
                Ok(pass) => buyers
                    .insert(pass.ticket, order.id)
                    .map(|other| format!("it has the pass of order {other}")),
            };
            if let Some(why) = why {
                read.without_pass += 1;
                read.note(format!("order {}: {why}", order.id));
            }
            for seat in &order.seats {
                if !self.hall.has(*seat) {
                    read.oversold += 1;
                    read.note(format!("order {}: seat {} is not in the hall", order.id, seat.0));
                } else if let Some(other) = sold.insert(*seat, order.id) {
                    read.oversold += 1;
                    read.note(format!("seat {seat}: sold in order {other} and in {}", order.id));
                }
            }
        }
        read.seats = sold.len() as u64;
        read
    }
}

impl Read {
    fn note(&mut self, wrong: String) {
        if self.wrong.len() < WRONG_KEPT {
            self.wrong.push(wrong);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use waitroom_verifier::KeySet;

    fn order(id: u64, seats: &[u32]) -> Order {
        let seats = seats.iter().copied().map(Seat).collect();
        Order { id, session: format!("t{id}"), pass: "a.b.c".into(), paid_at_ms: 1, seats }
    }

    fn read(orders: Vec<Order>) -> Read {
        let keys = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","kid":"a",
            "x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
        let keys = Keys::new(KeySet::parse(keys).expect("a key set"));
        Ledger { hall: Hall::new(10).expect("a hall"), orders }.read(&keys, "room")
    }

    #[test]
    fn a_seat_that_was_sold_twice_and_one_that_is_not_there_are_found() {
        assert_eq!(read(vec![order(1, &[1, 2]), order(2, &[3])]).oversold, 0);
        let twice = read(vec![order(1, &[1, 2]), order(2, &[2])]);
        assert_eq!((twice.oversold, twice.seats), (1, 2));
        assert_eq!(read(vec![order(1, &[10])]).oversold, 0);
        assert_eq!(read(vec![order(1, &[11])]).oversold, 1);
    }

    #[test]
    fn an_order_without_a_good_pass_is_found() {
        let read = read(vec![order(1, &[1])]);
        assert_eq!(read.without_pass, 1);
        assert!(read.wrong[0].contains("refused"), "{:?}", read.wrong);
    }
}
