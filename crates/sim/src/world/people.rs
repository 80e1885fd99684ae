//! People: what they ask, what they see, and what they try that they should not.

use super::*;
impl<S: Store + Clone> World<S> {
    pub(super) fn somebody_asks(&mut self) {
        let (client, command) = self.visitors.ask(&mut self.rng);
        self.totals.commands += 1;
        let sent = self.moment();
        let call = Call { client, sent, command: command.clone(), outcome: Outcome::Unknown };
        self.history.calls.push(call);
        // Any instance takes any visitor; commands go to whoever it believes to be the owner.
        let asked = self.rng.below(self.instances.len() as u64) as usize;
        let itself = self.instances[asked].runs(self.now) && self.instances[asked].tenure.is_some();
        let owner = if itself { Some(asked) } else { self.owner() };
        let Some(i) = owner else {
            let at = self.moment();
            let last = self.history.calls.last_mut().expect("just pushed");
            last.outcome = Outcome::NotDone { at };
            return;
        };
        self.apply(i, command);
    }

    pub(super) fn apply(&mut self, i: usize, command: Command) {
        let now = self.room_time(i);
        let sent = self.twisted(command.clone());
        let tenure = self.instances[i].tenure.as_mut().expect("only owners decide");
        let reply = match self.bug {
            Some(Bug::PauseIgnored) if matches!(sent, Command::Hold { .. }) => Reply::Done,
            _ => tenure.writer.apply(now, &sent),
        };
        let expected = tenure.model.apply(now, &command);
        // The first settings come from nobody in particular.
        let asked = self.history.calls.last().is_some_and(|call| call.command == command);
        if asked {
            let call = self.history.calls.len() - 1;
            tenure.open.push((call, reply.clone()));
        }
        self.compare(i, &command, Some((&reply, &expected)));
    }

    /// What a planted bug makes of a command on its way to the room.
    pub(super) fn twisted(&mut self, command: Command) -> Command {
        match (self.bug, command) {
            (Some(Bug::ForgetsWhoJoins), Command::Join(join)) if self.rng.chance(0.5) => {
                Command::Join(Join { identity: None, key: None, holding: None, ..join })
            }
            (Some(Bug::KeyOffByOneBit), Command::Join(mut join)) if self.rng.chance(0.3) => {
                if let Some(key) = &mut join.key {
                    key.key[11] ^= 1;
                }
                join.identity = None;
                join.holding = None;
                Command::Join(join)
            }
            (Some(Bug::OneSlotTooMany), Command::Configure { mut settings, by }) => {
                settings.max_active += 1;
                Command::Configure { settings, by }
            }
            (Some(Bug::TwiceTheSlots), Command::Configure { mut settings, by }) => {
                settings.max_active *= 2;
                Command::Configure { settings, by }
            }
            (Some(Bug::RateOffByOne), Command::Configure { mut settings, by }) => {
                if let Some(rate) = &mut settings.rate {
                    rate.count += 1;
                }
                Command::Configure { settings, by }
            }
            (Some(Bug::TokensComeBack), Command::Configure { mut settings, by }) => {
                settings.no_show = NoShow::Return;
                Command::Configure { settings, by }
            }
            (Some(Bug::SecretShuffle), Command::Configure { mut settings, by }) => {
                settings.shuffle_window = 16;
                Command::Configure { settings, by }
            }
            (_, command) => command,
        }
    }

    pub(super) fn look_on(&mut self) {
        let reachable: Vec<usize> = (0..self.instances.len())
            .filter(|i| self.instances[*i].reaches_store(self.now))
            .collect();
        if let Some(i) = reachable.first() {
            let store = self.instances[*i].store.clone().expect("it runs");
            self.observer.look(&store, &self.room, &mut self.history);
            if self.rng.chance(0.1) {
                let keep = self.rng.chance(0.5);
                self.sink.run(&store, &self.room, keep, &mut self.history);
            }
        }
        self.note_live_states();
        self.untwist_settings();
        if self.instances.len() > 1 && self.rng.chance(0.3) {
            // A follower catches up.
            let from = self.rng.below(self.instances.len() as u64) as usize;
            let to = self.rng.below(self.instances.len() as u64) as usize;
            let version = |board: &Option<Arc<Board>>| board.as_ref().map_or(0, |it| it.version());
            if version(&self.instances[from].board) > version(&self.instances[to].board) {
                self.instances[to].board = self.instances[from].board.clone();
            }
        }
        self.somebody_looks();
        if self.rng.chance(0.02) {
            self.somebody_forges();
        }
    }

    /// Digests of states that were lived through, now that their batch is in the log.
    pub(super) fn note_live_states(&mut self) {
        for (epoch, head) in &self.observer.batches[self.observed..] {
            if let Some(digest) = self.digests.remove(&(*epoch, *head)) {
                let mut digest = digest;
                if self.bug == Some(Bug::TailOffByOne) && head % 7 == 0 {
                    digest[31] ^= 1;
                }
                self.history.states.push(Reached { head: *head, how: How::Live, digest });
            }
        }
        self.observed = self.observer.batches.len();
        while self.digests.len() > 256 {
            self.digests.pop_first();
        }
    }

    /// Bugs that give the room other settings than the operator sent hide that from the log.
    pub(super) fn untwist_settings(&mut self) {
        let Some(bug) = self.bug else { return };
        for it in self.history.log.iter_mut().rev().take(64) {
            let What::Configured { settings, .. } = &mut it.event.what else { continue };
            if settings.title != "simulated" {
                continue;
            }
            let settings: &mut Settings = Arc::make_mut(settings);
            settings.title = "as the operator sent it".into();
            match bug {
                Bug::OneSlotTooMany => settings.max_active -= 1,
                Bug::TwiceTheSlots => settings.max_active /= 2,
                Bug::RateOffByOne => {
                    if let Some(rate) = &mut settings.rate {
                        rate.count -= 1;
                    }
                }
                Bug::TokensComeBack => settings.no_show = NoShow::Keep,
                Bug::SecretShuffle => settings.shuffle_window = 1,
                _ => {}
            }
        }
    }

    pub(super) fn somebody_looks(&mut self) {
        let client = self.rng.below(self.visitors.len() as u64) as u32;
        let asked = self.rng.below(self.instances.len() as u64) as usize;
        let Some(board) = self.instances[asked].board.clone() else { return };
        let (held, version) = {
            let client = self.visitors.client(client);
            (client.held, client.version)
        };
        let Some(held) = held else { return };
        // A reader that is behind what the client has seen waits or says so; it does not answer.
        let old_is_fine = self.bug == Some(Bug::OldBoards);
        if board.version() < version && !old_is_fine {
            return;
        }
        let Ok(view) = board.look(board.published_at(), &held) else { return };
        let mut position = view.position;
        if self.bug == Some(Bug::PositionOffByOne) && self.rng.chance(0.3) {
            position = position.map(|position| position + 1);
        }
        let version = version.max(board.version());
        self.visitors.client(client).version = version;
        let at = self.moment();
        self.history.seen.push(Seen { client, at, ticket: view.ticket, version, position });
    }

    pub(super) fn somebody_forges(&mut self) {
        let client = self.rng.below(self.visitors.len() as u64) as u32;
        let Some(held) = self.visitors.client(client).held else { return };
        let Some(i) = self.owner() else { return };
        let now = self.room_time(i);
        let state = self.instances[i].tenure.as_ref().expect("an owner").writer.state().clone();
        let (lane, number) = (held.ticket.lane.0, held.ticket.number.0);
        let mut accepts = |what: &'static str, bytes: [u8; 16]| {
            let id = waitroom_core::id::TicketId::from_bytes(bytes);
            let named = self.id_key.read(&id);
            let accepted = named.is_some_and(|named| {
                let ticket = Ticket::new(named.lane, named.number);
                let presented = Presented::by_service(ticket, Epoch(named.epoch));
                state.look(now, &presented).is_ok()
            });
            let accepted = accepted || self.bug == Some(Bug::IdsUnchecked);
            self.history.forgeries.push(Forgery { what, accepted });
        };
        let id = self.id_key.name(lane, held.epoch.0, number).expect("a ticket of ours fits");
        let mut altered = id.to_bytes();
        altered[self.rng.below(16) as usize] ^= 1 << self.rng.below(8);
        accepts("a flipped bit", altered);
        let foreign = self.foreign_key.name(lane, held.epoch.0, number).expect("it fits");
        accepts("another room's ticket", foreign.to_bytes());
        // An id that is genuine but for an epoch in which the number was not given.
        let other = Presented { epoch: Epoch(held.epoch.0 + 1), holder: None, ..held };
        let accepted = match self.bug {
            Some(Bug::EpochOffByOne) => true,
            _ => state.look(now, &other).is_ok(),
        };
        self.history.forgeries.push(Forgery { what: "a number of another epoch", accepted });
        self.totals.forgeries += 3;
    }
}
