//! The other end of a link: takes parcels in, hands requests to rooms, and answers.

use crate::about::About;
use crate::cluster::Cluster;
use crate::link::{INSTANCE, PARCEL_BYTES_MAX, SECRET, hex};
use crate::proto::instances_server::{Instances, InstancesServer};
use crate::proto::{Answer, Parcel, Request, Returned};
use crate::reports;
use crate::tickets::UsedTicket;
use http::Response;
use hyper::body::Incoming;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};
use waitroom_engine::{Answers, COMMANDS_MAX, Commands, Unanswered};

/// Answers that may wait for the stream; beyond it the rooms' answers wait, and their queues say
/// no more.
const ANSWERS_MAX: usize = 4_096;
const RETURNED_MAX: usize = 1_024;

/// Answers the calls of other instances. One for each connection; they are all alike.
#[derive(Clone, Debug)]
pub struct Service {
    server: InstancesServer<Receiver>,
    /// Whether those who call must show a certificate.
    certificates: bool,
    /// Somebody who should have and has not.
    stranger: bool,
}

impl Service {
    pub fn new(cluster: Arc<Cluster>) -> Service {
        let certificates = cluster.identity.certificates.is_some();
        let server = InstancesServer::new(Receiver { cluster })
            .max_decoding_message_size(PARCEL_BYTES_MAX)
            .max_encoding_message_size(PARCEL_BYTES_MAX);
        Service { server, certificates, stranger: false }
    }

    /// The same for a connection, of which it is known whether it showed a good certificate.
    pub fn of(&self, certified: bool) -> Service {
        Service { stranger: self.certificates && !certified, ..self.clone() }
    }
}

type Called<T> = Pin<Box<dyn Future<Output = Result<T, Infallible>> + Send>>;

impl hyper::service::Service<http::Request<Incoming>> for Service {
    type Response = Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = Called<Self::Response>;

    fn call(&self, request: http::Request<Incoming>) -> Self::Future {
        if self.stranger {
            let status = Status::unauthenticated("instances show a certificate here");
            return Box::pin(async move { Ok(status.into_http()) });
        }
        tonic::codegen::Service::call(&mut self.server.clone(), request)
    }
}

#[derive(Clone, Debug)]
struct Receiver {
    cluster: Arc<Cluster>,
}

#[tonic::async_trait]
impl Instances for Receiver {
    type CarryStream = ReceiverStream<Result<Returned, Status>>;

    async fn carry(
        &self,
        request: tonic::Request<Streaming<Parcel>>,
    ) -> Result<tonic::Response<Self::CarryStream>, Status> {
        let header = |name| request.metadata().get(name).and_then(|it| it.to_str().ok());
        let ours = hex(&self.cluster.identity.secret);
        if !header(SECRET).is_some_and(|theirs| same(theirs.as_bytes(), ours.as_bytes())) {
            return Err(Status::unauthenticated("not of this installation"));
        }
        let from = header(INSTANCE).unwrap_or_default().to_owned();
        let (out, returned) = mpsc::channel(4);
        let (answers, answered) = mpsc::channel(ANSWERS_MAX);
        tokio::spawn(gather(answered, out));
        tokio::spawn(take(self.cluster.clone(), from, request.into_inner(), answers));
        Ok(tonic::Response::new(ReceiverStream::new(returned)))
    }
}

/// Takes as long whatever the difference is.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

async fn take(
    cluster: Arc<Cluster>,
    from: String,
    mut parcels: Streaming<Parcel>,
    answers: mpsc::Sender<Answer>,
) {
    while let Ok(Some(parcel)) = parcels.message().await {
        if let Some(about) = About::from_bytes(&parcel.about) {
            cluster.told(&from, about);
        }
        if let Some(report) = parcel.report {
            reports::hear(&cluster, &from, report);
        }
        for used in parcel.used {
            let answer = Answer { id: used.id, answer: is_good(&cluster, &used).to_vec() };
            if answers.send(answer).await.is_err() {
                return;
            }
        }
        for request in parcel.requests {
            cluster.figures.taken_in.one();
            let (cluster, answers) = (cluster.clone(), answers.clone());
            tokio::spawn(async move {
                let id = request.id;
                let answered = answer(&cluster, request).await;
                let answer = serde_json::to_vec(&answered).expect("answers are plain data");
                // Whoever asked is gone otherwise.
                let _ = answers.send(Answer { id, answer }).await;
            });
        }
    }
}

fn is_good(cluster: &Cluster, used: &crate::proto::UsedTicket) -> &'static [u8] {
    let Ok(name) = used.name.as_slice().try_into() else { return b"false" };
    let ticket = UsedTicket { writer: used.writer, ends_ms: used.ends_ms, name };
    if cluster.use_up_here(&ticket) { b"true" } else { b"false" }
}

async fn answer(cluster: &Cluster, request: Request) -> Result<Answers, Unanswered> {
    let here = cluster.rooms().and_then(|rooms| rooms.room(&request.room));
    let Some(here) = here else { return Err(Unanswered::NotOwner { epoch: 0 }) };
    let why = |why: &str| Unanswered::Unavailable { why: why.to_owned() };
    // A newer release may know commands that this one does not: nothing is done.
    let commands: Commands = serde_json::from_slice(&request.commands)
        .map_err(|_| why("the owner does not know this command"))?;
    if matches!(&commands, Commands::Many(commands) if commands.len() > COMMANDS_MAX) {
        return Err(why("too many commands in one request"));
    }
    here.take_in(commands, u8::try_from(request.hops).unwrap_or(u8::MAX)).await
}

/// What gathers while a message is on its way goes with the next.
async fn gather(mut answered: mpsc::Receiver<Answer>, out: mpsc::Sender<Result<Returned, Status>>) {
    let mut answers = Vec::new();
    loop {
        let Ok(place) = out.reserve().await else { return };
        if answered.recv_many(&mut answers, RETURNED_MAX).await == 0 {
            return;
        }
        place.send(Ok(Returned { answers: std::mem::take(&mut answers) }));
    }
}
