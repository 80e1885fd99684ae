//! Owners: who leads, what they decide, and how it reaches the store.

use super::*;
impl<S: Store + Clone> World<S> {
    pub(super) fn owner(&self) -> Option<usize> {
        let runs = |i: &usize| self.instances[*i].runs(self.now);
        (0..self.instances.len())
            .filter(runs)
            .filter(|i| self.instances[*i].tenure.is_some())
            .max_by_key(|i| self.instances[*i].tenure.as_ref().map(|it| it.lease.epoch))
    }

    /// The epoch in which an instance believes to own the room.
    pub(super) fn epoch(&self, i: usize) -> Option<u32> {
        self.instances[i].tenure.as_ref().map(|it| it.lease.epoch)
    }

    pub(super) fn lead(&mut self) {
        for i in 0..self.instances.len() {
            if !self.instances[i].reaches_store(self.now) {
                continue;
            }
            if self.instances[i].tenure.is_none() {
                self.take_over(i);
            } else if self.now >= self.instances[i].renew_at {
                self.instances[i].renew_at = self.now + RENEW_MS;
                let it = &self.instances[i];
                let (store, tenure) = (it.store.as_ref(), it.tenure.as_ref());
                let (store, tenure) = (store.expect("it runs"), tenure.expect("it leads"));
                // A lease that cannot be renewed is lost; the next append would say so as well.
                if ready(store.renew(&tenure.lease, LEASE_MS)).is_err() && self.rng.chance(0.5) {
                    self.totals.fencings += 1;
                    self.drop_tenure(i);
                }
            }
        }
    }

    pub(super) fn take_over(&mut self, i: usize) {
        let store = self.instances[i].store.clone().expect("it runs");
        let name = LeaseName::room(&self.room);
        let Ok(lease) = ready(store.lease(&name, &self.instances[i].name, LEASE_MS)) else {
            return;
        };
        let Ok(recovered) = ready(recover(&store, &self.room)) else { return };
        self.observer.look(&store, &self.room, &mut self.history);
        self.check_recovery(&recovered);
        let key = (self.observer.last_epoch(), recovered.head);
        let mut model = match recovered.head {
            0 => Model::new(),
            _ => self.models.get(&key).expect("every round was kept with its model").clone(),
        };
        let reading = self.reading(i);
        let last = recovered.room.state().last_at();
        let clock = RoomClock::open(last, reading);
        let at = last.max(Timestamp(reading.wall_ms));
        let epoch = Epoch(lease.epoch);
        let mut writer = Writer::open(recovered.room, recovered.head, epoch, at);
        // It decides nothing, but its own checks should see all that can happen to a room. One
        // seed in ten is enough for that; projecting the line costs more than the rest of the run.
        if self.seed.is_multiple_of(10) {
            writer.watch_waits();
        }
        model.apply(at, &Command::Open { epoch });
        let mut draws = DrawKeeper::default();
        draws.chain = recovered.draw_chain;
        let first_time = writer.state().settings().is_none();
        if recovered.head > 0 {
            self.totals.takeovers += 1;
        }
        self.instances[i].tenure = Some(Tenure {
            lease,
            writer,
            clock,
            draws,
            job: None,
            model,
            open: Vec::new(),
            rounds: VecDeque::new(),
            committed: recovered.head,
            chain: recovered.chain,
        });
        self.instances[i].renew_at = self.now + RENEW_MS;
        // The new epoch is durable before anything else happens.
        self.cut(i);
        if !self.append(i) {
            return;
        }
        if first_time {
            self.sink.register(&store, &self.room);
            let settings = Box::new(self.profile.settings.clone());
            let by = waitroom_core::Actor::new("operator");
            self.apply(i, Command::Configure { settings, by });
        }
        // Everyone has fresh grace, also who was heard of before: the new owner's clock may be
        // behind the last one's, so that a time of then would lie ahead.
        self.heard.clear();
        self.fresh_since = self.room_time(i);
        self.newest_epoch = self.epoch(i);
    }

    /// However the room was rebuilt, it is the one that the log tells of.
    pub(super) fn check_recovery(&mut self, recovered: &waitroom_engine::recover::Recovered) {
        let how = if recovered.from_snapshot > 0 { How::SnapshotAndTail } else { How::Replay };
        let mut digest = recovered.room.state().digest();
        if self.bug == Some(Bug::SnapshotForgets) && how == How::SnapshotAndTail {
            digest[0] ^= 1;
        }
        self.history.states.push(Reached { head: recovered.head, how, digest });
    }

    pub(super) fn owners_work(&mut self) {
        for i in 0..self.instances.len() {
            if !self.instances[i].runs(self.now) || self.instances[i].tenure.is_none() {
                continue;
            }
            self.tick(i);
            if self.rng.chance(0.02) {
                self.sweep(i);
            }
            self.see_to_the_draw(i);
            if self.rng.chance(0.5) {
                self.cut(i);
            }
            while self.instances[i].tenure.is_some() && self.rng.chance(0.6) {
                if !self.append(i) {
                    break;
                }
            }
            self.maybe_snapshot(i);
        }
    }

    pub(super) fn tick(&mut self, i: usize) {
        let now = self.room_time(i);
        let entropy = self.rng.bytes16();
        let tenure = self.instances[i].tenure.as_mut().expect("only owners tick");
        let late = match self.bug {
            Some(Bug::NeverTicks) => u64::MAX - now.0,
            Some(Bug::TicksTooLate) => {
                tenure.writer.state().settings().map_or(0, |it| it.tick.0 + 1)
            }
            _ => 0,
        };
        let due = tenure.writer.next_deadline(now);
        if due.is_some_and(|due| due.0.saturating_add(late) <= now.0) {
            while tenure.writer.tick(now, || entropy) {}
            tenure.model.apply(now, &Command::Tick { entropy });
            self.compare(i, &Command::Tick { entropy }, None);
        }
        self.note_chance(i, now);
    }

    /// Promise 12: if somebody could enter, the writer knows to look within a tick.
    pub(super) fn note_chance(&mut self, i: usize, now: Timestamp) {
        let tenure = self.instances[i].tenure.as_ref().expect("only owners tick");
        let state = tenure.writer.state();
        let tick = state.settings().map_or(0, |settings| settings.tick.0);
        let (admits, slots_free, tokens) = match state.openings(now) {
            Some((slots, tokens)) => (true, slots, tokens),
            None => (false, 0, 0),
        };
        // A deadline that has passed is no promise: the tick that should have served it has run.
        let due = tenure.writer.next_deadline(now);
        let looks_soon = due.is_some_and(|due| due > now && due.0 <= now.0 + tick);
        let chance = Chance {
            at: now,
            version: tenure.writer.head(),
            waiting: state.waiting(),
            slots_free,
            tokens: if looks_soon { 0 } else { tokens },
            admits,
            overdue_slots: state.overdue_slots(now),
        };
        self.history.chances.push(chance);
    }

    pub(super) fn sweep(&mut self, i: usize) {
        let now = self.room_time(i);
        let tenure = self.instances[i].tenure.as_ref().expect("only owners sweep");
        let state = tenure.writer.state();
        let Some(settings) = state.settings().cloned() else { return };
        let mut silent: Vec<Ticket> = Vec::new();
        for lane in state.lane_ids() {
            let liveness = tenure.writer.liveness();
            silent.extend(liveness.silent(state, lane, now, settings.heartbeat_timeout, 100));
        }
        // One of them is heard of between the proposal and the decision.
        // A former owner that has not noticed yet hears no beats that count, and goes on while the
        // new one is paused; its append will be fenced.
        let leads = self.epoch(i) == self.newest_epoch;
        if let Some(lucky) = silent.first() {
            tenure.writer.liveness().beat(*lucky, now);
            if leads {
                self.heard.insert(*lucky, now);
            }
        }
        let before = tenure.writer.round_events().len();
        let tenure = self.instances[i].tenure.as_mut().expect("only owners sweep");
        tenure.writer.apply(now, &Command::Lapse { tickets: silent });
        let lapsed: Vec<Ticket> = tenure.writer.round_events()[before..]
            .iter()
            .filter_map(|it| it.what.ticket())
            .collect();
        for ticket in lapsed.iter().filter(|_| leads) {
            let heard = self.heard.get(ticket).copied().unwrap_or(self.fresh_since);
            assert!(
                now.since(heard) > settings.heartbeat_timeout,
                "seed {}: {ticket} lapsed although it was heard of at {heard:?}, now {now:?}",
                self.seed,
            );
        }
        let lapse = Command::Lapse { tickets: lapsed };
        let tenure = self.instances[i].tenure.as_mut().expect("only owners sweep");
        tenure.model.apply(now, &lapse);
        self.compare(i, &lapse, None);
    }

    pub(super) fn see_to_the_draw(&mut self, i: usize) {
        let now = self.room_time(i);
        let tenure = self.instances[i].tenure.as_mut().expect("only owners draw");
        let (room, vault, entropy) = (&self.room, &self.vault, &self.entropy);
        if let Some(commit) = tenure.draws.commitment(tenure.writer.room(), room, vault, entropy) {
            self.apply_quietly(i, now, commit);
            return;
        }
        if tenure.draws.beacon.is_none() && tenure.writer.state().draw().closed {
            tenure.draws.beacon = Some(match self.rng.below(3) {
                0 => Beacon::Waived { by: waitroom_core::Actor::new("operator") },
                _ => Beacon::Value(vec![5; 32]),
            });
        }
        if let Some(job) = tenure.draws.job(tenure.writer.room(), room, vault) {
            tenure.job = Some(job);
        } else if self.rng.chance(0.3)
            && let Some(job) = tenure.job.take()
        {
            // People left and joined while it was worked out.
            let reveal = tenure.draws.reveal(tenure.writer.room_mut(), job.run());
            if let Some(reveal) = reveal {
                self.totals.draws += 1;
                self.apply_quietly(i, now, reveal);
            }
        }
    }

    /// A command of the engine itself: nobody waits for its answer.
    pub(super) fn apply_quietly(&mut self, i: usize, now: Timestamp, command: Command) {
        let tenure = self.instances[i].tenure.as_mut().expect("only owners decide");
        let reply = tenure.writer.apply(now, &command);
        let expected = tenure.model.apply(now, &command);
        self.compare(i, &command, Some((&reply, &expected)));
    }

    /// Closes the round: from here on it may reach the log.
    pub(super) fn cut(&mut self, i: usize) {
        let now = self.room_time(i);
        let Some(tenure) = self.instances[i].tenure.as_mut() else { return };
        let _ = tenure.writer.outlook(now);
        let Some(round) = tenure.writer.cut() else { return };
        let key = (tenure.lease.epoch, round.head);
        self.models.insert(key, tenure.model.clone());
        self.digests.insert(key, tenure.writer.state().digest());
        let board = Board::new(tenure.writer.state().clone(), round.head, now);
        let answers = std::mem::take(&mut tenure.open);
        let early = match self.bug {
            Some(Bug::AnswersBeforeDurable) => answers.clone(),
            _ => Vec::new(),
        };
        tenure.rounds.push_back(Pending { round, answers, board: Some(Arc::new(board)) });
        let version = tenure.writer.head();
        self.deliver(early, version);
        while self.models.len() > 64 {
            self.models.pop_first();
        }
    }

    /// Sends the oldest round to the store; false when nothing was appended.
    pub(super) fn append(&mut self, i: usize) -> bool {
        if !self.instances[i].reaches_store(self.now) {
            return false;
        }
        let store = self.instances[i].store.clone().expect("it runs");
        let Some(tenure) = self.instances[i].tenure.as_mut() else { return false };
        let Some(pending) = tenure.rounds.front() else { return false };
        let lease = tenure.lease.clone();
        let send = |store: &S, pending: &Pending| {
            let batch = Batch {
                number: pending.round.number,
                events: pending.round.events,
                payload: pending.round.payload.clone(),
            };
            ready(store.append(&self.room, &lease, Head(pending.round.expected), batch))
        };
        let fate = self.rng.unit();
        let troubled = fate < self.profile.fault_chance / 2.0;
        let result = match troubled {
            false => send(&store, pending),
            true => {
                // The answer gets lost; the batch may have arrived or not.
                self.totals.unknown_appends += 1;
                if fate < self.profile.fault_chance / 4.0 {
                    let _ = send(&store, pending);
                }
                match self.rng.chance(0.5) {
                    // The same batch again settles it.
                    true => send(&store, pending),
                    false => Err(AppendError::Unknown { why: "no answer".into() }),
                }
            }
        };
        match result {
            Ok(tip) => {
                let tenure = self.instances[i].tenure.as_mut().expect("still there");
                let pending = tenure.rounds.pop_front().expect("it was there");
                tenure.committed = tip.head.0;
                tenure.chain = tip.chain;
                if pending.round.closes_draw {
                    tenure.draws.chain = Some(tip.chain);
                }
                let too_many = match (self.bug, tenure.rounds.front_mut()) {
                    (Some(Bug::AnswersOneRoundTooMany), Some(next)) => {
                        std::mem::take(&mut next.answers)
                    }
                    _ => Vec::new(),
                };
                self.instances[i].board = pending.board;
                self.deliver(pending.answers, tip.head.0);
                self.deliver(too_many, tip.head.0);
                true
            }
            Err(error) => {
                match &error {
                    AppendError::Fenced { .. } => self.totals.fencings += 1,
                    AppendError::Unknown { .. } => {}
                    // Nothing was written: those who asked can be told so.
                    AppendError::Refused { .. } | AppendError::Stale { .. } => {
                        let tenure = self.instances[i].tenure.as_mut().expect("still there");
                        let pending = tenure.rounds.pop_front().expect("it was there");
                        let at = self.moment();
                        for (call, _) in pending.answers {
                            self.history.calls[call].outcome = Outcome::NotDone { at };
                        }
                    }
                }
                self.drop_tenure(i);
                false
            }
        }
    }

    pub(super) fn deliver(&mut self, answers: Vec<(usize, Reply)>, version: u64) {
        for (call, mut reply) in answers {
            let at = self.moment();
            let client = self.history.calls[call].client;
            if self.bug == Some(Bug::ClaimOffByOneMilli)
                && let Reply::Claimed { session, fresh: Fresh::Repeat, .. } = &mut reply
            {
                session.expires_at = session.expires_at.after(watch::MILLI);
            }
            self.visitors.told(client, &reply, version);
            self.totals.answered += 1;
            self.history.calls[call].outcome = Outcome::Answered { at, reply, version };
        }
    }

    pub(super) fn maybe_snapshot(&mut self, i: usize) {
        if !self.rng.chance(0.01) || !self.instances[i].reaches_store(self.now) {
            return;
        }
        let store = self.instances[i].store.clone().expect("it runs");
        let Some(tenure) = self.instances[i].tenure.as_ref() else { return };
        let at_rest = tenure.rounds.is_empty() && tenure.writer.round_events().is_empty();
        if !at_rest || tenure.writer.state().phase() == Phase::Drawing {
            return;
        }
        let (head, chain) = (Head(tenure.committed), tenure.chain);
        let parts: Vec<Vec<u8>> = tenure.writer.state().snapshot().collect();
        if ready(store.snapshot(&self.room, head, chain, parts.into_iter())).is_ok() {
            self.totals.snapshots += 1;
            self.observer.look(&store, &self.room, &mut self.history);
            if let Ok(limit) = ready(store.trim_limit(&self.room)) {
                let _ = ready(store.trim(&self.room, limit));
            }
        }
    }
}
