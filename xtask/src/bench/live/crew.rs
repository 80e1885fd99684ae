//! Crowds in their processes, as the benchmark directs them.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use super::frames::Carrier;
use crate::bench::serving::Child;
use crate::bench::serving::crowd::Person;
use crate::bench::serving::peer;
use crate::failure::{Failure, OrFail, Outcome};

/// Opening takes a second for some thousand channels on a quiet machine.
const OPEN_LIMIT: Duration = Duration::from_secs(180);
/// Longer than the crowd's own patience, whose words are the better ones.
const HEAR_LIMIT: Duration = Duration::from_secs(40);

/// Live channels of so many people to one address.
#[derive(Debug)]
pub struct Crew {
    child: Child,
    pub size: usize,
}

/// When the last channel had the news, and how many letters came meanwhile.
#[derive(Debug, Clone, Copy)]
pub struct Heard {
    pub at_ns: u64,
    pub letters: u64,
}

impl Crew {
    /// Opens a channel for each of `people`. Their tokens go through a file in `folder`.
    pub fn open(
        carrier: Carrier,
        address: SocketAddr,
        people: &[Person],
        folder: &Path,
        core: usize,
    ) -> Outcome<Self> {
        let mut crew = Self::send(carrier, address, people, folder, core)?;
        crew.until_open()?;
        Ok(crew)
    }

    /// The same without waiting: several crews open side by side.
    pub fn send(
        carrier: Carrier,
        address: SocketAddr,
        people: &[Person],
        folder: &Path,
        core: usize,
    ) -> Outcome<Self> {
        let file = folder.join(format!("tokens-{}-{}", carrier.word(), address.port()));
        let tokens: String = people.iter().map(|person| format!("{}\n", person.token)).collect();
        fs::write(&file, tokens).or_fail(|| format!("write {}", file.display()))?;
        let words = format!("clients {} {address} {}", carrier.word(), file.display());
        Ok(Self { child: peer::start("live", &words, core)?, size: people.len() })
    }

    pub fn until_open(&mut self) -> Outcome {
        let said = self.child.line(OPEN_LIMIT)?;
        match said.strip_prefix("open ").and_then(|open| open.parse::<usize>().ok()) {
            Some(open) if self.size == open => Ok(()),
            _ => Err(Failure::new(format!("{} channels were to open: {said}", self.size))),
        }
    }

    /// From now on a board newer than `version` is news.
    pub fn mark(&mut self, version: u64) -> Outcome {
        self.child.tell(&format!("mark {version}"))?;
        match self.child.line(HEAR_LIMIT)?.as_str() {
            "marked" => Ok(()),
            other => Err(Failure::new(format!("the crowd says {other:?}"))),
        }
    }

    /// Waits until every channel has had the news.
    pub fn heard(&mut self) -> Outcome<Heard> {
        let said = self.child.line(HEAR_LIMIT)?;
        let numbers = said.strip_prefix("heard ").and_then(|rest| rest.split_once(' '));
        let heard = numbers.and_then(|(at, letters)| {
            Some(Heard { at_ns: at.parse().ok()?, letters: letters.parse().ok()? })
        });
        heard.ok_or_else(|| Failure::new(format!("the crowd says {said:?}")))
    }
}
