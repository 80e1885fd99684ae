//! Promise 9: a paused room admits nobody.
//!
//! Nor does one in maintenance (one that drains does), before its start, in its draw or after its end: whatever holds a
//! room, it holds against every kind of admission, an operator's too. And a pause that was
//! acknowledged is in the log: otherwise the operator believes in a pause that is none.

use waitroom_core::{Command, Hold, Reply, What};

use super::horizon::Horizon;
use crate::history::{History, Outcome, Violation};

const PROMISE: u8 = 9;

pub fn check(history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut held: Option<&Hold> = None;
    let mut running = false;
    // From which event on the room was held, and how.
    let mut holds: Vec<(u64, Option<&Hold>)> = vec![(0, None)];
    for it in &history.log {
        match &it.event.what {
            What::Held { hold, .. } => {
                held = Some(hold);
                holds.push((it.index, held));
            }
            What::Resumed { .. } => {
                held = None;
                holds.push((it.index, held));
            }
            What::SaleStarted | What::Drawn { .. } | What::Reopened { .. } => running = true,
            What::DoorsOpened | What::DrawClosed { .. } | What::SaleEnded { .. } => running = false,
            What::Admitted { ticket, .. }
                if held.is_some_and(Hold::stops_admissions) || !running =>
            {
                let why = match held {
                    Some(hold) => format!("held: {:?}", hold.reason()),
                    None => "not running".into(),
                };
                let said =
                    format!("event {}: {ticket} is admitted while the room is {why}", it.index);
                found.push(Violation::new(PROMISE, said));
            }
            _ => {}
        }
    }
    if !history.store_lost_data {
        acknowledged(history, &holds, &mut found);
    }
    found
}

fn acknowledged(history: &History, holds: &[(u64, Option<&Hold>)], found: &mut Vec<Violation>) {
    let horizon = Horizon::of(history);
    for call in &history.calls {
        let wanted = match &call.command {
            Command::Hold { hold, .. } => Some(hold),
            Command::Resume { .. } => None,
            _ => continue,
        };
        let Outcome::Answered { reply: Reply::Done, version, .. } = &call.outcome else { continue };
        let from = horizon.before(call.sent);
        let first = holds.partition_point(|(index, _)| *index <= from) - 1;
        let between = holds[first..].iter().take_while(|(index, _)| index <= version);
        if !between.into_iter().any(|(_, hold)| *hold == wanted) {
            let said = format!(
                "{:?} was acknowledged, and by version {version} it was not so",
                call.command
            );
            found.push(Violation::new(PROMISE, said));
        }
    }
}
