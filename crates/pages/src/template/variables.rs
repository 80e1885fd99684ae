//! What a template's variables are worth when a page is rendered.

use std::collections::BTreeMap;

use crate::answer::Answer;
use crate::shown::{Draw, State, View, Waiting};
use crate::words::Words;

#[derive(Clone, Debug)]
enum Value {
    Text(String),
    Flag(bool),
}

/// Every name of the list has a value, so a template never meets one that is missing.
#[derive(Clone, Debug)]
pub(crate) struct Variables(BTreeMap<&'static str, Value>);

impl Variables {
    pub(crate) fn of(
        shown: &Waiting<'_>,
        words: &Words,
        view: &View,
        answer: Option<&Answer>,
    ) -> Variables {
        let wait = answer.and_then(|it| it.wait);
        let minutes = wait.map_or(0, |it| it.likely_s.div_ceil(60));
        let position = answer.and_then(|it| it.position).filter(|&n| n > 0);
        let drawn = shown.schedule.draw.is_some();
        let number = |n: u64| Value::Text(words.number(n));
        let text = |it: &str| Value::Text(it.to_owned());
        let maybe = |n: Option<u64>| n.map_or_else(|| text(""), number);
        let formatted = match wait {
            Some(wait) => crate::number::span(words, wait.low_s, wait.high_s),
            None => words.say("wait_unknown", &[]),
        };
        let now = shown.schedule.now_ms.map(crate::number::moment).unwrap_or_default();
        let reason = answer.and_then(|it| it.reason.clone()).unwrap_or_default();
        let early = matches!(view.state, State::Before | State::NotOpen);
        Variables(BTreeMap::from([
            ("waitTimeKnown", Value::Flag(wait.is_some())),
            ("waitTime", number(minutes)),
            ("waitTimeHours", number(minutes / 60)),
            ("waitTimeHourMinutes", number(minutes % 60)),
            ("waitTimeFormatted", Value::Text(formatted)),
            ("queueIsFull", Value::Flag(view.state == State::Full)),
            // Whoever sees this page waits, so as far as they can tell everyone does.
            ("queueAll", Value::Flag(true)),
            ("lastUpdated", Value::Text(now)),
            ("isFIFOQueue", Value::Flag(!drawn)),
            ("isRandomQueue", Value::Flag(drawn)),
            ("isPassthroughQueue", Value::Flag(false)),
            ("isRejectQueue", Value::Flag(view.state == State::Ended)),
            ("isEventActive", Value::Flag(!early)),
            ("isEventPrequeueing", Value::Flag(early)),
            (
                "shuffleAtEventStart",
                Value::Flag(matches!(
                    shown.schedule.draw,
                    Some(Draw::Committed | Draw::Verifiable)
                )),
            ),
            ("refreshIntervalSeconds", number(shown.refresh_s)),
            ("position", maybe(position)),
            ("ahead", maybe(position.map(|n| n - 1))),
            ("title", text(shown.title)),
            ("room", text(shown.room)),
            ("message", text(shown.message.unwrap_or_default())),
            ("reason", Value::Text(reason)),
            ("paused", Value::Flag(view.state == State::Paused)),
            ("supportCode", text(view.code.as_deref().unwrap_or_default())),
        ]))
    }

    pub(super) fn text(&self, name: &str) -> String {
        match &self.0[name] {
            Value::Text(text) => text.clone(),
            Value::Flag(flag) => flag.to_string(),
        }
    }

    /// Mustache's truth: not false and not empty. A zero counts as something.
    pub(super) fn holds(&self, name: &str) -> bool {
        match &self.0[name] {
            Value::Text(text) => !text.is_empty(),
            Value::Flag(flag) => *flag,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shown::tests_view;

    #[test]
    fn every_name_has_a_value() {
        let (words, view) = tests_view();
        let variables = Variables::of(&Waiting::default(), words, &view, None);
        for name in super::super::NAMES {
            assert!(variables.0.contains_key(name), "{name}");
        }
        assert_eq!(variables.0.len(), super::super::NAMES.len());
    }
}
