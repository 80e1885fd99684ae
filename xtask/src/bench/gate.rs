//! `bench gate`: what it costs to stand before a site.
//!
//! Our gate, the real server with one site, beside nginx as a plain reverse proxy to the same
//! origin, which is another nginx with one page. The proxies have one core, the load and the
//! origin share the other; what counts is requests per CPU second of the proxy. They take turns
//! within each round. Then the same gate with visitors who have no pass.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::Scale;
use super::cpu::{self, Cores, ROUNDS};
use super::data::DataFolder;
use super::http::case::{ms, per_cpu};
use super::load::requests::Asker;
use super::load::round::Typical;
use super::load::{Drive, Requests, Round};
use super::report::{Better, Expected, Figure, Measure};
use super::serving::Waitroom;
use super::serving::nginx::Nginx;
use super::serving::waitroom::Start;
use crate::failure::{Failure, OrFail, Outcome};

const CONNECTIONS: usize = 64;
const ROOM: &str = "gate";
/// A page of the size that pages begin with.
const PAGE_BYTES: usize = 1_024;
const WARM: Duration = Duration::from_millis(200);

pub fn run(scale: Scale) -> Outcome<Vec<Figure>> {
    let cores = Cores::split()?;
    std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            cpu::pin(None, cores.client)?;
            measure(scale, cores)
        });
        load.join().expect("a benchmark fails by saying so")
    })
}

fn measure(scale: Scale, cores: Cores) -> Outcome<Vec<Figure>> {
    let (rounds, work, wall_max) = match scale {
        Scale::Full => (ROUNDS, Duration::from_millis(1_000), Duration::from_secs(10)),
        Scale::Quick => (3, Duration::from_millis(250), Duration::from_secs(2)),
    };
    let folder = DataFolder::new("gate")?;
    let folder = folder.path();
    let origin = Nginx::start(&folder.join("origin"), &"x".repeat(PAGE_BYTES), cores.client)?;
    let nginx = Nginx::proxy(&folder.join("nginx"), origin.address, cores.server)?;
    let config = config(folder, origin.address)?;
    let start = Start { core: Some(cores.server), config: Some(config), ..Start::default() };
    let ours = Waitroom::start(&folder.join("ours"), &start)?;
    let gate = ours.addresses.public;
    eprintln!(
        "ours: waitroom serve with one site on core {}; nginx: proxy_pass with keepalive 64 on the \
         same; origin (nginx, {PAGE_BYTES} bytes) and {CONNECTIONS} connections of load on core {}",
        cores.server, cores.client
    );
    let cookie = checked_cookie(gate)?;
    let request = |cookie: &str| {
        format!(
            "GET /page HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\nAccept: text/html\r\n\
             Accept-Encoding: gzip, br\r\nAccept-Language: en\r\nCookie: theme=dark{cookie}\r\n\r\n"
        )
    };
    let mut passed = Requests::new([request(&format!("; {cookie}"))]);
    let mut waiting = Waiting(Requests::new([request("")]));
    let drive = Drive { connections: CONNECTIONS, warm: WARM, work, wall_max };
    let (mut pass, mut plain, mut wait): (Vec<Round>, Vec<Round>, Vec<Round>) = Default::default();
    for _ in 0..rounds {
        pass.push(drive.run(gate, &mut passed, &[ours.id()])?);
        plain.push(drive.run(nginx.address, &mut passed, &[nginx.id()])?);
        wait.push(drive.run(gate, &mut waiting, &[ours.id()])?);
    }
    let [pass, plain, wait] = [pass, plain, wait].map(|rounds| Typical::of(&rounds));
    Ok(vec![
        Figure::beside(
            per_cpu("pass_vs_nginx", pass.per_cpu_second),
            per_cpu("nginx_proxy_per_cpu_s", plain.per_cpu_second),
            Better::Higher,
        )
        .expect(Expected::RatioAtLeast(0.8)),
        Figure::beside(
            per_cpu("wait_vs_pass", wait.per_cpu_second),
            per_cpu("pass_per_cpu_s", pass.per_cpu_second),
            Better::Higher,
        )
        .expect(Expected::RatioAtLeast(1.0)),
        Figure::beside(
            Measure::new("pass_per_s", pass.per_second, "1/s"),
            Measure::new("nginx_proxy_per_s", plain.per_second, "1/s"),
            Better::Higher,
        ),
        Figure::beside(
            ms("pass_p99_ms", pass.p99),
            ms("nginx_proxy_p99_ms", plain.p99),
            Better::Lower,
        ),
        Figure::of(ms("wait_p99_ms", wait.p99)),
    ])
}

fn config(folder: &Path, origin: SocketAddr) -> Outcome<std::path::PathBuf> {
    let file = folder.join("gate.toml");
    let text = format!(
        "[rooms.{ROOM}]\nrate = \"1000/s\"\n[sites.bench]\nroom = \"{ROOM}\"\n\
         origins = [\"http://{origin}\"]\nchecked_for = \"1h\"\n"
    );
    fs::write(&file, text).or_fail(|| format!("write {}", file.display()))?;
    Ok(file)
}

/// Joins, claims, enters; the cookie that the gate goes by from then on.
fn checked_cookie(gate: SocketAddr) -> Outcome<String> {
    let path = |verb: &str| format!("/.waitroom/v1/rooms/{ROOM}/{verb}");
    let joined = exchange(gate, "POST", &path("join"), "")?.1;
    let token = field(&joined, "token")?;
    let claimed =
        exchange(gate, "POST", &path("claim"), &format!("Authorization: Bearer {token}\r\n"))?;
    let pass = field(&claimed.1, "pass")?;
    let (head, _) = exchange(gate, "GET", &format!("/page?wr_pass={pass}"), "")?;
    let cookies = head.lines().filter_map(|line| line.strip_prefix("set-cookie: "));
    let mut cookies = cookies.filter_map(|line| line.split(';').next());
    let found = cookies.find(|cookie| cookie.starts_with("wr-gate-")).map(str::to_owned);
    found.ok_or_else(|| Failure::new(format!("the gate set no cookie of its own: {head}")))
}

fn field(json: &str, name: &str) -> Outcome<String> {
    let read: Value = serde_json::from_str(json).or_fail(|| format!("read {json:?}"))?;
    let text = read[name].as_str().map(str::to_owned);
    text.ok_or_else(|| Failure::new(format!("no {name} in {json}")))
}

fn exchange(to: SocketAddr, method: &str, path: &str, more: &str) -> Outcome<(String, String)> {
    let attempt = || format!("{method} {path}");
    let mut stream = TcpStream::connect(to).or_fail(attempt)?;
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n{more}\r\n"
    );
    stream.write_all(request.as_bytes()).or_fail(attempt)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).or_fail(attempt)?;
    let split = answer.split_once("\r\n\r\n");
    let (head, body) = split.ok_or_else(|| Failure::new(format!("{}: {answer}", attempt())))?;
    Ok((head.to_owned(), body.to_owned()))
}

/// Visitors without a pass: being told to wait is what they come for.
struct Waiting(Requests);

impl Asker for Waiting {
    fn next(&mut self) -> Option<&[u8]> {
        self.0.next()
    }

    fn heard(&mut self, status: u16, _: &[u8]) -> Outcome {
        match status {
            503 => Ok(()),
            _ => Err(Failure::new(format!("somebody without a pass was answered {status}"))),
        }
    }
}
