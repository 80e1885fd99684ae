//! Kafka: queue events go out to three topics, checkouts come in from three others.
//!
//! Lives here: the connection. [`sink`] publishes, [`source`] consumes.

pub mod sink;
pub mod source;

use rdkafka::ClientConfig;

pub use sink::{KafkaSink, Topics};
pub use source::KafkaSource;

/// Where the brokers are and who we are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// `127.0.0.1:9092`, or several with commas between them.
    pub brokers: String,
}

impl Link {
    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.brokers).set("client.id", "waitroom");
        // Told as trouble and in figures; librdkafka itself would write to standard error.
        config.set("log_level", "2").set_log_level(rdkafka::config::RDKafkaLogLevel::Critical);
        config
    }
}
