//! What a gate is told about a site: which requests are which room's, where the origin is, and
//! how those who wait are answered. Values only; the server reads them from its configuration.

use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderName, Method, StatusCode, Uri};
use waitroom_store::RoomName;

use crate::adaptive;
use crate::facts::Facts;
use crate::glob;
use crate::path::Path;
use crate::remote::RoomAt;

#[derive(Clone, Debug)]
pub struct Site {
    pub name: String,
    /// Patterns of host names, without ports; none means every host.
    pub hosts: Vec<String>,
    /// The room of every request that no rule gives to another one. None: only rules protect.
    pub room: Option<RoomName>,
    /// The first that fits says the room.
    pub rules: Vec<Rule>,
    /// What fits one of these needs no pass.
    pub bypass: Vec<When>,
    pub crawlers: Crawlers,
    pub waiting: Waiting,
    /// What those who wait get as a status: 200, 202, 429 or 503.
    pub waiting_status: StatusCode,
    pub fail: Fail,
    /// How long a pass counts as checked before its signature is looked at again.
    pub checked_for: Duration,
    /// Whether this gate is the only way in, so that its word frees the slot of an ended session.
    pub only_way_in: bool,
    /// Other gates that check passes of this site's rooms, by name: their word is needed too.
    pub gates: Vec<String>,
    /// Where the rooms are, when another waitroom runs them.
    pub room_at: Option<RoomAt>,
    pub origins: Vec<Uri>,
    pub manners: OriginManners,
    /// How the pace follows the origin's health; none leaves it as the room says.
    pub adaptive: Option<adaptive::Settings>,
}

/// How an origin is spoken to.
#[derive(Clone, Debug)]
pub struct OriginManners {
    /// Whether the origin sees the host that the visitor asked for, or its own.
    pub keep_host: bool,
    pub connect_timeout: Duration,
    /// From the request to the first byte of the answer.
    pub answer_timeout: Duration,
    /// Between two pieces of an answer.
    pub idle_timeout: Duration,
    /// Requests at the origins of this site at once; one more is told to come back.
    pub in_flight_max: usize,
    /// Connections kept for later, for each origin.
    pub idle_connections_max: usize,
    /// Asked now and then to see whether the origin lives; none asks nothing.
    pub health_path: Option<String>,
    pub health_every: Duration,
    /// Whose certificates an origin may show, as a file; none is those that the machine trusts.
    pub ca: Option<PathBuf>,
}

impl Default for OriginManners {
    fn default() -> OriginManners {
        OriginManners {
            keep_host: true,
            connect_timeout: Duration::from_secs(3),
            answer_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(60),
            in_flight_max: 10_000,
            idle_connections_max: 256,
            health_path: None,
            health_every: Duration::from_secs(5),
            ca: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub when: When,
    pub room: RoomName,
}

/// A description of requests. What it does not mention does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct When {
    pub host: Option<String>,
    pub path: Option<String>,
    pub methods: Vec<Method>,
    /// A header that must be there, with this value if one is given.
    pub header: Option<(HeaderName, Option<String>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crawlers {
    /// They wait like everybody; 503 tells them to come back.
    Wait,
    /// Who calls itself a known crawler passes. Anybody can call himself so: for sites that
    /// would rather be found than be strict.
    Pass,
}

/// How somebody without a pass is sent to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// The waiting page stands where the site was asked for.
    Page,
    /// A redirect to the waiting page.
    Redirect,
}

/// What happens while the room cannot be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fail {
    /// Nobody new comes in.
    Closed,
    /// Up to so many a second come in without a pass, at this gate.
    Open { per_s: u32 },
}

/// For which purpose a description is held against a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
    Protecting,
    LettingBy,
}

impl Site {
    /// A site that is nothing but a room, without an origin of ours.
    pub fn of_room(room: RoomName) -> Site {
        Site {
            name: room.to_string(),
            hosts: Vec::new(),
            room: Some(room),
            rules: Vec::new(),
            bypass: Vec::new(),
            crawlers: Crawlers::Wait,
            waiting: Waiting::Page,
            waiting_status: StatusCode::SERVICE_UNAVAILABLE,
            fail: Fail::Closed,
            checked_for: Duration::from_secs(60),
            only_way_in: false,
            gates: Vec::new(),
            room_at: None,
            origins: Vec::new(),
            manners: OriginManners::default(),
            adaptive: None,
        }
    }

    /// Whether the host is one of this site's.
    pub fn has_host(&self, host: &str) -> bool {
        self.hosts.is_empty() || self.hosts.iter().any(|pattern| glob::fits(pattern, host))
    }

    /// The room that this request belongs to.
    pub fn room_of(&self, facts: &Facts<'_>, path: &Path<'_>) -> Option<&RoomName> {
        let ruled = self.rules.iter().find(|rule| rule.when.fits(facts, path, For::Protecting));
        ruled.map(|rule| &rule.room).or(self.room.as_ref())
    }

    pub fn lets_by(&self, facts: &Facts<'_>, path: &Path<'_>) -> bool {
        self.bypass.iter().any(|when| when.fits(facts, path, For::LettingBy))
    }

    /// Every room that this site sends people to.
    pub fn rooms(&self) -> impl Iterator<Item = &RoomName> {
        self.room.iter().chain(self.rules.iter().map(|rule| &rule.room))
    }
}

impl When {
    fn fits(&self, facts: &Facts<'_>, path: &Path<'_>, purpose: For) -> bool {
        let path_fits = |pattern: &str| match purpose {
            For::Protecting => path.may_be(pattern),
            For::LettingBy => path.surely_is(pattern),
        };
        let header_fits = |(name, value): &(HeaderName, Option<String>)| {
            let mut found = facts.headers.get_all(name).iter();
            match value {
                None => found.next().is_some(),
                Some(value) => found.any(|it| it.as_bytes() == value.as_bytes()),
            }
        };
        self.host.as_deref().is_none_or(|host| glob::fits(host, facts.host))
            && (self.methods.is_empty() || self.methods.contains(facts.method))
            && self.path.as_deref().is_none_or(path_fits)
            && self.header.as_ref().is_none_or(header_fits)
    }
}
