//! Reading a page of figures: names, labels, values. As much of the format as our own page uses,
//! and no more trust than any text from the network deserves: a line that is not one is left out.

use std::collections::BTreeMap;

type Labels = BTreeMap<String, String>;

#[derive(Clone, Debug, Default)]
pub struct Scrape {
    /// By name: labels and value of each series.
    series: BTreeMap<String, Vec<(Labels, f64)>>,
}

/// A histogram as it was told: bounds in base units, and how many were not above each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    pub below: Vec<(f64, f64)>,
    pub sum: f64,
}

impl Scrape {
    pub fn read(page: &str) -> Scrape {
        let mut scrape = Scrape::default();
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            if let Some((name, labels, value)) = sample(line) {
                scrape.series.entry(name).or_default().push((labels, value));
            }
        }
        scrape
    }

    /// The value of the one series with these labels.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        self.all(name, labels).map(|(_, value)| value).next()
    }

    /// The sum of all series with these labels.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.all(name, labels).map(|(_, value)| value).sum()
    }

    /// The value of a label of the first series of a name.
    pub fn label(&self, name: &str, label: &str) -> Option<&str> {
        let (labels, _) = self.all(name, &[]).next()?;
        labels.get(label).map(String::as_str)
    }

    pub fn histogram(&self, name: &str, labels: &[(&str, &str)]) -> Told {
        let bucket = |(labels, count): (&Labels, f64)| {
            let bound = match labels.get("le")?.as_str() {
                "+Inf" => f64::INFINITY,
                text => text.parse().ok()?,
            };
            Some((bound, count))
        };
        let below = self.all(&format!("{name}_bucket"), labels).filter_map(bucket).collect();
        Told { below, sum: self.sum(&format!("{name}_sum"), labels) }
    }

    fn all<'a>(
        &'a self,
        name: &str,
        labels: &'a [(&str, &str)],
    ) -> impl Iterator<Item = (&'a Labels, f64)> + 'a {
        let series = self.series.get(name).map_or(&[][..], Vec::as_slice);
        let fits = move |found: &Labels| {
            labels.iter().all(|(key, value)| found.get(*key).is_some_and(|it| it == value))
        };
        series.iter().filter(move |(found, _)| fits(found)).map(|(found, value)| (found, *value))
    }
}

impl Told {
    /// What came since `before`.
    pub fn since(&self, before: &Told) -> Told {
        let zero = |at: usize| before.below.get(at).map_or(0.0, |(_, count)| *count);
        let below = self.below.iter().enumerate();
        let below = below.map(|(at, (bound, count))| (*bound, (count - zero(at)).max(0.0)));
        Told { below: below.collect(), sum: self.sum - before.sum }
    }

    pub fn count(&self) -> f64 {
        self.below.last().map_or(0.0, |(_, count)| *count)
    }

    /// The bound below which `share` of all lie; none while there are none. What lies beyond the
    /// last bound is told as the last bound.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let wanted = self.count() * share;
        if self.count() <= 0.0 {
            return None;
        }
        let found = self.below.iter().position(|(_, count)| *count >= wanted)?;
        let finite =
            |at: usize| self.below.get(at).map(|(bound, _)| *bound).filter(|it| it.is_finite());
        finite(found).or_else(|| finite(found.checked_sub(1)?))
    }
}

fn sample(line: &str) -> Option<(String, Labels, f64)> {
    let (head, value) = line.rsplit_once(' ')?;
    let value = value.parse().ok()?;
    let Some((name, rest)) = head.split_once('{') else {
        return Some((head.to_owned(), Labels::new(), value));
    };
    Some((name.to_owned(), labels(rest.strip_suffix('}')?)?, value))
}

fn labels(text: &str) -> Option<Labels> {
    let mut labels = Labels::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut chars = after.char_indices();
        let end = loop {
            match chars.next()? {
                (at, '"') => break at,
                (_, '\\') => match chars.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, other) => value.push(other),
            }
        };
        labels.insert(name.to_owned(), value);
        rest = &after[end + 1..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    Some(labels)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: &str = "\
# HELP waiting People.
# TYPE waiting gauge
waiting{room=\"a\"} 3
waiting{room=\"b, \\\"c\\\"\",lane=\"x\"} 4.5
up 1
wait_bucket{room=\"a\",le=\"1\"} 50
wait_bucket{room=\"a\",le=\"5\"} 90
wait_bucket{room=\"a\",le=\"+Inf\"} 100
wait_sum{room=\"a\"} 250
";

    #[test]
    fn a_page_is_read_as_it_was_written() {
        let page = Scrape::read(PAGE);
        assert_eq!(page.value("waiting", &[("room", "a")]), Some(3.0));
        assert_eq!(page.value("waiting", &[("room", "b, \"c\"")]), Some(4.5));
        assert_eq!(page.sum("waiting", &[]), 7.5);
        assert_eq!(page.value("up", &[]), Some(1.0));
        let wait = page.histogram("wait", &[("room", "a")]);
        assert_eq!(wait.quantile(0.5), Some(1.0));
        assert_eq!(wait.quantile(0.9), Some(5.0));
        assert_eq!(wait.quantile(0.99), Some(5.0), "beyond the last bound");
        assert_eq!(wait.since(&wait).quantile(0.5), None, "nothing came since");
    }

    proptest! {
        #[test]
        fn any_text_at_all_is_read_without_harm(page in "[a-z{}=\",\\\\ 0-9.\n#+-]{0,200}") {
            let _whatever_it_is = Scrape::read(&page);
        }
    }
}
