//! The same random requests to the model and to the file store must be answered alike, also when
//! the file store is closed, or loses power between two requests, and is opened again.

mod common;

use common::{
    Rng,
    requests::{Memory, ask, picture, remember, request},
};
use waitroom_store::{FileStore, ManualClock, MemoryStore, Seams, SimDisk, file::Options};

#[test]
fn the_file_store_answers_as_the_model_does() {
    let mut appended = 0;
    for seed in 0..150 {
        let mut rng = Rng(seed);
        let clock = ManualClock::at(1_000_000);
        let model = MemoryStore::new(Seams::seeded(clock.clone(), seed));
        let disk = SimDisk::new();
        let seams = Seams::seeded(clock.clone(), seed);
        let options = Options { segment_bytes: 1_000 + rng.below(4_000), ..Options::default() };
        let open =
            || FileStore::inline(disk.clone(), options.clone(), seams.clone()).expect("opens").0;
        let mut file = Some(open());
        let mut memory = Memory::default();
        for step in 0..400 {
            clock.advance(rng.below(100));
            let request = request(&mut rng, &model, &mut memory);
            let expected = ask(&model, request.clone());
            let found = ask(file.as_ref().expect("open"), request.clone());
            assert_eq!(found, expected, "seed {seed}, step {step}: {request:?}");
            remember(&model, &request, &expected, &mut memory);
            appended += u64::from(expected.starts_with("Ok(Appended"));
            if rng.below(60) == 0 {
                let before = picture(&model);
                assert_eq!(
                    picture(file.as_ref().expect("open")),
                    before,
                    "seed {seed}, step {step}"
                );
                // Leases run out before a reopening: afterwards the file store calls none held.
                clock.advance(501);
                if rng.below(2) == 0 {
                    disk.crash(rng.next());
                }
                drop(file.take());
                file = Some(open());
                assert_eq!(
                    picture(file.as_ref().expect("open")),
                    picture(&model),
                    "seed {seed}, step {step}"
                );
            }
        }
    }
    assert!(appended > 10_000, "{appended}");
}

#[test]
fn the_generator_is_the_same_for_the_same_seed() {
    let run = || {
        let model = MemoryStore::new(Seams::seeded(ManualClock::at(1), 5));
        let mut rng = Rng(5);
        let mut memory = Memory::default();
        (0..50).map(|_| format!("{:?}", request(&mut rng, &model, &mut memory))).collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}
