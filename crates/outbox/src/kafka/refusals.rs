//! What brokers say that no patience mends: not a certificate to believe, not a user they know.
//!
//! A producer waits for its brokers as long as it takes, so an outage is no error to it. A wrong
//! password would look just like one; the library tells of it beside the messages, and here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rdkafka::ClientContext;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use tokio::sync::watch;

/// Shared with one client of the library.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals(Arc<Heard>);

#[derive(Debug)]
struct Heard {
    refused: watch::Sender<Option<String>>,
    /// Somebody took messages from this client.
    welcome: AtomicBool,
}

impl Default for Heard {
    fn default() -> Heard {
        Heard { refused: watch::Sender::new(None), welcome: AtomicBool::new(false) }
    }
}

impl Refusals {
    /// Waits for one, and says why.
    pub async fn refused(&self) -> String {
        let mut seen = self.0.refused.subscribe();
        let said = seen.wait_for(Option::is_some).await.expect("we hold the other end");
        said.clone().unwrap_or_default()
    }

    /// Why we were refused, if we were.
    pub fn heard(&self) -> Option<String> {
        self.0.refused.borrow().clone()
    }

    /// Messages were taken: who we are is right. If one broker of many refuses us after that, it is
    /// that broker's trouble, and those of the others go on.
    pub fn welcome(&self) {
        self.0.welcome.store(true, Ordering::Relaxed);
    }
}

impl ClientContext for Refusals {
    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "the brokers cannot be used");
        // A broker that wants a certificate says so after the handshake (TLS 1.3), by an alert; to
        // the library that is a connection that broke. A broker's name has no blanks.
        let alert = reason.contains(" alert ");
        if !alert && !error.rdkafka_error_code().is_some_and(is_refusal) {
            return;
        }
        if self.0.welcome.load(Ordering::Relaxed) {
            tracing::warn!(reason, "a Kafka broker refuses us; what it leads waits for it");
        } else {
            self.0.refused.send_replace(Some(reason.to_owned()));
        }
    }
}

impl ConsumerContext for Refusals {}

pub(crate) fn is_refusal(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode::{Authentication, SSL, SaslAuthenticationFailed};
    matches!(code, SSL | Authentication | SaslAuthenticationFailed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused_after(refusals: &Refusals, code: RDKafkaErrorCode, reason: &str) -> bool {
        refusals.error(KafkaError::Global(code), reason);
        refusals.0.refused.borrow().is_some()
    }

    #[test]
    fn a_refusal_counts_until_messages_were_taken_and_an_outage_never_does() {
        use RDKafkaErrorCode::{BrokerTransportFailure, SSL, SaslAuthenticationFailed};
        let away = "alerts-kafka:9093/1: Connect to 127.0.0.1:9093 failed: Connection refused";
        assert!(!refused_after(&Refusals::default(), BrokerTransportFailure, away));
        let alert = "ssl://kafka-1:9093: tlsv13 alert certificate required: SSL alert number 116";
        assert!(refused_after(&Refusals::default(), BrokerTransportFailure, alert));
        assert!(refused_after(&Refusals::default(), SaslAuthenticationFailed, "unknown user"));
        let known = Refusals::default();
        known.welcome();
        assert!(!refused_after(&known, SSL, "kafka-1: certificate verify failed"));
    }
}
