//! The peers of the HTTP and live benchmarks, each asked once over a real socket.
//!
//! Whether the whole benchmark runs against the real server is a step of CI (`served`); here it
//! is seen that each peer serves, says what it was given, and ends with its input.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

struct Peer {
    child: Child,
    stdin: Option<ChildStdin>,
    address: SocketAddr,
}

impl Peer {
    fn start(bench: &str, words: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_bench"))
            .args([bench, "--part", words])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the benchmark starts");
        let stdin = child.stdin.take();
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it was piped");
        BufReader::new(stdout).read_line(&mut line).expect("it says where it listens");
        Self { child, stdin, address: line.trim().parse().expect("an address") }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("it is a socket");
        stream
    }

    fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers and closes");
        answer
    }

    /// Ends its input, after which it must end by itself.
    fn end(mut self) -> bool {
        drop(self.stdin.take());
        self.child.wait().expect("it is our child").success()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Already gone, unless a test failed before its end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn file(name: &str, content: &[u8]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, content).expect("the target folder can be written to");
    path
}

const ONCE: &str = "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

#[test]
fn the_hyper_peer_says_what_it_was_given_and_ends_with_its_input() {
    let body = file("hyper.json", b"{\"position\":42}");
    let peer = Peer::start("http", &format!("peer hyper {}", body.display()));
    let answer = peer.ask(ONCE);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n{\"position\":42}"), "{answer}");
    assert!(peer.end());
}

/// A Redis of three lines: knows a script, and answers it with numbers that rise.
fn redis_that_counts() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().expect("it is a socket"));
                let mut writer = stream;
                let mut line = String::new();
                while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
                    let answer: &[u8] = match line.trim() {
                        "SCRIPT" => b"$3\r\nsha\r\n",
                        "EVALSHA" => b":7\r\n",
                        _ => b"",
                    };
                    writer.write_all(answer).expect("the peer reads");
                    line.clear();
                }
            });
        }
    });
    address
}

#[test]
fn the_redis_peer_answers_after_the_join_script_did() {
    let body = file("redis.json", b"{}");
    let redis = redis_that_counts();
    let peer = Peer::start("http", &format!("peer hyper-redis {redis} {}", body.display()));
    assert!(peer.ask(ONCE).starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(peer.end());
}

#[test]
fn the_raw_loop_opens_channels_and_pushes_the_board_to_each() {
    let board = file("board.json", b"{\"version\":1234,\"lanes\":[]}");
    let mut peer = Peer::start("live", &format!("raw 2 of {}", board.display()));
    let mut channels = [peer.connect(), peer.connect()];
    let opened = |stream: &mut TcpStream| {
        let mut bytes = vec![0; 4096];
        let read = stream.read(&mut bytes).expect("it speaks");
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    };
    for channel in &mut channels {
        channel.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("it reads");
        let said = opened(channel);
        assert!(said.starts_with("HTTP/1.1 101 "), "{said}");
        assert!(said.contains("{\"version\":1001,"), "{said}");
    }
    let stdin = peer.stdin.as_mut().expect("it was piped");
    stdin.write_all(b"push\n").expect("it takes orders");
    for channel in &mut channels {
        let said = opened(channel);
        assert!(said.contains("\"type\":\"board\"") && said.contains("1002"), "{said}");
    }
    assert!(peer.end());
}
