//! The way to one other instance: a stream that is kept open, and all that goes over it.
//!
//! Whatever gathers while a message is on its way goes with the next one, so a crowd costs few
//! messages. A request that was never sent is tried elsewhere; one that was sent and not answered
//! may have been done, and whoever asked is told exactly that.

use crate::cluster::{Cluster, Identity};
use crate::proto::instances_client::InstancesClient;
use crate::proto::{Parcel, Report, Request, Returned};
use crate::tickets::UsedTicket;
use hyper_util::rt::TokioIo;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Endpoint;
use waitroom_engine::{Answering, Answers, Unanswered};
use waitroom_store::RoomName;

/// Requests that may wait for the stream: as many as a room's own queue takes.
const LETTERS_MAX: usize = 16_384;
/// Requests in one message.
const PARCEL_MAX: usize = 1_024;
/// Messages on their way.
const PARCELS_MAX: usize = 4;
/// After that the outcome is called unknown. An owner answers within milliseconds, or refuses.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);
/// An instance that is there answers the call at once.
const CONNECTED_WITHIN: Duration = Duration::from_millis(500);
/// What is on its way from an instance that has left arrives within this.
const GOODBYE: Duration = Duration::from_millis(500);
/// Between two tries to reach it.
const RECONNECT: Duration = Duration::from_millis(100);
/// A bitmap of twenty million people fits, and settings with templates do.
pub(crate) const PARCEL_BYTES_MAX: usize = 64 << 20;

/// The header that carries what only instances know, and who is calling.
pub(crate) const SECRET: &str = "waitroom-cluster";
pub(crate) const INSTANCE: &str = "waitroom-instance";

/// A request on its way to the owner of its room.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) room: RoomName,
    pub(crate) hops: u8,
    pub(crate) body: Vec<u8>,
    pub(crate) answer: Answering,
}

pub(crate) enum Letter {
    Request(Sent),
    Report(Report),
    /// How we are now.
    About,
    /// Somebody shows a live ticket that was written there.
    Used(UsedTicket, oneshot::Sender<bool>),
}

#[derive(Debug)]
pub(crate) struct Link {
    letters: mpsc::Sender<Letter>,
}

impl Link {
    pub(crate) fn begin(cluster: Weak<Cluster>, address: String) -> Link {
        let (letters, posted) = mpsc::channel(LETTERS_MAX);
        tokio::spawn(run(cluster, address, posted));
        Link { letters }
    }

    /// Sends a request, or gives it back when there is nobody to take it.
    pub(crate) fn send(&self, sent: Sent) -> Option<Sent> {
        match self.letters.try_send(Letter::Request(sent)) {
            Ok(()) => None,
            Err(mpsc::error::TrySendError::Closed(Letter::Request(sent))) => Some(sent),
            Err(error) => {
                if let Letter::Request(sent) = error.into_inner() {
                    sent.answer.give(Err(Unanswered::Overloaded));
                }
                None
            }
        }
    }

    /// Whether there is a place for this.
    pub(crate) fn take(&self, letter: Letter) -> bool {
        self.letters.try_send(letter).is_ok()
    }

    /// Posts what may get lost.
    pub(crate) fn post(&self, letter: Letter) {
        let _ = self.letters.try_send(letter);
    }
}

/// Runs until nobody can post any more.
async fn run(cluster: Weak<Cluster>, address: String, mut posted: mpsc::Receiver<Letter>) {
    let mut told = false;
    loop {
        let Some(cluster) = cluster.upgrade() else { return };
        match connect(&cluster.identity, &address).await {
            Ok((parcels, answers)) => {
                told = false;
                let mut talk = Talk::new(&cluster);
                if let Over::Nobody = talk.run(&mut posted, parcels, answers).await {
                    return;
                }
            }
            Err(why) => {
                if !std::mem::replace(&mut told, true) {
                    tracing::warn!(address, why, "another instance cannot be reached");
                }
                loop {
                    match posted.try_recv() {
                        Ok(Letter::Request(sent)) => cluster.later(sent),
                        // Whoever waits for an answer hears that there is none.
                        Ok(Letter::Report(_) | Letter::About | Letter::Used(..)) => {}
                        Err(mpsc::error::TryRecvError::Empty) => break,
                        Err(mpsc::error::TryRecvError::Disconnected) => return,
                    }
                }
            }
        }
        tokio::time::sleep(RECONNECT).await;
    }
}

type Answered = tonic::Streaming<Returned>;

async fn connect(
    identity: &Identity,
    address: &str,
) -> Result<(mpsc::Sender<Parcel>, Answered), String> {
    let words = |error: &dyn std::error::Error| {
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        format!("{error}{cause}")
    };
    let endpoint = Endpoint::from_shared(format!("http://{address}"));
    let endpoint = endpoint.map_err(|error| words(&error))?;
    let endpoint = endpoint
        .connect_timeout(CONNECTED_WITHIN)
        .tcp_nodelay(true)
        // A peer that is frozen, or behind a cable that was pulled, is noticed.
        .http2_keep_alive_interval(Duration::from_secs(2))
        .keep_alive_timeout(Duration::from_secs(2));
    let (parcels, sent) = mpsc::channel(PARCELS_MAX);
    let call = async {
        let channel = match &identity.certificates {
            None => endpoint.connect().await,
            Some(certificates) => {
                let (certificates, address) = (certificates.clone(), address.to_owned());
                let connector = tower::service_fn(move |_| {
                    let (certificates, address) = (certificates.clone(), address.clone());
                    async move { certificates.connect(&address).await.map(TokioIo::new) }
                });
                endpoint.connect_with_connector(connector).await
            }
        };
        let channel = channel.map_err(|error| words(&error))?;
        let mut client = InstancesClient::new(channel)
            .max_decoding_message_size(PARCEL_BYTES_MAX)
            .max_encoding_message_size(PARCEL_BYTES_MAX);
        let mut request = tonic::Request::new(ReceiverStream::new(sent));
        let secret = hex(&identity.secret);
        for (name, value) in [(SECRET, secret.as_str()), (INSTANCE, &identity.instance)] {
            let value = value.parse().map_err(|_| format!("{name} is no header"))?;
            request.metadata_mut().insert(name, value);
        }
        let answers = client.carry(request).await.map_err(|status| status.to_string())?;
        Ok::<_, String>(answers.into_inner())
    };
    let answers = tokio::time::timeout(2 * CONNECTED_WITHIN, call).await;
    Ok((parcels, answers.map_err(|_| "it does not answer".to_owned())??))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// How a talk ended.
enum Over {
    /// The stream broke; another one may be made.
    Lost,
    /// Nobody can post any more, and nothing is waited for.
    Nobody,
}

/// One stream, while it lasts.
struct Talk<'a> {
    cluster: &'a Arc<Cluster>,
    /// Written and not yet sent.
    parcel: Option<Parcel>,
    waiting: HashMap<u64, (Sent, Instant)>,
    /// Live tickets that were asked about; whoever asked waits no longer than they like.
    used: HashMap<u64, oneshot::Sender<bool>>,
    next: u64,
}

impl<'a> Talk<'a> {
    fn new(cluster: &'a Arc<Cluster>) -> Talk<'a> {
        // The first word says who we are: the other may have heard of nothing yet.
        let parcel = Some(Parcel { about: cluster.about().to_bytes(), ..Parcel::default() });
        Talk { cluster, parcel, waiting: HashMap::new(), used: HashMap::new(), next: 0 }
    }

    async fn run(
        &mut self,
        posted: &mut mpsc::Receiver<Letter>,
        parcels: mpsc::Sender<Parcel>,
        mut answers: Answered,
    ) -> Over {
        let mut letters = Vec::new();
        let mut closed_at = None;
        let mut look = tokio::time::interval(Duration::from_millis(100));
        let over = loop {
            tokio::select! {
                answered = answers.message() => match answered {
                    Ok(Some(returned)) => self.returned(returned),
                    Ok(None) | Err(_) => break Over::Lost,
                },
                place = parcels.reserve(), if self.parcel.is_some() => match place {
                    Ok(place) => {
                        self.cluster.figures.parcels.one();
                        place.send(self.parcel.take().expect("it was looked at"));
                    }
                    Err(_) => break Over::Lost,
                },
                count = posted.recv_many(&mut letters, PARCEL_MAX),
                    if closed_at.is_none() && self.parcel.is_none() =>
                {
                    match count {
                        0 => closed_at = Some(Instant::now()),
                        _ => self.parcel = Some(self.pack(&mut letters)),
                    }
                }
                _ = look.tick() => self.give_up(|since| since.elapsed() >= ANSWERED_WITHIN),
            }
            // The other instance has left: what it has not answered by now it will not answer.
            let over = |at: Instant| at.elapsed() >= GOODBYE || self.waiting.is_empty();
            if closed_at.is_some_and(over) {
                break Over::Nobody;
            }
        };
        // What was never sent was never done.
        for request in self.parcel.take().map(|parcel| parcel.requests).unwrap_or_default() {
            if let Some((sent, _)) = self.waiting.remove(&request.id) {
                self.cluster.later(sent);
            }
        }
        self.give_up(|_| true);
        over
    }

    fn pack(&mut self, letters: &mut Vec<Letter>) -> Parcel {
        let mut parcel = Parcel::default();
        for letter in letters.drain(..) {
            match letter {
                Letter::Report(report) => parcel.report = Some(report),
                Letter::About => parcel.about = self.cluster.about().to_bytes(),
                Letter::Used(ticket, answer) => {
                    self.next += 1;
                    self.used.insert(self.next, answer);
                    let UsedTicket { writer, ends_ms, name } = ticket;
                    let (id, name) = (self.next, name.to_vec());
                    parcel.used.push(crate::proto::UsedTicket { id, writer, ends_ms, name });
                }
                Letter::Request(sent) => {
                    self.next += 1;
                    let (room, hops) = (sent.room.to_string(), u32::from(sent.hops));
                    let (id, commands) = (self.next, sent.body.clone());
                    parcel.requests.push(Request { id, room, hops, commands });
                    self.waiting.insert(id, (sent, Instant::now()));
                }
            }
        }
        parcel
    }

    fn returned(&mut self, returned: Returned) {
        for answer in returned.answers {
            if let Some(asked) = self.used.remove(&answer.id) {
                let _ = asked.send(answer.answer == b"true");
                continue;
            }
            let Some((sent, _)) = self.waiting.remove(&answer.id) else { continue };
            let read = serde_json::from_slice::<Result<Answers, Unanswered>>(&answer.answer);
            match read {
                // It owns the room no more, and did nothing.
                Ok(Err(Unanswered::NotOwner { .. } | Unanswered::Stopping)) => {
                    self.cluster.later(sent);
                }
                Ok(answers) => sent.answer.give(answers),
                Err(error) => {
                    let why = format!("the owner's answer cannot be read: {error}");
                    sent.answer.give(Err(Unanswered::OutcomeUnknown { why }));
                }
            }
        }
    }

    fn give_up(&mut self, over: impl Fn(Instant) -> bool) {
        self.used.retain(|_, asked| !asked.is_closed());
        let gone: Vec<u64> =
            self.waiting.iter().filter(|(_, (_, at))| over(*at)).map(|(id, _)| *id).collect();
        for id in gone {
            if let Some((sent, _)) = self.waiting.remove(&id) {
                self.cluster.figures.unknown.one();
                let why = "the room's owner did not answer".to_owned();
                sent.answer.give(Err(Unanswered::OutcomeUnknown { why }));
            }
        }
    }
}
