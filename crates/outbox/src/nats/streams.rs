//! The streams that events go to: what they are called, how they are made, where they end.

use std::time::Duration;

use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::{self, stream};

use crate::message::Kind;
use crate::sink::Trouble;

/// How streams are made where there are none yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Streams {
    pub replicas: usize,
    /// How long messages are kept.
    pub keep: Duration,
    /// How long a stream remembers message ids: a repeat within this is dropped by the server.
    pub remember: Duration,
}

/// A stream, and the first part of its subjects.
pub(super) const LINES: [(&str, &str); 3] =
    [("POSITION_EVENTS", "position"), ("SESSION_EVENTS", "session"), ("QUEUE_EVENTS", "queue")];

pub(super) fn line_of(kind: Kind) -> Option<usize> {
    let (part, _) = kind.word().split_once('.').expect("kinds are of two words");
    LINES.iter().position(|(_, of)| *of == part)
}

/// Whether asking a stream what it holds leaves no trace there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asking {
    LeavesNoTrace,
    /// A stream has replicas.
    IsNoted,
}

impl Streams {
    /// Makes what is missing. Whether they may be asked is seen now, and not as it was configured,
    /// since an operator may have scaled them.
    pub(super) async fn make(&self, context: &jetstream::Context) -> Result<Asking, Trouble> {
        let mut asking = Asking::LeavesNoTrace;
        for (name, part) in LINES {
            let config = stream::Config {
                name: name.to_owned(),
                subjects: vec![format!("waitingroom.{part}.>")],
                num_replicas: self.replicas,
                max_age: self.keep,
                duplicate_window: self.remember,
                ..stream::Config::default()
            };
            let stream = context.get_or_create_stream(config).await.map_err(Trouble::new)?;
            if stream.cached_info().config.num_replicas > 1 {
                asking = Asking::IsNoted;
            }
        }
        Ok(asking)
    }
}

/// The sequence of the last message in a stream.
pub(super) async fn last_of(
    context: &jetstream::Context,
    line: usize,
) -> Result<u64, PublishError> {
    let gone = |error| PublishError::with_source(PublishErrorKind::StreamNotFound, error);
    let stream = context.get_stream(LINES[line].0).await.map_err(gone)?;
    Ok(stream.cached_info().state.last_sequence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_but_the_single_rooms_own_has_its_stream() {
        for kind in Kind::ALL {
            assert_eq!(line_of(*kind).is_none(), *kind == Kind::Capacity, "{kind:?}");
        }
    }
}
