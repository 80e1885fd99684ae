//! Notices: a word to a visitor who asked for it, once, when their turn comes near.
//!
//! An address is the most personal thing that this program ever holds, and it is needed for one
//! message. So it is kept on a shelf of its room (`waitroom_store::shelf`), sealed under a key of
//! that room, and never in the log, in an event or in a line for operators. It goes when the message
//! was sent, when the ticket is over, or when the visitor says so. What stays until the ticket is
//! over is a mark that its message was sent: nobody can be written to twice by one ticket.
//!
//! Lives here: what can be asked for ([`Wish`]), who is due, trying again. Stays out: how a message
//! travels (`email.rs`, `sms.rs`, `push.rs`), and where a ticket stands, which the caller knows.
//! At least once: a crash between sending and marking sends again.

mod email;
mod push;
mod sms;

pub use email::{Email, Relay, RelayTls};
pub use push::{Push, PushHosts, PushKey, Subscription};
pub use sms::Sms;

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use waitroom_store::{RoomName, Shelf};
use waitroom_watch::Counter;

use crate::backoff::Backoff;

/// Notices kept in one room. Whoever comes after that is told that it is full.
pub const NOTICES_MAX: usize = 100_000;
/// Messages under way at a time: a mail server is no bus.
const TOGETHER: usize = 8;
/// So often one is tried; with waits that double from five seconds it takes some twenty minutes,
/// and then it would come too late.
const TRIES_MAX: u32 = 8;
const RETRY_FIRST: Duration = Duration::from_secs(5);
const RETRY_MOST: Duration = Duration::from_secs(300);

/// How somebody wants to hear of it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "channel", rename_all = "snake_case", deny_unknown_fields)]
pub enum Wish {
    Email { address: String },
    Sms { address: String },
    Push { subscription: Subscription },
}

/// Says the channel and nothing else: this is what would end up in a log.
impl std::fmt::Debug for Wish {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Wish by {}", self.channel().word())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    Email,
    Sms,
    Push,
}

impl Channel {
    pub const ALL: [Channel; 3] = [Channel::Email, Channel::Sms, Channel::Push];

    pub fn word(self) -> &'static str {
        match self {
            Channel::Email => "email",
            Channel::Sms => "sms",
            Channel::Push => "push",
        }
    }
}

impl Wish {
    pub fn channel(&self) -> Channel {
        match self {
            Wish::Email { .. } => Channel::Email,
            Wish::Sms { .. } => Channel::Sms,
            Wish::Push { .. } => Channel::Push,
        }
    }

    fn address(&self) -> &str {
        match self {
            Wish::Email { address } | Wish::Sms { address } => address,
            Wish::Push { subscription } => &subscription.endpoint,
        }
    }

    /// What is wrong with the address, without repeating it.
    pub fn check(&self) -> Result<(), &'static str> {
        match self {
            Wish::Email { address } => email::check(address),
            Wish::Sms { address } => sms::check(address),
            Wish::Push { subscription } => subscription.check(),
        }
    }
}

/// What lies on the shelf.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kept {
    Wish(Wish),
    /// The message was sent, or given up; the address is gone.
    Done,
}

/// What is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub room: RoomName,
    /// The room's title, or its name.
    pub title: String,
    /// How many are still before; none when it is their turn.
    pub ahead: Option<u64>,
    /// Where to go on; may be empty.
    pub link: String,
    /// The ticket, for who drops repeats.
    pub ticket: String,
}

impl Notice {
    pub fn subject(&self) -> String {
        match self.ahead {
            Some(_) => format!("Your turn comes near: {}", self.title),
            None => format!("It is your turn: {}", self.title),
        }
    }

    /// What there is to say, without the link.
    pub fn line(&self) -> String {
        let stands = match self.ahead {
            Some(0) => "You are next in line.".to_owned(),
            Some(1) => "1 person is before you.".to_owned(),
            Some(ahead) => format!("{ahead} people are before you."),
            None => "You can go in now.".to_owned(),
        };
        stands + " Go back to the page where you wait; this message does not keep your place."
    }

    pub fn text(&self) -> String {
        let mut text = self.line();
        if !self.link.is_empty() {
            text += &format!("\n\n{}", self.link);
        }
        text
    }
}

/// Why a message was not sent. Holds no words of the other side: they may repeat the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSent {
    /// And will not be: nobody is there by that address.
    Never,
    Later,
}

/// The channels that are set up.
#[derive(Debug, Default)]
pub struct Voices {
    pub email: Option<Email>,
    pub sms: Option<Sms>,
    pub push: Option<Push>,
}

impl Voices {
    pub fn has(&self, channel: Channel) -> bool {
        match channel {
            Channel::Email => self.email.is_some(),
            Channel::Sms => self.sms.is_some(),
            Channel::Push => self.push.is_some(),
        }
    }

    /// What is wrong with a wish, besides its form, without repeating it.
    pub fn takes(&self, wish: &Wish) -> Result<(), &'static str> {
        match (wish, &self.push) {
            (Wish::Push { subscription }, Some(push)) if !push.knows(subscription) => {
                Err("of no push service that is known here")
            }
            _ => Ok(()),
        }
    }

    async fn say(&self, wish: &Wish, notice: &Notice) -> Result<(), NotSent> {
        match (wish, self) {
            (Wish::Email { address }, Voices { email: Some(email), .. }) => {
                email.send(address, notice).await
            }
            (Wish::Sms { address }, Voices { sms: Some(sms), .. }) => {
                sms.send(address, notice).await
            }
            (Wish::Push { subscription }, Voices { push: Some(push), .. }) => {
                push.send(subscription, notice).await
            }
            // It was set up when it was asked for, and is no longer.
            _ => Err(NotSent::Never),
        }
    }
}

/// Where a ticket stands now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stand {
    /// Near enough, or let in: the message is due.
    Near(Notice),
    /// Still far away, or nothing can be known for the moment.
    Far,
    /// The ticket is over, or nobody knows it.
    Over,
}

/// Messages sent and given up, by channel.
#[derive(Debug, Default)]
pub struct NoticeFigures {
    sent: [Counter; 3],
    failed: [Counter; 3],
}

impl NoticeFigures {
    /// As (channel, outcome, how many).
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> + '_ {
        let of = |word, counters: &[Counter; 3]| {
            Channel::ALL.map(|channel| (channel.word(), word, counters[channel as usize].get()))
        };
        of("sent", &self.sent).into_iter().chain(of("failed", &self.failed))
    }
}

/// The notices of one room.
#[derive(Debug)]
pub struct Notices {
    shelf: Arc<Shelf>,
    tickets: Mutex<BTreeMap<String, Trying>>,
    /// How many tickets have named an address since the start, by a hash under a key of chance: so
    /// nobody is written to by many tickets, and nothing of the address is kept.
    named: Mutex<HashMap<u64, u8>>,
    chance: RandomState,
    /// Held while a wish or a mark is written, so that one never undoes the other.
    writing: tokio::sync::Mutex<()>,
}

/// So many tickets of a room may name one address: a family's, and not a victim's.
const NAMED_MAX: u8 = 3;
/// Addresses remembered for that; then it begins anew.
const NAMES_MAX: usize = 1_000_000;

#[derive(Clone, Copy, Debug)]
struct Trying {
    done: bool,
    not_before: Option<Instant>,
    backoff: Backoff,
    /// Whom it goes to; none for one of before the start.
    whom: Option<u64>,
}

impl Trying {
    fn fresh(ticket: &str, done: bool) -> Trying {
        let seed = ticket.bytes().fold(7, |seed: u64, byte| seed.rotate_left(9) ^ u64::from(byte));
        let backoff = Backoff::new(RETRY_FIRST, RETRY_MOST, seed);
        Trying { done, not_before: None, backoff, whom: None }
    }
}

/// What became of a wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Kept,
    /// This ticket had its message.
    DoneBefore,
    /// Too many tickets name this address.
    NamedOften,
    Full,
}

impl Notices {
    /// What was kept before is there again.
    pub fn on(shelf: Shelf) -> std::io::Result<Notices> {
        let mut tickets = BTreeMap::new();
        for name in shelf.names() {
            // One that does not open any more can never be sent.
            let kept = shelf.get(&name).ok().flatten();
            match kept.and_then(|it| serde_json::from_slice::<Kept>(&it).ok()) {
                Some(kept) => {
                    let trying = Trying::fresh(&name, matches!(kept, Kept::Done));
                    tickets.insert(name, trying);
                }
                None => drop(shelf.take_away(&name)?),
            }
        }
        Ok(Notices {
            shelf: Arc::new(shelf),
            tickets: Mutex::new(tickets),
            named: Mutex::default(),
            chance: RandomState::new(),
            writing: tokio::sync::Mutex::default(),
        })
    }

    /// How many wait for their message.
    pub fn waiting(&self) -> usize {
        self.tickets().values().filter(|it| !it.done).count()
    }

    /// None where nothing was asked for.
    pub fn of(&self, ticket: &str) -> Option<bool> {
        self.tickets().get(ticket).map(|it| it.done)
    }

    /// Keeps a wish, over an older one of the same ticket. Durable when it returns.
    pub async fn ask(&self, ticket: &str, wish: &Wish) -> Result<Asked, String> {
        let _writing = self.writing.lock().await;
        let whom = self.chance.hash_one(wish.address());
        let known = {
            let tickets = self.tickets();
            let known = tickets.get(ticket).copied();
            match known {
                Some(Trying { done: true, .. }) => return Ok(Asked::DoneBefore),
                None if tickets.len() >= NOTICES_MAX => return Ok(Asked::Full),
                _ => known,
            }
        };
        if known.is_none_or(|it| it.whom != Some(whom)) && !self.may_name(whom) {
            return Ok(Asked::NamedOften);
        }
        self.put(ticket, &Kept::Wish(wish.clone())).await?;
        // A wish that is said again is tried no sooner for it.
        let trying = known.unwrap_or_else(|| Trying::fresh(ticket, false));
        self.tickets().insert(ticket.to_owned(), Trying { whom: Some(whom), ..trying });
        Ok(Asked::Kept)
    }

    /// Counts one more ticket that names the address, unless there are too many.
    fn may_name(&self, whom: u64) -> bool {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if named.len() >= NAMES_MAX {
            named.clear();
        }
        let count = named.entry(whom).or_default();
        let fits = *count < NAMED_MAX;
        *count += u8::from(fits);
        fits
    }

    /// Says whether anything was there. A mark stays: it holds no address.
    pub async fn forget(&self, ticket: &str) -> Result<bool, String> {
        if self.of(ticket) != Some(false) {
            return Ok(false);
        }
        self.take_away(ticket).await?;
        Ok(true)
    }

    /// Sends what is due, and lets go of tickets that are over.
    pub async fn look_round(
        &self,
        voices: &Voices,
        figures: &NoticeFigures,
        stands: impl Fn(&str) -> Stand,
    ) {
        let now = Instant::now();
        let known: Vec<(String, Trying)> =
            self.tickets().iter().map(|(name, trying)| (name.clone(), *trying)).collect();
        let mut due = Vec::new();
        for (ticket, trying) in known {
            match stands(&ticket) {
                Stand::Over => {
                    if let Err(error) = self.take_away(&ticket).await {
                        tracing::error!(%error, "a notice of a ticket that is over cannot be removed");
                    }
                }
                Stand::Near(notice)
                    if !trying.done && trying.not_before.is_none_or(|at| at <= now) =>
                {
                    due.push((ticket, notice));
                }
                Stand::Near(_) | Stand::Far => {}
            }
        }
        let sending = futures_util::stream::iter(due);
        sending
            .for_each_concurrent(TOGETHER, async |(ticket, notice)| {
                self.send(&ticket, &notice, voices, figures).await;
            })
            .await;
    }

    async fn send(&self, ticket: &str, notice: &Notice, voices: &Voices, figures: &NoticeFigures) {
        let shelf = self.shelf.clone();
        let name = ticket.to_owned();
        let kept = tokio::task::spawn_blocking(move || shelf.get(&name)).await;
        let kept = kept.ok().and_then(|it| it.ok().flatten());
        let Some(Kept::Wish(wish)) = kept.and_then(|it| serde_json::from_slice(&it).ok()) else {
            return;
        };
        let said = voices.say(&wish, notice).await;
        let channel = wish.channel();
        let give_up = match said {
            Ok(()) => {
                figures.sent[channel as usize].one();
                true
            }
            Err(NotSent::Later) => self.tried(ticket),
            Err(NotSent::Never) => true,
        };
        if !give_up {
            return;
        }
        if said.is_err() {
            figures.failed[channel as usize].one();
            let (room, channel) = (&notice.room, channel.word());
            tracing::warn!(%room, channel, "a notice could not be sent and is given up");
        }
        let _writing = self.writing.lock().await;
        match self.put(ticket, &Kept::Done).await {
            Ok(()) => drop(self.tickets().insert(ticket.to_owned(), Trying::fresh(ticket, true))),
            Err(error) => tracing::error!(%error, "a notice that was sent cannot be marked"),
        }
    }

    /// Counts a failed try, and says whether it was the last.
    fn tried(&self, ticket: &str) -> bool {
        let mut tickets = self.tickets();
        let Some(trying) = tickets.get_mut(ticket) else { return true };
        trying.not_before = Some(Instant::now() + trying.backoff.wait());
        trying.backoff.tries() >= TRIES_MAX
    }

    fn tickets(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Trying>> {
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn put(&self, ticket: &str, kept: &Kept) -> Result<(), String> {
        let (shelf, name) = (self.shelf.clone(), ticket.to_owned());
        let text = serde_json::to_vec(kept).expect("a wish has no key that JSON could refuse");
        let done = tokio::task::spawn_blocking(move || shelf.put(&name, &text)).await;
        done.map_err(|it| it.to_string())?.map_err(|it| it.to_string())
    }

    async fn take_away(&self, ticket: &str) -> Result<(), String> {
        let (shelf, name) = (self.shelf.clone(), ticket.to_owned());
        let done = tokio::task::spawn_blocking(move || shelf.take_away(&name)).await;
        done.map_err(|it| it.to_string())?.map_err(|it| it.to_string())?;
        self.tickets().remove(ticket);
        Ok(())
    }
}
