//! How readily people give up, by how long they have waited already.
//!
//! Lives here: departures and time waited per class of age, and the cumulative hazard made of
//! them. Stays out: who left, and why.
//! People do not give up at a constant pace: some leave at the first sight of a line, those who
//! have waited long tend to stay. Seen over one crowd of equal age, that looks like a pace that
//! falls with time; so the hazard is kept by age, and beyond the greatest age seen its trend
//! (a power of the age) is drawn on.

use std::sync::LazyLock;

/// Four classes per doubling of age, from one second to 18 hours.
const CLASSES: usize = 64;
const PER_OCTAVE: f64 = 4.0;
const FIRST_MS: f64 = 1_000.0;

/// What was seen this long ago counts half. Visitors of one sale behave alike over its hours, but
/// news ("sold out in size M") changes their minds within minutes.
const HALF_LIFE_MS: f64 = 20.0 * 60_000.0;

/// Fewer departures than this in a class say too little; neighbours are asked as well.
const DEPARTURES_MIN: f64 = 30.0;

/// So much time counts for the age at its end.
const AT_ONCE_MS: u64 = 2_000;

/// What is believed about ages nobody has reached yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Belief {
    /// How steep the trend of the hazard may be, as a power of the age.
    pub trend_max: f64,
    /// How far that power may be wrong.
    pub trend_doubt: f64,
    /// The mean time until it happens that is assumed, leaning to a faster line and evenly.
    pub faster_ms: f64,
    pub even_ms: f64,
    /// How steeply the hazard can rise from what was last seen, as a power of the age; none when
    /// it must come in the end, whatever was seen.
    pub rise_max: Option<f64>,
}

/// Which way to err where nothing was seen yet: towards a line that moves faster or slower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lean {
    Faster,
    Even,
    Slower,
}

impl Lean {
    fn sign(self) -> f64 {
        match self {
            Lean::Faster => 1.0,
            Lean::Even => 0.0,
            Lean::Slower => -1.0,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Ageing {
    belief: Belief,
    departures: [f64; CLASSES],
    /// Milliseconds waited by all people together while in the class.
    exposure: [f64; CLASSES],
}

impl Ageing {
    pub fn new(belief: Belief) -> Self {
        Ageing { belief, departures: [0.0; CLASSES], exposure: [0.0; CLASSES] }
    }

    pub fn departed(&mut self, age_ms: u64) {
        self.departures[class(age_ms as f64)] += 1.0;
    }

    /// `people` who are of this age now have been waiting for another `passed_ms`.
    pub fn exposed(&mut self, age_ms: u64, people: u64, passed_ms: u64) {
        let people = people as f64;
        if passed_ms <= AT_ONCE_MS {
            self.exposure[class(age_ms as f64)] += people * passed_ms as f64;
            return;
        }
        // Nobody looked for a while, and they have grown through several classes since.
        let to = age_ms as f64;
        let from = age_ms.saturating_sub(passed_ms) as f64;
        for c in class(from)..=class(to) {
            let begins = if c == class(from) { from } else { edge(c) };
            let ends = if c == class(to) { to } else { edge(c + 1) };
            self.exposure[c] += people * (ends - begins).max(0.0);
        }
    }

    pub fn decay(&mut self, passed_ms: u64) {
        let keep = (-(passed_ms as f64) / HALF_LIFE_MS * std::f64::consts::LN_2).exp();
        for value in self.departures.iter_mut().chain(&mut self.exposure) {
            *value *= keep;
        }
    }

    /// The cumulative hazard over age.
    pub fn curve(&self, lean: Lean) -> Hazard {
        let oldest = self.exposure.iter().rposition(|&e| e > 0.0);
        // With nothing seen, belief starts at the first class.
        let oldest = oldest.unwrap_or(0);
        let doubt = lean.sign() / (self.departures.iter().sum::<f64>() + 1.0).sqrt();
        let mut hazard = [0.0; CLASSES];
        for (c, value) in hazard.iter_mut().enumerate().take(oldest + 1) {
            *value = self.pooled(c, oldest) * doubt.exp();
        }
        let trend = self.trend(oldest);
        let believed = match lean {
            Lean::Faster => 1.0 / self.belief.faster_ms,
            Lean::Even => 1.0 / self.belief.even_ms,
            Lean::Slower => 0.0,
        };
        let last = self.at_most(oldest);
        for c in oldest + 1..CLASSES {
            let octaves = (c - oldest) as f64 / PER_OCTAVE;
            // The trend fades by half with every doubling: no hazard grows or falls for ever.
            let fading = (1.0 - (-octaves).exp2()) / std::f64::consts::LN_2;
            // Evenly, half of it is believed; leaning, all of it or none, whichever leans that way.
            let trend = match lean {
                Lean::Faster => trend.max(0.0),
                Lean::Even => trend * 0.5,
                Lean::Slower => trend.min(0.0),
            };
            let power = trend * fading + lean.sign() * self.belief.trend_doubt * octaves;
            let trended = hazard[oldest] * power.exp2();
            let believed = match self.belief.rise_max {
                Some(rise_max) => believed.min(last * (octaves * rise_max).exp2()),
                None => believed * (1.0 - (-octaves).exp2()),
            };
            hazard[c] = trended.max(believed);
        }
        let mut cumulative = [0.0; CLASSES + 1];
        for c in 0..CLASSES {
            let from = if c == 0 { 0.0 } else { edge(c) };
            cumulative[c + 1] = cumulative[c] + hazard[c] * (edge(c + 1) - from);
        }
        Hazard { cumulative }
    }

    /// Departures over exposure around class `c`, reaching out until enough people left.
    fn pooled(&self, c: usize, oldest: usize) -> f64 {
        let (mut low, mut high) = (c, c);
        loop {
            let departures: f64 = self.departures[low..=high].iter().sum();
            let exposure: f64 = self.exposure[low..=high].iter().sum();
            if departures >= DEPARTURES_MIN || (low == 0 && high == oldest) {
                return if exposure > 0.0 { departures / exposure } else { 0.0 };
            }
            low = low.saturating_sub(1);
            high = (high + 1).min(oldest);
        }
    }

    /// What the hazard over the last doubling of age may have been at most.
    fn at_most(&self, oldest: usize) -> f64 {
        let last = oldest.saturating_sub(PER_OCTAVE as usize - 1)..=oldest;
        let departures: f64 = self.departures[last.clone()].iter().sum();
        let exposure: f64 = self.exposure[last].iter().sum();
        // With none seen, up to two might well have come; with nobody looked at, anything.
        (departures + 2.0) / exposure
    }

    /// The slope of log hazard over log age across the last doubling and a half, drawn towards
    /// zero when few departures support it.
    fn trend(&self, oldest: usize) -> f64 {
        let (mut sw, mut sx, mut sy, mut sxx, mut sxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for c in oldest.saturating_sub(6)..=oldest {
            let (departures, exposure) = (self.departures[c], self.exposure[c]);
            if departures < 1.0 || exposure <= 0.0 {
                continue;
            }
            let (x, y) = (middle(c).ln(), (departures / exposure).ln());
            sw += departures;
            sx += departures * x;
            sy += departures * y;
            sxx += departures * x * x;
            sxy += departures * x * y;
        }
        if sw < DEPARTURES_MIN {
            return 0.0;
        }
        let spread = sxx - sx * sx / sw;
        // A prior as strong as a hundred departures spread over one doubling says "no trend".
        let slope = (sxy - sx * sy / sw) / (spread + 12.0);
        slope.clamp(-1.0, self.belief.trend_max)
    }
}

/// The cumulative hazard of giving up over age, piecewise linear.
#[derive(Clone, Debug)]
pub(super) struct Hazard {
    cumulative: [f64; CLASSES + 1],
}

impl Hazard {
    /// The share of people aged `age_ms` who are still there after `more_ms`.
    pub fn survival(&self, age_ms: f64, more_ms: f64) -> f64 {
        (self.up_to(age_ms) - self.up_to(age_ms + more_ms)).exp()
    }

    fn up_to(&self, age_ms: f64) -> f64 {
        let c = class(age_ms);
        let from = if c == 0 { 0.0 } else { edge(c) };
        let share = ((age_ms - from) / (edge(c + 1) - from)).max(0.0);
        self.cumulative[c] + share * (self.cumulative[c + 1] - self.cumulative[c])
    }
}

fn class(age_ms: f64) -> usize {
    if age_ms < FIRST_MS {
        return 0;
    }
    // The cast saturates, and ages beyond the last class stay in it.
    (((age_ms / FIRST_MS).log2() * PER_OCTAVE) as usize).min(CLASSES - 1)
}

/// Where class `c` begins; class 0 begins at zero but is drawn from one second on.
fn edge(c: usize) -> f64 {
    static EDGES: LazyLock<[f64; CLASSES + 1]> =
        LazyLock::new(|| std::array::from_fn(|c| FIRST_MS * (c as f64 / PER_OCTAVE).exp2()));
    EDGES[c]
}

fn middle(c: usize) -> f64 {
    edge(c) * (0.5 / PER_OCTAVE).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BELIEF: Belief =
        Belief { trend_max: 1.0, trend_doubt: 0.0, faster_ms: 1e9, even_ms: 1e9, rise_max: None };

    fn near(value: f64, wanted: f64) {
        assert!((value - wanted).abs() <= wanted * 1e-9, "{value}, not {wanted}");
    }

    #[test]
    fn what_was_seen_a_half_life_ago_counts_half() {
        let mut ageing = Ageing::new(BELIEF);
        (0..8).for_each(|_| ageing.departed(60_000));
        ageing.exposed(60_000, 100, 1_000);
        let c = class(60_000.0);
        ageing.decay(HALF_LIFE_MS as u64);
        near(ageing.departures[c], 4.0);
        near(ageing.exposure[c], 50_000.0);
        ageing.decay(2 * HALF_LIFE_MS as u64);
        near(ageing.departures[c], 1.0);
    }

    #[test]
    fn time_that_nobody_looked_at_is_spread_over_the_ages_it_was_spent_at() {
        let mut ageing = Ageing::new(BELIEF);
        ageing.exposed(600_000, 10, 540_000);
        near(ageing.exposure.iter().sum(), 10.0 * 540_000.0);
        let (from, to) = (class(60_000.0), class(600_000.0));
        assert!(to - from > 4);
        for c in from + 1..to {
            near(ageing.exposure[c], 10.0 * (edge(c + 1) - edge(c)));
        }
        assert!(
            ageing.exposure[..from].iter().chain(&ageing.exposure[to + 1..]).all(|&e| e == 0.0)
        );
    }

    #[test]
    fn who_leaves_at_a_steady_pace_is_found_to_leave_at_that_pace() {
        let mut ageing = Ageing::new(BELIEF);
        // One in a hundred a second, at every age up to ten minutes.
        for second in 1..600_u64 {
            ageing.exposed(second * 1_000, 10_000, 1_000);
            (0..100).for_each(|_| ageing.departed(second * 1_000));
        }
        let curve = ageing.curve(Lean::Even);
        let stay = curve.survival(60_000.0, 100_000.0);
        assert!((stay - (-1.0_f64).exp()).abs() < 0.02, "{stay}");
    }
}
