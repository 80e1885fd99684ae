//! Thousands of requests that nobody thought of: the corpus with bytes put in, taken out and
//! exchanged, from one seed. Nobody says here what becomes of each; only what never happens.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use crate::boundaries::{compose, saw};
use crate::corpus::{self, Case, Then};
use crate::house::House;
use crate::instance::soon;
use crate::node::{Kind, Site};
use crate::wire::talk;

const REQUESTS: usize = 1_500;
const SEED: u64 = 0x5EED;
/// Most are answered at once. Those that are not, wait for the rest of a body.
const WITHIN: Duration = Duration::from_millis(400);
const THREADS: usize = 8;

/// What parsers stumble over.
const PIECES: [&str; 24] = [
    "\r",
    "\n",
    "\r\n",
    "\r\n\r\n",
    "\0",
    " ",
    "\t",
    ":",
    ";",
    ",",
    "\x0b",
    "\u{85}",
    "0",
    "1",
    "-",
    "+",
    "\"",
    "chunked",
    "Content-Length: 1\r\n",
    "Content-Length: 0\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: x\r\n",
    "\r\n ",
    "0\r\n\r\n",
];

/// SplitMix64: a few lines, and the same requests on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}

fn mutated(template: &str, dice: &mut Dice) -> String {
    let mut letters: Vec<char> = template.chars().take(2_000).collect();
    for _ in 0..=dice.below(3) {
        let at = dice.below(letters.len() + 1);
        let piece = PIECES[dice.below(PIECES.len())].chars();
        match dice.below(3) {
            0 => drop(letters.splice(at..at, piece)),
            1 => drop(letters.splice(at.min(letters.len() - 1)..=at.min(letters.len() - 1), piece)),
            _ => drop(letters.splice(at.min(letters.len() - 1)..=at.min(letters.len() - 1), None)),
        }
        if letters.is_empty() {
            break;
        }
    }
    letters.into_iter().collect()
}

#[test]
fn whatever_is_sent_the_origin_hears_of_nothing_that_was_hidden() {
    let site = Site::start(Kind::Node);
    let house = House::protect(&site.part.url(), &[]);
    let (pass, address) = (house.visitor(), house.address());
    let corpus = corpus::all();
    let mut dice = Dice(SEED);
    let cases: Vec<Case> = (0..REQUESTS)
        .map(|_| {
            let template = mutated(&corpus[dice.below(corpus.len())].template, &mut dice);
            Case { name: String::new(), template, then: Then::Broken }
        })
        .collect();
    let (next, answered) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Relaxed);
                    let Some(case) = cases.get(at) else { return };
                    let sent = compose(case, at, address, &pass);
                    let spoken = talk(address, &sent.bytes, WITHIN, |_| false);
                    answered.fetch_add(saw(&spoken).len(), Relaxed);
                    let victim = format!(
                        "GET /victim HTTP/1.1\r\nHost: {address}\r\nX-Case: v{at}\r\n{pass}\r\nConnection: close\r\n\r\n"
                    );
                    let spoken = talk(address, victim.as_bytes(), Duration::from_secs(20), |_| false);
                    let got = saw(&spoken);
                    let own = got.len() == 1 && got[0].0 == format!("v{at}");
                    assert!(own, "after {:?}: the victim got {got:?}", case.template);
                }
            });
        }
    });
    let wanted = answered.load(Relaxed) + REQUESTS;
    // A request that took longer than its sender waited may have been seen and not answered.
    let seen = soon("the log is whole", || Some(site.seen()).filter(|seen| seen.len() >= wanted));
    let hidden = seen.iter().find(|it| it.url.contains("smuggled"));
    assert!(hidden.is_none(), "{hidden:?}");
    assert!(answered.load(Relaxed) > REQUESTS / 10, "hardly anything got through: no test at all");
}
