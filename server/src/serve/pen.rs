//! The right to write to the `_system` log, as a value: whoever lets go of it, lets go of the right.
//!
//! Where several instances write, each must give the lease back when it is done. There are many
//! ways to be done (refused, failed, or a client that hung up in the middle), and one of them that
//! forgot would keep every other instance waiting, and this one believing that what it read is
//! still true. So the value gives it back when it is dropped.

use std::ops::{Deref, DerefMut};

use tokio::sync::MutexGuard;
use waitroom_store::Store;
use waitroom_store::system::System;

#[derive(Debug)]
pub struct Pen<'a, S: Store + Clone> {
    system: MutexGuard<'a, System<S>>,
    store: S,
}

impl<'a, S: Store + Clone> Pen<'a, S> {
    /// Of a log that is taken up, or will be with this value in hand.
    pub fn of(system: MutexGuard<'a, System<S>>, store: &S) -> Pen<'a, S> {
        Pen { system, store: store.clone() }
    }
}

impl<S: Store + Clone> Deref for Pen<'_, S> {
    type Target = System<S>;

    fn deref(&self) -> &System<S> {
        &self.system
    }
}

impl<S: Store + Clone> DerefMut for Pen<'_, S> {
    fn deref_mut(&mut self) -> &mut System<S> {
        &mut self.system
    }
}

impl<S: Store + Clone> Drop for Pen<'_, S> {
    fn drop(&mut self) {
        // Whoever put it down in order has waited for it, and there is nothing left to give back.
        let Some(lease) = self.system.let_go() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let store = self.store.clone();
        runtime.spawn(async move {
            // Otherwise it runs out by itself.
            let _ = store.release(&lease).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use waitroom_api::Code;
    use waitroom_api::admin::office::Office;
    use waitroom_api::caller::Role;
    use waitroom_cluster::{Cluster, Identity};
    use waitroom_engine::{Config, Engine};
    use waitroom_store::seal::MasterKey;
    use waitroom_store::{LeaseName, MemoryStore, RoomName, Seams, Store};

    use super::*;
    use crate::serve::installation::House;

    const MASTER: [u8; 32] = [7; 32];

    async fn house(store: &MemoryStore, seams: &Seams, instance: &str) -> House<MemoryStore> {
        let master = MasterKey::from_bytes(MASTER);
        let system = System::open(store.clone(), master.clone(), seams.clone(), instance).await;
        let mut system = system.expect("readable");
        system.share();
        let identity = Identity {
            instance: instance.to_owned(),
            address: String::new(),
            release: String::new(),
            secret: MASTER,
            certificates: None,
        };
        let cluster = Cluster::new(identity, seams.clock.clone());
        let config = Config::new(instance, Arc::new(master.clone()));
        let engine = Engine::new(Arc::new(store.clone()), seams.clone(), config);
        House::new(engine, system, store.clone(), seams, master, instance, Some(cluster))
    }

    /// Waits until nobody holds the pen. It is given back in the background, at once; by itself it
    /// would be free after two seconds of a clock that stands still here.
    async fn free(store: &MemoryStore) {
        let name = LeaseName::room(&RoomName::system());
        let given_back = async {
            while store.holder_of(&name).await.expect("readable").is_some() {
                tokio::task::yield_now().await;
            }
        };
        let given_back = tokio::time::timeout(std::time::Duration::from_secs(10), given_back);
        given_back.await.expect("the pen is put down");
    }

    #[tokio::test]
    async fn whoever_is_refused_or_gives_up_has_put_the_pen_down() {
        let seams = Seams::seeded(waitroom_store::ManualClock::at(1_000), 1);
        let store = MemoryStore::new(seams.clone());
        let (one, two) = (house(&store, &seams, "one").await, house(&store, &seams, "two").await);
        one.ensure_key("owner", "secret", Role::Owner).await.expect("written");
        // Refused by us, after the pen was taken up.
        let refused = one.revoke_key("test", "owner").await.expect_err("it is the last one");
        assert_eq!(refused.code, Code::LastOwner);
        free(&store).await;
        let unknown = one.rotate_key("test", "nobody", 0).await.expect_err("there is none");
        assert_eq!(unknown.code, Code::ApiKeyUnknown);
        free(&store).await;
        // Whoever asked has hung up: the act is dropped where it waits.
        drop(one.pen().await.expect("free"));
        free(&store).await;
        // So another can write, and the first one then sees it: it does not go by what it read.
        two.secret("made/once").await.expect("written");
        let theirs = two.secret("made/once").await.expect("readable");
        assert_eq!(one.secret("made/once").await.expect("readable"), theirs);
        free(&store).await;
    }
}
