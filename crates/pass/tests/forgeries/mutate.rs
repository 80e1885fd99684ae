//! Texts that are almost right.

/// A small generator (xorshift64*), so that every run makes the same texts.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Dice(seed.wrapping_mul(2) + 1)
    }

    pub fn roll(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.roll() >> 11) as usize % bound.max(1)
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.roll() as u8).collect()
    }
}

const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const STRANGE: &[u8] = b"=+/. \n\t\0%~\"\\{}\x7f";

/// `good` with something about it changed. `other` is another good text, to be mixed in. Never
/// `good` itself.
pub fn altered(good: &str, other: &str, dice: &mut Dice) -> String {
    loop {
        let mut text = good.as_bytes().to_vec();
        for _ in 0..=dice.below(3) {
            change(&mut text, other.as_bytes(), dice);
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        if text != good && text != other {
            return text;
        }
    }
}

fn change(text: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    if text.is_empty() {
        text.push(b'A');
        return;
    }
    let at = dice.below(text.len());
    match dice.below(16) {
        // The likely ones: one letter becomes another, or one bit of it does.
        0..=5 => text[at] = LETTERS[dice.below(LETTERS.len())],
        6..=8 => text[at] ^= 1 << dice.below(7),
        9 => text[at] = STRANGE[dice.below(STRANGE.len())],
        10 => text.truncate(at),
        11 => text.insert(at, LETTERS[dice.below(LETTERS.len())]),
        12 => {
            text.remove(at);
        }
        13 => {
            let with = dice.below(text.len());
            text.swap(at, with);
        }
        14 => {
            // The end of another token after the beginning of this one.
            let from = at.min(other.len());
            text.truncate(at);
            text.extend_from_slice(&other[from..]);
        }
        _ => {
            let tail = text[at..].to_vec();
            text.extend_from_slice(&tail);
        }
    }
}
