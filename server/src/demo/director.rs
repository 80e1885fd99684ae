//! Makes the shop slow when the story says so, and looks at everything once a second.

use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use serde_json::Value;
use tokio::sync::watch;
use waitroom_crowd::Progress;
use waitroom_shop::Shop;

use super::bots::Tries;
use super::house::Eyes;
use super::live::{Glance, View};
use super::report::Pace;
use super::story::Story;

#[derive(Debug)]
pub struct Director {
    pub story: Story,
    pub shop: Arc<Shop>,
    pub house: Eyes,
    pub tries: Arc<Tries>,
    pub progress: watch::Receiver<Progress>,
    pub began: Instant,
}

impl Director {
    /// Until the end; says how the pace went.
    pub async fn run(self, mut view: Option<View>, mut end: watch::Receiver<bool>) -> Pace {
        let mut every = tokio::time::interval(Duration::from_secs(1));
        let mut pace = Pace::default();
        let (mut was_slow, mut was_over, mut recovered) = (false, false, false);
        loop {
            tokio::select! {
                _ = every.tick() => {}
                _ = end.wait_for(|end| *end) => return pace,
            }
            let at = self.began.elapsed();
            let slow = self.story.slow;
            let is_slow = (slow.from..slow.to).contains(&at);
            let mut note = |said: String| {
                if let Some(view) = &mut view {
                    view.note(at, said);
                }
            };
            if is_slow != was_slow {
                was_slow = is_slow;
                self.shop.strain(if is_slow { slow.by } else { Duration::ZERO });
                note(match is_slow {
                    true => {
                        format!("the shop is made slow on purpose, by {} ms", slow.by.as_millis())
                    }
                    false => "the shop is as fast as before".into(),
                });
            }
            let glance = self.look(at, is_slow).await;
            if let Some(now) = glance.pace.filter(|_| glance.room == "running") {
                let known = pace;
                if at < slow.from {
                    pace.before = Some(now);
                } else if is_slow || pace.after.is_none() && Some(now) <= pace.lowest {
                    // It lags a window behind the shop, so the lowest may come just after.
                    pace.lowest = Some(pace.lowest.map_or(now, |lowest| lowest.min(now)));
                } else {
                    pace.after = Some(pace.after.map_or(now, |best| best.max(now)));
                }
                if is_slow && pace.lowest < known.lowest.or(known.before) {
                    note(format!("fewer are let in: {now} a minute"));
                }
                if pace.after >= pace.before && pace.after.is_some() && !recovered {
                    recovered = true;
                    note(format!("the pace has recovered: {now} a minute"));
                }
            }
            if glance.room == "ended" && !was_over {
                was_over = true;
                note("sold out: the shop has told the room, and everybody in line is told".into());
            }
            if let Some(view) = &mut view {
                view.show(&glance);
            }
        }
    }

    async fn look(&self, at: Duration, shop_is_slow: bool) -> Glance {
        let progress = *self.progress.borrow();
        let room = self.house.room().await.unwrap_or_default();
        let number = |name: &str| room[name].as_u64().unwrap_or(0);
        let now_ms = UNIX_EPOCH.elapsed().map_or(0, |it| it.as_millis() as u64);
        let stock = self.shop.stock.count(now_ms).await.unwrap_or_default();
        Glance {
            at,
            arrived: progress.arrived,
            visitors: self.story.visitors,
            waiting: number("waiting"),
            inside: number("slots_taken"),
            capacity: self.story.capacity,
            pace: per_min(&room["rate"]),
            ceiling: u64::from(self.story.rate_per_s) * 60,
            sold: stock.sold,
            held: stock.held,
            seats: stock.seats,
            bots_refused: self.tries.refused(),
            shop_is_slow,
            room: room["status"].as_str().unwrap_or("not to be seen").to_owned(),
        }
    }
}

/// "10/s" is 600.
fn per_min(rate: &Value) -> Option<u64> {
    let (count, unit) = rate.as_str()?.split_once('/')?;
    let count: u64 = count.parse().ok()?;
    match unit {
        "s" => Some(count * 60),
        "min" => Some(count),
        "h" => Some(count / 60),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_as_the_room_writes_them() {
        let read = |text: &str| per_min(&Value::from(text));
        assert_eq!([read("10/s"), read("216/min"), read("none")], [Some(600), Some(216), None]);
    }
}
