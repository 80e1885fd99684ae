//! Hears checkouts on NATS: a durable consumer of a stream, a message acknowledged after its effect
//! is in the log.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::{self, AckKind, consumer, stream};
use futures_util::StreamExt;
use futures_util::future::join_all;

use super::{Link, connect};
use crate::sink::Trouble;
use crate::source::{Checkout, Hearing, Outcomes, Reason, SourceFigures, hear};

/// Everything that checkouts say, and where it stays until it was heard.
const STREAM: &str = "CHECKOUT_EVENTS";
/// What nothing came of.
const DEAD_STREAM: &str = "DEAD_LETTER_QUEUE";
const DEAD_SUBJECT: &str = "waitingroom.dlq.checkout";
/// The name of our place in the stream, shared by all instances.
const DURABLE: &str = "waitroom-service";

/// Messages that are heard together: their effects share one write to the disk.
const TOGETHER: usize = 256;
/// Longer than anything takes; then somebody else may try.
const ACK_WAIT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct NatsSource {
    pub link: Link,
    pub outcomes: Outcomes,
    pub replicas: usize,
    pub keep: Duration,
    pub figures: Arc<SourceFigures>,
}

impl NatsSource {
    /// Runs until it is dropped.
    pub async fn run(self, checkout: Arc<dyn Checkout>) {
        let hearing = Hearing::on("nats");
        hearing.keep(|| self.listen(&*checkout, &hearing)).await;
    }

    async fn listen(
        &self,
        checkout: &dyn Checkout,
        hearing: &Hearing,
    ) -> Result<Infallible, Trouble> {
        let context = connect(&self.link).await?;
        let subjects = self.outcomes.names().map(str::to_owned).to_vec();
        let stream = self.stream(&context, STREAM, subjects).await?;
        self.stream(&context, DEAD_STREAM, vec!["waitingroom.dlq.>".to_owned()]).await?;
        let config = consumer::pull::Config {
            durable_name: Some(DURABLE.to_owned()),
            ack_wait: ACK_WAIT,
            ..consumer::pull::Config::default()
        };
        let consumer =
            stream.get_or_create_consumer(DURABLE, config).await.map_err(Trouble::new)?;
        let messages = consumer.messages().await.map_err(Trouble::new)?;
        // It is connected, and its stream is there: nothing more can be known while nobody speaks.
        hearing.found();
        let mut together = messages.ready_chunks(TOGETHER);
        while let Some(chunk) = together.next().await {
            let mut fine = Vec::with_capacity(chunk.len());
            let mut trouble = None;
            for message in chunk {
                match message {
                    Ok(message) => fine.push(message),
                    Err(error) => trouble = Some(Trouble::new(error)),
                }
            }
            // Asked in the order of the stream; answered when all are in the log.
            let heard = join_all(fine.iter().map(|message| {
                hear(checkout, self.outcomes.of(&message.subject), &message.payload)
            }));
            let done = join_all(fine.iter().zip(heard.await).map(async |(message, heard)| {
                self.figures.note(&heard);
                if let Err(reason) = heard {
                    dead(&context, message, reason).await?;
                }
                message.ack_with(AckKind::Ack).await.map_err(Trouble::new)
            }));
            done.await.into_iter().collect::<Result<(), Trouble>>()?;
            if let Some(trouble) = trouble {
                return Err(trouble);
            }
        }
        Err(Trouble::new("the stream of messages ended"))
    }

    async fn stream(
        &self,
        context: &jetstream::Context,
        name: &str,
        subjects: Vec<String>,
    ) -> Result<stream::Stream, Trouble> {
        let config = stream::Config {
            name: name.to_owned(),
            subjects,
            num_replicas: self.replicas,
            max_age: self.keep,
            ..stream::Config::default()
        };
        context.get_or_create_stream(config).await.map_err(Trouble::new)
    }
}

/// Keeps a message of which nothing came, as it was, with the reason.
async fn dead(
    context: &jetstream::Context,
    message: &jetstream::Message,
    reason: Reason,
) -> Result<(), Trouble> {
    let mut headers = HeaderMap::new();
    headers.insert("waitroom-reason", reason.word());
    headers.insert("waitroom-subject", message.subject.as_str());
    let sent = context.publish_with_headers(DEAD_SUBJECT, headers, message.payload.clone()).await;
    sent.map_err(Trouble::new)?.await.map_err(Trouble::new)?;
    Ok(())
}
