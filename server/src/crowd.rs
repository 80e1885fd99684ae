//! `waitroom crowd`: many visitors over real sockets.
//!
//! Lives here: flags, progress, where the results go. Stays out: the visitors
//! (`waitroom-crowd`).

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use waitroom_crowd::{
    ApiKey, Failed, Mix, Operator, Outcome, Plan, Progress, Remote, Shape, Target, report, run,
};
use waitroom_sim::rehearsal::human::{parse_duration, parse_number, parse_share};

use crate::failure::{Exit, Failure};
use crate::out::Out;

/// Sends a crowd of visitors to a running server and tells how it went.
///
/// Visitors join, wait, are let in, stay and go, as real ones do; some abandon, some fall silent,
/// some misbehave. What each saw is written to a history that `waitroom check-history` judges.
/// Exit 1 when a visitor was told something wrong on the spot.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom crowd http://127.0.0.1:8080 --visitors 10k --over 30s --admin http://127.0.0.1:8081 \\\n    \
    --admit 200 --rate-limit-exempt --history crowd.jsonl --html crowd.html\n  \
    waitroom check-history crowd.jsonl --log data")]
pub struct Crowd {
    /// The server's public listener, http://HOST:PORT.
    #[arg(value_name = "URL", value_parser = Target::parse)]
    public: Target,
    #[arg(long, default_value = "default")]
    room: String,
    /// Another room, in which tickets of this one must mean nothing.
    #[arg(long, value_name = "ROOM", default_value = "another-room")]
    other_room: String,
    /// How many people come ("10k").
    #[arg(long, value_parser = parse_number, default_value = "1k")]
    visitors: u64,
    /// Within which time they come.
    #[arg(long, value_parser = parse_duration, default_value = "30s")]
    over: u64,
    /// When they come: spike, steady, late or wave.
    #[arg(long, value_parser = Shape::parse, default_value = "spike")]
    shape: Shape,
    /// How they wait, in parts: poll, long (long polls), sse, ws, grpc.
    /// Unless said: poll=75,sse=10,ws=15, or poll=70,sse=10,ws=15,grpc=5 with --grpc and --key.
    #[arg(long, value_parser = Mix::parse)]
    mix: Option<Mix>,
    /// The gRPC listener.
    #[arg(long, value_name = "URL", value_parser = Target::parse)]
    grpc: Option<Target>,
    /// The admin listener: the room's limits are noted in the history, and the crowd can operate.
    #[arg(long, value_name = "URL", value_parser = Target::parse)]
    admin: Option<Target>,
    /// An API key, for gRPC and for the admin listener; otherwise WAITROOM_ADMIN_KEY.
    #[arg(long)]
    key: Option<String>,
    /// Share of the visitors who give up and say so.
    #[arg(long, value_parser = parse_share, default_value = "10%")]
    abandon: f64,
    /// Share who just fall silent.
    #[arg(long, value_parser = parse_share, default_value = "5%")]
    silent: f64,
    /// Share who try things that must be refused.
    #[arg(long, value_parser = parse_share, default_value = "1%")]
    misbehave: f64,
    /// How long people stay inside, on average.
    #[arg(long, value_parser = parse_duration, default_value = "20s")]
    stay: u64,
    /// When the run ends, whoever still waits.
    #[arg(long, value_parser = parse_duration, default_value = "60s")]
    duration: u64,
    /// How much more often than told visitors look: 2 is twice as often.
    #[arg(long, default_value_t = 1.0)]
    speed: f64,
    /// Lets in so many a second by hand.
    #[arg(long, value_name = "PER_SECOND", default_value_t = 0.0)]
    admit: f64,
    /// Pauses the room so often.
    #[arg(long, value_name = "SPAN", value_parser = parse_duration)]
    pause_every: Option<u64>,
    /// And for so long.
    #[arg(long, value_name = "SPAN", value_parser = parse_duration, default_value = "2s")]
    pause_for: u64,
    /// Each visitor claims an address of their own (X-Forwarded-For): limits per address then
    /// count each by itself. The server must trust this machine; in development it does.
    #[arg(long)]
    rate_limit_exempt: bool,
    /// The same seed makes the same people.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Keep-alive connections that polling visitors share.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// How many 127.0.0.x addresses to come from.
    #[arg(long, default_value_t = 4)]
    sources: u8,
    /// After how long a call without an answer counts as lost.
    #[arg(long, value_parser = parse_duration, default_value = "10s")]
    timeout: u64,
    /// Threads that the crowd may use.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Also against a server that is not on this machine.
    #[arg(long)]
    allow_remote: bool,
    /// Writes down every call.
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// Writes all figures as JSON ("-" for stdout, instead of the summary).
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes the report with charts, one HTML file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// No progress on stderr.
    #[arg(long)]
    quiet: bool,
}

impl Crowd {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let plan = self.plan();
        let remote = if self.allow_remote { Remote::Allow } else { Remote::Refuse };
        plan.check(remote).map_err(|wrong| Failure::new(Exit::Usage, wrong.join("\nerror: ")))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(self.threads.clamp(1, 64))
            .enable_all()
            .build()
            .map_err(|error| Failure::new(Exit::Io, format!("no threads: {error}")))?;
        let mut shown = Shown::new(self.quiet, plan.visitors);
        let ran = runtime.block_on(run(plan, |progress| shown.update(progress)));
        shown.done();
        let outcome = ran.map_err(failed)?;
        self.deliver(&outcome, out)?;
        Ok(if outcome.surprises == 0 { Exit::Fine } else { Exit::Wrong })
    }

    fn plan(&self) -> Plan {
        let key = self.key.clone().or_else(|| std::env::var("WAITROOM_ADMIN_KEY").ok());
        let usual = if self.grpc.is_some() && key.is_some() {
            "poll=70,sse=10,ws=15,grpc=5"
        } else {
            "poll=75,sse=10,ws=15"
        };
        let usual = || Mix::parse(usual).expect("the usual mix is a constant and well formed");
        Plan {
            public: self.public.clone(),
            base: String::new(),
            admin: self.admin.clone(),
            grpc: self.grpc.clone(),
            key: key.map(ApiKey),
            room: self.room.clone(),
            other_room: self.other_room.clone(),
            visitors: self.visitors,
            over_ms: self.over,
            shape: self.shape,
            mix: self.mix.clone().unwrap_or_else(usual),
            abandon: self.abandon,
            silent: self.silent,
            misbehave: self.misbehave,
            stay_ms: self.stay,
            duration_ms: self.duration,
            speed: self.speed,
            own_addresses: self.rate_limit_exempt,
            seed: self.seed,
            connections: self.connections,
            sources: self.sources,
            timeout_ms: self.timeout,
            operator: Operator {
                admit_per_s: self.admit,
                pause_every_ms: self.pause_every,
                pause_for_ms: self.pause_for,
            },
            history: self.history.clone(),
            errand: None,
        }
    }

    fn deliver(&self, outcome: &Outcome, out: &mut Out) -> Result<(), Failure> {
        let json = || {
            serde_json::to_string_pretty(outcome)
                .expect("an outcome holds only numbers, texts and lists of them")
        };
        match self.json.as_deref() {
            Some(path) if path == Path::new("-") => out.line(json())?,
            Some(path) => write(path, "--json", &json())?,
            None => {}
        }
        if self.json.as_deref() != Some(Path::new("-")) {
            out.line(report::text(outcome).trim_end())?;
        }
        if let Some(path) = &self.html {
            write(path, "--html", &report::page(outcome))?;
        }
        Ok(())
    }
}

fn failed(failed: Failed) -> Failure {
    match failed {
        Failed::Target(why) => Failure::new(Exit::NotThere, why)
            .means("nobody came")
            .advise("start the server, or give the address it printed"),
        Failed::History(unwritten) => Failure::new(Exit::Io, unwritten.to_string())
            .means("the run ended early; what was written is a history of its beginning")
            .advise("look at space and permissions, then run again"),
    }
}

fn write(path: &Path, flag: &str, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|cause| {
        Failure::new(Exit::Io, format!("{flag}: cannot write {}: {cause}", path.display()))
    })
}

/// Progress on stderr: a bar for people, a line now and then for logs.
enum Shown {
    Nothing,
    Bar(ProgressBar),
    Lines { last: Instant },
}

impl Shown {
    fn new(quiet: bool, visitors: u64) -> Shown {
        if quiet {
            return Shown::Nothing;
        }
        if !std::io::stderr().is_terminal() {
            return Shown::Lines { last: Instant::now() };
        }
        let target = ProgressDrawTarget::stderr_with_hz(5);
        let bar = ProgressBar::with_draw_target(Some(visitors), target);
        let style = ProgressStyle::with_template("{bar:30} {msg}")
            .expect("the template is a constant and well formed");
        bar.set_style(style);
        Shown::Bar(bar)
    }

    fn update(&mut self, progress: &Progress) {
        match self {
            Shown::Nothing => {}
            Shown::Bar(bar) => {
                bar.set_position(progress.done);
                bar.set_message(said(progress));
            }
            Shown::Lines { last } if last.elapsed() >= Duration::from_secs(5) => {
                *last = Instant::now();
                eprintln!("{}", said(progress));
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

fn said(p: &Progress) -> String {
    let number = report::number;
    let latency = report::latency;
    format!(
        "{:>4} s  {} arrived, {} waiting, {} inside, {} through; {} calls, {} without an answer, \
         {} wrong; p50 {}, p99 {}",
        p.at_ms / 1_000,
        number(p.arrived),
        number(p.waiting),
        number(p.inside),
        number(p.done),
        number(p.calls),
        number(p.lost),
        number(p.surprises),
        latency(p.p50_us),
        latency(p.p99_us)
    )
}
