//! Log lines: text for people, JSON for machines, one line for each thing that happened.

use std::io;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, reload};

use crate::config::{Log, LogFormat, LogLevel};

/// All our crates begin so, and no other does.
const OURS: &str = "waitroom";

/// The log of this process, whose level can be changed.
#[derive(Debug)]
pub struct Lines(reload::Handle<Targets, Registry>);

impl Lines {
    /// From now on lines are written. Once in the life of a process.
    pub fn begin(log: &Log) -> Lines {
        let (filter, handle) = reload::Layer::new(heard(log.level));
        let form = fmt::layer().with_writer(io::stderr).with_ansi(false);
        let form = match log.format {
            LogFormat::Text => form.with_target(false).boxed(),
            LogFormat::Json => {
                let form = form.json().flatten_event(true);
                form.with_current_span(false).with_span_list(false).boxed()
            }
        };
        // A second one would be a mistake of ours, and the first goes on.
        let _first_wins = tracing_subscriber::registry().with(filter).with(form).try_init();
        Lines(handle)
    }

    pub fn level(&self, level: LogLevel) {
        // Fails only when the subscriber is gone, and then nobody listens.
        let _nobody_listens = self.0.reload(heard(level));
    }
}

fn heard(level: LogLevel) -> Targets {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    Targets::new().with_target(OURS, level)
}
