//! Spans: what one request went through, for those who collect traces.
//!
//! Off, all of it costs a relaxed load. On, some requests are drawn by lot ([`begin`]); what they
//! do inside ([`Within`]) makes spans of its own, and whoever installed a [`Sink`] gets each one
//! when it is over. A trace that began elsewhere goes on here under its id, but whether we take
//! part is our own draw: a stranger must not be able to make work by a header.
//! Names and attributes are ours to choose: no path, no query and no header of a request is in
//! them, so no secret can be.

use std::cell::Cell;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context as TaskContext, Poll};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::count::Counter;

/// A span that is going on: its trace, and its own name in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    pub trace: u128,
    pub span: u64,
}

/// Whether a span answers somebody, or is a step of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Server,
    Step,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Text(String),
    Number(u64),
}

/// One span that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub context: Context,
    /// The span that this is a step of; 0 for the first of a trace.
    pub parent: u64,
    pub name: String,
    pub role: Role,
    pub from_ns: u64,
    pub to_ns: u64,
    pub attributes: Vec<(&'static str, Value)>,
    pub failed: bool,
}

/// Where finished spans go. Called on the path of a request: it must not wait.
pub trait Sink: Send + Sync {
    fn take(&self, span: Span);
}

/// Spans that reached a collector, and spans that did not. Counted by the sink.
pub static SENT: Counter = Counter::new();
pub static DROPPED: Counter = Counter::new();

static SINK: OnceLock<Box<dyn Sink>> = OnceLock::new();
/// Requests out of 2³² that are followed; 0 is off.
static ODDS: AtomicU64 = AtomicU64::new(0);
const ALL: u64 = 1 << 32;

thread_local! {
    static CURRENT: Cell<Option<Context>> = const { Cell::new(None) };
}

/// Switches spans on, once in the life of a process. `share` of all requests are followed, from 0
/// to 1. False when it was done before.
pub fn install(sink: Box<dyn Sink>, share: f64) -> bool {
    let fresh = SINK.set(sink).is_ok();
    if fresh {
        ODDS.store((share.clamp(0.0, 1.0) * ALL as f64) as u64, Relaxed);
    }
    fresh
}

/// Whether any request is followed.
pub fn is_on() -> bool {
    ODDS.load(Relaxed) > 0
}

/// A span that is going on. It goes to the sink when it is ended; one that is dropped is not told.
#[derive(Debug)]
pub struct Open {
    span: Box<Span>,
}

/// Begins a trace for a request that the lot falls on; none for all others. `parent` is what the
/// caller said of the trace that it belongs to (`traceparent`).
pub fn begin(name: impl FnOnce() -> String, parent: Option<Context>) -> Option<Open> {
    let odds = ODDS.load(Relaxed);
    if odds == 0 || random() % ALL >= odds {
        return None;
    }
    let trace =
        parent.map_or_else(|| u128::from(random()) << 64 | u128::from(random()), |it| it.trace);
    let parent = parent.map_or(0, |it| it.span);
    Some(Open::new(name(), Role::Server, trace, parent))
}

/// A step of the request that runs here, if it is followed.
pub fn step(name: &'static str) -> Option<Open> {
    if ODDS.load(Relaxed) == 0 {
        return None;
    }
    let Context { trace, span } = CURRENT.get()?;
    Some(Open::new(name.to_owned(), Role::Step, trace, span))
}

impl Open {
    fn new(name: String, role: Role, trace: u128, parent: u64) -> Open {
        let context = Context { trace, span: random().max(1) };
        let (attributes, from_ns) = (Vec::new(), now_ns());
        let span = Span {
            context,
            parent,
            name,
            role,
            from_ns,
            to_ns: from_ns,
            attributes,
            failed: false,
        };
        Open { span: Box::new(span) }
    }

    /// A step of `of` that is already over.
    pub fn past(name: &'static str, of: Context, from_ns: u64) -> Open {
        let mut open = Open::new(name.to_owned(), Role::Step, of.trace, of.span);
        open.span.from_ns = from_ns;
        open
    }

    pub fn context(&self) -> Context {
        self.span.context
    }

    pub fn note(&mut self, key: &'static str, value: impl Into<Value>) {
        self.span.attributes.push((key, value.into()));
    }

    pub fn fail(&mut self) {
        self.span.failed = true;
    }

    pub fn end(mut self) {
        self.span.to_ns = now_ns().max(self.span.from_ns);
        if let Some(sink) = SINK.get() {
            sink.take(*self.span);
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::Number(number)
    }
}

/// The nanoseconds of the wall clock, as spans tell time.
pub fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_nanos() as u64)
}

/// `traceparent` of W3C Trace Context, version 00; none for anything else.
pub fn parse(traceparent: &str) -> Option<Context> {
    let mut parts = traceparent.split('-');
    let (version, trace, span) = (parts.next()?, parts.next()?, parts.next()?);
    let flags = parts.next()?;
    let hex = |text: &str, len: usize| {
        text.len() == len && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    if version != "00" || parts.next().is_some() || !hex(flags, 2) {
        return None;
    }
    if !hex(trace, 32) || !hex(span, 16) {
        return None;
    }
    let trace = u128::from_str_radix(trace, 16).ok().filter(|trace| *trace != 0)?;
    let span = u64::from_str_radix(span, 16).ok().filter(|span| *span != 0)?;
    Some(Context { trace, span })
}

/// A future whose steps belong to a span.
#[derive(Debug)]
pub struct Within<F> {
    inner: F,
    context: Context,
}

impl<F> Within<F> {
    pub fn new(context: Context, inner: F) -> Within<F> {
        Within { inner, context }
    }
}

/// Does something whose steps belong to a span.
pub fn within<T>(context: Context, doing: impl FnOnce() -> T) -> T {
    let before = CURRENT.replace(Some(context));
    let done = doing();
    CURRENT.set(before);
    done
}

impl<F: Future + Unpin> Future for Within<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<F::Output> {
        within(self.context, || Pin::new(&mut self.inner).poll(cx))
    }
}

/// Chance enough for names: the system's key of this process, over a count.
fn random() -> u64 {
    static KEY: OnceLock<RandomState> = OnceLock::new();
    static COUNT: AtomicU64 = AtomicU64::new(0);
    KEY.get_or_init(RandomState::new).hash_one(COUNT.fetch_add(1, Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<Span>>>);

    impl Sink for Kept {
        fn take(&self, span: Span) {
            self.0.lock().unwrap().push(span);
        }
    }

    #[test]
    fn a_step_belongs_to_the_request_that_runs_it() {
        assert!(begin(|| "never".into(), None).is_none(), "off until somebody wants them");
        let kept = Kept::default();
        assert!(install(Box::new(kept.clone()), 1.0));
        assert!(!install(Box::new(kept.clone()), 0.5), "once in the life of a process");
        assert!(step("nobody's").is_none());
        let told = parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        let request = begin(|| "POST /join".into(), told).expect("all are followed");
        let context = request.context();
        let inner = Box::pin(async {
            let mut step = step("command").expect("a followed request runs");
            step.note("waitroom.room", "spring");
            step.end();
        });
        let waker = std::task::Waker::noop();
        let polled =
            Pin::new(&mut Within::new(context, inner)).poll(&mut TaskContext::from_waker(waker));
        assert!(polled.is_ready());
        assert!(step("nobody's").is_none(), "the thread goes on to somebody else");
        request.end();
        let kept = kept.0.lock().unwrap();
        assert_eq!(kept[0].parent, kept[1].context.span);
        assert_eq!(kept[1].parent, 0xb7ad6b7169203331);
        assert_eq!(kept[0].context.trace, 0x0af7651916cd43dd8448eb211c80319c);
        assert_eq!(kept[1].context.trace, kept[0].context.trace);
        assert!(kept[1].from_ns <= kept[0].from_ns && kept[0].to_ns <= kept[1].to_ns);
    }

    #[test]
    fn only_a_well_formed_traceparent_is_followed() {
        for wrong in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
        ] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
    }
}
