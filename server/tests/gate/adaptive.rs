//! An origin made slow on purpose brings the pace down, and it recovers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::house::House;
use crate::instance::{curl, soon};
use crate::origin::Origin;

/// Admissions a minute, as the room's document says.
fn pace(house: &House) -> f64 {
    let room = house.operate("GET", "/admin/v1/rooms/default", "").json();
    let text = room["settings"]["rate"].as_str().unwrap_or_else(|| panic!("{room}")).to_owned();
    let (count, unit) = text.split_once('/').unwrap_or_else(|| panic!("{text}"));
    let count: f64 = count.parse().unwrap_or_else(|_| panic!("{text}"));
    match unit {
        "s" => count * 60.0,
        "min" => count,
        _ => panic!("{text}"),
    }
}

#[test]
fn the_pace_follows_the_origin_between_floor_and_ceiling() {
    let origin = Origin::start();
    let config = "[gate]\nadaptive = true\nadaptive_window = \"1s\"\nadaptive_slow = \"500ms\"\n\
        adaptive_floor = \"30/min\"\nadaptive_ceiling = \"600/min\"\n\
        adaptive_fallback = \"300/min\"\nadaptive_step_percent = 20\n";
    let house = House::protect_with(&origin.url(), config, &[]);
    let pass = house.visitor();
    let slow = Arc::new(AtomicBool::new(false));
    let over = Arc::new(AtomicBool::new(false));
    let crowd: Vec<_> = (0..8)
        .map(|_| {
            let (url, pass) = (house.url.clone(), pass.clone());
            let (slow, over) = (slow.clone(), over.clone());
            std::thread::spawn(move || {
                while !over.load(Relaxed) {
                    let path = if slow.load(Relaxed) { "/lag" } else { "/seen" };
                    curl(&[&format!("{url}{path}"), "-H", &pass]);
                }
            })
        })
        .collect();
    soon("a healthy origin is let up to the ceiling", || (pace(&house) == 600.0).then_some(()));
    slow.store(true, Relaxed);
    soon("a slow one brings it down", || (pace(&house) < 200.0).then_some(()));
    soon("and not below the floor", || (pace(&house) == 30.0).then_some(()));
    slow.store(false, Relaxed);
    soon("it recovers", || (pace(&house) == 600.0).then_some(()));
    over.store(true, Relaxed);
    for visitor in crowd {
        visitor.join().expect("curl ends");
    }
}
