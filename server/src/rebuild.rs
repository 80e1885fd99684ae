//! `waitroom rebuild`: a room from a mirror, with proof that it is the room that was mirrored.
//!
//! Everything is read, checked and folded before the data folder is touched; a mirror that does not
//! hold leaves no trace. The room comes back paused: somebody should look before people go in.
//! Lives here: the order of it and its words. Stays out: pieces and chains (`outbox::mirror`),
//! reading them (`rebuild/fetch.rs`).

mod fetch;
pub mod known;

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use serde_json::json;
use waitroom_core::{Actor, Command, Epoch, Hold, Reply, Timestamp};
use waitroom_engine::recover::{Recovered, recover};
use waitroom_engine::writer::Writer;
use waitroom_outbox::mirror::{Place, SealKey};
use waitroom_sim::rehearsal::human::number;
use waitroom_store::seal::MasterKey;
use waitroom_store::{Batch, FileStore, Head, LeaseName, RoomName, Store};

use crate::config::kafka::Way;
use crate::config::{Environment, KafkaSasl};
use crate::data::{Data, failed, now};
use crate::failure::{Exit, Failure};
use crate::out::Out;
use crate::serve::{copies, master_key};
use fetch::{Fetched, Proof, hex};

/// Brings a room back from a mirror of its log ([events.mirror]) and proves that it is the same.
///
/// The room is paused until somebody resumes it. Into a new data folder, or an empty Redis, the
/// installation's keys come along, without which no ticket of before would be known. The master
/// key, which they and the mirror are sealed with, is not in the mirror: it is taken from
/// WAITROOM_MASTER_KEY, from --master-key-file, or from `master.key` in the data folder.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom rebuild spring-sale --from nats://10.0.0.5:4222 --data data\n  \
    waitroom rebuild spring-sale --from postgres://waitroom@db/waitroom --config waitroom.toml")]
pub struct Rebuild {
    /// The room.
    #[arg(value_parser = RoomName::parse)]
    room: RoomName,
    /// Where the mirror is: nats://…, kafka://HOST:PORT,… or postgres://…
    #[arg(long, value_name = "URL")]
    from: String,
    /// The stream of NATS or the topic of Kafka.
    #[arg(long, value_name = "NAME", default_value = "WAITROOM_MIRROR")]
    name: String,
    /// A file with credentials (NATS) or a password (Kafka, PostgreSQL).
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    #[command(flatten)]
    kafka: ByKafka,
    /// The data folder to put it into, made if it is not there; no server may be running on it.
    #[arg(long, value_name = "DIR", required_unless_present = "config")]
    data: Option<PathBuf>,
    /// The configuration of servers whose rooms are in Redis; none may be running on it.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["data", "master_key_file"])]
    config: Option<PathBuf>,
    /// The file with the master key that the mirror was sealed with.
    #[arg(long, value_name = "FILE")]
    master_key_file: Option<PathBuf>,
    /// Brings the room back even if the mirror has lost the installation's keys: no ticket and no
    /// pass of before will be known.
    #[arg(long)]
    without_system: bool,
    /// Prints JSON.
    #[arg(long)]
    pub json: bool,
}

/// How the way to a mirror on Kafka is secured, as in [events.mirror].
#[derive(Debug, Args)]
struct ByKafka {
    /// Kafka: the connection is secured, and the brokers prove their names.
    #[arg(long)]
    tls: bool,
    /// Kafka: who may have signed the brokers' certificates; otherwise whom the machine trusts.
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// Kafka: a certificate of ours, for brokers that ask for one.
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// Kafka: the key of that certificate.
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Kafka: how the password of --secret-file is proved (plain, scram-sha-256, scram-sha-512).
    #[arg(long, value_name = "HOW", default_value = "none")]
    sasl: KafkaSasl,
    /// Kafka: whose password it is.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
}

impl ByKafka {
    fn way(&self, password_file: Option<PathBuf>) -> Way {
        Way {
            tls: self.tls,
            ca: self.tls_ca.clone(),
            cert: self.tls_cert.clone(),
            key: self.tls_key.clone(),
            sasl: self.sasl,
            user: self.user.clone(),
            password_file,
        }
    }
}

/// What became of the installation's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    WereThere,
    CameAlong,
    /// They were not there, and not in the mirror.
    Missing,
}

impl Keys {
    /// Where there is an installation already, `lacks` says what it has not.
    fn of(fresh: bool, system: Option<&Fetched>, lacks: Option<&str>) -> Keys {
        match (fresh, system, lacks) {
            (false, _, None) => Keys::WereThere,
            (true, Some(_), _) => Keys::CameAlong,
            (false, _, Some(_)) | (true, None, _) => Keys::Missing,
        }
    }
}

/// Why the room is paused, as visitors and operators read it.
const REASON: &str = "brought back from a mirror; an operator has to look at it first";

impl Rebuild {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let place = self.place()?;
        match (&self.config, &self.data) {
            (Some(config), _) => self.to_redis(out, &place, config),
            (None, Some(dir)) => self.to_folder(out, &place, Data { dir: dir.clone() }),
            (None, None) => unreachable!("one of the two is required"),
        }
    }

    fn place(&self) -> Result<Place, Failure> {
        let refused = |why| Failure::new(Exit::Usage, why).means("nothing was read or changed");
        let way = self.kafka.way(self.secret_file.clone());
        let to_kafka = self.from.starts_with("kafka://");
        let wrong = if to_kafka { way.mistakes("--secret-file") } else { Vec::new() };
        if let Some((key, problem)) = wrong.first() {
            return Err(refused(format!("--{}: {problem}", key.replace('_', "-"))));
        }
        if !to_kafka && way.is_special() {
            let why = "only a mirror on kafka:// takes --tls and --sasl; others say it in --from";
            return Err(refused(why.into()));
        }
        Place::parse(&self.from, way.access()).map_err(refused)
    }

    fn to_folder(&self, out: &mut Out, place: &Place, data: Data) -> Result<Exit, Failure> {
        let (room, fresh) = (&self.room, !data.dir.join("journal").is_dir());
        let master = self.master_key(&data.dir)?;
        let key = SealKey::of(&master);
        let (fetched, proof) = self.fetch(place, &key, &data.dir)?;
        let system = if fresh { self.system(place, &key, &data.dir)? } else { None };
        let store = data.open_or_make()?;
        let rooms = now(store.rooms()).map_err(|error| failed("list the rooms", &error))?;
        if rooms.contains(room) {
            let dir = data.dir.display();
            let said = format!("room \"{room}\": data folder {dir} has a room of that name");
            return Err(Failure::new(Exit::Taken, said)
                .coded("WR-2011")
                .means("nothing was changed")
                .advise("rebuild into another data folder"));
        }
        let lacks = match fresh {
            true => None,
            false => now(known::knows(store.clone(), &master, room)).err(),
        };
        self.may_lack(lacks.as_deref(), &format!("data folder {}", data.dir.display()))?;
        for file in system.iter().chain([&fetched]) {
            let imported = now(store.import(file.path()));
            imported.map_err(|error| failed(&format!("take in room {room}"), &error))?;
        }
        now(store.leave_epochs_out()).map_err(|error| failed("raise the epochs", &error))?;
        let recovered = now(recover(&store, room));
        let recovered = recovered.map_err(|error| {
            Failure::new(Exit::Wrong, format!("room \"{room}\": cannot be opened: {error}"))
        })?;
        let (digest, head) = (recovered.room.state().digest(), Head(recovered.head));
        // Before anything else can go wrong: nobody is let in by what was not looked at.
        hold(&store, room, recovered)?;
        if digest != proof.at_tip {
            return Err(fetch::other_digest(room, head));
        }
        self.tell(out, &fetched, &proof, Keys::of(fresh, system.as_ref(), lacks.as_deref()))
    }

    fn to_redis(&self, out: &mut Out, place: &Place, config: &Path) -> Result<Exit, Failure> {
        let config = copies::configured(config)?;
        let fresh = copies::may_rebuild(&config, &self.room)?;
        let beside = &config.server.data;
        let given = config.master_key.is_some() || config.store.master_key_file.is_some();
        // As the server finds it, but none is made: a fresh one opens no mirror.
        let key = if given { master_key(&config)? } else { self.master_key(beside)? };
        let key = SealKey::of(&key);
        let (fetched, proof) = self.fetch(place, &key, beside)?;
        let system = if fresh { self.system(place, &key, beside)? } else { None };
        let lacks = if fresh { None } else { copies::lacks(&config, &self.room)? };
        self.may_lack(lacks.as_deref(), "this Redis")?;
        let keys = system.as_ref().map(Fetched::path);
        copies::rebuild(&config, &self.room, fetched.path(), keys, REASON)?;
        self.tell(out, &fetched, &proof, Keys::of(fresh, system.as_ref(), lacks.as_deref()))
    }

    /// The room's log from the mirror, checked and folded.
    fn fetch(
        &self,
        place: &Place,
        key: &SealKey,
        beside: &Path,
    ) -> Result<(Fetched, Proof), Failure> {
        let fetched = Fetched::read(place, &self.name, key, &self.room, beside)?;
        let fetched = fetched.ok_or_else(|| self.nothing_there())?;
        let proof = fetched.prove()?;
        Ok((fetched, proof))
    }

    /// The installation's own log, without which the people of the room could not be told from
    /// strangers. To go on without it is an act of its own.
    fn system(
        &self,
        place: &Place,
        key: &SealKey,
        beside: &Path,
    ) -> Result<Option<Fetched>, Failure> {
        let system = Fetched::read(place, &self.name, key, &RoomName::system(), beside)?;
        if system.is_none() && !self.without_system {
            let (room, name) = (&self.room, &self.name);
            let said = format!(
                "room \"{room}\": the mirror {name} holds nothing of the installation's own log \
                 (_system), and so none of its keys"
            );
            return Err(without_keys(said));
        }
        Ok(system)
    }

    /// The same for an installation that is there already, and must have the keys itself.
    fn may_lack(&self, lacks: Option<&str>, there: &str) -> Result<(), Failure> {
        match lacks {
            Some(lacks) if !self.without_system => {
                let room = &self.room;
                let said = format!(
                    "room \"{room}\": the installation's own log (_system) of {there} {lacks}"
                );
                Err(without_keys(said))
            }
            _ => Ok(()),
        }
    }

    /// From the environment, from the file that is named, or from the one of the folder. None is
    /// made here: a fresh one opens no mirror.
    fn master_key(&self, dir: &Path) -> Result<MasterKey, Failure> {
        let mut wrong = Vec::new();
        let given = Environment::of_this_process().master_key(&mut wrong);
        let key = match (&self.master_key_file, given, wrong.first()) {
            (Some(file), _, _) => MasterKey::from_file(file).map_err(|error| error.to_string()),
            (None, Some(key), _) => Ok(key),
            (None, None, Some(mistake)) => Err(mistake.to_string()),
            (None, None, None) => {
                MasterKey::from_file(&dir.join("master.key")).map_err(|error| error.to_string())
            }
        };
        key.map_err(|why| {
            Failure::new(Exit::Wrong, format!("the master key cannot be used: {why}"))
                .coded("WR-2102")
                .means("nothing was read or changed; a mirror cannot be believed without it")
                .advise("name its file with --master-key-file, or set WAITROOM_MASTER_KEY")
        })
    }

    fn tell(
        &self,
        out: &mut Out,
        fetched: &Fetched,
        proof: &Proof,
        keys: Keys,
    ) -> Result<Exit, Failure> {
        let (room, tip) = (&self.room, fetched.tip);
        let mut said = format!(
            "rebuilt room \"{room}\": events 1 to {} in {} batches, chain {}\n",
            number(tip.head.0),
            number(fetched.batches),
            tip.chain
        );
        match &fetched.mark {
            Some(mark) => {
                said += &format!(
                    "  proof   digest at event {}: {}, the same as the source's\n",
                    number(mark.at.0),
                    hex(&mark.digest)
                );
            }
            None => said += "  proof   the chain alone: the mirror holds no digest of the source\n",
        }
        let digest = hex(&proof.at_tip);
        said += &format!("  digest  at event {}: {digest}\n", number(tip.head.0));
        if let Some(last) = fetched.half {
            said += &format!(
                "  left    a batch up to event {} came in part only and is not in it\n",
                number(last.0)
            );
        }
        said += match keys {
            Keys::CameAlong => {
                "  keys    the installation's, sealed with its master key; API keys are as they \
                 were when it was mirrored: look through them (waitroom key list)\n"
            }
            Keys::Missing => {
                "  WARNING the keys of the installation it is from did not come along (_system): new \
                 ones will be made, and no ticket or pass of before will be known\n"
            }
            Keys::WereThere => "",
        };
        said += &format!("  paused  {REASON}: waitroom resume {room}");
        let json = json!({
            "room": room.as_str(), "head": tip.head.0, "batches": fetched.batches,
            "chain": tip.chain.to_string(), "digest": digest,
            "proved_at": fetched.mark.map(|it| it.at.0), "paused": REASON,
            "keys": keys == Keys::CameAlong, "keys_missing": keys == Keys::Missing,
            "left_out_to": fetched.half.map(|it| it.0),
            "source_digest": fetched.mark.map(|it| hex(&it.digest)),
        });
        out.tell(said, &json)?;
        Ok(Exit::Fine)
    }

    fn nothing_there(&self) -> Failure {
        let said = format!("room \"{}\": the mirror {} holds nothing of it", self.room, self.name);
        Failure::new(Exit::NotThere, said)
            .coded("WR-2006")
            .means("nothing was changed")
            .advise("look at the name of the room, and at --from and --name")
    }
}

fn without_keys(said: String) -> Failure {
    Failure::new(Exit::Wrong, said)
        .coded("WR-2021")
        .means("nothing was changed; without the keys no ticket or pass of before is known")
        .advise("restore a backup first, or go on without them: --without-system")
}

/// Writes the pause before anybody can open the room and let people in.
fn hold(store: &FileStore, room: &RoomName, recovered: Recovered) -> Result<(), Failure> {
    let doing = format!("pause room {room}");
    let lease = now(store.lease(&LeaseName::room(room), "waitroom rebuild", LEASE_MS));
    let lease = lease.map_err(|error| failed(&doing, &error))?;
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let wall = Timestamp(wall.as_millis() as u64);
    let mut writer = Writer::open(recovered.room, recovered.head, Epoch(lease.epoch), wall);
    let at = wall.max(writer.state().last_at());
    let (hold, by) = (Hold::Paused { reason: REASON.into() }, Actor::new("rebuild"));
    // A room without settings lets nobody in, and has nothing to hold.
    let reply = writer.apply(at, &Command::Hold { hold, by });
    if writer.state().settings().is_some() && !matches!(reply, Reply::Done) {
        return Err(Failure::new(Exit::Wrong, format!("cannot {doing}: {reply:?}"))
            .means("the room is there and open")
            .advise("pause it at once when the server runs"));
    }
    let round = writer.cut().expect("a tenure begins with an event");
    let batch = Batch { number: round.number, events: round.events, payload: round.payload };
    let appended = now(store.append(room, &lease, Head(round.expected), batch));
    appended.map_err(|error| {
        Failure::new(Exit::Io, format!("cannot {doing}: {error}")).coded("WR-2004")
    })?;
    now(store.release(&lease)).map_err(|error| failed(&doing, &error))
}

/// Given back at the end; until then nobody else is at the folder anyway.
const LEASE_MS: u64 = 60_000;
