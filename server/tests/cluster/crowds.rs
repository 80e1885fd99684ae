//! Three and five instances, a crowd at each of them and one that meets all, at the same time: one
//! queue, as all of them together and the log saw it.

use std::path::PathBuf;

use crate::crowd::{Crew, Crowd, judged};
use crate::faults::alone;
use crate::house::House;
use crate::instance::soon;
use crate::spreader::Spreader;

/// Small enough to be full all the time, and a pace that everybody has to wait for.
const SALE: &str = r#"{"rate":"60/s","max_active":40,"queue_all":true,"claim_within":"10s",
    "session_timeout":"20s","pass_life":"2s","pass_leeway":"0s","heartbeat_timeout":"60s"}"#;

fn many_crowds(instances: usize, visitors: u32) {
    let _alone = alone();
    let house = House::of(instances);
    let made = house.instances[0].operate("PUT", "/admin/v1/rooms/sale", SALE);
    assert!(made.status < 300, "{made:?}");
    house.settled(instances);
    let way = Spreader::to(house.instances.iter().map(|it| it.public.clone()));
    let publics = house.instances.iter().map(|it| it.public.as_str()).chain([way.url.as_str()]);
    let crowds: Vec<Crowd> = (1..)
        .zip(publics)
        .map(|(seed, public)| {
            let admin = &house.instances[seed as usize % instances].admin;
            Crowd::start(public, admin, &Crew { visitors, over_s: 4, seed })
        })
        .collect();
    let count = crowds.len() as u64;
    let histories: Vec<PathBuf> = crowds.into_iter().map(|crowd| crowd.ended().1).collect();
    let verdict = judged(&house, &histories);
    assert_eq!((&verdict["kept"], &verdict["broken"]), (&true.into(), &serde_json::json!({})));
    let everybody = count * u64::from(visitors);
    assert!(verdict["tickets"].as_u64() >= Some(everybody), "{verdict}");
    assert!(verdict["admitted"].as_u64() > Some(everybody / 2), "{verdict}");
    assert!(verdict["log"]["events"].as_u64() > Some(2 * everybody), "{verdict}");
    // Every one of them took visitors, and all but one sent something on.
    for instance in &house.instances {
        let shown = soon("the room is quiet", || {
            let shown = instance.operate("GET", "/admin/v1/rooms/sale", "").json();
            (shown["joined"].as_u64() >= Some(everybody)).then_some(shown)
        });
        assert_eq!(shown["max_active"], 40, "{shown}");
    }
}

/// Five; `cargo xtask long cluster` says which others.
#[test]
fn crowds_at_several_instances_find_one_queue() {
    let asked = std::env::var("WAITROOM_CLUSTER_SIZES").unwrap_or_else(|_| "5".into());
    for size in asked.split(',') {
        let instances: usize = size.parse().expect("sizes are numbers, as in 3,5");
        many_crowds(instances, 300 / instances as u32);
    }
}
