//! How many messages of a batch the brokers still owe an answer for.
//!
//! One count for a batch and not a channel for each message: a million of them come back one by
//! one, in the library's thread.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use rdkafka::error::KafkaError;
use rdkafka::message::DeliveryResult;
use rdkafka::producer::ProducerContext;
use tokio::sync::Notify;

use super::refusals::Refusals;

#[derive(Debug)]
pub(crate) struct Tally {
    /// Messages without an answer, and one for whoever still hands some over.
    owed: AtomicUsize,
    failed: OnceLock<KafkaError>,
    /// Nothing is owed any more, or something failed.
    over: Notify,
}

impl Tally {
    pub fn new() -> Arc<Tally> {
        let (failed, over) = (OnceLock::new(), Notify::new());
        Arc::new(Tally { owed: AtomicUsize::new(1), failed, over })
    }

    /// What goes with one more message, and comes back with its answer.
    pub fn one_more(self: &Arc<Tally>) -> Arc<Tally> {
        self.owed.fetch_add(1, Ordering::Relaxed);
        self.clone()
    }

    /// Waits for the answers to everything that was handed over; ends with the first failure.
    pub async fn settled(self: Arc<Tally>) -> Result<(), KafkaError> {
        self.one_less();
        self.over.notified().await;
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    fn answered(&self, answer: Result<(), &KafkaError>) {
        if let Err(error) = answer {
            // Only the first counts; those behind it fail because of it.
            let _ = self.failed.set(error.clone());
            self.over.notify_one();
        }
        self.one_less();
    }

    fn one_less(&self) {
        // Whoever takes the last one sees the failure of any before it.
        if self.owed.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.over.notify_one();
        }
    }
}

/// Whoever listens to a producer's brokers hears their answers as well.
impl ProducerContext for Refusals {
    type DeliveryOpaque = Arc<Tally>;

    fn delivery(&self, result: &DeliveryResult<'_>, tally: Arc<Tally>) {
        tally.answered(result.as_ref().map(|_| ()).map_err(|(error, _)| error));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use rdkafka::error::RDKafkaErrorCode;

    use super::*;

    #[test]
    fn a_batch_is_settled_with_its_last_answer_and_not_before() {
        let tally = Tally::new();
        let (first, second) = (tally.one_more(), tally.one_more());
        // Answers may come while the rest is handed over.
        first.answered(Ok(()));
        let mut settled = Box::pin(tally.settled());
        assert_eq!(settled.as_mut().now_or_never(), None);
        second.answered(Ok(()));
        assert_eq!(settled.now_or_never(), Some(Ok(())));
    }

    #[test]
    fn an_empty_batch_is_settled_at_once() {
        assert_eq!(Tally::new().settled().now_or_never(), Some(Ok(())));
    }

    #[test]
    fn the_first_failure_settles_a_batch_whatever_is_still_owed() {
        let tally = Tally::new();
        let (first, second, _third) = (tally.one_more(), tally.one_more(), tally.one_more());
        let purged = KafkaError::MessageProduction(RDKafkaErrorCode::PurgeQueue);
        first.answered(Err(&KafkaError::Canceled));
        second.answered(Err(&purged));
        assert_eq!(tally.settled().now_or_never(), Some(Err(KafkaError::Canceled)));
    }
}
