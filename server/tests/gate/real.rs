//! Sites, caches and browsers that nobody here wrote: nginx, Node, Chromium.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::house::House;
use crate::instance::{curl, soon};
use crate::origin::Origin;

/// A program that serves at an address until the test is over.
pub struct Served {
    child: Child,
    pub address: SocketAddr,
    pub folder: PathBuf,
}

impl Served {
    pub fn start(name: &str, make: impl FnOnce(SocketAddr, &PathBuf) -> Command) -> Served {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
        let address = free.expect("a free port");
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let folder = folder.join(format!("{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        let child = make(address, &folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|_| panic!("{name} is needed for this test: apt-get install it"));
        let served = Served { child, address, folder };
        soon(name, || TcpStream::connect(address).ok());
        served
    }

    fn nginx(name: &str, location: &str) -> Served {
        Served::start(name, |address, folder| {
            let file = folder.join("nginx.conf");
            let at = folder.display();
            let config = format!(
                "daemon off; master_process off; pid {at}/pid; error_log {at}/error.log;\n\
                 events {{}}\nhttp {{ access_log off; client_body_temp_path {at}/b;\n\
                 proxy_temp_path {at}/p; fastcgi_temp_path {at}/f; uwsgi_temp_path {at}/u;\n\
                 scgi_temp_path {at}/s; proxy_cache_path {at}/cache keys_zone=line:1m;\n\
                 server {{ listen {address}; root {at}; location / {{ {location} }} }} }}\n"
            );
            std::fs::write(&file, config).expect("a file");
            std::fs::write(folder.join("index.html"), "<h1>a static shop</h1>").expect("a file");
            let mut command = Command::new("nginx");
            command.arg("-p").arg(folder).arg("-c").arg(&file);
            command
        })
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// What the gate counted under this name.
fn counted(house: &House, name: &str) -> u64 {
    let report = house.operate("GET", "/admin/v1/gate", "").json();
    report["sites"][0]["counts"][name].as_u64().unwrap_or_else(|| panic!("{report}"))
}

#[test]
fn a_cache_in_front_takes_the_crowd_and_nobody_inside_gets_its_copy() {
    let origin = Origin::start();
    let house = House::protect(&origin.url(), &[]);
    let to = house.address();
    let cache = Served::nginx(
        "nginx-cache",
        &format!(
            "proxy_pass http://{to}; proxy_set_header Host $http_host; proxy_cache line; \
             proxy_cache_lock on; proxy_cache_use_stale updating; proxy_cache_background_update on;"
        ),
    );
    let url = format!("http://{}/sale", cache.address);
    let began = std::time::Instant::now();
    let out = Command::new("curl").args(["-s", "-i"]).args(vec![url.as_str(); 1_000]).output();
    let said = out.expect("curl is needed for this test: apt-get install curl").stdout;
    let said = String::from_utf8_lossy(&said).into_owned();
    assert_eq!(said.matches("HTTP/1.1 503").count(), 1_000);
    assert!(!said.to_ascii_lowercase().contains("set-cookie"));
    let seconds = began.elapsed().as_secs() + 1;
    let asked = counted(&house, "waited");
    assert!(asked <= 2 * seconds + 2, "{asked} of 1,000 reached the gate in {seconds} s");
    let pass = house.visitor();
    let pass = pass.strip_prefix("Waitroom-Pass: ").expect("a pass");
    let inside = curl(&[&url, "-H", &format!("Cookie: wr-pass-default={pass}")]);
    assert_eq!(inside.status, 200, "who is inside never sees the copy: {inside:?}");
}

#[test]
fn a_static_site_that_nobody_here_wrote_is_protected_at_once() {
    let site = Served::nginx("nginx-site", "");
    let house = House::protect(&format!("http://{}", site.address), &[]);
    assert_eq!(house.get("/", &[]).status, 503);
    let pass = house.visitor();
    let got = house.get("/", &["-H", &pass]);
    assert!(got.status == 200 && got.body.contains("a static shop"), "{got:?}");
    let part = house.get("/", &["-H", &pass, "-H", "Range: bytes=4-11"]);
    assert_eq!((part.status, &*part.body), (206, "a static"));
    let etag = got.header("etag").expect("nginx says one");
    let same = house.get("/", &["-H", &pass, "-H", &format!("If-None-Match: {etag}")]);
    assert_eq!((same.status, &*same.body), (304, ""));
}

#[test]
fn a_node_application_with_websockets_is_protected_at_once() {
    const APP: &str = "const s = require('http').createServer((q, r) => r.end('node says ' + q.url));\
        s.on('upgrade', (q, k) => { k.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n\\r\\n'); k.pipe(k); });\
        s.listen(+process.argv[1], '127.0.0.1');";
    let app = Served::start("node", |address, _| {
        let mut command = Command::new("node");
        command.args(["-e", APP, &address.port().to_string()]);
        command
    });
    let house = House::protect(&format!("http://{}", app.address), &[]);
    let pass = house.visitor();
    assert_eq!(house.get("/a?b", &["-H", &pass]).body, "node says /a?b");
    let mut stream = TcpStream::connect(house.address()).expect("the gate listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out");
    write!(
        stream,
        "GET /live HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n{pass}\r\n\r\n",
        house.address()
    )
    .expect("sent");
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
    stream.write_all(b"through node").expect("sent");
    let mut back = [0; 12];
    stream.read_exact(&mut back).expect("echoed");
    assert_eq!(&back, b"through node");
}

#[test]
fn a_browser_waits_on_the_page_and_enters_by_itself() {
    let origin = Origin::start();
    let house = House::protect(&origin.url(), &["--queue-all", "--rate", "60/min"]);
    let mut browser = Served::start("chromium", |address, folder| {
        let mut command = Command::new("chromium");
        command
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update"])
            .arg(format!("--user-data-dir={}", folder.join("profile").display()))
            .arg(format!("--remote-debugging-port={}", address.port()))
            .arg(format!("{}/the/page?a=b", house.url));
        command
    });
    soon("the browser is inside", || (origin.asked() > 0).then_some(()));
    let _ = browser.child.kill();
}
