//! Many instances, one queue: who is there, who owns which room, and how requests reach the owner.
//!
//! Lives here: membership, the choice of owners, and the streams between instances. Each room has
//! one owner, which holds its lease in the store; the store alone decides who that is, and what is
//! here only makes it likely that the right one asks. A mistake here costs time, never a place.
//! Stays out: what an owner or a follower does with a room (`waitroom-engine`), and sockets that
//! are listened on (`waitroom-listen`).
//!
//! Start reading at [`Cluster`], then `view.rs`, which decides and does nothing else.

mod about;
mod cluster;
mod figures;
mod link;
mod rendezvous;
mod reports;
mod serve;
mod sight;
mod tickets;
mod tls;
mod told;
mod view;

/// The messages and the service as generated from the `.proto`.
#[allow(missing_debug_implementations, unreachable_pub, clippy::all)]
mod proto {
    tonic::include_proto!("waitroom.cluster.v1");
}

pub use about::About;
pub use cluster::{Cluster, Identity, MEMBER_TTL, Rooms};
pub use figures::Figures;
pub use serve::Service;
pub use sight::Sight;
pub use tickets::{UseUp, UsedTicket};
pub use tls::Certificates;
pub use told::{Envelope, Marks, Stamp};
pub use view::{MemberPicture, Picture, RoomPicture};
