//! A crowd without tickets before a cache: the gate hears of one of them a second.

use std::process::Command;
use std::time::Instant;

use crate::house::House;
use crate::instance::curl;
use crate::nginx;
use crate::origin::Origin;
use crate::part::deployed;

const CROWD: u64 = 1_000;

#[test]
fn a_thousand_strangers_cost_the_gate_one_request_a_second() {
    let origin = Origin::start();
    let house = House::protect(&origin.url(), &[]);
    let site = deployed(
        "nginx/cache.conf",
        &[("127.0.0.1:8080", house.address()), ("/var/cache/nginx/waitroom", "cache")],
    );
    let proxy = nginx::run(&site);
    let url = format!("{}/sale", proxy.url());
    let began = Instant::now();
    // One program, twenty requests at a time; what stands behind # is counted up and not sent.
    let out = Command::new("curl")
        .args(["-sS", "--parallel", "--parallel-max", "20", "--max-time", "60"])
        .args(["-w", "%{http_code}\n", "-o", "/dev/null", &format!("{url}#[1-{CROWD}]")])
        .output()
        .expect("curl is needed for this test");
    let seconds = began.elapsed().as_secs() + 1;
    let said = String::from_utf8_lossy(&out.stdout);
    let waited = said.lines().filter(|line| *line == "503").count() as u64;
    assert_eq!(waited, CROWD, "{}", String::from_utf8_lossy(&out.stderr));

    // Once more than there were seconds, should one begin while another is answered.
    let report = house.operate("GET", "/admin/v1/gate", "").json();
    let asked = report["sites"][0]["counts"]["waited"].as_u64().expect("the gate's own count");
    assert!(
        asked >= 1 && asked <= seconds + 1,
        "{asked} of {CROWD} in {seconds} s reached the gate"
    );
    assert_eq!(origin.asked(), 0);

    // Nothing of it sticks to somebody who may come in.
    let pass = house.visitor();
    let got = curl(&[&url, "-H", &pass]);
    assert!(got.status == 200 && got.body.contains("GET /sale"), "{got:?}");
    let cookie = pass.replace("Waitroom-Pass: ", "Cookie: wr-pass-default=");
    assert_eq!(curl(&[&url, "-H", &cookie]).status, 200);
    assert_eq!(curl(&[&url]).status, 503, "nor does a page of the shop to somebody who may not");
}
