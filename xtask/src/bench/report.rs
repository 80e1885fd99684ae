//! Figures, alone or beside a peer, and their two forms: a table and JSON.
//!
//! The JSON has the shape that scripts rely on: `name`, `commit`, `machine`, `figures`, each
//! figure with `name`, `value`, `unit` and, where a peer was measured in the same run,
//! `beside` and `ratio`. A ratio is always "how many times better we are": larger is better.
//! What was expected of a figure stands in the table only: the file reports, its reader judges.

use crate::commit::commit;
use crate::machine::Machine;
use crate::table::{Lean, render};
use serde::{Deserialize, Serialize};

use super::Scale;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    name: String,
    commit: String,
    machine: Machine,
    /// Quick figures must not be mistaken for the real ones, whoever reads the file.
    quick: bool,
    figures: Vec<Figure>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    #[serde(flatten)]
    ours: Measure,
    #[serde(skip_serializing_if = "Option::is_none")]
    beside: Option<Measure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
    #[serde(skip)]
    expected: Option<Expected>,
}

/// What a figure should reach on two cores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Expected {
    AtMost(f64),
    AtLeast(f64),
    /// So many times better than the peer.
    RatioAtLeast(f64),
}

/// A number, what it is called and what it counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    pub name: String,
    pub value: f64,
    pub unit: String,
}

/// Which way a unit is better: bytes and times fall, rates rise.
///
/// Only a benchmark with a peer of its own unit needs it, so it lives with [`Figure::beside`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    Lower,
    Higher,
}

impl Measure {
    pub fn new(name: &str, value: f64, unit: &str) -> Self {
        Self { name: name.into(), value, unit: unit.into() }
    }
}

impl Figure {
    /// A figure that nothing is held against.
    pub fn alone(name: &str, value: f64, unit: &str) -> Self {
        Self::of(Measure::new(name, value, unit))
    }

    /// The same, of a measure that exists already.
    pub fn of(ours: Measure) -> Self {
        Self { ours, beside: None, ratio: None, expected: None }
    }

    /// A figure beside the peer's, measured in the same run, in the same unit.
    pub fn beside(ours: Measure, peer: Measure, better: Better) -> Self {
        assert_eq!(ours.unit, peer.unit, "{} and {} count different things", ours.name, peer.name);
        let ratio = match better {
            Better::Higher => ours.value / peer.value,
            Better::Lower => peer.value / ours.value,
        };
        // Nothing divided by nothing is not a ratio, and JSON has no word for it.
        let ratio = ratio.is_finite().then_some(ratio);
        Self { ours, beside: Some(peer), ratio, expected: None }
    }

    pub fn expect(mut self, expected: Expected) -> Self {
        self.expected = Some(expected);
        self
    }

    /// Whether the figure is what was expected of it; none when nothing was.
    pub fn met(&self) -> Option<bool> {
        Some(match self.expected? {
            Expected::AtMost(most) => self.ours.value <= most,
            Expected::AtLeast(least) => self.ours.value >= least,
            Expected::RatioAtLeast(least) => self.ratio.is_some_and(|ratio| ratio >= least),
        })
    }
}

impl Report {
    pub fn new(name: &str, scale: Scale, figures: Vec<Figure>) -> Self {
        Self {
            name: name.into(),
            commit: commit(),
            machine: Machine::this(),
            quick: scale == Scale::Quick,
            figures,
        }
    }

    /// The names of figures that are not what was expected of them.
    pub fn missed(&self) -> Vec<&str> {
        let missed = self.figures.iter().filter(|figure| figure.met() == Some(false));
        missed.map(|figure| figure.ours.name.as_str()).collect()
    }

    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain fields make plain JSON") + "\n"
    }

    pub fn table(&self) -> String {
        let quick = if self.quick { " (quick: smaller sizes)" } else { "" };
        let head = format!(
            "bench {}{quick}\ncommit   {}\nmachine  {}\n\n",
            self.name,
            self.commit,
            self.machine.line()
        );
        let mut rows = vec![vec!["figure".to_owned(), "value".into(), "unit".into()]];
        let judged = self.figures.iter().any(|figure| figure.expected.is_some());
        if judged {
            rows[0].extend(["expected", ""].map(str::to_owned));
        }
        if self.figures.iter().any(|figure| figure.beside.is_some()) {
            rows[0].extend(["beside", "value", "ratio"].map(str::to_owned));
        }
        rows.extend(self.figures.iter().map(|figure| figure.row(judged)));
        let mut leans = vec![Lean::Left, Lean::Right, Lean::Left];
        if judged {
            leans.extend([Lean::Left; 2]);
        }
        leans.extend([Lean::Left, Lean::Right, Lean::Right]);
        head + &render(&leans, &rows)
    }
}

impl Figure {
    fn row(&self, judged: bool) -> Vec<String> {
        let mut row = vec![self.ours.name.clone(), number(self.ours.value), self.ours.unit.clone()];
        if judged {
            let word = self.met().map_or("", |met| if met { "ok" } else { "MISSED" });
            row.extend([self.expected.map_or(String::new(), Expected::text), word.into()]);
        }
        if let Some(peer) = &self.beside {
            row.extend([peer.name.clone(), number(peer.value)]);
            row.push(self.ratio.map_or("?".into(), |ratio| format!("{}x", number(ratio))));
        }
        row
    }
}

impl Expected {
    fn text(self) -> String {
        match self {
            Self::AtMost(most) => format!("<= {}", number(most)),
            Self::AtLeast(least) => format!(">= {}", number(least)),
            Self::RatioAtLeast(least) => format!(">= {}x", number(least)),
        }
    }
}

/// Three significant digits at least, thousands apart: `1,234,567`, `12.3`, `0.0123`.
fn number(value: f64) -> String {
    if !value.is_finite() {
        return "?".into();
    }
    let size = value.abs();
    let decimals = match size {
        s if s >= 100.0 || s == 0.0 => 0,
        s if s >= 10.0 => 1,
        s if s >= 1.0 => 2,
        s => (2.0 - s.log10().floor()).min(9.0) as usize,
    };
    let text = format!("{size:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if value < 0.0 { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{grouped}{point}{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let beside = Figure::beside(
            Measure::new("bytes", 20.0, "bytes"),
            Measure::new("classic", 400.0, "bytes"),
            Better::Lower,
        );
        Report {
            name: "queue".into(),
            commit: "abc".into(),
            machine: Machine { cpu: "x".into(), cores: 2, memory_bytes: 1, kernel: "k".into() },
            quick: false,
            figures: vec![Figure::alone("join_ns_20m", 25.0, "ns"), beside],
        }
    }

    #[test]
    fn the_json_has_the_shape_that_scripts_rely_on() {
        let json: serde_json::Value = serde_json::from_str(&report().json()).expect("it is JSON");
        assert_eq!(
            json["figures"],
            serde_json::json!([
                {"name": "join_ns_20m", "value": 25.0, "unit": "ns"},
                {"name": "bytes", "value": 20.0, "unit": "bytes",
                 "beside": {"name": "classic", "value": 400.0, "unit": "bytes"}, "ratio": 20.0},
            ])
        );
        assert_eq!(json["name"], "queue");
        assert_eq!(json["commit"], "abc");
        assert_eq!(json["machine"]["cores"], 2);
    }

    #[test]
    fn what_was_expected_is_judged_in_the_table_and_only_there() {
        let mut report = report();
        report.figures[0] = Figure::alone("join_ns_20m", 25.0, "ns").expect(Expected::AtMost(24.0));
        let figure = report.figures.remove(1).expect(Expected::RatioAtLeast(20.0));
        report.figures.push(figure);
        report.figures.push(Figure::alone("rate", 9.0, "1/s").expect(Expected::AtLeast(9.0)));
        let table = report.table();
        let line = |name: &str| table.lines().find(|line| line.starts_with(name)).expect(name);
        assert!(line("join_ns_20m").ends_with("<= 24.0   MISSED"), "{table}");
        assert!(line("bytes").contains(">= 20.0x  ok"), "{table}");
        assert!(line("rate").ends_with(">= 9.00   ok"), "{table}");
        assert!(!report.json().contains("expected"));
        assert_eq!(report.missed(), ["join_ns_20m"]);
    }

    #[test]
    fn a_larger_ratio_is_always_the_better_one() {
        let ratio = |better| {
            let ours = Measure::new("a", 10.0, "u");
            Figure::beside(ours, Measure::new("b", 2.0, "u"), better).ratio
        };
        assert_eq!(ratio(Better::Higher), Some(5.0));
        assert_eq!(ratio(Better::Lower), Some(0.2));
    }

    #[test]
    fn a_peer_that_measured_nothing_has_no_ratio() {
        let none = Measure::new("b", 0.0, "u");
        let figure = Figure::beside(Measure::new("a", 1.0, "u"), none, Better::Higher);
        assert_eq!(figure.ratio, None);
    }

    #[test]
    fn numbers_keep_three_digits_and_part_their_thousands() {
        for (value, text) in [
            (1_234_567.8, "1,234,568"),
            (999.0, "999"),
            (12.34, "12.3"),
            (1.239, "1.24"),
            (0.012_34, "0.0123"),
            (0.0, "0"),
            (-1500.0, "-1,500"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
