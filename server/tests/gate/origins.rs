//! Origins with TLS, and how it is seen which of them live.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::Value;

use crate::house::{House, JSON};
use crate::instance::soon;
use crate::origin::Origin;
use crate::real::Served;

/// An authority, and nginx with a certificate of it for this name.
struct Guarded {
    site: Served,
    ca: PathBuf,
}

impl Guarded {
    fn start(part: &str, name: &str) -> Guarded {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(params, key).expect("a certificate");
        let site = Served::start(part, |address, folder| {
            let key = KeyPair::generate().expect("a key");
            let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
            let cert = params.signed_by(&key, &authority).expect("a certificate");
            fs::write(folder.join("ca.pem"), authority.pem()).expect("a file");
            fs::write(folder.join("cert.pem"), cert.pem()).expect("a file");
            fs::write(folder.join("key.pem"), key.serialize_pem()).expect("a file");
            fs::write(folder.join("large"), "0123456789".repeat(100_000)).expect("a file");
            nginx(folder, &format!("{address} ssl"))
        });
        Guarded { ca: site.folder.join("ca.pem"), site }
    }

    fn url(&self) -> String {
        format!("https://{}", self.site.address)
    }
}

fn nginx(folder: &Path, listen: &str) -> Command {
    let at = folder.display();
    let config = format!(
        "daemon off; master_process off; pid {at}/pid; error_log {at}/error.log;\n\
         events {{}}\nhttp {{ access_log off; client_body_temp_path {at}/b;\n\
         proxy_temp_path {at}/p; fastcgi_temp_path {at}/f; uwsgi_temp_path {at}/u;\n\
         scgi_temp_path {at}/s; ssl_certificate {at}/cert.pem; ssl_certificate_key {at}/key.pem;\n\
         server {{ listen {listen}; root {at};\n\
         location /said {{ return 200 \"$connection_requests $http_x_forwarded_proto\"; }} }} }}\n"
    );
    let file = folder.join("nginx.conf");
    fs::write(&file, config).expect("a file");
    let mut command = Command::new("nginx");
    command.arg("-p").arg(folder).arg("-c").arg(&file);
    command
}

fn trusting(origin: &str, ca: &Path) -> House {
    House::protect_with(origin, &format!("[gate]\norigin_ca = \"{}\"\n", ca.display()), &[])
}

#[test]
fn an_origin_is_spoken_to_over_tls_on_connections_that_stay() {
    let guarded = Guarded::start("nginx-tls", "127.0.0.1");
    let house = trusting(&guarded.url(), &guarded.ca);
    let pass = house.visitor();
    for request in 1..=3 {
        let got = house.get("/said", &["-H", &pass]);
        // What the origin hears is how the visitor came, which is not how the gate comes.
        assert_eq!((got.status, got.body), (200, format!("{request} http")));
    }
    let large = house.get("/large", &["-H", &pass]);
    assert_eq!((large.status, large.body), (200, "0123456789".repeat(100_000)));
}

#[test]
fn an_origin_that_cannot_prove_its_name_gets_nothing() {
    let (one, other) =
        (Guarded::start("nginx-own", "127.0.0.1"), Guarded::start("nginx-other", "shop.example"));
    let unproved = |origin: &Guarded, ca: &Path, why: &str| {
        let house = trusting(&origin.url(), ca);
        let pass = house.visitor();
        let got = house.get("/said", &[&["-H", pass.as_str()][..], &JSON].concat());
        assert_eq!((got.status, &got.json()["code"]), (502, &"origin_down".into()), "{why}");
    };
    unproved(&one, &other.ca, "signed by somebody else");
    unproved(&other, &other.ca, "signed for another name");
    let house = House::protect(&one.url(), &[]);
    let pass = house.visitor();
    let got = house.get("/said", &[&["-H", pass.as_str()][..], &JSON].concat());
    assert_eq!(got.status, 502, "this machine does not know the authority");
}

#[test]
fn an_operator_sees_how_the_site_behind_a_room_does() {
    let origin = Origin::start();
    let house = House::protect_with(&origin.url(), "", &[]);
    let pass = house.visitor();
    let told = || house.operate("GET", "/admin/v1/rooms/default", "").json()["origin"].clone();
    let before = told();
    assert_eq!(house.get("/seen", &["-H", &pass]).status, 200);
    assert_eq!(house.get("/lag", &["-H", &pass]).status, 200);
    assert_eq!(house.get("/nonsense", &["-H", &pass]).status, 502);
    let after = told();
    let more = |name: &str| after[name].as_u64().expect(name) - before[name].as_u64().expect(name);
    assert_eq!((more("asked"), more("bad")), (3, 1), "{after}");
    assert!(more("ms") >= 1_000, "what was slow counts with its time: {after}");
    assert_eq!(after["origins"], 1, "{after}");
    soon("nothing is in flight any more", || (told()["in_flight"] == 0).then_some(()));
}

#[test]
fn origins_are_asked_how_they_are_without_any_visitor() {
    let living = Origin::start();
    let house = House::serve(&format!(
        "[rooms.default]\nrate = \"100/s\"\n[sites.shop]\nroom = \"default\"\n\
         origins = [\"http://127.0.0.1:9\", \"{}\"]\nhealth_path = \"/health\"\nhealth_every = \"1s\"\n",
        living.url()
    ));
    soon("the one that lives was asked twice", || (living.asked() >= 2).then_some(()));
    let lives = || -> Vec<Value> {
        let report = house.operate("GET", "/admin/v1/gate", "").json();
        let origins = report["sites"][0]["origins"].as_array().expect("origins").clone();
        origins.iter().map(|origin| origin["lives"].clone()).collect()
    };
    soon("the dead one is left alone", || (lives() == [false, true]).then_some(()));
}
