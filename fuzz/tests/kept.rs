//! The kept corpus, and some seconds of changes to it, on any toolchain.
//!
//! `WAITROOM_FUZZ_SECONDS` sets how long each target is tried (CI: 2). The seed is printed, so a
//! find can be repeated.

use std::path::Path;
use std::time::{Duration, Instant};

/// A small, well-mixed generator: the changes must be repeatable, not unpredictable.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        it ^ (it >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

fn change(chance: &mut Chance, bytes: &mut Vec<u8>, others: &[Vec<u8>]) {
    for _ in 0..=chance.below(4) {
        let at = chance.below(bytes.len());
        match chance.below(6) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << chance.below(8),
            1 if !bytes.is_empty() => bytes[at] = chance.next() as u8,
            2 if !bytes.is_empty() => {
                bytes.remove(at);
            }
            3 => bytes.insert(at.min(bytes.len()), chance.next() as u8),
            4 => bytes.truncate(at),
            _ => {
                let other = &others[chance.below(others.len())];
                let from = chance.below(other.len());
                bytes.extend(&other[from..]);
                bytes.truncate(8 * 1024);
            }
        }
    }
}

#[test]
fn no_target_falls_over_the_kept_corpus_or_changes_to_it() {
    let seconds = std::env::var("WAITROOM_FUZZ_SECONDS").ok().and_then(|it| it.parse().ok());
    let span = Duration::from_secs(seconds.unwrap_or(2));
    for (name, target) in waitroom_fuzz::TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
        let files = std::fs::read_dir(&folder).expect("every target has a corpus");
        let mut kept: Vec<Vec<u8>> =
            files.map(|file| std::fs::read(file.expect("a file").path()).expect("bytes")).collect();
        assert!(!kept.is_empty(), "the corpus of {name} is empty");
        kept.sort();
        kept.iter().for_each(|bytes| target(bytes));
        let (mut chance, mut tried) = (Chance(0x5EED), 0u64);
        let until = Instant::now() + span;
        while Instant::now() < until {
            for _ in 0..64 {
                let mut bytes = kept[chance.below(kept.len())].clone();
                change(&mut chance, &mut bytes, &kept);
                target(&bytes);
                tried += 1;
            }
        }
        println!("{name}: {} kept, {tried} changed, none fell over (seed 0x5EED)", kept.len());
    }
}
