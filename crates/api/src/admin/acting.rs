//! An operator acts in a room: the command, and its one audit entry.
//!
//! Every change of a room by an operator, over whichever interface, goes through
//! [`Desk::operate`]. One act at a time in a room: what was before is then exactly what the act
//! found, and an entry that could not be written is made up for before the next act.
//!
//! The room's event and the audit entry stand in two logs, so a crash can come between them. The
//! caller is answered after both: an acknowledged act has its entry. An act that was not
//! acknowledged may be in the room's log alone; [`Office::catch_up`](super::office::Office) finds
//! it there and writes its entry, when the room opens and before the next act.
//! To add an act: a command with a `by`, a word for it, and a look at what it changes.

use serde_json::{Map, Value, json};
use waitroom_core::{Board, Command, Presented, Reply, State};
use waitroom_engine::Answer;

use crate::answer::room_status;
use crate::desk::{Desk, RoomDesk, Turn};
use crate::document;
use crate::problem::{Code, Problem};

/// What an act is called in the audit, and what of the room it changes.
#[derive(Clone, Copy, Debug)]
pub enum Deed<'a> {
    Configure,
    Pause,
    Maintenance,
    Drain,
    Resume,
    Finish,
    Reopen,
    Admit,
    /// The room's log says who ended a ticket; why is the audit's to remember.
    Revoke {
        ticket: Presented,
        reason: Option<&'a str>,
    },
    Move(Presented),
}

impl Deed<'_> {
    pub fn word(self) -> &'static str {
        match self {
            Deed::Configure => "configure",
            Deed::Pause => "pause",
            Deed::Maintenance => "maintenance",
            Deed::Drain => "drain",
            Deed::Resume => "resume",
            Deed::Finish => "finish",
            Deed::Reopen => "reopen",
            Deed::Admit => "admit",
            Deed::Revoke { .. } => "revoke",
            Deed::Move(_) => "move",
        }
    }

    /// The part of the room that the act is about.
    fn look(self, room: &RoomDesk, board: &Board) -> Value {
        let state = board.state();
        match self {
            Deed::Configure => state.settings().map_or(Value::Null, |it| document::to_json(it)),
            Deed::Admit => {
                json!({ "waiting": state.waiting(), "slots_taken": state.slots_taken() })
            }
            Deed::Revoke { ticket, .. } | Deed::Move(ticket) => ticket_facts(room, board, &ticket),
            _ => {
                let (status, reason) = room_status(state);
                json!({ "status": status, "reason": reason })
            }
        }
    }
}

fn ticket_facts(room: &RoomDesk, board: &Board, ticket: &Presented) -> Value {
    match room.look(board, ticket) {
        Ok(sight) => json!({
            "ticket": sight.id,
            "status": crate::problem::status_word(sight.view.status),
            "lane": lane_name(board.state(), sight.view.ticket.lane),
        }),
        Err(_) => Value::Null,
    }
}

/// A lane as operators call it.
pub fn lane_name(state: &State, lane: waitroom_core::LaneId) -> String {
    let named = state.settings().and_then(|it| Some(it.lanes.get(lane.0 as usize)?.name.clone()));
    named.unwrap_or_else(|| lane.to_string())
}

impl Desk {
    /// Does something in a room for an operator, and writes it down. Answers when both are durable.
    pub async fn operate(
        &self,
        room: &RoomDesk,
        who: &str,
        deed: Deed<'_>,
        command: Command,
    ) -> Result<Answer, Problem> {
        self.operate_on(room, who, deed, |_| Ok(command)).await
    }

    /// The same for a command that depends on how the room is: nobody acts between the look and
    /// the command, so of two who change a setting each, neither takes back what the other did.
    pub async fn operate_on(
        &self,
        room: &RoomDesk,
        who: &str,
        deed: Deed<'_>,
        command: impl FnOnce(&Board) -> Result<Command, Problem>,
    ) -> Result<Answer, Problem> {
        let mut behind = room.acting.lock().await;
        let turn = self.installation.begin_turn(room.name()).await?;
        let done = self.act_in_turn(room, who, deed, command, &turn, &mut behind).await;
        self.installation.end_turn(room.name(), turn).await;
        done
    }

    async fn act_in_turn(
        &self,
        room: &RoomDesk,
        who: &str,
        deed: Deed<'_>,
        command: impl FnOnce(&Board) -> Result<Command, Problem>,
        turn: &Turn,
        behind: &mut bool,
    ) -> Result<Answer, Problem> {
        if *behind || turn.others_acted {
            self.catch_up(room).await?;
            *behind = false;
        }
        let (board, _) = room.newest_board().await;
        let before = deed.look(room, &board);
        let answer = match room.send(command(&board)?).await {
            Ok(answer) => answer,
            Err(problem) => {
                *behind = problem.code == Code::OutcomeUnknown;
                return Err(problem);
            }
        };
        if !answer.changed {
            return Ok(answer);
        }
        let (board, _) = room.board_since(answer.version).await;
        let mut after = deed.look(room, &board);
        if let (Reply::Admitted { count }, Some(after)) = (&answer.reply, after.as_object_mut()) {
            after.insert("admitted".into(), (*count).into());
        }
        if let (Deed::Revoke { reason: Some(reason), .. }, Some(after)) =
            (deed, after.as_object_mut())
        {
            after.insert("reason".into(), reason.into());
        }
        let (before, after) = match deed {
            Deed::Configure => what_differs(before, after),
            _ => (before, after),
        };
        let detail = json!({ "before": before, "after": after, "version": answer.version });
        let noted = match turn.is_over() {
            // It took so long that somebody else may have written the entry for us.
            true => self.catch_up(room).await,
            false => self.installation.audit(who, Some(room.name()), deed.word(), detail).await,
        };
        if noted.is_err() {
            *behind = true;
            let detail = "it was done; its audit entry could not be written yet and will be";
            return Err(Problem::new(Code::OutcomeUnknown, detail).in_room(room.name()));
        }
        Ok(answer)
    }

    /// Writes the entries that are missing from the audit of a room, if any.
    pub async fn catch_up(&self, room: &RoomDesk) -> Result<(), Problem> {
        match self.installation.office() {
            Some(office) => office.catch_up(room.name()).await,
            None => Ok(()),
        }
    }

    /// The same for a room that was opened just now, where an act may have been cut off between its
    /// event and its entry. What cannot be written now is written before the next act there.
    pub async fn catch_up_or_later(&self, room: &RoomDesk) {
        let mut behind = room.acting.lock().await;
        *behind = true;
        // In turn: another instance may be between the two at this moment.
        if let Ok(turn) = self.installation.begin_turn(room.name()).await {
            *behind = self.catch_up(room).await.is_err();
            self.installation.end_turn(room.name(), turn).await;
        }
    }
}

/// Of two documents what is not the same in both; all of the second when there was none before.
fn what_differs(before: Value, after: Value) -> (Value, Value) {
    let (Value::Object(before), Value::Object(after)) = (&before, &after) else {
        return (before, after);
    };
    let part = |of: &Map<String, Value>, other: &Map<String, Value>| {
        let differs = |(key, value): &(&String, &Value)| other.get(*key) != Some(*value);
        let kept = of.iter().filter(differs).map(|(key, value)| (key.clone(), value.clone()));
        Value::Object(kept.collect())
    };
    (part(before, after), part(after, before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_tells_what_changed_and_nothing_else() {
        let (before, after) = what_differs(
            json!({ "rate": "5/s", "title": "Sale" }),
            json!({ "rate": "9/s", "title": "Sale" }),
        );
        assert_eq!((before, after), (json!({ "rate": "5/s" }), json!({ "rate": "9/s" })));
        let made = what_differs(Value::Null, json!({ "rate": "9/s" }));
        assert_eq!(made, (Value::Null, json!({ "rate": "9/s" })));
    }
}
