//! What an answer says of its ticket: exact at once, and never undone by a later one.

use crate::help::{config, configured, presented, settings};
use std::sync::Arc;
use waitroom_core::settings::LaneSettings;
use waitroom_core::{
    Actor, Command, EndHow, Join, LaneId, Presented, Reply, Settings, Status, View,
};
use waitroom_engine::{Answer, Engine, RoomHandle};
use waitroom_store::{ManualClock, MemoryStore, Seams};

fn engine() -> Engine<MemoryStore> {
    let seams = Seams::seeded(ManualClock::at(1_000), 1);
    Engine::new(Arc::new(MemoryStore::new(seams.clone())), seams, config())
}

fn join() -> Command {
    Command::Join(Join::default())
}

async fn view(handle: &RoomHandle, command: Command) -> View {
    let answer = handle.send(command).await.expect("the store takes it");
    let shown = answer.view;
    *shown.unwrap_or_else(|| panic!("an answer about a ticket shows it: {:?}", answer.reply))
}

#[tokio::test]
async fn every_answer_about_a_ticket_shows_it_as_the_command_left_it() {
    let engine = engine();
    let lane = |name: &str| LaneSettings { name: name.into(), weight: 1 };
    let lanes = vec![lane("general"), lane("vip")];
    let handle = configured(&engine, Settings { lanes, ..settings() }).await;
    let mut people = Vec::new();
    for position in 1..=5 {
        let answer = handle.send(join()).await.expect("the store takes it");
        let view = answer.view.expect("a join shows its ticket");
        assert_eq!((view.status, view.position), (Status::Waiting, Some(position)));
        people.push(presented(&answer.reply));
    }
    let [ana, bo, cy, dee, eli] = people[..] else { unreachable!("five have joined") };
    let by = || Actor::new("test");

    let left = view(&handle, Command::Leave(ana)).await;
    assert_eq!((left.status, left.position), (Status::Left, None));
    let again = view(&handle, Command::Join(Join { holding: Some(bo), ..Join::default() })).await;
    assert_eq!((again.ticket, again.position, again.behind), (bo.ticket, Some(1), Some(3)));
    let moved = view(&handle, Command::Move { ticket: dee, to: LaneId(1), by: by() }).await;
    assert_eq!((moved.ticket.lane, moved.position), (LaneId(1), Some(1)));
    let handed = view(&handle, Command::HandOver(eli)).await;
    assert_eq!((handed.holder.0, handed.position), (1, Some(3)));

    let admit = Command::AdmitNow { count: 1, entropy: [0; 16], by: by() };
    assert_eq!(handle.send(admit).await.expect("there are slots").view, None);
    let claimed = view(&handle, Command::Claim(bo)).await;
    assert_eq!((claimed.status, claimed.position), (Status::Active, Some(0)));
    let session = claimed.session.expect("a session has begun");
    let renewed = view(&handle, Command::Renew(bo)).await;
    assert!(renewed.session.expect("it goes on").expires_at >= session.expires_at);
    let end = Command::End { ticket: bo, how: EndHow::Completed, by: by() };
    assert_eq!(view(&handle, end).await.status, Status::Completed);

    let refused = handle.send(Command::Claim(cy)).await.expect("a refusal is an answer");
    assert!(matches!(refused.reply, Reply::Refused(_)), "{refused:?}");
    assert_eq!(refused.view, None);
    engine.stop().await;
}

/// The rest of the round goes on after a position was taken, and the answer names the end of the
/// round as its version. So the position may be larger than at that version, never smaller.
#[tokio::test]
async fn no_board_of_an_answers_version_or_a_newer_one_shows_a_larger_position() {
    let engine = engine();
    let handle = configured(&engine, settings()).await;
    let mut told: Vec<(Presented, u64, u64)> = Vec::new();
    let mut smaller = 0;
    for round in 0..40 {
        // Some join, some before them leave, more join: all in one round.
        let gone = told.iter().map(|(who, ..)| *who).skip(round).step_by(3).take(4);
        let mut commands: Vec<Command> = (0..5).map(|_| join()).collect();
        commands.extend(gone.map(Command::Leave));
        commands.extend((0..3).map(|_| join()));
        let answers = handle.send_many(commands).await.expect("the store takes it");
        for Answer { reply, view, version, .. } in answers {
            if let Reply::Joined { .. } = reply {
                let position = view.and_then(|view| view.position).expect("they wait");
                told.push((presented(&reply), version, position));
            }
        }
        let version = told.last().expect("somebody has joined").1;
        let board = handle.board_at(version).await;
        for (who, version, position) in &told {
            assert!(*version <= board.version());
            if let Some(now) = board.state().position(who.ticket) {
                assert!(now <= *position, "{who:?} was told {position}, now {now}");
                smaller += u64::from(*version == board.version() && now < *position);
            }
        }
    }
    assert!(smaller > 0, "the scene needs positions that fell within their own round");
    engine.stop().await;
}
