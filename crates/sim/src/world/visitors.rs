//! The people and the operators of a run, polite and hostile: what they ask next.
//!
//! They know only what they were told: tickets come from answers. Some repeat themselves, some
//! claim twice, some use a ticket that is not theirs any more, some guess.

use crate::rng::Rng;
use waitroom_core::settings::Rate;
use waitroom_core::{
    Actor, Command, EndHow, Epoch, FinishCause, Fresh, Hold, Holder, Identity, Join, JoinKey,
    LaneId, Millis, Presented, Reply, Settings, Ticket,
};

pub(super) struct Visitors {
    clients: Vec<Client>,
    next_key: u64,
    /// Settings as the operator last sent them.
    pub(super) settings: Settings,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Client {
    pub(super) identity: Option<Identity>,
    /// The newest join, to be repeated word for word.
    join: Option<Join>,
    pub(super) held: Option<Presented>,
    old: Vec<Presented>,
    /// The newest version that this client was shown.
    pub(super) version: u64,
}

impl Visitors {
    pub(super) fn new(count: u32, settings: Settings, rng: &mut Rng) -> Visitors {
        let mut clients: Vec<Client> = (0..count).map(|_| Client::default()).collect();
        for client in &mut clients {
            if rng.chance(0.5) {
                // Some people use two devices: two clients, one identity.
                client.identity = Some(identity(rng.below(count as u64)));
            }
        }
        Visitors { clients, next_key: 0, settings }
    }

    pub(super) fn len(&self) -> u32 {
        self.clients.len() as u32
    }

    pub(super) fn client(&mut self, client: u32) -> &mut Client {
        &mut self.clients[client as usize]
    }

    /// Everyone's ticket, for beats.
    pub(super) fn held(&self) -> impl Iterator<Item = Ticket> + '_ {
        self.clients.iter().filter_map(|client| client.held.map(|held| held.ticket))
    }

    /// What somebody asks next.
    pub(super) fn ask(&mut self, rng: &mut Rng) -> (u32, Command) {
        let client = rng.below(self.clients.len() as u64) as u32;
        if rng.chance(0.06) {
            return (client, self.operate(rng));
        }
        (client, self.visit(client as usize, rng))
    }

    fn visit(&mut self, client: usize, rng: &mut Rng) -> Command {
        let it = self.clients[client].clone();
        let somebody = rng.below(self.clients.len() as u64) as usize;
        let Some(held) = it.held else { return self.join(client, rng) };
        match rng.below(100) {
            0..15 => self.join(client, rng),
            15..25 => match it.join {
                Some(join) => Command::Join(join),
                None => self.join(client, rng),
            },
            25..60 => Command::Claim(held),
            60..66 => Command::Leave(held),
            66..76 => Command::Renew(held),
            76..84 => end(held, rng),
            84..87 => Command::HandOver(held),
            // An old ticket, another's ticket, a number that was never given, a wrong epoch.
            87..90 => Command::Claim(it.old.first().copied().unwrap_or(held)),
            90..92 => Command::Leave(self.clients[somebody].held.unwrap_or(held)),
            92..94 => Command::Claim(Presented {
                ticket: Ticket::new(held.ticket.lane.0, held.ticket.number.0 + rng.below(500)),
                ..held
            }),
            94..96 => Command::Claim(Presented { epoch: Epoch(held.epoch.0 + 1), ..held }),
            96..98 => Command::Claim(Presented {
                holder: held.holder.map(|holder| Holder(holder.0.wrapping_add(1))),
                ..held
            }),
            _ => Command::Release { tickets: self.held().take(20).collect() },
        }
    }

    fn join(&mut self, client: usize, rng: &mut Rng) -> Command {
        let lanes = self.settings.lanes.len() as u64;
        let it = &mut self.clients[client];
        self.next_key += 1;
        let key = rng.chance(0.8).then(|| {
            let mut key = JoinKey::default();
            key.key[..8].copy_from_slice(&self.next_key.to_be_bytes());
            key.body = (rng.next_u64() as u32).to_be_bytes();
            key
        });
        // The same key with another body is a mistake of the client's.
        let key = match (&it.join, rng.chance(0.02)) {
            (Some(old), true) => old.key.map(|old| JoinKey { body: [7; 4], ..old }),
            _ => key,
        };
        let join = Join {
            lane: LaneId(rng.below(lanes) as u8 + rng.chance(0.02) as u8),
            identity: it.identity,
            key,
            holding: it.held.filter(|_| rng.chance(0.5)),
            metadata: rng.chance(0.1).then(|| {
                let len = if rng.chance(0.05) { 2_000 } else { rng.below(64) as usize };
                vec![7; len].into()
            }),
            sealed_user: rng.chance(0.1).then(|| vec![9; 24].into()),
        };
        it.join = Some(join.clone());
        Command::Join(join)
    }

    fn operate(&mut self, rng: &mut Rng) -> Command {
        let by = Actor::new("operator");
        let somebody = rng.below(self.clients.len() as u64) as usize;
        let ticket = self.clients[somebody].held.map(|held| Presented { holder: None, ..held });
        match rng.below(20) {
            0..4 => {
                let (count, entropy) = (rng.below(6), rng.bytes16());
                Command::AdmitNow { count, entropy, by }
            }
            4..6 => Command::Hold { hold: Hold::Paused { reason: "a pause".into() }, by },
            6 if rng.chance(0.5) => {
                Command::Hold { hold: Hold::Draining { reason: "enough".into() }, by }
            }
            6 => Command::Hold { hold: Hold::Maintenance { reason: "works".into() }, by },
            7..11 => Command::Resume { by },
            11..14 => match ticket {
                Some(ticket) => {
                    let lanes = self.settings.lanes.len() as u64;
                    Command::Move { ticket, to: LaneId(rng.below(lanes) as u8), by }
                }
                None => Command::Resume { by },
            },
            14 => match ticket {
                Some(ticket) => Command::End { ticket, how: EndHow::Revoked, by },
                None => Command::Resume { by },
            },
            15 if rng.chance(0.1) => {
                let reason = "sold out".into();
                Command::Finish { cause: FinishCause::SoldOut, reason, by }
            }
            15 | 16 => Command::Reopen { by },
            _ => self.reconfigure(rng, by),
        }
    }

    fn reconfigure(&mut self, rng: &mut Rng, by: Actor) -> Command {
        let mut settings = self.settings.clone();
        match rng.below(6) {
            0 => settings.max_active = 1 + rng.below(30),
            1 => {
                let per = Millis([1_000, 60_000, 333][rng.below(3) as usize]);
                settings.rate = Some(Rate { count: 1 + rng.below(30) as u32, per });
            }
            2 => settings.burst = rng.chance(0.5).then(|| 1 + rng.below(4) as u32),
            3 => settings.lanes[0].weight = 1 + rng.below(6) as u32,
            4 => settings.keep_inside = !settings.keep_inside,
            // And once in a while something impossible.
            _ => settings.heartbeat_timeout = Millis(0),
        }
        if settings.check().is_ok() {
            self.settings = settings.clone();
        }
        Command::Configure { settings: Box::new(settings), by }
    }

    /// What the client makes of an answer.
    pub(super) fn told(&mut self, client: u32, reply: &Reply, version: u64) {
        let it = &mut self.clients[client as usize];
        it.version = it.version.max(version);
        match reply {
            Reply::Joined { ticket, epoch, holder, fresh: _ } => {
                let held = Presented { ticket: *ticket, epoch: *epoch, holder: Some(*holder) };
                it.hold(held);
            }
            Reply::HandedOver { ticket, holder } => {
                if let Some(held) = it.held.filter(|held| held.ticket == *ticket) {
                    it.hold(Presented { holder: Some(*holder), ..held });
                }
            }
            Reply::Over { fresh: Fresh::New, .. } => {
                if let Some(held) = it.held.take() {
                    it.old.push(held);
                }
            }
            _ => {}
        }
    }
}

impl Client {
    fn hold(&mut self, held: Presented) {
        if let Some(old) = self.held.replace(held).filter(|old| *old != held) {
            self.old.push(old);
            let spare = self.old.len().saturating_sub(3);
            self.old.drain(..spare);
        }
    }
}

fn end(held: Presented, rng: &mut Rng) -> Command {
    let how = [EndHow::Completed, EndHow::CheckoutFailed, EndHow::CheckoutExpired, EndHow::Revoked];
    let by = Actor::new("origin");
    let ticket = Presented { holder: None, ..held };
    Command::End { ticket, how: how[rng.below(4) as usize], by }
}

fn identity(who: u64) -> Identity {
    let mut bytes = [1; 16];
    bytes[..8].copy_from_slice(&who.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
    Identity(bytes)
}
