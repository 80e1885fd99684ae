//! The model keeps the contract.

use std::sync::Arc;

use waitroom_store::{ManualClock, MemoryStore, Seams, contract_tests::Fixture, store_contract};

struct Memory {
    clock: Arc<ManualClock>,
    store: MemoryStore,
}

impl Memory {
    fn fresh() -> Memory {
        let clock = ManualClock::at(1_000_000);
        Memory { store: MemoryStore::new(Seams::seeded(clock.clone(), 1)), clock }
    }
}

impl Fixture for Memory {
    type Store = MemoryStore;

    fn store(&self) -> MemoryStore {
        self.store.clone()
    }

    fn advance(&self, ms: u64) {
        self.clock.advance(ms);
    }

    /// The model outlives its handles, so opening again is just another handle.
    fn reopen(&mut self) {}
}

store_contract!(memory, Memory::fresh());
