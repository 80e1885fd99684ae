//! A ticket shop behind the waiting room: what the demo protects.
//!
//! Lives here: a real HTTP origin. A hall of seats, a stock that cannot be oversold, reservations
//! that lapse, a checkout that completes or fails, pages that work without JavaScript.
//! Stays out: the waiting room. The shop knows it as any shop would: by the passes it checks
//! against the public keys, and by the two headers it answers with. It uses the verifier that
//! integrators use and nothing else of ours.
//! Promise: a seat is sold at most once, and to nobody without a pass.
//! Start reading at [`Shop::answer`].

mod checkout;
mod door;
mod form;
mod ledger;
mod page;
mod seat;
mod serve;
mod shop;
mod stock;

pub use checkout::{Checkout, Ended, Hears, Nobody};
pub use door::{Door, Unwelcome};
pub use ledger::{Ledger, Order, Read};
pub use seat::{Hall, Seat};
pub use serve::{Open, serve};
pub use shop::{DoneBy, Settings, Shop};
pub use stock::{Buyer, Count, Error, Hold, Postgres, Reserved, Sold, Sqlite, Stock};
