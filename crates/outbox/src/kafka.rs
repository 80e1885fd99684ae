//! Kafka: queue events go out to three topics, checkouts come in from three others.
//!
//! Lives here: the connection, and who we are there. [`sink`] publishes, [`source`] consumes.

pub(crate) mod publisher;
pub(crate) mod refusals;
pub mod sink;
pub mod source;
pub(crate) mod tally;

use std::fmt;
use std::path::PathBuf;

use rdkafka::ClientConfig;
use rdkafka::consumer::BaseConsumer;
use rdkafka::producer::ThreadedProducer;

use crate::sink::Trouble;
use refusals::Refusals;

pub use sink::{KafkaSink, Topics, headers};
pub use source::KafkaSource;

/// Where the brokers are and who we are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// `127.0.0.1:9092`, or several with commas between them.
    pub brokers: String,
    pub tls: Option<Tls>,
    pub sasl: Option<Sasl>,
}

/// A connection that nobody else can read, to brokers that must prove their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// Who may have signed the brokers' certificates; without it, whom the machine trusts.
    pub ca: Option<PathBuf>,
    /// A certificate of ours and its key, for brokers that ask for one.
    pub papers: Option<(PathBuf, PathBuf)>,
}

/// A user whom the brokers know by a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sasl {
    pub mechanism: Mechanism,
    pub user: String,
    /// Read anew for each connection; its first line is the password.
    pub password_file: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// Says the password to the broker.
    Plain,
    ScramSha256,
    ScramSha512,
}

impl Mechanism {
    fn name(self) -> &'static str {
        match self {
            Mechanism::Plain => "PLAIN",
            Mechanism::ScramSha256 => "SCRAM-SHA-256",
            Mechanism::ScramSha512 => "SCRAM-SHA-512",
        }
    }
}

impl Link {
    /// Brokers that let anybody in who can reach them.
    pub fn plain(brokers: impl Into<String>) -> Link {
        Link { brokers: brokers.into(), tls: None, sasl: None }
    }

    /// A producer that loses nothing and keeps the order: idempotent, all replicas, no time-out.
    pub(crate) fn producer(
        &self,
        refusals: Refusals,
    ) -> Result<ThreadedProducer<Refusals>, Trouble> {
        self.config()?
            .set("enable.idempotence", "true")
            .set("enable.gapless.guarantee", "true")
            .set("acks", "all")
            .set("message.timeout.ms", "0")
            // Batches fill up by themselves under load; alone, a message waits this long.
            .set("linger.ms", "1")
            .set("topic.metadata.propagation.max.ms", "10000")
            .create_with_context(refusals)
            .map_err(Trouble::new)
    }

    /// A consumer that asks and reads, and remembers what it is refused.
    pub(crate) fn reader(&self) -> Result<BaseConsumer<Refusals>, Trouble> {
        self.config()?
            // Asked for by the library; nothing is ever committed under it.
            .set("group.id", "waitroom-rebuild")
            .set("enable.auto.commit", "false")
            .create_with_context(Refusals::default())
            .map_err(Trouble::new)
    }

    pub(crate) fn config(&self) -> Result<ClientConfig, Trouble> {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.brokers).set("client.id", "waitroom");
        // Told as trouble and in figures; librdkafka itself would write to standard error.
        config.set("log_level", "2").set_log_level(rdkafka::config::RDKafkaLogLevel::Critical);
        if let Some(Tls { ca, papers }) = &self.tls {
            let files = [
                ("ssl.ca.location", ca.as_ref()),
                ("ssl.certificate.location", papers.as_ref().map(|(cert, _)| cert)),
                ("ssl.key.location", papers.as_ref().map(|(_, key)| key)),
            ];
            for (name, file) in files {
                let Some(file) = file else { continue };
                let of_file =
                    |why: &dyn fmt::Display| Trouble::new(format!("{}: {why}", file.display()));
                // The library would say that some file is not there, and not which.
                std::fs::File::open(file).map_err(|error| of_file(&error))?;
                let path = file.to_str().ok_or_else(|| of_file(&"not a name in UTF-8"))?;
                config.set(name, path);
            }
        }
        if let Some(Sasl { mechanism, user, password_file }) = &self.sasl {
            let read = std::fs::read_to_string(password_file);
            let unread = |error| Trouble::new(format!("{}: {error}", password_file.display()));
            let read = read.map_err(unread)?;
            config.set("sasl.mechanism", mechanism.name()).set("sasl.username", user);
            config.set("sasl.password", read.lines().next().unwrap_or_default());
        }
        let protocol = match (&self.tls, &self.sasl) {
            (None, None) => "plaintext",
            (Some(_), None) => "ssl",
            (None, Some(_)) => "sasl_plaintext",
            (Some(_), Some(_)) => "sasl_ssl",
        };
        config.set("security.protocol", protocol);
        Ok(config)
    }
}
