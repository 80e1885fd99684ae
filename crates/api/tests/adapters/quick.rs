//! The short way gives the answers of the long one, and takes nothing that is not plain.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use waitroom_api::limits::{Limit, Limits};
use waitroom_api::metrics;

use crate::help::{Reply, Site, Wanted, by_hand, text, within};

const STATUS: &str = "GET /v1/rooms/default/status";
const HEARTBEAT: &str = "POST /v1/rooms/default/heartbeat";
const BOARD: &str = "GET /v1/rooms/default/board";
const JOIN: &str = "POST /v1/rooms/default/join";

/// The visitor API gives this header no meaning, so the short way does not know it.
const LONG_WAY: &str = "x-long-way: 1";

/// One connection that is kept.
struct Kept {
    tcp: TcpStream,
    bytes: Vec<u8>,
}

impl Kept {
    async fn open(site: &Site) -> Kept {
        Kept { tcp: TcpStream::connect(site.address).await.expect("it listens"), bytes: Vec::new() }
    }

    async fn say(&mut self, line: &str, headers: &[String]) {
        let mut text = format!("{line} HTTP/1.1\r\nHost: waiting.example\r\n");
        for header in headers {
            text += &format!("{header}\r\n");
        }
        text += "\r\n";
        self.tcp.write_all(text.as_bytes()).await.expect("it reads");
    }

    async fn hear(&mut self) -> Reply {
        within(async {
            loop {
                if let Some(reply) = self.whole() {
                    return reply;
                }
                let count = self.tcp.read_buf(&mut self.bytes).await.expect("it answers");
                assert_ne!(count, 0, "it hung up after {:?}", String::from_utf8_lossy(&self.bytes));
            }
        })
        .await
    }

    fn whole(&mut self) -> Option<Reply> {
        let end = self.bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        let head = String::from_utf8_lossy(&self.bytes[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.trim().parse().expect("a number"));
        let whole = self.bytes.get(..end + length)?.to_vec();
        self.bytes.drain(..end + length);
        Some(Reply::read(&whole))
    }

    async fn ask(&mut self, line: &str, headers: &[String]) -> Reply {
        self.say(line, headers).await;
        self.hear().await
    }
}

/// What of an answer must be the same. A ticket that is new, and a token that was signed now, are
/// told by their shape.
fn seen(reply: &Reply) -> (u16, Vec<(String, String)>, Value) {
    let mut headers = reply.headers.clone();
    headers.retain(|(name, _)| name != "date");
    let mut body: Value = serde_json::from_str(&reply.body).unwrap_or(Value::Null);
    let fresh = headers.iter().any(|(name, _)| name == "set-cookie");
    for (name, value) in &mut headers {
        if name == "set-cookie" || (fresh && name == "content-length") {
            *value = value.split(';').skip(1).collect();
        }
    }
    if fresh {
        // In a line nobody else joins meanwhile, but each join is one more.
        for field in ["ticket", "token", "version", "place", "position", "ahead", "support_code"] {
            body[field] = Value::from(body[field].is_null());
        }
        for field in ["joined_at", "next_check_ms"] {
            body[field] = Value::from(body[field].is_null());
        }
    }
    if body["retry_after_ms"].is_number() {
        body["retry_after_ms"] = Value::from("some");
    }
    headers.sort();
    (reply.status, headers, body)
}

/// Somebody whom the board knows.
async fn joined(site: &Site) -> Value {
    let joined = Kept::open(site).await.ask(JOIN, &[]).await.expect(201);
    let room = site.default_room();
    room.board_since(room.handle().committed()).await;
    joined
}

#[tokio::test]
async fn a_visitor_s_plain_requests_take_the_short_way_from_the_first_to_the_last() {
    let site = Site::open().await;
    let token = text(&joined(&site).await, "token").to_owned();
    let mut kept = Kept::open(&site).await;
    let auth = [format!("Authorization: Bearer {token}")];
    let cookie =
        [format!("Cookie: a=b; __Host-wr-ticket-default={token}"), "Waitroom-Request: 1".into()];
    for headers in [&auth[..], &cookie[..]] {
        kept.ask(STATUS, headers).await.expect(200);
        kept.ask(HEARTBEAT, headers).await.expect(200);
    }
    kept.ask(&STATUS.replace("/v1", "/.waitroom/v1"), &auth).await.expect(200);
    kept.ask(BOARD, &[]).await.expect(200);
    assert_eq!(site.quick.taken(), 7);
    let page = metrics::text(&site.desk);
    for counted in [
        "route=\"/v1/rooms/{room}/status\",status=\"2xx\"} 3",
        "route=\"/v1/rooms/{room}/heartbeat\",status=\"2xx\"} 2",
        "route=\"/v1/rooms/{room}/join\",status=\"2xx\"} 1",
    ] {
        assert!(page.contains(counted), "{counted} is not in\n{page}");
    }
}

#[tokio::test]
async fn whatever_is_said_both_ways_answer_the_same() {
    let site = Site::open().await;
    site.room("other", by_hand()).await;
    let (mine, foreign) = (joined(&site).await, {
        let line = JOIN.replace("default", "other");
        Kept::open(&site).await.ask(&line, &[]).await.expect(201)
    });
    let (token, foreign) = (text(&mine, "token"), text(&foreign, "token"));
    let tag =
        Kept::open(&site).await.ask(STATUS, &[format!("Authorization: Bearer {token}")]).await;
    let tag = tag.header("etag").expect("a tag").to_owned();
    let said: Vec<String> = [
        &format!("Authorization: Bearer {token}"),
        &format!("authorization: bearer  {token} "),
        &format!("Authorization: Bearer {foreign}"),
        &format!("Authorization: Bearer {token}x"),
        "Authorization: Bearer viewer-key",
        "Authorization: Basic abc",
        "Authorization: Bearer eyJhbGciOiJub25lIn0.e30.",
        &format!("Cookie: __Host-wr-ticket-default={token}"),
        "Cookie: __Host-wr-ticket-default=; b=\u{e9}",
        "Waitroom-Request: 1",
        &format!("If-None-Match: {tag}"),
        "If-None-Match: \"else\"",
        "Origin: https://waiting.example",
        "Origin: https://evil.example",
        "X-Forwarded-For: 203.0.113.9",
        "X-Forwarded-For: nonsense, 10.0.0.1",
        "X-Api-Key: operator-key",
        "X-Api-Key: wrong",
        "Idempotency-Key: {asked}",
        "Idempotency-Key: short",
        "Content-Type: text/plain",
        "Content-Length: 0",
        "Accept: text/html",
    ]
    .map(str::to_owned)
    .to_vec();
    let lines = [
        STATUS,
        HEARTBEAT,
        BOARD,
        JOIN,
        "GET /v1/rooms/nowhere/status",
        "POST /v1/rooms/default/status",
        "GET /v1/rooms/default/heartbeat",
        "GET /v1/rooms/default/status?version=0",
        "GET /v1/rooms/default//status",
        "GET /v1/rooms/DEFAULT/board",
    ];
    let mut asked = 0;
    for line in lines {
        let sets = (0..said.len()).flat_map(|one| (one..said.len()).map(move |two| [one, two]));
        for set in sets {
            let mut fresh = || {
                asked += 1;
                format!("{asked:026}")
            };
            let mut said = |at: usize| said[at].replace("{asked}", &fresh());
            // The same twice stays: it is one of the things that may be said.
            let headers = set.map(&mut said);
            let short = Kept::open(&site).await.ask(line, &headers).await;
            let [one, two] = set.map(&mut said);
            let headers = [one, two, LONG_WAY.to_owned()];
            let long = Kept::open(&site).await.ask(line, &headers).await;
            assert_eq!(seen(&short), seen(&long), "{line} {headers:?}");
        }
    }
    let taken = site.quick.taken();
    assert!(taken > asked / 40, "{taken} of {asked} were plain: the comparison says something");
}

#[tokio::test]
async fn a_limit_holds_over_both_ways_together() {
    // So few an hour that none comes back while this runs.
    let an_hour = |count| Some(Limit { count, per_ms: 3_600_000, burst: count });
    let limits = Limits { status: an_hour(6), join: an_hour(2), ..Limits::none() };
    let site = Site::with(Wanted { limits, ..Wanted::default() }, by_hand()).await;
    let token = text(&joined(&site).await, "token").to_owned();
    let short = vec![format!("Authorization: Bearer {token}")];
    let long = [short.clone(), vec![LONG_WAY.to_owned()]].concat();
    let mut good = 0;
    for turn in 0..10 {
        let headers = if turn % 2 == 0 { &short } else { &long };
        let reply = Kept::open(&site).await.ask(STATUS, headers).await;
        good += usize::from(reply.status == 200);
    }
    assert_eq!(good, 6);
    let limited = "waitroom_rate_limited_total{route=\"status\"} 4";
    assert!(metrics::text(&site.desk).contains(limited), "each refusal is counted once");
    joined(&site).await;
    let refused = Kept::open(&site).await.ask(JOIN, &[]).await;
    assert_eq!(refused.status, 429);
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    let long = Kept::open(&site).await.ask(JOIN, &[LONG_WAY.to_owned()]).await;
    assert_eq!(seen(&refused), seen(&long));
}

#[tokio::test]
async fn requests_in_one_piece_are_answered_in_their_order_whichever_way_each_takes() {
    let site = Site::open().await;
    let token = text(&joined(&site).await, "token").to_owned();
    let auth = vec![format!("Authorization: Bearer {token}")];
    let long = [auth.clone(), vec![LONG_WAY.to_owned()]].concat();
    let mut kept = Kept::open(&site).await;
    for headers in [&auth, &auth, &long, &auth] {
        kept.say(STATUS, headers).await;
        kept.say(JOIN, &[]).await;
        kept.say(BOARD, &[]).await;
    }
    for _ in 0..4 {
        assert!(kept.hear().await.header("etag").is_some_and(|tag| tag.contains("waiting")));
        kept.hear().await.expect(201);
        assert_eq!(kept.hear().await.header("access-control-allow-origin"), Some("*"));
    }
}
