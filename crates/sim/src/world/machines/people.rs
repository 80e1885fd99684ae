//! People before whole instances: they ask any of them, and are heard of and answered by any.

use super::*;
use crate::history::Seen;
use std::time::Duration;
use waitroom_core::Command;
use waitroom_engine::Unanswered;

/// How long a reader that is behind waits for what the visitor has seen already.
const BOARD_WITHIN: Duration = Duration::from_secs(1);

impl Machines {
    fn anybody(&mut self) -> Option<usize> {
        let at = self.rng.below(self.machines.len() as u64) as usize;
        (self.machines[at].is_up() && self.machines[at].peers.handle().is_some()).then_some(at)
    }

    pub(super) fn somebody_asks(&mut self) {
        let Some(at) = self.anybody() else { return };
        let (client, command) = match self.configured {
            true if self.quiet && self.rng.chance(0.97) => self.ask_again(),
            true => self.visitors.ask(&mut self.rng),
            // A room without settings has nobody in it.
            false => {
                let settings = Box::new(self.profile.settings.clone());
                (0, Command::Configure { settings, by: waitroom_core::Actor::new("operator") })
            }
        };
        self.totals.commands += 1;
        let sent = self.tray.moment();
        let (call, outcome) = (self.history.calls.len(), Outcome::Unknown);
        self.history.calls.push(Call { client, sent, command: command.clone(), outcome });
        let tray = self.tray.clone();
        self.machines[at].within(|peers| {
            let handle = peers.handle().expect("looked at above").clone();
            // Asked of a frozen instance it waits there until that goes on.
            tokio::spawn(async move {
                let answer = handle.send(command).await;
                let mut pile = tray.pile();
                let at = pile.next();
                pile.answered.push((call, at, answer));
            });
        });
    }

    /// Somebody reloads the page.
    fn ask_again(&mut self) -> (u32, Command) {
        let client = self.rng.below(self.visitors.len() as u64) as u32;
        match self.visitors.client(client).held {
            Some(held) => (client, Command::Claim(held)),
            None => self.visitors.ask(&mut self.rng),
        }
    }

    pub(super) fn collect_answers(&mut self) {
        let (answered, seen) = {
            let mut pile = self.tray.pile();
            (std::mem::take(&mut pile.answered), std::mem::take(&mut pile.seen))
        };
        for (call, at, answer) in answered {
            let client = self.history.calls[call].client;
            self.history.calls[call].outcome = match answer {
                Ok(answer) => {
                    self.totals.answered += 1;
                    self.configured = true;
                    self.visitors.told(client, &answer.reply, answer.version);
                    Outcome::Answered { at, reply: answer.reply, version: answer.version }
                }
                Err(Unanswered::OutcomeUnknown { .. }) => {
                    self.totals.unknown += 1;
                    Outcome::Unknown
                }
                Err(_) => Outcome::NotDone { at },
            };
        }
        for seen in seen {
            let client = self.visitors.client(seen.client);
            client.version = client.version.max(seen.version);
            self.history.seen.push(seen);
        }
    }

    /// Somebody looks where they stand, at any instance, as a page does.
    pub(super) fn somebody_looks(&mut self) {
        let Some(at) = self.anybody() else { return };
        let client = self.rng.below(self.visitors.len() as u64) as u32;
        let (held, version) = {
            let client = self.visitors.client(client);
            (client.held, client.version)
        };
        let Some(held) = held else { return };
        if self.rng.chance(0.02) && self.bug.is_none() {
            let board = self.machines[at].peers.handle().expect("looked at above").board();
            self.shown.push((board.version(), board.state().digest()));
        }
        // Readers that are behind what the client has seen wait, or say so.
        let wanted = match self.bug {
            Some(Bug::FollowersShowOld) => 0,
            Some(Bug::FollowersShowOneOlder) => version.saturating_sub(1),
            _ => version,
        };
        let tray = self.tray.clone();
        self.machines[at].within(|peers| {
            let handle = peers.handle().expect("looked at above").clone();
            tokio::spawn(async move {
                let board = tokio::time::timeout(BOARD_WITHIN, handle.board_at(wanted)).await;
                let Ok(board) = board else { return };
                let Ok(view) = board.look(board.published_at(), &held) else { return };
                let mut pile = tray.pile();
                let (at, version) = (pile.next(), board.version().max(version));
                let (ticket, position) = (view.ticket, view.position);
                pile.seen.push(Seen { client, at, ticket, version, position });
            });
        });
    }

    /// Pages that are open say so now and then, to any instance.
    pub(super) fn somebody_is_heard_of(&mut self) {
        // Some pages are open all the time, and some people come back just in time.
        for _ in 0..u64::from(self.rng.chance(0.07))
            * self.rng.below(u64::from(self.visitors.len()) / 12)
        {
            let client = self.rng.below(self.visitors.len() as u64) as u32;
            let Some(held) = self.visitors.client(client).held else { continue };
            let Some(at) = self.anybody() else { continue };
            if self.machines[at].frozen_until > self.now {
                continue;
            }
            self.machines[at].peers.handle().expect("looked at above").beat(held.ticket);
            self.beats.push((at, HeardOf { ticket: held.ticket, at_ms: self.now }));
        }
    }
}
