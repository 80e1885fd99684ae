//! What brokers say that no patience mends: not a certificate to believe, not a user they know.
//!
//! A producer waits for its brokers as long as it takes, so an outage is no error to it. A wrong
//! password would look just like one; the library tells of it beside the messages, and here.

use std::sync::Arc;

use rdkafka::ClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use tokio::sync::watch;

/// Shared with one client of the library.
#[derive(Clone, Debug)]
pub(crate) struct Refusals(Arc<watch::Sender<Option<String>>>);

impl Default for Refusals {
    fn default() -> Refusals {
        Refusals(Arc::new(watch::Sender::new(None)))
    }
}

impl Refusals {
    /// Waits for one, and says why.
    pub async fn refused(&self) -> String {
        let mut seen = self.0.subscribe();
        let said = seen.wait_for(Option::is_some).await.expect("we hold the other end");
        said.clone().unwrap_or_default()
    }
}

impl ClientContext for Refusals {
    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "the brokers cannot be used");
        // A broker that wants a certificate says so after the handshake (TLS 1.3), by an alert; to
        // the library that is a connection that broke.
        let alert = reason.contains("alert");
        if alert || error.rdkafka_error_code().is_some_and(is_refusal) {
            self.0.send_replace(Some(reason.to_owned()));
        }
    }
}

pub(crate) fn is_refusal(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode::{Authentication, SSL, SaslAuthenticationFailed};
    matches!(code, SSL | Authentication | SaslAuthenticationFailed)
}
