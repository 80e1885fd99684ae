//! One room, and what it decides.
//!
//! Lives here: the two doors, `decide` and `absorb`, and the index that speeds them up.
//! Stays out: clocks, sockets, files, randomness. Time arrives with the command.
//! Promise: the same events make the same room, byte for byte. Replay, the simulator and every
//! backend lean on this, so maps here are ordered and timestamps are integers.
//! Each verb has its own file, with what it decides on top and what its events do below.

use crate::chunked::{CHUNK, Chunked};
use crate::command::Command;
use crate::draw_room::PreparedDraw;
use crate::event::{Event, What};
use crate::fingerprints::Fingerprints;
use crate::lane::{Lane, LaneIndex};
use crate::record::Record;
use crate::reply::{Refusal, Reply};
use crate::slots::SlotIndex;
use crate::state::State;
use crate::units::{JoinKey, Number, Ticket, Timestamp};

#[derive(Debug, Default)]
pub struct Room {
    pub(crate) state: State,
    pub(crate) index: Index,
}

/// What can be worked out from the state at any time, kept to be quick. Never stored, never part
/// of the digest; `Index::of` makes it anew after a snapshot was loaded.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) slots: SlotIndex,
    /// Beside `state.lanes`, one each.
    pub(crate) lanes: Vec<LaneIndex>,
    pub(crate) identities: Fingerprints,
    pub(crate) keys: Fingerprints,
    pub(crate) prepared: Option<PreparedDraw>,
}

impl Room {
    pub fn new() -> Room {
        Room::default()
    }

    /// What `command` leads to: events into `out`, an answer back. Looks, touches nothing.
    /// A refusal or a repeat is an answer without events, so nobody can fill the log by being
    /// refused. `at` never runs backwards; the room holds to its newest event if it does.
    pub fn decide(&self, at: Timestamp, command: &Command, out: &mut Vec<Event>) -> Reply {
        let at = at.max(self.state.last_at);
        let decided = match command {
            Command::Open { epoch } => self.decide_open(at, *epoch, out),
            Command::Configure { settings, by } => self.decide_configure(at, settings, by, out),
            Command::Pace { rate, by } => self.decide_pace(at, *rate, by, out),
            Command::Join(join) => self.decide_join(at, join, out),
            Command::Claim(presented) => self.decide_claim(at, presented, out),
            Command::Leave(presented) => self.decide_leave(at, presented, out),
            Command::Renew(presented) => self.decide_renew(at, presented, out),
            Command::End { ticket, how, by } => self.decide_end(at, ticket, *how, by, out),
            Command::Lapse { tickets } => self.decide_lapse(at, tickets, out),
            Command::Release { tickets } => self.decide_release(at, tickets, out),
            Command::HandOver(presented) => self.decide_hand_over(at, presented, out),
            Command::Move { ticket, to, by } => self.decide_move(at, ticket, *to, by, out),
            Command::Hold { hold, by } => self.decide_hold(at, hold, by, out),
            Command::Resume { by } => self.decide_resume(at, by, out),
            Command::AdmitNow { count, entropy, by } => {
                self.decide_admit_now(at, *count, entropy, by, out)
            }
            Command::Finish { cause, reason, by } => {
                self.decide_finish(at, *cause, reason, by, out)
            }
            Command::Reopen { by } => self.decide_reopen(at, by, out),
            Command::CommitDraw { commitment, sealed_seed, beacon } => {
                self.decide_commit_draw(at, commitment, sealed_seed, beacon, out)
            }
            Command::Draw { seed, chain, beacon, waive_beacon, by } => {
                let beacon = beacon.as_deref();
                self.decide_draw(at, seed, chain, beacon, *waive_beacon, by, out)
            }
            Command::Tick { entropy } => self.decide_tick(at, entropy, out),
        };
        decided.unwrap_or_else(Reply::Refused)
    }

    /// Folds one event in. Touches, decides nothing. Replay runs this and only this.
    pub fn absorb(&mut self, event: &Event) {
        let at = event.at;
        match &event.what {
            What::Joined(joined) => self.absorb_joined(at, joined),
            What::Admitted { ticket, why, entry, .. } => {
                self.absorb_admitted(at, *ticket, *why, *entry)
            }
            What::Claimed { ticket, session } | What::Renewed { ticket, session } => {
                self.absorb_session(*ticket, *session)
            }
            What::Ended { ticket, ending, held_until, .. } => {
                self.absorb_ended(at, *ticket, *ending, *held_until)
            }
            What::Released { ticket } => self.absorb_released(at, *ticket),
            What::HandedOver { ticket, holder } => self.absorb_handed_over(*ticket, *holder),
            What::Bound { ticket, identity } => self.absorb_bound(*ticket, *identity),
            What::Moved { from, to, .. } => self.absorb_moved(at, *from, *to),
            What::Opened { epoch } => self.absorb_opened(at, *epoch),
            What::Configured { settings, .. } => self.absorb_configured(at, settings),
            What::Held { hold, .. } => self.absorb_held(at, hold),
            What::Resumed { .. } => self.absorb_resumed(at),
            What::AdmittedNow { .. } => {}
            What::DoorsOpened => self.absorb_doors_opened(),
            What::SaleStarted => self.absorb_sale_started(at),
            What::SaleEnded { cause, reason, .. } => self.absorb_sale_ended(at, *cause, reason),
            What::Reopened { .. } => self.absorb_reopened(at),
            What::DrawCommitted { commitment, sealed_seed, beacon } => {
                self.absorb_draw_committed(commitment, sealed_seed, beacon)
            }
            What::DrawClosed { counts } => self.absorb_draw_closed(counts),
            What::Drawn { seed, chain, beacon, waived, .. } => {
                self.absorb_drawn(at, seed, chain, beacon.as_deref(), *waived)
            }
            What::Sealed { lane, start, len, seed } => {
                self.absorb_sealed(*lane, *start, *len, *seed)
            }
            What::ForgotTickets(block) => self.absorb_forgot_tickets(*block),
            What::ForgotKeys(block) => self.absorb_forgot_keys(*block),
        }
        self.state.last_at = self.state.last_at.max(at);
    }

    /// The state as it is now; cloning it is cheap and gives the board and the snapshot.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The live ticket of an identity or the one that a join key made, for tests and look-ups.
    pub(crate) fn by_identity(&self, hash: &[u8; 16]) -> Option<Ticket> {
        let packed = self.index.identities.find(hash, |packed| self.state.identity_at(packed))?;
        Some(Ticket::unpacked(packed))
    }

    pub(crate) fn by_key(&self, key: &[u8; 12]) -> Option<Ticket> {
        let packed = self.index.keys.find(&padded(key), |packed| self.state.key_at(packed))?;
        Some(Ticket::unpacked(packed))
    }
}

impl Index {
    pub(crate) fn of(state: &State) -> Index {
        let lane_index = |lane: &Lane| LaneIndex::of(lane, state.founded_at, &state.slots);
        let identities = || {
            state.lanes.iter().flat_map(|lane| {
                filled(lane, &lane.identities)
                    .filter(|(.., record)| !record.superseded())
                    .map(|(identity, ticket, _)| (*identity, ticket.packed()))
            })
        };
        let keys = || {
            state.lanes.iter().flat_map(|lane| {
                filled(lane, &lane.keys).map(|(key, ticket, _)| {
                    (padded(&JoinKey::from_bytes(*key).key), ticket.packed())
                })
            })
        };
        Index {
            slots: SlotIndex::of(&state.slots),
            lanes: state.lanes.iter().map(lane_index).collect(),
            identities: Fingerprints::gathered(identities, |packed| state.identity_at(packed)),
            keys: Fingerprints::gathered(keys, |packed| state.key_at(packed)),
            prepared: None,
        }
    }
}

/// The entries of a column that were written, whose they are, and what else is known of those.
fn filled<'a>(
    lane: &'a Lane,
    column: &'a Chunked<[u8; 16]>,
) -> impl Iterator<Item = (&'a [u8; 16], Ticket, Record)> {
    column.chunks().flat_map(move |(block, entries)| {
        let records = lane.records.chunk(block).unwrap_or_default();
        let written = entries.iter().enumerate().filter(|(_, entry)| **entry != [0; 16]);
        written.map(move |(i, entry)| {
            let number = Number(block * CHUNK + i as u64);
            let record = records.get(i).copied().unwrap_or_default();
            (entry, Ticket { lane: lane.id, number }, record)
        })
    })
}

impl State {
    /// The identity column, as the fingerprint table reads it.
    pub(crate) fn identity_at(&self, packed: u64) -> [u8; 16] {
        let ticket = Ticket::unpacked(packed);
        self.lane(ticket.lane).map_or([0; 16], |lane| lane.identity(ticket.number))
    }

    /// The join key column without the body's hash: keys are found by the key alone.
    pub(crate) fn key_at(&self, packed: u64) -> [u8; 16] {
        let ticket = Ticket::unpacked(packed);
        let mut key = self.lane(ticket.lane).map_or([0; 16], |lane| lane.key(ticket.number));
        key[12..].fill(0);
        key
    }
}

pub(crate) fn padded(key: &[u8; 12]) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..12].copy_from_slice(key);
    bytes
}

/// What a verb decides: an answer, or why not.
pub(crate) type Decided = Result<Reply, Refusal>;
