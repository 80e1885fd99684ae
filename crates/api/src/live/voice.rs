//! In whose words a connection hears of its ticket: ours, or those of an earlier interface.
//!
//! Lives here: which personal frame says what, for each voice. When somebody is told is the hub's
//! to decide, and the same for all; the board's shared bytes go to our own clients only.
//! To add another voice: a variant, and an arm in each function.

use std::sync::Arc;
use std::time::Duration;

use waitroom_core::{Board, Command, Presented};
use waitroom_engine::{RoomHandle, Unanswered};

use crate::adapters::queue::frames::{self, Frame, Greeting};
use crate::answer::{Sight, VisitorAnswer};
use crate::desk::{Desk, RoomDesk};

#[derive(Clone, Debug)]
pub enum Voice {
    /// `docs/api.md`: the visitor answer when it changes, the public board in between.
    Ours,
    /// The queue API: every picture is personal. It hands out passes, so it knows who signs them.
    Queue(Arc<Desk>),
}

/// Why somebody is told something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    First,
    Changed,
    /// Only because it is time for a picture.
    Due,
}

/// What is said: the kind of letter, and its JSON.
#[derive(Debug)]
pub enum Words {
    Say(&'static str, Vec<u8>),
    Nothing,
    /// This, and then the end.
    Last(&'static str, Vec<u8>),
}

/// A claim on a visitor's behalf that cannot be taken now is tried again this often, and this
/// many times: longer than a room needs to be rebuilt, shorter than most deadlines for claims.
const CLAIM_AGAIN: Duration = Duration::from_secs(1);
const CLAIM_TRIES: u32 = 60;

impl Voice {
    /// Whether the public board is for this one's ears.
    pub fn shows_boards(&self) -> bool {
        matches!(self, Voice::Ours)
    }

    /// How a ticket stands.
    pub fn words(
        &self,
        room: &RoomDesk,
        board: &Board,
        sight: &Sight,
        occasion: Occasion,
    ) -> Words {
        let desk = match self {
            Voice::Ours => {
                let answer = VisitorAnswer::of(room, board.state(), sight).to_bytes();
                let json = [b"{\"type\":\"ticket\",", &answer[1..]].concat();
                return Words::Say("ticket", json);
            }
            Voice::Queue(desk) => desk,
        };
        let inside = sight.view.position == Some(0);
        if inside && occasion == Occasion::Due {
            // "Come in" was said, or a claim is on its way; a repeat would cost a signature.
            return Words::Nothing;
        }
        let greeting = match occasion {
            Occasion::First => Greeting::First,
            _ => Greeting::Later,
        };
        match frames::frame(desk, room, board, sight, greeting) {
            Frame::Update(json) => Words::Say("position_update", json),
            Frame::Admitted(json) => Words::Say("admitted", json),
            Frame::Expired(json) => Words::Last("expired", json),
            Frame::ClaimFirst => {
                tokio::spawn(claim(room.handle().clone(), sight.presented));
                Words::Nothing
            }
        }
    }

    /// The ticket cannot be looked at any more.
    pub fn lost(&self, reason: &str) -> (&'static str, Vec<u8>) {
        match self {
            Voice::Ours => {
                let json = format!("{{\"type\":\"bye\",\"reason\":\"{reason}\"}}");
                ("bye", json.into_bytes())
            }
            Voice::Queue(_) => ("expired", frames::expired(reason)),
        }
    }

    /// The instance goes down; none where the interface has no word for it.
    pub fn goodbye(&self) -> Option<&'static [u8]> {
        match self {
            Voice::Ours => Some(b"{\"type\":\"bye\",\"reason\":\"drain\"}"),
            Voice::Queue(_) => None,
        }
    }
}

/// Starts the session; the board that shows it brings the pass to the visitor.
async fn claim(room: RoomHandle, presented: Presented) {
    for _ in 0..CLAIM_TRIES {
        match room.send(Command::Claim(presented)).await {
            // Taken, or refused for good: either way the next board says it.
            Ok(_) | Err(Unanswered::Stopping | Unanswered::NotOwner { .. }) => return,
            Err(_) => tokio::time::sleep(CLAIM_AGAIN).await,
        }
    }
}
