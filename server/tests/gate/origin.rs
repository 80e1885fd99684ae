//! An origin that does what its path says, over plain sockets: no library of ours, and none that
//! the gate uses, has a say in it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Origin {
    pub address: SocketAddr,
    pub requests: Arc<AtomicUsize>,
    held: Arc<Mutex<()>>,
}

/// How long `/slow` takes: longer than the gate waits in these tests.
const SLOW: Duration = Duration::from_secs(10);

/// How long `/lag` takes: what these tests call slow.
const LAG: Duration = Duration::from_secs(1);

impl Origin {
    pub fn start() -> Origin {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let origin = Origin { address, requests: Arc::default(), held: Arc::default() };
        let (requests, held) = (origin.requests.clone(), origin.held.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (requests, held) = (requests.clone(), held.clone());
                std::thread::spawn(move || {
                    let _ = serve(stream, &requests, &held);
                });
            }
        });
        origin
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn asked(&self) -> usize {
        self.requests.load(SeqCst)
    }

    /// Whoever asks for `/held` waits until this is dropped.
    pub fn hold(&self) -> MutexGuard<'_, ()> {
        self.held.lock().expect("nobody panics with it")
    }
}

fn serve(stream: TcpStream, requests: &AtomicUsize, held: &Mutex<()>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut out = stream;
    let mut served_here = 0;
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        requests.fetch_add(1, SeqCst);
        served_here += 1;
        let body = body(&head, &mut reader)?;
        let path = head.split(' ').nth(1).unwrap_or("/").split('?').next().unwrap_or("/");
        let more = match path {
            "/never" => return Ok(()),
            // Dies under whoever uses its connection a second time.
            "/tired" if served_here > 1 => return Ok(()),
            "/nonsense" => {
                out.write_all(b"this is no HTTP at all\r\n\r\n")?;
                return Ok(());
            }
            "/half" => {
                out.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")?;
                return Ok(());
            }
            "/half-chunked" => {
                let chunk = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n";
                out.write_all(chunk)?;
                return Ok(());
            }
            "/silent" => {
                out.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")?;
                std::thread::sleep(SLOW);
                return Ok(());
            }
            "/slow" => {
                std::thread::sleep(SLOW);
                ""
            }
            "/held" => {
                drop(held.lock());
                ""
            }
            "/lag" => {
                std::thread::sleep(LAG);
                ""
            }
            "/trailers" => {
                out.write_all(
                    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n\
                      5\r\nhello\r\n0\r\nX-Sum: 42\r\n\r\n",
                )?;
                continue;
            }
            "/socket" => {
                out.write_all(
                    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
                      Connection: Upgrade\r\n\r\n",
                )?;
                return echo(reader, out);
            }
            "/h2c" => {
                out.write_all(
                    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
                )?;
                return Ok(());
            }
            "/complete" => "Waitroom-Session: complete\r\n",
            "/end" => "Waitroom-Session: end\r\n",
            "/sold-out" => "Waitroom-Room: sold-out\r\n",
            "/hop" => "Connection: X-Inner\r\nX-Inner: secret\r\nKeep-Alive: timeout=5\r\n",
            _ => "",
        };
        let said = format!("{head}{}", String::from_utf8_lossy(&body));
        let length = said.len();
        write!(
            out,
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n{more}\r\n"
        )?;
        if !head.starts_with("HEAD ") {
            out.write_all(said.as_bytes())?;
        }
    }
}

fn body(head: &str, reader: &mut impl BufRead) -> std::io::Result<Vec<u8>> {
    let header = |name: &str| {
        head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    };
    let mut body = Vec::new();
    if let Some(length) = header("content-length").and_then(|it| it.parse::<usize>().ok()) {
        body.resize(length, 0);
        reader.read_exact(&mut body)?;
    } else if header("transfer-encoding").as_deref() == Some("chunked") {
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let size = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
            let mut chunk = vec![0; size];
            reader.read_exact(&mut chunk)?;
            body.extend_from_slice(&chunk);
            if size == 0 {
                while line != "\r\n" {
                    line.clear();
                    reader.read_line(&mut line)?;
                }
                break;
            }
            reader.read_line(&mut line)?;
        }
    }
    Ok(body)
}

fn echo(mut from: impl Read, mut to: impl Write) -> std::io::Result<()> {
    let mut bytes = [0; 1024];
    loop {
        match from.read(&mut bytes)? {
            0 => return Ok(()),
            read => to.write_all(&bytes[..read])?,
        }
    }
}
