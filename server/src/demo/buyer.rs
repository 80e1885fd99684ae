//! What the crowd does inside: it buys, as people do, page by page and through the gate.
//!
//! Some only look, some have a card that is declined, some reserve and never pay, and whoever
//! wants a seat that somebody else just took chooses another. Everyone writes down what they were
//! told, so that the shop's ledger can be held against it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use waitroom_crowd::{Doing, Done, Errand, Guest};

use super::wire::{Browser, Got};

/// A card that works, and one that the shop declines.
const CARD: &str = "4242424242424242";
const DECLINED: &str = "4000000000000002";
/// How often somebody tries again when a seat was just taken.
const TRIES: u32 = 6;

/// What somebody can do whose card was declined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterDecline {
    MayTryAgain,
    /// A failed checkout that the room hears of ends the session.
    Leaves,
}

#[derive(Debug)]
pub struct Buyers {
    gate: SocketAddr,
    thinking: Duration,
    after_decline: AfterDecline,
    pub told: Arc<Told>,
}

/// What buyers were told, in the end.
#[derive(Debug, Default)]
pub struct Told {
    pub bought: AtomicU64,
    pub declined: AtomicU64,
    pub looked_only: AtomicU64,
    pub abandoned: AtomicU64,
    pub too_late: AtomicU64,
    pub seat_gone: AtomicU64,
    /// Which seats belong to whom, by what the order pages said; and those said twice.
    seats: Mutex<BTreeMap<String, u64>>,
    pub twice: AtomicU64,
    /// Answers that no shop should give.
    strange: Mutex<Vec<String>>,
}

impl Told {
    pub fn seats(&self) -> u64 {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
    }

    pub fn strange(&self) -> Vec<String> {
        self.strange.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn wonder(&self, said: String) {
        let mut strange = self.strange.lock().unwrap_or_else(PoisonError::into_inner);
        if strange.len() < 20 {
            strange.push(said);
        }
    }
}

impl Buyers {
    pub fn new(gate: SocketAddr, thinking: Duration, after_decline: AfterDecline) -> Buyers {
        Buyers { gate, thinking, after_decline, told: Arc::default() }
    }

    async fn visit(&self, guest: Guest) -> Done {
        let mut luck = Luck(guest.luck);
        let mut browser = Browser::new(self.gate).coming_from(guest.address);
        let who = guest.who;
        // As the waiting page sends people: the pass in the address, once.
        let first = match browser.get(&format!("/?wr_pass={}", guest.pass)).await {
            Ok(got) => got,
            Err(_) => return Done::Leaves,
        };
        // An operator may have closed the room or ended the session since the claim.
        if !(300..400).contains(&first.status) {
            return self.outside(who, &first);
        }
        let to = first.location.unwrap_or_else(|| "/".into());
        let (only_looks, never_pays, declined) = (luck.chance(12), luck.chance(6), luck.chance(10));
        let wants = 1 + luck.below(3) as usize;
        let mut page = browser.get(&to).await;
        for _ in 0..TRIES {
            let Ok(hall) = page else { return Done::Leaves };
            if hall.status == 200 && hall.body.contains("Sold out") {
                self.told.too_late.fetch_add(1, Relaxed);
                return Done::Leaves;
            }
            if !matches!(hall.status, 200 | 409) {
                return self.outside(who, &hall);
            }
            self.think(&mut luck).await;
            if only_looks {
                self.told.looked_only.fetch_add(1, Relaxed);
                return Done::Leaves;
            }
            let form = choose(&hall.body, wants, &mut luck);
            page = browser.post("/reserve", &form).await;
            if page.as_ref().is_ok_and(|it| it.status == 303) {
                if never_pays {
                    self.told.abandoned.fetch_add(1, Relaxed);
                    return Done::Vanishes;
                }
                return self.check_out(&mut browser, &mut luck, who, declined).await;
            }
            if page.as_ref().is_ok_and(|it| it.status == 409) {
                self.told.seat_gone.fetch_add(1, Relaxed);
            }
            // No seat was left on the page: perhaps one comes back.
            if page.as_ref().is_ok_and(|it| it.status == 422) {
                self.think(&mut luck).await;
                page = browser.get("/").await;
            }
        }
        self.told.too_late.fetch_add(1, Relaxed);
        Done::Leaves
    }

    async fn check_out(
        &self,
        browser: &mut Browser,
        luck: &mut Luck,
        who: u64,
        declined: bool,
    ) -> Done {
        if browser.get("/checkout").await.is_err() {
            return Done::Leaves;
        }
        self.think(luck).await;
        if declined {
            let refused =
                browser.post("/pay", &format!("name=Visitor+{who}&card={DECLINED}")).await;
            match refused {
                Ok(got) if got.status == 402 => {
                    self.told.declined.fetch_add(1, Relaxed);
                }
                Ok(got) if got.status == 200 => {
                    self.told.wonder(format!("visitor {who} bought with a card that is declined"));
                }
                _ => {}
            }
            // Half of them have another card.
            if luck.chance(50) || self.after_decline == AfterDecline::Leaves {
                return Done::Leaves;
            }
            self.think(luck).await;
        }
        match browser.post("/pay", &format!("name=Visitor+{who}&card={CARD}")).await {
            Ok(got) if got.status == 200 => self.bought(who, &got),
            // The reservation lapsed while they thought, or the till was stuck.
            Ok(got) if got.status == 409 => {
                self.told.too_late.fetch_add(1, Relaxed);
                Done::Leaves
            }
            Ok(got) => self.outside(who, &got),
            Err(_) => Done::Leaves,
        }
    }

    fn bought(&self, who: u64, got: &Got) -> Done {
        let seats = seats_on(&got.body);
        if seats.is_empty() {
            self.told.wonder(format!("visitor {who} paid and was shown no seats"));
        }
        let mut owners = self.told.seats.lock().unwrap_or_else(PoisonError::into_inner);
        for seat in seats {
            if let Some(other) = owners.insert(seat.clone(), who) {
                self.told.twice.fetch_add(1, Relaxed);
                self.told.wonder(format!("seat {seat} belongs to visitor {other} and to {who}"));
            }
        }
        self.told.bought.fetch_add(1, Relaxed);
        Done::Completed
    }

    /// The gate or the shop says no in the middle: a session that ended, a shop that is stuck.
    fn outside(&self, who: u64, got: &Got) -> Done {
        if !matches!(got.status, 403 | 429 | 502 | 503 | 504) {
            self.told.wonder(format!("visitor {who} was answered {}", got.status));
        }
        Done::Leaves
    }

    async fn think(&self, luck: &mut Luck) {
        let most = self.thinking.as_millis() as u64 * 2;
        tokio::time::sleep(Duration::from_millis(most / 4 + luck.below(most.max(1)))).await;
    }
}

impl Errand for Buyers {
    fn run(&self, guest: Guest) -> Doing<'_> {
        Box::pin(self.visit(guest))
    }
}

/// Up to so many neighbouring seats that can be chosen on this page, as a form.
fn choose(page: &str, wants: usize, luck: &mut Luck) -> String {
    let free: Vec<&str> = page
        .split("name=\"seat\" value=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    if free.is_empty() {
        return "none=".into();
    }
    let from = luck.below(free.len() as u64) as usize;
    let chosen = free.iter().skip(from).take(wants);
    chosen.map(|seat| format!("seat={seat}")).collect::<Vec<_>>().join("&")
}

/// The seats that an order page names.
fn seats_on(page: &str) -> Vec<String> {
    let list = page.split("<ul class=\"seats\"").nth(1).and_then(|it| it.split("</ul>").next());
    let items = list.unwrap_or("").split("<li>").skip(1);
    items.filter_map(|it| it.split('<').next()).map(str::to_owned).collect()
}

/// SplitMix64 from the guest's own luck: the same seed makes the same people.
struct Luck(u64);

impl Luck {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e3779b97f4a7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
        (z ^ (z >> 31)) % end.max(1)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buyer_reads_the_shops_pages() {
        let hall = r#"<input name="seat" value="7" a><input name="seat" value="8" b>"#;
        let form = choose(hall, 3, &mut Luck(1));
        assert!(["seat=7&seat=8", "seat=8"].contains(&form.as_str()), "{form}");
        assert_eq!(choose("<p>Sold out", 2, &mut Luck(1)), "none=");
        let order =
            r#"<ul class="seats" aria-label="x"><li>A7</li><li>B12</li></ul><li>other</li>"#;
        assert_eq!(seats_on(order), ["A7", "B12"]);
    }
}
