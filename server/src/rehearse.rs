//! `waitroom rehearse`: what will my sale look like?
//!
//! Lives here: flags, progress, where the results go. Stays out: the sale itself (`sim`).
//! Results go to stdout, everything else to stderr, so that the summary can be piped.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use waitroom_sim::rehearsal::human::{
    duration, number, parse_duration, parse_number, parse_patience, parse_share,
};
use waitroom_sim::rehearsal::{
    Lane, Outcome, Patience, Plan, Progress, Shape, parse_csv, rehearse, report, summary,
};

/// A mistake on the command line, as sysexits.h counts them.
const EXIT_USAGE: u8 = 64;
/// A file could not be read or written.
const EXIT_IO: u8 = 74;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  waitroom rehearse --visitors 1M --rate 500 --patience 30m")]
pub struct Rehearse {
    /// How many people come ("20M", "2500", "1_000_000").
    #[arg(long, value_parser = parse_number, default_value = "1M")]
    visitors: u64,
    /// When they come.
    #[arg(long, value_enum, default_value = "spike")]
    shape: ShapeName,
    /// Arrivals from a file of `second,arrivals` instead of a shape.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["shape", "over"])]
    arrivals: Option<PathBuf>,
    /// For how long they come ("20m"). Unless said: so long that twice as many come as may enter.
    #[arg(long, value_parser = parse_duration)]
    over: Option<u64>,
    /// How many may enter per second.
    #[arg(long, value_parser = parse_number, default_value = "1000")]
    rate: u64,
    /// How many may be inside. Unless said: more than the rate can fill.
    #[arg(long, value_parser = parse_number)]
    capacity: Option<u64>,
    /// How often the room admits.
    #[arg(long, value_parser = parse_duration, default_value = "200ms")]
    tick: u64,
    /// A lane as NAME:WEIGHT:SHARE, for example "members:3:20%". Give it once per lane.
    #[arg(long = "lane", value_parser = parse_lane)]
    lanes: Vec<Lane>,
    /// Within which time half would give up: "45m", "20m,exponential", "20m,weibull=0.7",
    /// "45m,lognormal=1.0", or "none".
    #[arg(long, value_parser = parse_patience, default_value = "45m")]
    patience: Patience,
    /// Share of those giving up who say so; the others fall silent.
    #[arg(long, value_parser = parse_share, default_value = "30%")]
    leave_openly: f64,
    /// After which silence a place lapses.
    #[arg(long, value_parser = parse_duration, default_value = "60s")]
    heartbeat_timeout: u64,
    /// Share of the admitted who never come.
    #[arg(long, value_parser = parse_share, default_value = "3%")]
    no_show: f64,
    /// How long an admitted visitor may take to come.
    #[arg(long, value_parser = parse_duration, default_value = "90s")]
    hold: u64,
    /// How long people take to notice that it is their turn, in the middle.
    #[arg(long, value_parser = parse_duration, default_value = "8s")]
    reaction: u64,
    /// How long they stay inside, in the middle.
    #[arg(long, value_parser = parse_duration, default_value = "4m")]
    session: u64,
    /// Share of those who gave up that comes back.
    #[arg(long, value_parser = parse_share, default_value = "10%")]
    come_back: f64,
    /// After how long they come back, on average.
    #[arg(long, value_parser = parse_duration, default_value = "5m")]
    come_back_after: u64,
    /// The same seed gives the same sale.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Writes the report with charts, one HTML file.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Writes all figures as JSON ("-" for stdout, instead of the summary).
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// No progress on stderr.
    #[arg(long)]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ShapeName {
    /// Most come at once, when the doors open.
    Spike,
    /// A trickle, then a growing rush until the end.
    Late,
    /// The same number every second.
    Steady,
}

impl Rehearse {
    pub fn run(self) -> ExitCode {
        let plan = match self.plan() {
            Ok(plan) => plan,
            Err(failure) => return failure.tell(),
        };
        let mut shown = Shown::new(self.quiet);
        let outcome = match rehearse(&plan, |progress| shown.update(progress)) {
            Ok(outcome) => outcome,
            Err(wrong) => {
                let lines = wrong.iter().map(|w| format!("--{w}")).collect();
                return Failure { exit: EXIT_USAGE, lines }.tell();
            }
        };
        shown.done();
        match self.deliver(&outcome) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => failure.tell(),
        }
    }

    fn plan(&self) -> Result<Plan, Failure> {
        let (shape, visitors, over_ms) = match &self.arrivals {
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|cause| {
                    Failure::io(format!("--arrivals: cannot read {}: {cause}", path.display()))
                })?;
                let seconds = parse_csv(&text).map_err(|cause| {
                    Failure::usage(format!("--arrivals: {}: {cause}", path.display()))
                })?;
                let over_ms = seconds.len() as u64 * 1_000;
                (Shape::Given(seconds.clone()), seconds.iter().sum(), over_ms)
            }
            None => {
                let shape = match self.shape {
                    ShapeName::Spike => Shape::Spike,
                    ShapeName::Late => Shape::Late,
                    ShapeName::Steady => Shape::Steady,
                };
                let usual = || Plan::usual_over_ms(self.visitors, self.rate);
                (shape, self.visitors, self.over.unwrap_or_else(usual))
            }
        };
        let usual = Plan::usual(visitors, shape.clone(), self.rate.clamp(1, 10_000_000));
        Ok(Plan {
            over_ms,
            rate_per_s: Some(self.rate),
            capacity: self.capacity.unwrap_or(usual.capacity),
            tick_ms: self.tick,
            lanes: if self.lanes.is_empty() { usual.lanes.clone() } else { self.lanes.clone() },
            patience: self.patience,
            leaves_openly: self.leave_openly,
            heartbeat_timeout_ms: self.heartbeat_timeout,
            no_show: self.no_show,
            hold_ms: self.hold,
            reaction_ms: self.reaction,
            session_ms: self.session,
            come_back: self.come_back,
            come_back_after_ms: self.come_back_after,
            seed: self.seed,
            ..usual
        })
    }

    fn deliver(&self, outcome: &Outcome) -> Result<(), Failure> {
        let json_to_stdout = self.json.as_deref() == Some(Path::new("-"));
        if !json_to_stdout {
            print!("{}", summary(outcome));
        }
        if let Some(path) = &self.json {
            let json = serde_json::to_string_pretty(outcome)
                .expect("an outcome holds only numbers, texts and lists of them");
            if json_to_stdout {
                println!("{json}");
            } else {
                write(path, "--json", &json)?;
            }
        }
        if let Some(path) = &self.report {
            write(path, "--report", &report(outcome))?;
            eprintln!("report: {}", path.display());
        }
        Ok(())
    }
}

fn write(path: &Path, flag: &str, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|cause| Failure::io(format!("{flag}: cannot write {}: {cause}", path.display())))
}

/// "members:3:20%".
fn parse_lane(text: &str) -> Result<Lane, String> {
    let wrong = || format!("\"{text}\" is not NAME:WEIGHT:SHARE; write for example members:3:20%");
    let mut parts = text.split(':');
    let (Some(name), Some(weight), Some(share), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(wrong());
    };
    let weight = weight.trim().parse().map_err(|_| wrong())?;
    Ok(Lane { name: name.trim().to_string(), weight, share: parse_share(share)? })
}

/// What went wrong, for people, and how the process ends.
struct Failure {
    exit: u8,
    lines: Vec<String>,
}

impl Failure {
    fn usage(line: String) -> Self {
        Failure { exit: EXIT_USAGE, lines: vec![line] }
    }

    fn io(line: String) -> Self {
        Failure { exit: EXIT_IO, lines: vec![line] }
    }

    fn tell(self) -> ExitCode {
        for line in &self.lines {
            eprintln!("error: {line}");
        }
        ExitCode::from(self.exit)
    }
}

/// Progress on stderr: a bar for people, a line now and then for logs.
enum Shown {
    Nothing,
    Bar(ProgressBar),
    Lines { last: Instant },
}

impl Shown {
    fn new(quiet: bool) -> Self {
        if quiet {
            return Shown::Nothing;
        }
        if !std::io::stderr().is_terminal() {
            return Shown::Lines { last: Instant::now() };
        }
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr_with_hz(10));
        let style = ProgressStyle::with_template("{bar:40} {percent:>3} %  {msg}")
            .expect("the template is a constant and well formed");
        bar.set_style(style);
        Shown::Bar(bar)
    }

    fn update(&mut self, p: Progress) {
        let said = || {
            format!(
                "{} into the sale, {} waiting, {} through",
                duration(p.at_ms),
                number(p.waiting),
                number(p.done)
            )
        };
        match self {
            Shown::Nothing => {}
            Shown::Bar(bar) => {
                bar.set_length(p.visitors.max(p.joined));
                bar.set_position(p.done);
                bar.set_message(said());
            }
            Shown::Lines { last } if last.elapsed() >= Duration::from_secs(5) => {
                *last = Instant::now();
                eprintln!("{}", said());
            }
            Shown::Lines { .. } => {}
        }
    }

    fn done(&mut self) {
        if let Shown::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_is_a_name_a_weight_and_a_share() {
        let lane = parse_lane("members:3:20%").expect("well formed");
        assert_eq!(lane, Lane { name: "members".into(), weight: 3, share: 0.2 });
        for wrong in ["members", "members:3", "members:x:20%", "members:3:20%:more", "m:-1:20%"] {
            assert!(parse_lane(wrong).is_err(), "{wrong}");
        }
    }
}
