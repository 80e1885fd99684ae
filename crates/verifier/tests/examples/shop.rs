//! An example as a server, and what is promised of every one of them.

use std::collections::BTreeSet;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::issuer::{Issuer, ROOM, TICKET};
use crate::request::{self, Got};
use crate::workshop::Workshop;

pub const PAGE: &str = "https://wait.example/room";

/// Enough for a Java on a machine that does ten other things.
const SOON: Duration = Duration::from_secs(60);

const HTML: (&str, &str) = ("Accept", "text/html,*/*;q=0.8");

pub struct Shop {
    language: &'static str,
    child: Child,
    port: u16,
    said: Vec<JoinHandle<String>>,
}

/// A port that was free a moment ago, and no other test was given. Not every runtime can say
/// which one it took by itself.
pub fn free_port() -> u16 {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        if GIVEN.lock().expect("nobody panics here").insert(port) {
            return port;
        }
    }
}

pub fn port_of(command: &Command) -> u16 {
    variable(command, "PORT").parse().expect("it was a number")
}

/// A variable that was set for this command.
pub fn variable(command: &Command, name: &str) -> String {
    let mut set = command.get_envs().filter(|(it, _)| *it == name);
    let value = set.next().and_then(|(_, value)| value).expect("it was set");
    value.to_str().expect("plain text").to_owned()
}

impl Shop {
    pub fn open_with_keys(
        made: &Workshop,
        issuer: &Issuer,
        start: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Shop {
        let port = free_port();
        Shop::open(made, port, |command| {
            let set = command
                .env("WAITROOM_ROOM", ROOM)
                .env("WAITROOM_KEYS", &issuer.keys_url)
                .env("WAITROOM_PAGE", PAGE)
                .env("PORT", port.to_string())
                .env_remove("WAITROOM_DEV");
            start(set)
        })
    }

    pub fn open(
        made: &Workshop,
        port: u16,
        start: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Shop {
        let mut command = made.command();
        start(&mut command).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("env is everywhere");
        let stdout = reader(child.stdout.take().expect("piped"));
        let stderr = reader(child.stderr.take().expect("piped"));
        let mut shop = Shop { language: made.language, child, port, said: vec![stdout, stderr] };
        let until = Instant::now() + SOON;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = shop.child.try_wait().expect("it can be asked");
            if ended.is_some() || Instant::now() > until {
                panic!("{} did not open: {ended:?}\n{}", made.language, shop.close());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        shop
    }

    pub fn get(&self, target: &str, headers: &[(&str, &str)]) -> Got {
        request::get(self.port, target, headers)
            .unwrap_or_else(|error| panic!("{}: {target}: {error}", self.language))
    }

    fn with_pass(&self, pass: &str) -> Got {
        self.get("/", &[("Waitroom-Pass", pass)])
    }

    /// Ends it, and returns all that it said.
    pub fn close(mut self) -> String {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let said = std::mem::take(&mut self.said);
        said.into_iter().map(|it| it.join().expect("it was read")).collect()
    }

    fn is_inside(&self, got: &Got) {
        assert_eq!(got.status, 200, "{}: {got:?}", self.language);
        assert_eq!(got.body, format!("Welcome, {TICKET}.\n"), "{}: {got:?}", self.language);
    }

    fn is_refused(&self, got: &Got, code: &str) {
        let said: serde_json::Value = serde_json::from_str(&got.body).unwrap_or_default();
        assert_eq!((got.status, said["code"].as_str()), (403, Some(code)), "{}", self.language);
        assert_eq!(said["waiting_room"], PAGE, "{}: {got:?}", self.language);
        self.forgets_the_pass(got);
    }

    /// A browser that goes on showing a pass that is over would be sent to and fro for ever.
    fn forgets_the_pass(&self, got: &Got) {
        let cookie = got.header("set-cookie").unwrap_or_default();
        let cleared = cookie.starts_with("__Host-wr-pass-sale=;")
            || cookie.starts_with("__Host-wr-pass-sale=deleted;");
        assert!(cleared && cookie.contains("Max-Age=0"), "{}: {got:?}", self.language);
        assert_eq!(got.header("cache-control"), Some("no-store"), "{}: {got:?}", self.language);
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn reader(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut all = vec![];
        let _ = pipe.read_to_end(&mut all);
        String::from_utf8_lossy(&all).into_owned()
    })
}

pub fn sends_people_without_a_pass_to_wait(shop: &Shop) {
    shop.is_refused(&shop.get("/", &[]), "pass_missing");
    let got = shop.get("/basket?of=me", &[HTML]);
    assert_eq!((got.status, got.header("location")), (303, Some(PAGE)), "{got:?}");
    shop.forgets_the_pass(&got);
    // Where nginx keeps the keys is its own business.
    for path in ["/waitroom-keys", "/waitroom-keys-fresh"] {
        let got = shop.get(path, &[]);
        let nothing = !got.body.contains("key-0") && (got.status == 403 || got.status == 404);
        assert!(nothing, "{}: {path}: {got:?}", shop.language);
    }
}

pub fn lets_a_pass_in_by_header_and_by_cookie(shop: &Shop, issuer: &Issuer) {
    let pass = issuer.good();
    shop.is_inside(&shop.with_pass(&pass));
    // Nobody says for themselves who they are.
    let claimed = [("Waitroom-Pass", pass.as_str()), ("Waitroom-Ticket", "somebody-else")];
    shop.is_inside(&shop.get("/", &claimed));
    let jar = format!("a=b; __Host-wr-pass-sale={pass}; c=d");
    shop.is_inside(&shop.get("/", &[("Cookie", &jar)]));
    // Whoever can write cookies for the whole domain cannot write one with this prefix.
    for other in ["wr-pass-sale", "__Host-wr-pass-sale2", "x__Host-wr-pass-sale"] {
        let jar = format!("{other}={pass}");
        shop.is_refused(&shop.get("/", &[("Cookie", &jar)]), "pass_missing");
    }
}

pub fn moves_a_pass_from_the_address_to_the_cookie(shop: &Shop, issuer: &Issuer) {
    let pass = issuer.good();
    let got = shop.get(&format!("/a/b?x=1&wr_pass={pass}&y=2"), &[HTML]);
    assert_eq!((got.status, got.header("location")), (303, Some("/a/b?x=1&y=2")), "{got:?}");
    assert_eq!(got.header("referrer-policy"), Some("no-referrer"), "{got:?}");
    assert_eq!(got.header("cache-control"), Some("no-store"), "{got:?}");
    let cookie = got.header("set-cookie").expect("a cookie").to_owned();
    let (pair, manners) = cookie.split_once(';').expect("a cookie has manners");
    assert_eq!(pair, format!("__Host-wr-pass-sale={pass}"));
    let manners = manners.to_ascii_lowercase();
    for word in ["path=/", "httponly", "secure", "samesite=lax"] {
        assert!(manners.split(';').any(|it| it.trim() == word), "{word} is missing: {cookie}");
    }
    assert!(!manners.contains("domain="), "a __Host- cookie names no domain: {cookie}");
    let age = manners.split("max-age=").nth(1).and_then(|it| it.split(';').next()?.parse().ok());
    let age: u32 = age.unwrap_or_else(|| panic!("no age: {cookie}"));
    assert!((1..=60).contains(&age), "the cookie ends with the pass: {cookie}");
    shop.is_inside(&shop.get("/a/b?x=1&y=2", &[HTML, ("Cookie", pair)]));

    // Alone in the query it leaves nothing behind, and no address leads to another host.
    let got = shop.get(&format!("/?wr_pass={pass}"), &[HTML]);
    assert_eq!(got.header("location"), Some("/"), "{got:?}");
    let got = shop.get(&format!("//evil.example/a?wr_pass={pass}"), &[HTML]);
    let location = got.header("location").unwrap_or_default();
    let stays = location.starts_with('/') && !location.starts_with("//");
    assert!(got.status == 303 && stays, "{}: {got:?}", shop.language);
    let got = shop.get("/a?wr_pass=nonsense", &[HTML]);
    assert_eq!((got.status, got.header("location")), (303, Some(PAGE)), "{got:?}");
}

pub fn refuses_what_is_not_a_pass_for_here_and_now(shop: &Shop, issuer: &Issuer) {
    shop.is_refused(&shop.with_pass(&issuer.pass(ROOM, 0)), "expired");
    shop.is_refused(&shop.with_pass(&issuer.pass(ROOM, -3600)), "expired");
    shop.is_refused(&shop.with_pass(&issuer.pass("other", 60)), "room_other");
    shop.is_refused(&shop.with_pass("nonsense"), "malformed");
    shop.is_refused(&shop.with_pass(&issuer.signed("key-9", "ES256", ROOM, 60)), "key_unknown");
    for alg in ["none", "HS256"] {
        let got = shop.with_pass(&issuer.signed("key-0", alg, ROOM, 60));
        shop.is_refused(&got, "alg_wrong");
    }
    let (good, longer) = (issuer.good(), issuer.pass(ROOM, 600));
    let signature = good.rsplit('.').next().expect("three parts");
    let signed = longer.rsplit_once('.').expect("three parts").0;
    shop.is_refused(&shop.with_pass(&format!("{signed}.{signature}")), "signature_wrong");
    let expired = format!("__Host-wr-pass-sale={}", issuer.pass(ROOM, -5));
    let got = shop.get("/", &[HTML, ("Cookie", &expired)]);
    assert_eq!((got.status, got.header("location")), (303, Some(PAGE)), "{got:?}");
    shop.forgets_the_pass(&got);
}

pub fn asks_for_keys_seldom_and_finds_a_new_one(shop: &Shop, issuer: &Issuer) {
    // All of the above was one fetch, and one more for the key that nobody has.
    let before = issuer.fetches();
    assert!(before <= 3, "{}: {before} fetches for a few requests", shop.language);
    for at in 10..40 {
        let forged = issuer.signed(&format!("key-{at}"), "ES256", ROOM, 60);
        shop.is_refused(&shop.with_pass(&forged), "key_unknown");
    }
    let more = issuer.fetches() - before;
    assert!(more <= 3, "{}: forged passes made it ask {more} times", shop.language);
    let old = issuer.good();
    issuer.publish_another_key();
    let new = issuer.good();
    let until = Instant::now() + Duration::from_secs(30);
    while shop.with_pass(&new).status != 200 {
        assert!(Instant::now() < until, "{}: a new key is not found", shop.language);
        std::thread::sleep(Duration::from_millis(100));
    }
    shop.is_inside(&shop.with_pass(&new));
    shop.is_inside(&shop.with_pass(&old));
}

pub fn keeps_its_keys_when_they_cannot_be_had(shop: &Shop, issuer: &Issuer) {
    issuer.out_of_order(true);
    shop.is_inside(&shop.with_pass(&issuer.good()));
    // A forged pass makes it ask, in vain, and costs nobody the keys that are there.
    let before = issuer.fetches();
    let until = Instant::now() + Duration::from_secs(30);
    while issuer.fetches() == before {
        let got = shop.with_pass(&issuer.signed("key-99", "ES256", ROOM, 60));
        assert!(got.status == 403 || got.status == 503, "{}: {got:?}", shop.language);
        assert!(Instant::now() < until, "{}: it does not ask", shop.language);
        std::thread::sleep(Duration::from_millis(100));
    }
    shop.is_inside(&shop.with_pass(&issuer.good()));
}
