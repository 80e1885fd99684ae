//! Spans of followed requests, as a collector receives them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::figures::{page, value};
use crate::instance::{Instance, soon};

/// Takes whatever is posted, as a collector does.
struct Collector {
    address: String,
    taken: Arc<Mutex<Vec<(String, String)>>>,
}

impl Collector {
    fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let taken = Arc::new(Mutex::new(Vec::new()));
        let keep = taken.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut stream = BufReader::new(stream);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).unwrap_or(0) > 0 {}
                let length = head.lines().find_map(|line| {
                    line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok()
                });
                let mut body = vec![0; length.unwrap_or(0)];
                if stream.read_exact(&mut body).is_ok() {
                    let body = String::from_utf8_lossy(&body).into_owned();
                    keep.lock().unwrap().push((head, body));
                }
                let _ =
                    stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
            }
        });
        Collector { address, taken }
    }

    fn spans(&self) -> Vec<Value> {
        let taken = self.taken.lock().unwrap();
        let spans = taken.iter().flat_map(|(_, body)| {
            let document: Value = serde_json::from_str(body).expect("a document");
            let spans = &document["resourceSpans"][0]["scopeSpans"][0]["spans"];
            spans.as_array().cloned().expect("spans")
        });
        spans.collect()
    }
}

fn note<'a>(span: &'a Value, key: &str) -> Option<&'a Value> {
    let notes = span["attributes"].as_array().expect("attributes");
    notes.iter().find(|note| note["key"] == key).map(|note| &note["value"])
}

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

#[test]
fn a_collector_sees_a_join_from_the_request_to_the_disk() {
    let collector = Collector::start();
    let otlp = format!("http://{}", collector.address);
    let server = Instance::with(&[
        ("WAITROOM_TELEMETRY_OTLP", &otlp),
        ("WAITROOM_TELEMETRY_SAMPLE", "100%"),
    ]);
    let parent = format!("traceparent: 00-{TRACE}-{PARENT}-01");
    let joined = server.post("/v1/rooms/default/join", &["-H", &parent]).json();
    let token = joined["token"].as_str().expect("a token").to_owned();
    server.get("/v1/rooms/default/status?planted=secret", &["-H", "Authorization: Bearer wt1_no"]);
    let named = |name: &str| collector.spans().into_iter().find(|span| span["name"] == name);
    let join = soon("the span of the join", || named("POST /v1/rooms/{room}/join"));
    assert_eq!((&join["traceId"], &join["parentSpanId"]), (&TRACE.into(), &PARENT.into()));
    assert_eq!((&join["kind"], &join["status"]["code"]), (&2.into(), &0.into()));
    let status = note(&join, "http.response.status_code").expect("its status");
    assert_eq!(status["intValue"], "201");
    let command = soon("its command", || named("room command"));
    assert_eq!(
        (&command["traceId"], &command["parentSpanId"]),
        (&join["traceId"], &join["spanId"])
    );
    assert_eq!(note(&command, "waitroom.command").expect("which")["stringValue"], "join");
    let append = soon("its way to the disk", || named("journal append"));
    assert_eq!(append["parentSpanId"], command["spanId"]);
    let at = |span: &Value, key: &str| span[key].as_str().and_then(|it| it.parse::<u64>().ok());
    assert!(at(&join, "startTimeUnixNano") <= at(&command, "startTimeUnixNano"));
    assert!(at(&command, "endTimeUnixNano") <= at(&join, "endTimeUnixNano"));
    let look = soon("the look", || named("GET /v1/rooms/{room}/status"));
    assert_eq!(note(&look, "waitroom.problem").expect("why")["stringValue"], "token_invalid");
    assert!(value(&page(&server), r#"waitroom_spans_total{outcome="sent"}"#) >= 3.0);
    server.stop();
    let taken = collector.taken.lock().unwrap();
    for (head, body) in taken.iter() {
        assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
        for secret in [&token["wt1_".len()..], "planted", "wt1_no"] {
            assert!(!body.contains(secret), "{secret} is in {body}");
        }
    }
    the_library_of_opentelemetry_reads(&taken[0].1);
}

/// The published messages of the protocol, read by somebody else's code.
fn the_library_of_opentelemetry_reads(body: &str) {
    const VERSION: &str = "1.29.0";
    let venv = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("otlp-{VERSION}"));
    let python = venv.join("bin/python");
    let run = |command: &mut Command| {
        let done = command.output().expect("Python 3 is needed for this test");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    if !venv.join("made").exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv));
        let wanted = format!("opentelemetry-proto=={VERSION}");
        run(Command::new(venv.join("bin/pip")).args(["install", "-q", &wanted]));
        std::fs::write(venv.join("made"), "").expect("it can be written");
    }
    // The JSON of this protocol has ids in hex where the usual JSON of protobuf has base64.
    const READ: &str = "
import base64, json, sys
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
told = json.load(sys.stdin)
for span in told['resourceSpans'][0]['scopeSpans'][0]['spans']:
    for key in ('traceId', 'spanId', 'parentSpanId'):
        if key in span:
            span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
read = json_format.ParseDict(told, ExportTraceServiceRequest(), ignore_unknown_fields=False)
spans = read.resource_spans[0].scope_spans[0].spans
assert len(spans) > 0
for span in spans:
    assert len(span.trace_id) == 16 and len(span.span_id) == 8, span
    assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano, span
";
    let mut read = Command::new(python)
        .args(["-c", READ])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = read.stdin.take().expect("piped");
    stdin.write_all(body.as_bytes()).expect("it reads");
    drop(stdin);
    let done = read.wait_with_output().expect("it ends");
    assert!(done.status.success(), "{}\n{body}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn a_collector_that_is_away_costs_spans_and_nothing_else() {
    let gone = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port");
    let otlp = format!("http://{gone}");
    let server = Instance::with(&[
        ("WAITROOM_TELEMETRY_OTLP", &otlp),
        ("WAITROOM_TELEMETRY_SAMPLE", "100%"),
    ]);
    server.join(1);
    soon("spans are dropped", || {
        let dropped = r#"waitroom_spans_total{outcome="dropped"}"#;
        (value(&page(&server), dropped) > 0.0).then_some(())
    });
    let said = server.stop();
    assert_eq!(said.matches("the collector takes no spans").count(), 1, "said once:\n{said}");
}
