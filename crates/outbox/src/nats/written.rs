//! How a message is written for JetStream: its headers, and what they ask of the stream.
//!
//! Stays out: the envelope and the attributes beside it, which other sinks write too (`body.rs`).

use async_nats::header::{
    HeaderMap, HeaderName, NATS_EXPECTED_LAST_MESSAGE_ID, NATS_EXPECTED_LAST_SEQUENCE,
    NATS_MESSAGE_ID,
};

use crate::body;
use crate::message::Message;

/// Where a stream must end for a message to be taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct End {
    pub sequence: u64,
    /// Of the last message in it. None asks for the sequence alone, as after a start and after
    /// trouble, when nobody knows what is there.
    pub id: Option<String>,
}

impl End {
    pub fn at(sequence: u64) -> End {
        End { sequence, id: None }
    }

    /// Where no stream ends.
    pub fn nowhere() -> End {
        End::at(u64::MAX)
    }

    /// Where the stream ends when it has taken this message too.
    pub fn behind(&mut self, message: &Message) {
        self.sequence += 1;
        self.id = Some(message.id.to_string());
    }
}

/// Made once: otherwise a name is looked at letter by letter in every message.
static CONTENT_TYPE: HeaderName = HeaderName::from_static("content-type");
static ATTRIBUTES: [(&str, HeaderName); 7] = [
    ("specversion", HeaderName::from_static("ce-specversion")),
    ("id", HeaderName::from_static("ce-id")),
    ("source", HeaderName::from_static("ce-source")),
    ("type", HeaderName::from_static("ce-type")),
    ("time", HeaderName::from_static("ce-time")),
    ("subject", HeaderName::from_static("ce-subject")),
    ("seq", HeaderName::from_static("ce-seq")),
];

/// The headers of a message for a stream that ends so.
pub(super) fn headers(message: &Message, end: &End) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(NATS_MESSAGE_ID, message.id.to_string());
    headers.insert(NATS_EXPECTED_LAST_SEQUENCE, end.sequence.to_string());
    if let Some(id) = &end.id {
        headers.insert(NATS_EXPECTED_LAST_MESSAGE_ID, id.as_str());
    }
    headers.insert(CONTENT_TYPE.clone(), "application/json");
    for (name, value) in body::attributes(message) {
        match ATTRIBUTES.iter().find(|(known, _)| *known == name) {
            Some((_, known)) => headers.insert(known.clone(), value),
            None => headers.insert(format!("ce-{name}"), value),
        }
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_made_once_is_the_attributes_own() {
        for (name, header) in &ATTRIBUTES {
            assert_eq!(header.to_string(), format!("ce-{name}"));
        }
    }
}
