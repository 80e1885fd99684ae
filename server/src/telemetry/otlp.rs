//! Spans on their way to a collector: OTLP over HTTP, as JSON.
//!
//! A bounded queue, one task, one request for each batch. A collector that is slow or away costs
//! spans, which are counted (`waitroom_spans_total`), never a visitor's time.
//! The document is written here, without the exporter of OpenTelemetry: it is one nested object,
//! and its libraries would bring a second HTTP client and their own copy of the protocol.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use waitroom_watch::span::{self, Role, Sink, Span};

use crate::config::Telemetry;

/// Spans that may wait. At one request in a hundred this is a second of a very busy instance.
const QUEUE_MAX: usize = 8_192;
/// Spans in one request: some hundred kilobytes.
const BATCH_MAX: usize = 512;
/// How long a span waits for others.
const GATHER: Duration = Duration::from_millis(500);
const SEND_WITHIN: Duration = Duration::from_secs(5);
/// What is left when the server stops gets this long.
const FINISH_WITHIN: Duration = Duration::from_secs(3);

/// The running export.
#[derive(Debug)]
pub struct Exporter {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Queue(mpsc::Sender<Span>);

impl Sink for Queue {
    fn take(&self, span: Span) {
        if self.0.try_send(span).is_err() {
            span::DROPPED.one();
        }
    }
}

impl Exporter {
    /// Begins to follow requests, if the configuration says where spans go. Within a runtime.
    pub fn begin(telemetry: &Telemetry, instance: &str) -> Option<Exporter> {
        let endpoint = telemetry.otlp.as_ref()?;
        let uri: Uri = format!("{endpoint}/v1/traces").parse().ok()?;
        let (queue, spans) = mpsc::channel(QUEUE_MAX);
        if !span::install(Box::new(Queue(queue)), telemetry.sample) {
            return None;
        }
        let (stop, stopped) = watch::channel(false);
        let collector = Collector { uri, instance: instance.to_owned(), quiet: false.into() };
        let task = tokio::spawn(run(spans, collector, stopped));
        tracing::info!(
            share = telemetry.sample,
            "requests are followed; spans go to the collector"
        );
        Some(Exporter { stop, task })
    }

    /// Sends what is left, for a moment.
    pub async fn finish(self) {
        let _ = self.stop.send(true);
        let _late_spans_are_lost = timeout(FINISH_WITHIN, self.task).await;
    }
}

async fn run(mut spans: mpsc::Receiver<Span>, to: Collector, mut stop: watch::Receiver<bool>) {
    let mut batch = Vec::new();
    loop {
        let stopping = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => true,
            _ = tokio::time::sleep(GATHER) => false,
        };
        loop {
            while batch.len() < BATCH_MAX
                && let Ok(span) = spans.try_recv()
            {
                batch.push(span);
            }
            if batch.is_empty() {
                break;
            }
            to.send(&batch).await;
            batch.clear();
        }
        if stopping {
            return;
        }
    }
}

struct Collector {
    uri: Uri,
    instance: String,
    /// It failed last time, and that was said.
    quiet: AtomicBool,
}

impl Collector {
    async fn send(&self, batch: &[Span]) {
        let body = Bytes::from(document(batch, &self.instance).to_string());
        let sent = match timeout(SEND_WITHIN, post(&self.uri, body)).await {
            Ok(sent) => sent,
            Err(_) => Err("it took longer than 5 s".to_owned()),
        };
        let count = batch.len() as u64;
        match sent {
            Ok(()) => {
                span::SENT.add(count);
                if self.quiet.swap(false, Ordering::Relaxed) {
                    tracing::info!("the collector takes spans again");
                }
            }
            Err(why) => {
                span::DROPPED.add(count);
                // Said once, not for every batch of a long outage.
                if !self.quiet.swap(true, Ordering::Relaxed) {
                    tracing::warn!(why, "the collector takes no spans; they are dropped");
                }
            }
        }
    }
}

async fn post(uri: &Uri, body: Bytes) -> Result<(), String> {
    let said = |error: hyper::Error| error.to_string();
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let stream = TcpStream::connect((host, uri.port_u16().unwrap_or(80))).await;
    let stream = stream.map_err(|error| error.kind().to_string())?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(said)?;
    let connection = tokio::spawn(connection);
    let authority = uri.authority().map_or("", |it| it.as_str());
    let request = Request::post(uri.path())
        .header(HOST, authority)
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, concat!("waitroom/", env!("CARGO_PKG_VERSION")))
        .body(Full::new(body))
        .map_err(|error| error.to_string())?;
    let response = sender.send_request(request).await.map_err(said)?;
    let status = response.status();
    let _what_it_says_changes_nothing = response.into_body().collect().await;
    connection.abort();
    if status.is_success() { Ok(()) } else { Err(format!("it answered {status}")) }
}

/// An `ExportTraceServiceRequest`: ids in hex, numbers of 64 bits as text.
fn document(batch: &[Span], instance: &str) -> Value {
    let text = |key: &str, value: &str| json!({ "key": key, "value": { "stringValue": value } });
    json!({ "resourceSpans": [{
        "resource": { "attributes": [
            text("service.name", "waitroom"),
            text("service.version", env!("CARGO_PKG_VERSION")),
            text("service.instance.id", instance),
        ] },
        "scopeSpans": [{
            "scope": { "name": "waitroom", "version": env!("CARGO_PKG_VERSION") },
            "spans": batch.iter().map(one).collect::<Vec<Value>>(),
        }],
    }] })
}

fn one(span: &Span) -> Value {
    let attributes: Vec<Value> = span.attributes.iter().map(attribute).collect();
    let kind = match span.role {
        Role::Server => 2,
        Role::Step => 1,
    };
    let mut told = json!({
        "traceId": format!("{:032x}", span.context.trace),
        "spanId": format!("{:016x}", span.context.span),
        "name": span.name,
        "kind": kind,
        "startTimeUnixNano": span.from_ns.to_string(),
        "endTimeUnixNano": span.to_ns.to_string(),
        "attributes": attributes,
        "status": { "code": if span.failed { 2 } else { 0 } },
    });
    if span.parent != 0 {
        told["parentSpanId"] = format!("{:016x}", span.parent).into();
    }
    told
}

fn attribute((key, value): &(&'static str, span::Value)) -> Value {
    let value = match value {
        span::Value::Text(text) => json!({ "stringValue": text }),
        span::Value::Number(number) => json!({ "intValue": number.to_string() }),
    };
    json!({ "key": key, "value": value })
}
