//! A group: what goes to Redis in one pipeline, and what its answers mean.
//!
//! Lives here: building the pipeline, waiting for replicas, telling the five outcomes of an append
//! apart, following a server that moved.
//! Stays out: gathering the group (`line.rs`), and finding servers (`place.rs`).
//!
//! Appends of one room in one group are written on the chain that the one before will leave. If it
//! does not come to that, the script finds another head and refuses those behind it.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use redis::{Cmd, Value};
use tokio::time::Instant;
use waitroom_store::{AppendError, Appended, Chain, Head, Lease, Link, RoomName};

use crate::{
    ask::{Asker, PATIENCE, PAUSE},
    keys::{Keys, slot},
    known::Known,
    line::{Append, Job},
    now::Now,
    options::Level,
    record::{self, HEADER_BYTES},
    script::{Call, Script},
    trouble::Trouble,
    value::{Parts, digits},
    wire::{Server, Turn, Wire, words},
};

#[derive(Debug)]
pub struct Runner {
    asker: Arc<Asker>,
    known: Arc<Known>,
    keys: Keys,
    /// This line's own connections: `WAIT` is about what its own connection wrote.
    wires: HashMap<Arc<str>, Wire>,
    /// What is durable and was not told to all yet, with the lease that wrote it.
    commits: BTreeMap<RoomName, Commit>,
    now: Now,
}

/// Beyond the wait for a replica, the wait for its next report.
const DISKS_MS: u64 = 1_000;

#[derive(Debug)]
struct Commit {
    epoch: u32,
    nonce: u128,
    head: Head,
}

/// A job on its way, with where it is sent if not to whoever has its slot.
struct Sent {
    job: Job,
    asking: Option<Server>,
    /// What an append will have made of the log.
    will_be: Appended,
}

/// What goes to one server.
struct Group {
    server: Server,
    commits: Vec<Call>,
    sent: Vec<Sent>,
}

#[derive(Default)]
struct Groups(Vec<Group>);

impl Groups {
    fn of(&mut self, server: Server) -> &mut Group {
        let known = self.0.iter().position(|group| group.server.name == server.name);
        let at = known.unwrap_or_else(|| {
            self.0.push(Group { server, commits: Vec::new(), sent: Vec::new() });
            self.0.len() - 1
        });
        &mut self.0[at]
    }
}

impl Runner {
    pub fn new(asker: Arc<Asker>, known: Arc<Known>, keys: Keys, now: Now) -> Runner {
        let (wires, commits) = (HashMap::new(), BTreeMap::new());
        Runner { asker, known, keys, wires, commits, now }
    }

    pub fn has_commits(&self) -> bool {
        !self.commits.is_empty()
    }

    /// Sends all of it, and again what met a server that is not the one any more, as long as a
    /// visitor would wait.
    pub async fn run(&mut self, jobs: Vec<Job>) {
        let deadline = Instant::now() + PATIENCE;
        let sent = |job| Sent { job, asking: None, will_be: Appended::default() };
        let mut left: Vec<Sent> = jobs.into_iter().map(sent).collect();
        let mut first = true;
        loop {
            let (again, why) = self.round(left, first).await;
            first = false;
            left = again;
            if left.is_empty() {
                return;
            }
            if Instant::now() + PAUSE >= deadline {
                for sent in left {
                    fail(sent.job, why.clone());
                }
                return;
            }
            if left.iter().all(|sent| sent.asking.is_none()) {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// One try: what is left of it, in order, and why.
    async fn round(&mut self, jobs: Vec<Sent>, with_commits: bool) -> (Vec<Sent>, Trouble) {
        let mut why = Trouble::Away("a failover or a start is under way".into());
        let mut again = Vec::new();
        let mut groups = Groups::default();
        if with_commits {
            for (room, commit) in std::mem::take(&mut self.commits) {
                let call = self.commit(&room, &commit);
                // A commit that cannot be sent is made up for by the next one, or the next lease.
                if let Ok(server) = self.server_of(call.key()).await {
                    groups.of(server).commits.push(call);
                }
            }
        }
        for sent in self.learn_tips(jobs).await {
            let server = match &sent.asking {
                Some(server) => Ok(server.clone()),
                None => self.server_of(&self.key(&sent.job)).await,
            };
            match server {
                Ok(server) => groups.of(server).sent.push(sent),
                Err(trouble) => {
                    why = trouble;
                    again.push(sent);
                }
            }
        }
        for group in groups.0 {
            match self.send(group).await {
                Ok(left) => again.extend(left),
                Err((trouble, left)) => {
                    why = trouble;
                    self.asker.place.forget();
                    again.extend(left);
                }
            }
        }
        (again, why)
    }

    async fn server_of(&self, key: &str) -> Result<Server, Trouble> {
        self.asker.place.server_of(slot(key), &self.asker.options).await
    }

    fn key(&self, job: &Job) -> String {
        match job {
            Job::Append(append) => self.keys.tip(&append.room),
            Job::Change { call, .. } => call.key().to_owned(),
        }
    }

    /// An append is written on a chain; where that is not known, it is looked up first.
    async fn learn_tips(&self, jobs: Vec<Sent>) -> Vec<Sent> {
        let mut unknown: HashMap<RoomName, Trouble> = HashMap::new();
        let mut left = Vec::with_capacity(jobs.len());
        for sent in jobs {
            if let Job::Append(append) = &sent.job {
                let room = &append.room;
                if self.known.tip(room).is_none() && !unknown.contains_key(room) {
                    match self.tip(room).await {
                        Ok(tip) => self.known.set_tip(room, Some(tip)),
                        Err(trouble) => {
                            unknown.insert(room.clone(), trouble);
                        }
                    }
                }
                if let Some(trouble) = unknown.get(room) {
                    // It was only looked up: nothing was written.
                    let why = format!("{trouble:?}");
                    fail(sent.job, Trouble::Away(why));
                    continue;
                }
            }
            left.push(sent);
        }
        left
    }

    async fn tip(&self, room: &RoomName) -> Result<Appended, Trouble> {
        let keys = [self.keys.room_lease(room), self.keys.tip(room), self.keys.log(room)];
        let call = Call::script(Script::Tip, &keys, [String::new(), digits(0)]);
        let mut parts = Parts::of(self.asker.look(call).await?)?;
        Ok(Appended { head: Head(parts.number()?), chain: parts.chain()? })
    }

    /// Sends a group to its server. What comes back was not done; with an error, none of it was.
    async fn send(&mut self, group: Group) -> Result<Vec<Sent>, (Trouble, Vec<Sent>)> {
        let Group { server, commits, mut sent } = group;
        let mut wire = match self.wire(&server).await {
            Ok(wire) => wire,
            Err(trouble) => return Err((trouble, sent)),
        };
        let hashes = wire.hashes().to_vec();
        let mut commands: Vec<Cmd> = commits.iter().map(|call| call.command(&hashes)).collect();
        let mut tips: HashMap<RoomName, Appended> = HashMap::new();
        let mut at = Vec::with_capacity(sent.len());
        for sent in &mut sent {
            if sent.asking.take().is_some() {
                commands.push(redis::cmd("ASKING"));
            }
            at.push(commands.len());
            match &sent.job {
                Job::Append(append) => {
                    let known = || self.known.tip(&append.room).unwrap_or_default();
                    let tip = tips.entry(append.room.clone()).or_insert_with(known);
                    let (call, will_be) = self.append(append, *tip);
                    // Also behind one that will be refused: the script will tell.
                    sent.will_be = will_be;
                    *tip = will_be;
                    commands.push(call.command(&hashes));
                }
                Job::Change { call, .. } => commands.push(call.command(&hashes)),
            }
        }
        let wait = self.wait().filter(|_| !sent.is_empty());
        let waits = wait.is_some();
        commands.extend(wait);
        let mut answers = match wire.send(commands).await {
            Ok(answers) => answers,
            Err(broken) => {
                self.wires.remove(&server.name);
                self.asker.place.forget();
                let why = format!("{}: {}", server.name, broken.0);
                for sent in sent {
                    self.unknown(sent.job, &why);
                }
                return Ok(Vec::new());
            }
        };
        let durable = if waits { self.waited(&server, answers.pop()) } else { Ok(()) };
        let mut again = Vec::new();
        let mut repeated: HashSet<RoomName> = HashSet::new();
        for (sent, at) in sent.into_iter().zip(at) {
            let answer = std::mem::replace(&mut answers[at], Value::Nil);
            let room = match &sent.job {
                Job::Append(append) => Some(append.room.clone()),
                Job::Change { .. } => None,
            };
            // Behind one that is sent again, whatever it was told is about a log without that one.
            if room.as_ref().is_some_and(|room| repeated.contains(room)) {
                again.push(sent);
            } else if let Some(sent) = self.answered(&server, sent, answer, &durable) {
                repeated.extend(room);
                again.push(sent);
            }
        }
        Ok(again)
    }

    /// Tells what became of a job; gives it back if nothing did and it should be sent again.
    fn answered(
        &mut self,
        server: &Server,
        sent: Sent,
        answer: Value,
        durable: &Result<(), String>,
    ) -> Option<Sent> {
        if let Value::ServerError(error) = &answer {
            let Some(turn) = Turn::of(error) else {
                if let Job::Append(append) = &sent.job {
                    self.known.set_tip(&append.room, None);
                }
                fail(sent.job, Trouble::Refused(words(error)));
                return None;
            };
            let mut asking = None;
            match turn {
                Turn::Ask(host, port) => asking = Some(server.at(&host, port)),
                // The next connection teaches the scripts.
                Turn::Teach => drop(self.wires.remove(&server.name)),
                Turn::Moved(..) | Turn::Later => self.asker.place.forget(),
            }
            return Some(Sent { asking, ..sent });
        }
        let Sent { job, will_be, .. } = sent;
        match job {
            Job::Change { call: _, answer: to } => {
                let durable = durable.clone().map_err(Trouble::Unknown);
                let _ = to.send(durable.map(|()| answer));
                None
            }
            Job::Append(append) => match outcome(answer, will_be) {
                Outcome::Appended(tip) => {
                    self.known.set_tip(&append.room, Some(tip));
                    self.appended(append, tip, durable);
                    None
                }
                Outcome::Again(tip) => {
                    self.appended(append, tip, durable);
                    None
                }
                Outcome::Failed(error) => {
                    self.known.set_tip(&append.room, None);
                    let _ = append.answer.send(Err(error));
                    None
                }
                Outcome::OtherChain(chain) => {
                    let tip = Appended { head: append.expected, chain };
                    self.known.set_tip(&append.room, Some(tip));
                    Some(Sent { job: Job::Append(append), asking: None, will_be })
                }
            },
        }
    }

    fn appended(&mut self, append: Append, tip: Appended, durable: &Result<(), String>) {
        let Append { room, lease, answer, .. } = append;
        if let Err(why) = durable {
            self.known.set_tip(&room, None);
            let _ = answer.send(Err(AppendError::Unknown { why: why.clone() }));
            return;
        }
        self.known.durable_to(&room, lease.epoch, tip.head);
        if self.asker.options.level != Level::Async {
            let Lease { epoch, nonce, .. } = lease;
            let commit =
                self.commits.entry(room).or_insert(Commit { epoch, nonce, head: tip.head });
            if commit.epoch != epoch || commit.head < tip.head {
                *commit = Commit { epoch, nonce, head: tip.head };
            }
        }
        let _ = answer.send(Ok(tip));
    }

    fn unknown(&self, job: Job, why: &str) {
        if let Job::Append(append) = &job {
            self.known.set_tip(&append.room, None);
        }
        fail(job, Trouble::Unknown(why.to_owned()));
    }

    /// The call that appends on `tip`, and what the log will be then.
    fn append(&self, append: &Append, tip: Appended) -> (Call, Appended) {
        let Append { room, lease, expected, batch, .. } = append;
        let link = Link {
            epoch: lease.epoch,
            nonce: lease.nonce,
            number: batch.number,
            after: *expected,
            events: batch.events,
        };
        // A head that is not the log's is refused, whatever chain is sent with it.
        let before = if tip.head == *expected { tip.chain } else { Chain::START };
        let chain = before.next(room, &link, &batch.payload);
        let head = Head(expected.0.saturating_add(u64::from(batch.events)));
        // The lease of another room is nobody's here.
        let epoch = if lease.name.is_of(room) { lease.epoch.to_string() } else { String::new() };
        let at_once = if self.asker.options.level == Level::Async { "1" } else { "0" };
        let keys = [self.keys.room_lease(room), self.keys.tip(room), self.keys.log(room)];
        let args: [Vec<u8>; 11] = [
            epoch.into(),
            format!("{:032x}", lease.nonce).into(),
            record::name(lease.epoch, batch.number).into(),
            digits(expected.0).into(),
            digits(head.0).into(),
            batch.events.to_string().into(),
            before.0.into(),
            record::write(&link, &chain, &batch.payload),
            self.now.text().into(),
            at_once.into(),
            HEADER_BYTES.to_string().into(),
        ];
        (Call::script(Script::Append, &keys, args), Appended { head, chain })
    }

    fn commit(&self, room: &RoomName, commit: &Commit) -> Call {
        let keys = [self.keys.room_lease(room), self.keys.tip(room), self.keys.log(room)];
        let Commit { epoch, nonce, head } = commit;
        commit_call(&keys, *epoch, *nonce, *head)
    }

    /// The command that waits for replicas; none where nobody else has to have it.
    fn wait(&self) -> Option<Cmd> {
        let Level::Sync { replicas_required } = self.asker.options.level else { return None };
        let timeout = self.asker.options.replicas_timeout.as_millis() as u64;
        if self.asker.options.on_disks {
            // A replica may tell of its disk only with its next report, a second later.
            let timeout = timeout + DISKS_MS;
            let mut wait = redis::cmd("WAITAOF");
            wait.arg(1).arg(replicas_required).arg(timeout);
            return Some(wait);
        }
        let mut wait = redis::cmd("WAIT");
        wait.arg(replicas_required).arg(timeout);
        (replicas_required > 0).then_some(wait)
    }

    /// Whether as many replicas as required have it.
    fn waited(&self, server: &Server, answer: Option<Value>) -> Result<(), String> {
        let Level::Sync { replicas_required } = self.asker.options.level else { return Ok(()) };
        let required = i64::from(replicas_required);
        let have = match &answer {
            Some(Value::Int(replicas)) => *replicas,
            Some(Value::Array(parts)) => match parts[..] {
                [Value::Int(1..), Value::Int(replicas)] => replicas,
                _ => return Err(format!("{}: not on its disk in time", server.name)),
            },
            Some(Value::ServerError(error)) => {
                return Err(format!("{}: cannot wait for replicas: {}", server.name, words(error)));
            }
            _ => return Err(format!("{}: no answer about replicas", server.name)),
        };
        if have >= required {
            return Ok(());
        }
        Err(format!("{}: {have} of {required} replicas have it", server.name))
    }

    async fn wire(&mut self, server: &Server) -> Result<Wire, Trouble> {
        if let Some(wire) = self.wires.get(&server.name) {
            return Ok(wire.clone());
        }
        let wire = Wire::open(server, &self.asker.options).await?;
        self.wires.insert(server.name.clone(), wire.clone());
        Ok(wire)
    }
}

pub fn commit_call(keys: &[String], epoch: u32, nonce: u128, head: Head) -> Call {
    let (epoch, nonce) = (epoch.to_string(), format!("{nonce:032x}"));
    let head = digits(head.0);
    Call::script(Script::Commit, keys, [epoch, nonce, head])
}

/// What an append was told.
enum Outcome {
    Appended(Appended),
    /// It was in the log already; where the log ends is another matter.
    Again(Appended),
    Failed(AppendError),
    /// The head was right, but not the chain that was thought to be there.
    OtherChain(Chain),
}

fn outcome(answer: Value, will_be: Appended) -> Outcome {
    let refused = |why: &str| Ok(Outcome::Failed(AppendError::Refused { why: why.into() }));
    let read = || -> Result<Outcome, Trouble> {
        let mut parts = Parts::of(answer)?;
        match &*parts.text()? {
            "ok" => Ok(Outcome::Appended(will_be)),
            "again" => {
                let tip = Appended { head: Head(parts.number()?), chain: parts.chain()? };
                Ok(Outcome::Again(tip))
            }
            "stale" => Ok(Outcome::Failed(AppendError::Stale { head: Head(parts.number()?) })),
            "fenced" => {
                let epoch = u32::try_from(parts.number()?).unwrap_or(u32::MAX);
                Ok(Outcome::Failed(AppendError::Fenced { epoch }))
            }
            "chain" => Ok(Outcome::OtherChain(parts.chain()?)),
            "empty" => refused("a batch holds at least one event"),
            "other" => refused("a batch of this number is in the log with another content"),
            "below" => refused("the batch number is not above the newest"),
            other => Err(Trouble::Unknown(format!("Redis answered {other:?}"))),
        }
    };
    read().unwrap_or_else(|trouble| Outcome::Failed(trouble.of_append()))
}

fn fail(job: Job, trouble: Trouble) {
    match job {
        Job::Append(append) => {
            let _ = append.answer.send(Err(trouble.of_append()));
        }
        Job::Change { answer, .. } => {
            let _ = answer.send(Err(trouble));
        }
    }
}
