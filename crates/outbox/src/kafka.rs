//! Kafka: queue events go out to three topics, checkouts come in from three others.
//!
//! Lives here: the connection. [`sink`] publishes, [`source`] consumes.

pub(crate) mod publisher;
pub mod sink;
pub mod source;

use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::producer::FutureProducer;

pub use sink::{KafkaSink, Topics};
pub use source::KafkaSource;

/// Where the brokers are and who we are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// `127.0.0.1:9092`, or several with commas between them.
    pub brokers: String,
}

impl Link {
    /// A producer that loses nothing and keeps the order: idempotent, all replicas, no time-out.
    pub(crate) fn producer(&self) -> Result<FutureProducer, KafkaError> {
        self.config()
            .set("enable.idempotence", "true")
            .set("enable.gapless.guarantee", "true")
            .set("acks", "all")
            .set("message.timeout.ms", "0")
            // Batches fill up by themselves under load; alone, a message waits this long.
            .set("linger.ms", "5")
            .set("topic.metadata.propagation.max.ms", "10000")
            .create()
    }

    pub(crate) fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.brokers).set("client.id", "waitroom");
        // Told as trouble and in figures; librdkafka itself would write to standard error.
        config.set("log_level", "2").set_log_level(rdkafka::config::RDKafkaLogLevel::Critical);
        config
    }
}
