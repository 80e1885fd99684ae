//! One million altered or forged tokens of every kind, and not one is accepted.
//!
//! Most fail before any signature is looked at, as most forgeries do; the counts below say how
//! many of each kind are made, and the tests say how many must have got as far as a signature.
//! Everything comes from a fixed seed, so a failure names a text that can be tried again.

mod jwts_of_ours;
mod mutate;
mod pass_attacks;
mod passes;
mod sealed_texts;

/// Of ticket tokens, live tickets and checked passes, each.
const SEALED_EACH: usize = 170_000;
/// Of adapter tokens by HMAC, and of join tokens by HMAC.
const HS256_EACH: usize = 60_000;
/// Of adapter and join tokens by RSA.
const RS256_EACH: usize = 5_000;
/// Of passes by each of the three algorithms: letters changed at random …
const PASS_MUTATIONS_EACH: usize = 100_000;
/// … good signatures moved to other words, and bad ones of good length …
const PASS_SIGNATURES_EACH: usize = 20_000;
/// … and rounds of every attack in the book.
const PASS_ATTACK_ROUNDS_EACH: usize = 100;
const PASS_ATTACKS_MIN: usize = 100;

const TOTAL: usize = 3 * SEALED_EACH
    + 2 * HS256_EACH
    + 2 * RS256_EACH
    + 3 * (PASS_MUTATIONS_EACH + PASS_SIGNATURES_EACH + PASS_ATTACK_ROUNDS_EACH * PASS_ATTACKS_MIN);
const _: () = assert!(TOTAL >= 1_000_000);

const NOW: u64 = 1_790_000_000;
const ROOM: &str = "sale";
