//! What kind of crowd: how many, when, by which channel, and how well behaved.
//!
//! Lives here: the plan, its bounds, and how a mix is written. Stays out: carrying it out.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use crate::arrivals::Shape;
use crate::errand::Errand;
use crate::wire::Target;

#[derive(Clone, Debug)]
pub struct Plan {
    pub public: Target,
    /// What stands before the addresses of the visitor API: "", or "/.waitroom" behind a gate.
    pub base: String,
    /// The admin listener, for a crowd that operates the room too.
    pub admin: Option<Target>,
    pub grpc: Option<Target>,
    pub key: Option<ApiKey>,
    pub room: String,
    /// Another room, in which tickets of this one must mean nothing.
    pub other_room: String,
    pub visitors: u64,
    pub over_ms: u64,
    pub shape: Shape,
    pub mix: Mix,
    /// Shares of the visitors.
    pub abandon: f64,
    pub silent: f64,
    pub misbehave: f64,
    /// How long people stay inside, in the middle.
    pub stay_ms: u64,
    /// When the run ends, whoever is still waiting.
    pub duration_ms: u64,
    /// How much sooner than told visitors look again: 2 is twice as often.
    pub speed: f64,
    /// Whether every visitor claims an address of their own by `X-Forwarded-For`.
    pub own_addresses: bool,
    pub seed: u64,
    /// Keep-alive connections that visitors who poll share.
    pub connections: usize,
    /// How many 127.0.0.x addresses the sockets are spread over.
    pub sources: u8,
    /// After how long a call without an answer counts as lost.
    pub timeout_ms: u64,
    pub operator: Operator,
    pub history: Option<PathBuf>,
    /// What people do inside, instead of staying a while.
    pub errand: Option<Arc<dyn Errand>>,
}

/// What the crowd's operator does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Operator {
    /// Admissions by hand per second.
    pub admit_per_s: f64,
    /// A pause every so often, for so long.
    pub pause_every_ms: Option<u64>,
    pub pause_for_ms: u64,
}

/// A secret that is not printed.
#[derive(Clone)]
pub struct ApiKey(pub String);

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// By which channel a visitor follows the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    Poll,
    /// Long polls, each on a connection of its own.
    Long,
    Sse,
    Ws,
    Grpc,
}

impl Channel {
    pub const ALL: [Channel; 5] =
        [Channel::Poll, Channel::Long, Channel::Sse, Channel::Ws, Channel::Grpc];

    pub fn name(self) -> &'static str {
        match self {
            Channel::Poll => "poll",
            Channel::Long => "long",
            Channel::Sse => "sse",
            Channel::Ws => "ws",
            Channel::Grpc => "grpc",
        }
    }
}

/// Parts of the crowd by channel; only their proportion matters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mix(pub Vec<(Channel, u32)>);

impl Mix {
    /// "poll=70,sse=10,ws=15,grpc=5".
    pub fn parse(text: &str) -> Result<Mix, String> {
        let mut parts = Vec::new();
        for part in text.split(',') {
            let wrong = || {
                format!(
                    "\"{part}\" is not CHANNEL=PARTS; write for example poll=70,ws=30 \
                     (poll, long, sse, ws, grpc)"
                )
            };
            let (name, count) = part.trim().split_once('=').ok_or_else(wrong)?;
            let channel = Channel::ALL.into_iter().find(|it| it.name() == name.trim());
            let channel = channel.ok_or_else(wrong)?;
            let count: u32 = count.trim().parse().map_err(|_| wrong())?;
            if count > 1_000_000 || parts.iter().any(|(other, _)| *other == channel) {
                return Err(wrong());
            }
            parts.push((channel, count));
        }
        if parts.iter().all(|(_, count)| *count == 0) {
            return Err("a mix in which nobody comes".into());
        }
        Ok(Mix(parts))
    }

    pub fn has(&self, channel: Channel) -> bool {
        self.0.iter().any(|(it, count)| *it == channel && *count > 0)
    }

    pub fn share(&self, channel: Channel) -> f64 {
        let all: u32 = self.0.iter().map(|(_, count)| count).sum();
        let parts: u32 = self.0.iter().filter(|(it, _)| *it == channel).map(|it| it.1).sum();
        f64::from(parts) / f64::from(all.max(1))
    }

    /// The channel at a random place of the mix.
    pub fn pick(&self, at: f64) -> Channel {
        let all: u32 = self.0.iter().map(|(_, count)| count).sum();
        let mut left = (at * f64::from(all)) as u32;
        for (channel, count) in &self.0 {
            if left < *count {
                return *channel;
            }
            left -= count;
        }
        self.0.last().map_or(Channel::Poll, |(channel, _)| *channel)
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> =
            self.0.iter().map(|(channel, count)| format!("{}={count}", channel.name())).collect();
        f.write_str(&parts.join(","))
    }
}

impl Plan {
    /// A crowd of `visitors` before a public listener, and everything else as usual.
    pub fn usual(public: Target, visitors: u64) -> Plan {
        Plan {
            public,
            base: String::new(),
            admin: None,
            grpc: None,
            key: None,
            room: "default".into(),
            other_room: "another-room".into(),
            visitors,
            over_ms: 30_000,
            shape: Shape::Spike,
            mix: Mix(vec![(Channel::Poll, 75), (Channel::Sse, 10), (Channel::Ws, 15)]),
            abandon: 0.0,
            silent: 0.0,
            misbehave: 0.0,
            stay_ms: 20_000,
            duration_ms: 60_000,
            speed: 1.0,
            own_addresses: false,
            seed: 1,
            connections: 64,
            sources: 4,
            timeout_ms: 10_000,
            operator: Operator::default(),
            history: None,
            errand: None,
        }
    }

    /// Everything that cannot be meant, at once.
    pub fn check(&self, remote: Remote) -> Result<(), Vec<String>> {
        let mut wrong = Vec::new();
        let targets = [("URL", Some(&self.public)), ("--admin", self.admin.as_ref())];
        for (flag, target) in targets.into_iter().chain([("--grpc", self.grpc.as_ref())]) {
            if let Some(target) = target.filter(|it| !it.is_loopback())
                && remote == Remote::Refuse
            {
                wrong.push(format!(
                    "{flag} {target}: not on this machine; a crowd against somebody's server is an \
                     attack unless they know of it (--allow-remote if they do)"
                ));
            }
        }
        let shares = [("abandon", self.abandon), ("silent", self.silent)];
        for (name, share) in shares.into_iter().chain([("misbehave", self.misbehave)]) {
            if !(0.0..=1.0).contains(&share) {
                wrong.push(format!("--{name}: {share} is not a share between 0 and 100 %"));
            }
        }
        if self.abandon + self.silent > 1.0 {
            wrong.push("--abandon and --silent together are more than everybody".into());
        }
        if !(1..=10_000_000).contains(&self.visitors) {
            wrong.push(format!("--visitors: {} is not between 1 and 10M", self.visitors));
        }
        if !(1..=10_000).contains(&self.connections) {
            wrong.push(format!("--connections: {} is not between 1 and 10,000", self.connections));
        }
        if !(0.01..=1_000.0).contains(&self.speed) {
            wrong.push(format!("--speed: {} is not between 0.01 and 1,000", self.speed));
        }
        if self.mix.has(Channel::Grpc) && (self.grpc.is_none() || self.key.is_none()) {
            wrong.push("--mix grpc: needs --grpc URL and --key, for services speak gRPC".into());
        }
        let operates = self.operator.admit_per_s > 0.0 || self.operator.pause_every_ms.is_some();
        if operates && (self.admin.is_none() || self.key.is_none()) {
            wrong.push("--admit and --pause-every need --admin URL and --key".into());
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }
}

/// What to do with a target that is not on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remote {
    Refuse,
    Allow,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_is_picked_in_proportion() {
        let mix = Mix::parse("poll=70, sse=10,ws=15,grpc=5").expect("well formed");
        let picked = |channel: Channel| {
            (0..1_000).filter(|n| mix.pick(f64::from(*n) / 1_000.0) == channel).count()
        };
        assert_eq!(
            [Channel::Poll, Channel::Sse, Channel::Ws, Channel::Grpc].map(picked),
            [700, 100, 150, 50]
        );
        assert_eq!(mix.to_string(), "poll=70,sse=10,ws=15,grpc=5");
        for wrong in ["", "poll", "poll=x", "pigeon=3", "poll=1,poll=2", "poll=0", "poll=-1"] {
            assert!(Mix::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_crowd_stays_on_this_machine_unless_it_is_told_otherwise() {
        let target = |url: &str| Target::parse(url).expect("a URL");
        for here in ["http://127.0.0.1:8080", "http://[::1]:8080", "http://localhost:8080"] {
            assert!(Plan::usual(target(here), 1).check(Remote::Refuse).is_ok(), "{here}");
        }
        for there in ["http://192.0.2.7:8080", "http://example.com", "http://127.0.0.1.example"] {
            let wrong = Plan::usual(target(there), 1).check(Remote::Refuse);
            assert!(wrong.is_err_and(|wrong| wrong[0].contains("--allow-remote")), "{there}");
            assert!(Plan::usual(target(there), 1).check(Remote::Allow).is_ok());
        }
    }

    #[test]
    fn all_mistakes_are_told_at_once() {
        let target = Target::parse("http://127.0.0.1:1").expect("a URL");
        let plan = Plan {
            visitors: 0,
            abandon: 0.7,
            silent: 0.7,
            mix: Mix::parse("grpc=1").expect("well formed"),
            ..Plan::usual(target, 1)
        };
        assert_eq!(plan.check(Remote::Refuse).expect_err("three mistakes").len(), 3);
    }

    #[test]
    fn a_key_is_never_printed() {
        assert!(!format!("{:?}", ApiKey("wrk_secret".into())).contains("secret"));
    }
}
