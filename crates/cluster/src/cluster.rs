//! The cluster at one instance: says that it is here, looks who else is, and sends requests on.
//!
//! Every instance announces itself in the store, with the rooms it owns, and tells its peers
//! directly when that changes; the store's list is what counts for who is alive. Losing the direct
//! word costs a fraction of a second, because the list is looked at four times a second.

use crate::about::About;
use crate::figures::Figures;
use crate::link::{Letter, Link, Sent};
use crate::tickets::UseUp;
use crate::tls::Certificates;
use crate::view::{Picture, View};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use waitroom_engine::{Answering, Commands, Peers, RoomHandle, Stance, Unanswered};
use waitroom_store::{Clock, RoomName, Store};

/// How long an instance counts as alive without a word: as long as its leases last, so that its
/// rooms are free when it is gone.
pub const MEMBER_TTL: Duration = Duration::from_secs(2);
/// The part of that which is given away by whoever relies on being listed, as with leases.
const DOUBT: u64 = 20;
/// Four words fit in one life, as with leases.
const ANNOUNCE_EVERY: Duration = Duration::from_millis(500);
/// How often the list is looked at: a part of the three seconds within which a room has a new owner.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Before something is sent on again: about as long as it takes to hear of a new owner.
const RETRY_AFTER: Duration = Duration::from_millis(100);
/// How often a request travels in all.
pub(crate) const HOPS_MAX: u8 = 3;

/// Who this instance is to the others.
#[derive(Clone)]
pub struct Identity {
    pub instance: String,
    /// Where others reach it.
    pub address: String,
    pub release: String,
    /// What every instance of the installation knows, and nobody else.
    pub secret: [u8; 32],
    /// With which it calls the others; none where streams are in the clear.
    pub certificates: Option<Certificates>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}", self.instance, self.address)
    }
}

/// The rooms that are open at this instance, owned or followed.
pub trait Rooms: Send + Sync + 'static {
    fn room(&self, name: &str) -> Option<RoomHandle>;
    fn names(&self) -> Vec<String>;
}

pub struct Cluster {
    itself: Weak<Cluster>,
    pub(crate) identity: Identity,
    clock: Arc<dyn Clock>,
    view: Mutex<View>,
    changes: watch::Sender<u64>,
    /// What we say of ourselves has changed.
    dirty: Notify,
    links: Mutex<BTreeMap<String, Link>>,
    rooms: OnceLock<Weak<dyn Rooms>>,
    /// The others count with us until then, by our clock.
    listed_until_ms: AtomicU64,
    /// And do so since then, without a gap.
    listed_from_ms: AtomicU64,
    /// How often that has begun.
    listings: AtomicU64,
    pub(crate) use_up: OnceLock<Arc<UseUp>>,
    pub figures: Figures,
}

impl Cluster {
    pub fn new(identity: Identity, clock: Arc<dyn Clock>) -> Arc<Cluster> {
        let address = identity.address.clone();
        let release = identity.release.clone();
        let mine = About { address, release, starting: true, ..About::default() };
        // Seeded by the operating system: nobody takes us for whoever had our name before.
        let life = RandomState::new().hash_one(0);
        Arc::new_cyclic(|itself| Cluster {
            itself: itself.clone(),
            view: Mutex::new(View::new(&identity.instance, mine, life)),
            identity,
            clock,
            changes: watch::Sender::new(0),
            dirty: Notify::new(),
            links: Mutex::default(),
            rooms: OnceLock::new(),
            listed_until_ms: AtomicU64::new(0),
            listed_from_ms: AtomicU64::new(0),
            listings: AtomicU64::new(0),
            use_up: OnceLock::new(),
            figures: Figures::default(),
        })
    }

    /// The rooms here, once there are any.
    pub fn serves(&self, rooms: Weak<dyn Rooms>) {
        let _ = self.rooms.set(rooms);
    }

    /// Says that this instance is here, and looks who else is. At start this comes before rooms are
    /// opened, so that nobody asks for what others own.
    pub async fn look<S: Store>(&self, store: &S) -> Result<(), waitroom_store::Error> {
        self.announce(store, MEMBER_TTL).await?;
        self.look_around(store).await
    }

    /// Runs until it is dropped.
    pub async fn run<S: Store>(self: Arc<Self>, store: Arc<S>) {
        let mut announced = Instant::now();
        let mut fails = false;
        let mut listed = self.listed();
        loop {
            let dirty = tokio::select! {
                biased;
                () = self.dirty.notified() => true,
                () = tokio::time::sleep(LOOK_EVERY) => false,
            };
            let mut done = Ok(());
            if dirty || announced.elapsed() >= ANNOUNCE_EVERY {
                announced = Instant::now();
                done = self.announce(&*store, MEMBER_TTL).await;
            }
            if done.is_ok() {
                done = self.look_around(&*store).await;
            }
            if self.listed() != listed {
                // Followers have something to read.
                listed = self.listed();
                self.ring();
            }
            // Who was there stays there until the store says otherwise.
            match (&done, fails) {
                (Err(error), false) => tracing::warn!(%error, "the list of instances is not there"),
                (Ok(()), true) => tracing::info!("the list of instances is there again"),
                _ => {}
            }
            fails = done.is_err();
        }
    }

    async fn announce<S: Store>(
        &self,
        store: &S,
        ttl: Duration,
    ) -> Result<(), waitroom_store::Error> {
        let about = self.about().to_bytes();
        let (asked_ms, ttl_ms) = (self.clock.now_ms(), ttl.as_millis() as u64);
        store.announce(&self.identity.instance, about, ttl_ms).await?;
        let now_ms = self.clock.now_ms();
        if now_ms >= self.listed_until_ms.load(Ordering::Acquire) {
            // Somebody who frees slots by a list from before that does not count with us yet, and
            // goes by none that is as old as a listing. At first there is no picture of before.
            let again = self.listings.load(Ordering::Acquire) > 0;
            let from_ms = now_ms + if again { MEMBER_TTL.as_millis() as u64 } else { 0 };
            self.listed_from_ms.store(from_ms, Ordering::Release);
            self.listings.fetch_add(1, Ordering::AcqRel);
        }
        // Counted from when we asked, and a part of it given away: the store began to count later,
        // and its clock may run faster.
        self.listed_until_ms.store(asked_ms + ttl_ms - ttl_ms / DOUBT, Ordering::Release);
        Ok(())
    }

    async fn look_around<S: Store>(&self, store: &S) -> Result<(), waitroom_store::Error> {
        let asked_ms = self.clock.now_ms();
        let members = store.instances().await?;
        let named = |member: waitroom_store::Member| {
            Some((member.instance, About::from_bytes(&member.about)?))
        };
        let members = members.into_iter().filter_map(named).collect();
        let (changed, again) = {
            let (mut view, now_ms) = (self.view(), self.clock.now_ms());
            view.looked(asked_ms);
            (view.members(members, now_ms), view.try_again(now_ms))
        };
        if again {
            self.tell_of_us();
        }
        if changed {
            self.relink();
            self.ring();
        }
        Ok(())
    }

    /// A link to everybody who is there, and to nobody else.
    fn relink(&self) {
        let others: Vec<(String, String)> = {
            let view = self.view();
            let address = |name: &str| view.address(name).unwrap_or_default().to_owned();
            view.others().map(|name| (name.to_owned(), address(name))).collect()
        };
        let mut links = self.links();
        links.retain(|name, _| others.iter().any(|(other, _)| other == name));
        for (name, address) in others {
            links.entry(name).or_insert_with(|| Link::begin(self.itself.clone(), address));
        }
    }

    /// Gives every room away and takes no more. Says how many are still here after that time.
    pub async fn drain(&self, within: Duration) -> usize {
        self.change_mine(|mine| mine.draining = true);
        let deadline = Instant::now() + within;
        let mut changes = self.changes.subscribe();
        loop {
            let left = self.view().mine().rooms.len();
            let alone = self.view().others().next().is_none();
            if left == 0 || alone {
                return left;
            }
            match tokio::time::timeout_at(deadline, changes.changed()).await {
                Ok(Ok(())) => {}
                _ => return left,
            }
        }
    }

    /// Not here any more, and no gate of it lets anybody in: nobody need wait until its time is up.
    /// It is listed for as long as before, so that everybody sees that it left and was not lost.
    pub async fn leave<S: Store>(&self, store: &S) {
        self.change_mine(|mine| mine.left = true);
        let _ = self.announce(store, MEMBER_TTL).await;
    }

    /// The rooms there are have been opened here: from now on this one takes its share of others.
    pub fn is_up(&self) {
        self.change_mine(|mine| mine.starting = false);
    }

    /// A room could not be opened here: others should have it, and it is tried again later.
    pub fn cannot_open(&self, room: &RoomName) {
        let news = self.view().failed(room.as_str(), self.clock.now_ms());
        if news {
            self.tell_of_us();
        }
    }

    /// A room was made here, and somebody waits for it to open.
    pub fn found(&self, room: &RoomName) {
        let now_ms = self.clock.now_ms();
        self.view().found(room.as_str(), now_ms);
        self.ring();
    }

    pub fn picture(&self) -> Picture {
        let rooms = self.rooms().map(|rooms| rooms.names()).unwrap_or_default();
        self.view().picture(rooms.into_iter())
    }

    /// Whether something that only one instance should see to is this one's to do.
    pub fn is_first(&self, what: &str) -> bool {
        self.view().best(what) == Some(&self.identity.instance)
    }

    /// What this instance says of itself.
    pub fn about(&self) -> About {
        self.view().mine().clone()
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    pub(crate) fn rooms(&self) -> Option<Arc<dyn Rooms>> {
        self.rooms.get()?.upgrade()
    }

    pub(crate) fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn links(&self) -> MutexGuard<'_, BTreeMap<String, Link>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn ring(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// A peer said how it is now.
    pub(crate) fn told(&self, name: &str, about: About) {
        if self.view().told(name, about) {
            self.ring();
        }
    }

    pub(crate) fn change_mine(&self, change: impl FnOnce(&mut About)) {
        self.view().change_mine(change);
        self.tell_of_us();
    }

    /// What we say of ourselves has changed: everybody should know.
    fn tell_of_us(&self) {
        self.links().values().for_each(|link| link.post(Letter::About));
        self.dirty.notify_one();
        self.ring();
    }

    /// Posts a report to a peer. One that has no place for it goes without: until the next one
    /// arrives nobody is taken for silent.
    pub(crate) fn report(&self, name: &str, report: crate::proto::Report) {
        if let Some(link) = self.links().get(name) {
            link.post(Letter::Report(report));
        }
    }

    /// Hands a letter to the link to that instance. Says whether there is one that takes it.
    pub(crate) fn hand(&self, name: &str, letter: Letter) -> bool {
        self.links().get(name).is_some_and(|link| link.take(letter))
    }

    pub(crate) fn dispatch(&self, sent: Sent) {
        let owner = self.view().owner(sent.room.as_str()).map(|(name, _)| name.to_owned());
        let refused = match owner {
            Some(owner) => match self.links().get(&owner) {
                Some(link) => link.send(sent),
                None => Some(sent),
            },
            None => Some(sent),
        };
        if let Some(sent) = refused {
            self.later(sent);
        }
    }

    /// Nothing was done about this request: it is tried once more, a moment later, wherever the
    /// room is owned by then.
    pub(crate) fn later(&self, mut sent: Sent) {
        if sent.hops >= HOPS_MAX {
            return sent.answer.give(Err(Unanswered::NotOwner { epoch: 0 }));
        }
        sent.hops += 1;
        self.figures.retried.one();
        let itself = self.itself.clone();
        tokio::spawn(async move {
            tokio::time::sleep(RETRY_AFTER).await;
            let Some(cluster) = itself.upgrade() else { return };
            let mine = cluster.view().mine().rooms.contains_key(sent.room.as_str());
            let here = cluster.rooms().and_then(|rooms| rooms.room(sent.room.as_str()));
            match here.filter(|_| mine) {
                Some(here) => match serde_json::from_slice::<Commands>(&sent.body) {
                    Ok(commands) => sent.answer.give(here.take_in(commands, sent.hops).await),
                    Err(_) => sent.answer.give(Err(Unanswered::NotOwner { epoch: 0 })),
                },
                None => cluster.dispatch(sent),
            }
        });
    }
}

impl Peers for Cluster {
    fn stance(&self, room: &RoomName) -> Stance {
        self.view().stance(room.as_str(), self.clock.now_ms())
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn owned(&self, room: &RoomName, epoch: u32) {
        self.figures.takeovers.one();
        self.view().opened(room.as_str(), epoch);
        self.tell_of_us();
    }

    fn failed(&self, room: &RoomName) {
        self.cannot_open(room);
    }

    fn parted(&self, room: &RoomName, head: Option<u64>) {
        if head.is_some() {
            self.figures.handovers.one();
        }
        self.change_mine(|mine| {
            mine.rooms.remove(room.as_str());
        });
    }

    fn has_owner(&self, room: &RoomName) -> bool {
        self.view().owner(room.as_str()).is_some()
    }

    fn owner(&self, room: &RoomName) -> Option<(String, u32)> {
        self.view().owner(room.as_str()).map(|(name, epoch)| (name.to_owned(), epoch))
    }

    fn carry(&self, room: &RoomName, commands: Commands, hops: u8, answer: Answering) {
        let body = serde_json::to_vec(&commands).expect("commands are plain data");
        self.figures.sent_on.one();
        self.dispatch(Sent { room: room.clone(), hops, body, answer });
    }

    fn hears_all(&self, room: &RoomName) -> bool {
        self.view().hears_all(room.as_str(), self.clock.now_ms())
    }

    fn shown(&self, room: &RoomName) -> u64 {
        self.view().shown(room.as_str())
    }

    fn shown_lately(&self, room: &RoomName, within_ms: u64) -> u64 {
        self.view().shown_lately(room.as_str(), within_ms, self.clock.now_ms())
    }

    fn listed(&self) -> Option<u64> {
        let now_ms = self.clock.now_ms();
        let listed = now_ms < self.listed_until_ms.load(Ordering::Acquire)
            && now_ms >= self.listed_from_ms.load(Ordering::Acquire);
        listed.then(|| self.listings.load(Ordering::Acquire))
    }

    fn unheard_ms(&self, room: &RoomName) -> u64 {
        self.view().unheard_ms(room.as_str(), self.clock.now_ms())
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("identity", &self.identity).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use waitroom_store::{ManualClock, MemoryStore, Seams};

    #[tokio::test]
    async fn whoever_is_listed_again_waits_until_nobody_goes_by_an_older_list() {
        let clock = ManualClock::at(1_000);
        let store = MemoryStore::new(Seams::seeded(clock.clone(), 1));
        let identity = Identity {
            instance: "a".into(),
            address: String::new(),
            release: String::new(),
            secret: [0; 32],
            certificates: None,
        };
        let cluster = Cluster::new(identity, clock.clone());
        assert_eq!(cluster.listed(), None);
        cluster.look(&store).await.expect("the store is there");
        assert_eq!(cluster.listed(), Some(1), "there is no picture of before");
        for _ in 0..8 {
            clock.advance(500);
            cluster.look(&store).await.expect("the store is there");
            assert_eq!(cluster.listed(), Some(1));
        }
        // It is frozen for a moment too long.
        clock.advance(1_900);
        assert_eq!(cluster.listed(), None);
        for _ in 0..4 {
            cluster.look(&store).await.expect("the store is there");
            assert_eq!(cluster.listed(), None, "an owner may not have looked since");
            clock.advance(500);
        }
        assert_eq!(cluster.listed(), Some(2), "and what is read from now on has all they did");
    }
}
