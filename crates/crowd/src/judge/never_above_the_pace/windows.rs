//! All windows at once: which one holds more than the pace allows?
//!
//! A window [a, b] holds the stretches that lie in it whole. For every b, ascending, a tree over
//! all beginnings a keeps `held × one + rate × a`; a stretch that ends by b counts for every a
//! before its beginning. The greatest of these minus `rate × b` is the fullest window that ends
//! at b: n log n, where trying all windows would take n².

/// When something happened, at the earliest and at the latest, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stretch {
    pub from: u64,
    pub to: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub from: u64,
    pub to: u64,
    pub admitted: u64,
}

/// The first window, by its end, with `held × one > allowed + per_ns × length`.
pub(super) fn fullest(
    mut stretches: Vec<Stretch>,
    one: u128,
    per_ns: u128,
    allowed: u128,
) -> Option<Window> {
    stretches.sort_unstable_by_key(|it| (it.to, it.from));
    let mut begins: Vec<u64> = stretches.iter().map(|it| it.from).collect();
    begins.sort_unstable();
    begins.dedup();
    let mut tree = Tree::new(&begins, per_ns);
    for (count, stretch) in (1..).zip(&stretches) {
        let place = begins.partition_point(|begin| *begin <= stretch.from);
        tree.add_before(place, one as i128);
        // Beginnings behind the end make no window.
        let reach = begins.partition_point(|begin| *begin <= stretch.to);
        let (most, at) = tree.most_before(reach);
        if most - (per_ns * u128::from(stretch.to)) as i128 > allowed as i128 {
            let from = begins[at];
            let held = stretches[..count].iter().filter(|it| it.from >= from).count();
            return Some(Window { from, to: stretch.to, admitted: held as u64 });
        }
    }
    None
}

/// Adds to a prefix, asks for the greatest of a prefix.
struct Tree {
    /// Leaves from `width` on; an inner node is the greater of its two plus what was added here.
    most: Vec<i128>,
    added: Vec<i128>,
    width: usize,
}

impl Tree {
    fn new(begins: &[u64], per_ns: u128) -> Tree {
        let width = begins.len().next_power_of_two();
        let mut most = vec![i128::MIN / 2; 2 * width];
        for (leaf, begin) in begins.iter().enumerate() {
            most[width + leaf] = (per_ns * u128::from(*begin)) as i128;
        }
        for node in (1..width).rev() {
            most[node] = most[2 * node].max(most[2 * node + 1]);
        }
        Tree { most, added: vec![0; 2 * width], width }
    }

    fn add_before(&mut self, end: usize, by: i128) {
        self.add(1, 0, self.width, end, by);
    }

    fn add(&mut self, node: usize, from: usize, to: usize, end: usize, by: i128) {
        if from >= end {
            return;
        }
        if to <= end {
            self.most[node] += by;
            self.added[node] += by;
            return;
        }
        let middle = (from + to) / 2;
        self.add(2 * node, from, middle, end, by);
        self.add(2 * node + 1, middle, to, end, by);
        self.most[node] = self.most[2 * node].max(self.most[2 * node + 1]) + self.added[node];
    }

    /// The greatest value before `end`, and which leaf has it.
    fn most_before(&self, end: usize) -> (i128, usize) {
        self.ask(1, 0, self.width, end)
    }

    fn ask(&self, node: usize, from: usize, to: usize, end: usize) -> (i128, usize) {
        if from >= end {
            return (i128::MIN / 2, from);
        }
        if to - from == 1 {
            return (self.most[node], from);
        }
        let middle = (from + to) / 2;
        let left = self.ask(2 * node, from, middle, end);
        // A whole half that cannot be greater need not be looked through.
        let right = if end > middle && self.most[2 * node + 1] > left.0 {
            self.ask(2 * node + 1, middle, to, end)
        } else {
            (i128::MIN / 2, middle)
        };
        let (most, at) = if right.0 > left.0 { right } else { left };
        (most + self.added[node], at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn by_trying_all(stretches: &[Stretch], one: u128, per_ns: u128, allowed: u128) -> bool {
        stretches.iter().any(|first| {
            stretches.iter().filter(|last| last.to >= first.from).any(|last| {
                let inside = |it: &&Stretch| it.from >= first.from && it.to <= last.to;
                let held = stretches.iter().filter(inside).count() as u128;
                held * one > allowed + per_ns * u128::from(last.to - first.from)
            })
        })
    }

    proptest! {
        #[test]
        fn it_finds_what_trying_all_windows_finds(
            ends in prop::collection::vec((0u64..60, 0u64..20), 1..40),
            one in 1u128..30,
            per_ns in 0u128..5,
            allowed in 0u128..120,
        ) {
            let stretches: Vec<Stretch> =
                ends.iter().map(|(from, length)| Stretch { from: *from, to: from + length }).collect();
            let expected = by_trying_all(&stretches, one, per_ns, allowed);
            let found = fullest(stretches.clone(), one, per_ns, allowed);
            prop_assert_eq!(found.is_some(), expected);
            if let Some(window) = found {
                let held = u128::from(window.admitted) * one;
                prop_assert!(held > allowed + per_ns * u128::from(window.to - window.from));
            }
        }
    }
}
