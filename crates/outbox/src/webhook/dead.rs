//! Dead letters: messages that an endpoint did not take, kept until somebody looks at them.
//!
//! Kept on a shelf (sealed files beside the store): a letter may hold a pass or a user's name, and
//! must be gone for good once it was sent again or thrown away. There are at most [`LETTERS_MAX`];
//! when the shelf is full the sink waits instead, so that nothing is lost silently.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use waitroom_store::{RoomName, Shelf};

use crate::message::MessageId;

/// Letters of one sink. More of them than this is no mishap but an endpoint that does not work.
pub const LETTERS_MAX: usize = 1_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    pub room: String,
    pub head: u64,
    pub index: u8,
    pub kind: String,
    /// The attributes that go into headers.
    pub about: Vec<(String, String)>,
    pub body: String,
    /// What the endpoint said last.
    pub why: String,
    pub tries: u32,
    pub first_tried_at_ms: u64,
    pub dead_at_ms: u64,
}

/// Which letter: the message that it holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LetterName {
    pub room: RoomName,
    pub head: u64,
    pub index: u8,
}

impl LetterName {
    pub fn of(id: &MessageId) -> LetterName {
        LetterName { room: id.room.clone(), head: id.head, index: id.index }
    }

    /// A room's name has no dot in it.
    fn file(&self) -> String {
        format!("{}.{}.{}", self.room, self.head, self.index)
    }

    fn of_file(file: &str) -> Option<LetterName> {
        let mut parts = file.split('.');
        let room = RoomName::parse(parts.next()?).ok()?;
        let (head, index) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        parts.next().is_none().then_some(LetterName { room, head, index })
    }
}

#[derive(Debug)]
pub struct DeadLetters {
    shelf: Arc<Shelf>,
}

impl DeadLetters {
    pub fn on(shelf: Shelf) -> DeadLetters {
        DeadLetters { shelf: Arc::new(shelf) }
    }

    pub fn count(&self) -> usize {
        self.shelf.count()
    }

    /// In the order of their rooms and logs.
    pub fn names(&self) -> Vec<LetterName> {
        let names = self.shelf.names();
        let mut names: Vec<_> = names.iter().filter_map(|it| LetterName::of_file(it)).collect();
        names.sort();
        names
    }

    pub(super) async fn bury(&self, letter: DeadLetter) -> Result<(), String> {
        let room = RoomName::parse(&letter.room).map_err(|error| error.to_string())?;
        let name = LetterName { room, head: letter.head, index: letter.index }.file();
        if self.shelf.count() >= LETTERS_MAX && !self.shelf.has(&name) {
            return Err(format!(
                "there are {LETTERS_MAX} dead letters already; send them again or throw them away"
            ));
        }
        let text = serde_json::to_vec(&letter).expect("a letter has no key that JSON could refuse");
        self.blocking(move |shelf| shelf.put(&name, &text)).await
    }

    pub async fn get(&self, name: &LetterName) -> Result<Option<DeadLetter>, String> {
        let file = name.file();
        let found = self.blocking(move |shelf| shelf.get(&file)).await?;
        let read = |text: Vec<u8>| serde_json::from_slice(&text).map_err(|error| error.to_string());
        found.map(read).transpose()
    }

    /// Says whether it was there.
    pub async fn take_away(&self, name: &LetterName) -> Result<bool, String> {
        let file = name.file();
        // Asked for every message that is taken: mostly there is none, and no thread is needed.
        if !self.shelf.has(&file) {
            return Ok(false);
        }
        self.blocking(move |shelf| shelf.take_away(&file)).await
    }

    /// The disk is waited for elsewhere.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shelf) -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, String> {
        let shelf = self.shelf.clone();
        let done = tokio::task::spawn_blocking(move || work(&shelf)).await;
        let done = done.map_err(|error| error.to_string())?;
        done.map_err(|error| format!("dead letters: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_is_found_again_by_the_name_of_its_file() {
        let room = RoomName::parse("spring_sale-2").expect("a name");
        let name = LetterName { room, head: 42, index: 1 };
        assert_eq!(LetterName::of_file(&name.file()), Some(name));
        for other in ["", "a", "a.1", "a.1.2.3", "A.1.2", "a.x.2", "a.1.256"] {
            assert_eq!(LetterName::of_file(other), None, "{other}");
        }
    }
}
