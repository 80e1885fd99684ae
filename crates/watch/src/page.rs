//! The text that Prometheus reads: exposition format 0.0.4.

use std::fmt::{Display, Write as _};

use crate::count::Picture;

/// One name, what it means, and which labels its series have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    pub name: &'static str,
    pub kind: Kind,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// A page in the making: families one after the other, each with all its series.
#[derive(Debug, Default)]
pub struct Page {
    text: String,
}

impl Page {
    /// The content type of a finished page.
    pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

    /// Begins a family and lets `series` write what belongs to it.
    pub fn family(&mut self, family: &'static Family, series: impl FnOnce(&mut Series<'_>)) {
        let Family { name, kind, help, .. } = family;
        let kind = kind.word();
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        series(&mut Series { text: &mut self.text, family });
    }

    /// A family of one series without labels.
    pub fn alone(&mut self, family: &'static Family, value: impl Display) {
        self.family(family, |series| series.value(&[], value));
    }

    pub fn into_text(self) -> String {
        self.text
    }
}

/// The series of one family.
#[derive(Debug)]
pub struct Series<'a> {
    text: &'a mut String,
    family: &'static Family,
}

impl Series<'_> {
    /// One series; `labels` are the values of the family's labels, in their order.
    pub fn value(&mut self, labels: &[&str], value: impl Display) {
        self.line("", labels, None, value);
    }

    pub fn histogram(&mut self, labels: &[&str], picture: &Picture) {
        let per_unit = picture.scale.per_unit as f64;
        let mut below = 0;
        for (at, count) in picture.buckets.iter().enumerate() {
            below += count;
            let bound = match picture.scale.bounds.get(at) {
                Some(bound) => (*bound as f64 / per_unit).to_string(),
                None => "+Inf".to_owned(),
            };
            self.line("_bucket", labels, Some(&bound), below);
        }
        self.line("_sum", labels, None, picture.sum as f64 / per_unit);
        self.line("_count", labels, None, below);
    }

    fn line(&mut self, end: &str, labels: &[&str], bound: Option<&str>, value: impl Display) {
        debug_assert_eq!(labels.len(), self.family.labels.len(), "{}", self.family.name);
        let _ = write!(self.text, "{}{end}", self.family.name);
        let named = self.family.labels.iter().copied().zip(labels.iter().copied());
        let mut first = true;
        for (name, value) in named.chain(bound.map(|bound| ("le", bound))) {
            self.text.push(if first { '{' } else { ',' });
            first = false;
            let _ = write!(self.text, "{name}=\"");
            escape(self.text, value);
            self.text.push('"');
        }
        if !first {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}

fn escape(text: &mut String, value: &str) {
    for character in value.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::{Histogram, Scale};

    const ROOMS: Family =
        Family { name: "rooms", kind: Kind::Gauge, labels: &["room"], help: "Rooms." };
    const ALONE: Family =
        Family { name: "people_total", kind: Kind::Counter, labels: &[], help: "People." };
    const WAITS: Family = Family {
        name: "wait_seconds",
        kind: Kind::Histogram,
        labels: &["room"],
        help: "How long people waited.",
    };
    const SCALE: Scale = Scale { bounds: &[500, 2_000], per_unit: 1_000 };

    #[test]
    fn a_page_is_what_prometheus_reads() {
        let mut page = Page::default();
        page.alone(&ALONE, 7);
        page.family(&ROOMS, |series| {
            series.value(&["spring"], 1);
            series.value(&["a\"b\\c\nd"], 0.5);
        });
        let waits = Histogram::new(&SCALE);
        [100, 600, 700, 9_000].into_iter().for_each(|value| waits.note(value));
        page.family(&WAITS, |series| series.histogram(&["spring"], &waits.now()));
        let expected = r##"# HELP people_total People.
# TYPE people_total counter
people_total 7
# HELP rooms Rooms.
# TYPE rooms gauge
rooms{room="spring"} 1
rooms{room="a\"b\\c\nd"} 0.5
# HELP wait_seconds How long people waited.
# TYPE wait_seconds histogram
wait_seconds_bucket{room="spring",le="0.5"} 1
wait_seconds_bucket{room="spring",le="2"} 3
wait_seconds_bucket{room="spring",le="+Inf"} 4
wait_seconds_sum{room="spring"} 10.4
wait_seconds_count{room="spring"} 4
"##;
        assert_eq!(page.into_text(), expected);
    }
}
