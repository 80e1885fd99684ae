//! What a duty does for each room: tell a sink of it, or carry its log somewhere whole.
//!
//! Lives here: the contract [`Carry`], what it is given ([`Errand`]), and the first of the two,
//! [`Told`]. The other is in `keeper.rs`.

use std::future::Future;
use std::sync::Arc;

use waitroom_store::{Head, RoomName, SinkName, Store};

use crate::figures::SinkFigures;
use crate::names::Names;
use crate::relay::{Pace, Relay};
use crate::sink::{Filter, Sink, Trouble};

/// One room's log and where it is to go.
#[derive(Debug)]
pub struct Errand<S: Store> {
    pub store: Arc<S>,
    pub room: RoomName,
    pub name: SinkName,
    pub names: Arc<dyn Names>,
    pub filter: Filter,
    pub pace: Pace,
    pub figures: Arc<SinkFigures>,
}

pub trait Carry: Send + Sync + 'static {
    /// Runs until it is dropped, which may happen at any point.
    fn carry<S: Store>(self: Arc<Self>, errand: Errand<S>) -> impl Future<Output = ()> + Send;

    /// The cursor is about to be put back to `to`: what the other side must do for that.
    fn go_back(
        &self,
        room: &RoomName,
        to: Head,
    ) -> impl Future<Output = Result<(), Trouble>> + Send;
}

/// A sink that is told, event by event, in the words of outsiders.
#[derive(Debug)]
pub struct Told<K>(Arc<K>);

impl<K: Sink> Told<K> {
    pub fn new(sink: K) -> Told<K> {
        Told(Arc::new(sink))
    }
}

impl<K: Sink> Carry for Told<K> {
    async fn carry<S: Store>(self: Arc<Self>, errand: Errand<S>) {
        let Errand { store, room, name, names, filter, pace, figures } = errand;
        let sink = self.0.clone();
        Relay { store, room, name, sink, names, filter, pace, figures }.run().await;
    }

    /// It is told everything from there on again; that is all.
    async fn go_back(&self, _: &RoomName, _: Head) -> Result<(), Trouble> {
        Ok(())
    }
}
