//! The queue for services that speak gRPC: `waitroom.v1.WaitroomService`.
//!
//! Lives here: the same rooms as over HTTP, told in the messages of
//! `proto/waitroom/v1/waitroom.proto`, which existing clients speak; health and reflection as the
//! gRPC project defines them. Stays out: what a room decides, and sockets. tonic frames messages
//! here and nothing more: the connection is served by `waitroom-listen` like every other, so that
//! all its limits hold (streams, resets, time-outs, drain).
//!
//! Start reading at [`Grpc`], then `calls.rs`, which has one method for each RPC.
//! To add an RPC: the `.proto`, a method in `calls.rs`, a row in `docs/grpc.md`.

mod arriving;
mod calls;
mod checkout;
mod connection;
mod credential;
mod deadline;
mod health;
mod positions;
mod refusal;
mod session;
mod watched;

use std::sync::Arc;

use tonic::service::Routes;
use waitroom_listen::Peer;

use crate::desk::Desk;
use calls::Calls;
use checkout::Checkouts;
pub use connection::Connection;
use credential::Standing;
pub use deadline::{Answering, UntilThen};
use health::{Health, Probe};

/// The messages and the service as generated from the `.proto`.
#[allow(missing_debug_implementations, clippy::all)]
pub mod proto {
    tonic::include_proto!("waitroom.v1");

    /// The description of the service, as reflection hands it out.
    pub const DESCRIPTION: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/waitroom.bin"));
}

/// The gRPC interface of an instance. Make one, and let it make a service for each connection.
#[derive(Clone, Debug)]
pub struct Grpc {
    house: Arc<House>,
    /// Health and reflection: asked now and then, so a router with boxes is good enough for them.
    standard: Routes,
}

/// What all connections share.
#[derive(Debug)]
struct House {
    desk: Arc<Desk>,
    checkouts: Checkouts,
    probe: Probe,
}

impl Grpc {
    pub fn new(desk: Arc<Desk>) -> Grpc {
        Grpc::with(desk, |services| services)
    }

    /// With services that somebody else brings.
    pub fn with(desk: Arc<Desk>, more: impl FnOnce(Routes) -> Routes) -> Grpc {
        let message_bytes_max = desk.manners.body_bytes_max;
        let health = tonic_health::pb::health_server::HealthServer::new(Health::new(&desk))
            .max_decoding_message_size(message_bytes_max);
        let good = "the descriptions were compiled together with this program";
        let standard = Routes::new(health)
            .add_service(
                reflection().build_v1().expect(good).max_decoding_message_size(message_bytes_max),
            )
            // Tools that are some years old know only this one.
            .add_service(
                reflection()
                    .build_v1alpha()
                    .expect(good)
                    .max_decoding_message_size(message_bytes_max),
            );
        let standard = more(standard).prepare();
        let house = House { desk, checkouts: Checkouts::new(), probe: Probe::default() };
        Grpc { house: Arc::new(house), standard }
    }

    /// The service of one connection, which knows who is at its other end.
    pub fn connection(&self, peer: &Peer) -> Connection {
        let standing = Standing::of(peer, self.house.desk.manners.dev);
        let calls = Calls::new(self.house.clone(), standing);
        Connection::new(calls, self.standard.clone(), &self.house.desk)
    }
}

fn reflection() -> tonic_reflection::server::Builder<'static> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(proto::DESCRIPTION)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
}
