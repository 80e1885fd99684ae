//! What an instance says of itself on NATS: how it is, what is wrong, what it counts.
//!
//! None of this is in a log: every instance says it for itself, as it is now, and what could not be
//! said is not said later. Lives here: the subjects, their stream and the envelope around them.
//! Stays out: what is said.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::connection::State;
use async_nats::jetstream::{self, message::PublishMessage, stream};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use waitroom_core::when::utc;

use super::{Link, connect};
use crate::sink::Trouble;

const STREAM: &str = "SYSTEM_EVENTS";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    Health,
    Error,
    Metrics,
}

impl System {
    fn word(self) -> &'static str {
        match self {
            System::Health => "health",
            System::Error => "error",
            System::Metrics => "metrics",
        }
    }
}

#[derive(Debug)]
pub struct SystemLine {
    link: Link,
    instance: String,
    replicas: usize,
    keep: Duration,
    /// Made once: a client that is dropped before it found a server goes on looking for one.
    context: OnceCell<jetstream::Context>,
    /// The stream is there, as far as we know.
    made: AtomicBool,
    /// Tells two that were said in one millisecond apart.
    said: AtomicU64,
}

impl SystemLine {
    pub fn new(link: Link, instance: &str, replicas: usize, keep: Duration) -> SystemLine {
        let (instance, context, made) =
            (instance.to_owned(), OnceCell::new(), AtomicBool::new(false));
        SystemLine { link, instance, replicas, keep, context, made, said: AtomicU64::new(0) }
    }

    /// `Ok` means that the stream holds it. `room` is the one that it is about, if any.
    pub async fn say(
        &self,
        what: System,
        at_ms: u64,
        room: Option<&str>,
        data: Value,
    ) -> Result<(), Trouble> {
        let context = self.context.get_or_try_init(|| connect(&self.link)).await?;
        // The client would keep it, and say it when it is no longer so.
        if context.client().connection_state() != State::Connected {
            return Err(Trouble::new("no server of NATS is connected"));
        }
        self.make(context).await?;
        let (instance, word, at) = (&self.instance, what.word(), utc(at_ms));
        let id = format!("{instance}:{at_ms}:{}", self.said.fetch_add(1, Ordering::Relaxed));
        let subject = format!("waitingroom.system.{word}.v1");
        let body = json!({
            "id": id,
            "version": "1.0",
            "type": format!("system.{word}"),
            "timestamp": at,
            "source": "waitroom",
            "trace_id": null,
            "span_id": null,
            "queue_id": room,
            "data": data,
        });
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("content-type", "application/json"),
            ("ce-specversion", "1.0"),
            ("ce-id", &id),
            ("ce-source", &format!("/instances/{instance}")),
            ("ce-type", &subject),
            ("ce-time", &at),
        ] {
            headers.insert(name, value);
        }
        let message = PublishMessage::build()
            .headers(headers)
            .message_id(&id)
            .payload(body.to_string().into());
        let lost = |error| {
            // Perhaps the stream is.
            self.made.store(false, Ordering::Relaxed);
            Trouble::new(error)
        };
        context.send_publish(subject.clone(), message).await.map_err(lost)?.await.map_err(lost)?;
        Ok(())
    }

    async fn make(&self, context: &jetstream::Context) -> Result<(), Trouble> {
        if self.made.load(Ordering::Relaxed) {
            return Ok(());
        }
        let config = stream::Config {
            name: STREAM.to_owned(),
            subjects: vec!["waitingroom.system.>".to_owned()],
            num_replicas: self.replicas,
            max_age: self.keep,
            ..stream::Config::default()
        };
        context.get_or_create_stream(config).await.map_err(Trouble::new)?;
        self.made.store(true, Ordering::Relaxed);
        Ok(())
    }
}
