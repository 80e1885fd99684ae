//! A sale in figures: how long people waited, how many came through, who went away and where, how
//! the pace was kept, and whether the order was.
//!
//! Lives here: the figures, and working them out from a log ([`Counting`]). The tables of
//! PostgreSQL give the same (`postgres/sale.rs`), and a test holds the two together.
//! Stays out: how they are shown.

use std::collections::BTreeMap;

use serde::Serialize;
use waitroom_core::{AdmitWhy, Ending, Entry, Event, Status, Ticket, Timestamp, What};

use crate::body::ending_word;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sale {
    pub room: String,
    pub title: String,
    /// The newest event that is in it.
    pub head: u64,
    /// Events up to here were no longer kept; 0 means that it is complete.
    pub gap_to: u64,
    /// Who was moved to another lane is counted there.
    pub joined: u64,
    pub admitted: u64,
    pub started: u64,
    pub completed: u64,
    pub no_shows: u64,
    pub waits: Vec<Waits>,
    pub drop_off: Vec<DropOff>,
    pub minutes: Vec<Minute>,
    pub fairness: Vec<Fairness>,
}

/// How long those of a lane waited until they were let in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Waits {
    pub lane: u8,
    pub admitted: u64,
    pub p50_ms: u64,
    pub p90_ms: u64,
    pub p95_ms: u64,
    pub p99_ms: u64,
    pub longest_ms: u64,
}

/// How many went away from where, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct DropOff {
    pub stage: String,
    pub ending: String,
    pub tickets: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Minute {
    /// Its beginning.
    pub at_ms: u64,
    pub joined: u64,
    pub paced: u64,
    pub by_hand: u64,
    /// The highest pace in force, in minutes in which somebody was let in; none without a pace.
    pub limit_per_minute: Option<f64>,
    pub p50_ms: Option<u64>,
    pub p90_ms: Option<u64>,
}

/// Spearman's rank correlation of joining and admission. 1 is first come, first served.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fairness {
    pub lane: u8,
    pub admitted: u64,
    /// None for fewer than two.
    pub rank_correlation: Option<f64>,
}

/// Six digits tell more than a sale can; beyond that two ways to sum up may differ.
pub(crate) fn rounded(correlation: f64) -> f64 {
    (correlation * 1e6).round() / 1e6
}

const MINUTE_MS: u64 = 60_000;

/// A log, counted event by event.
#[derive(Debug, Default)]
pub struct Counting {
    head: u64,
    gap_to: u64,
    title: String,
    people: BTreeMap<Ticket, Person>,
    admissions: Vec<Admission>,
    /// From when on which pace: none means that only operators let people in.
    paces: Vec<(Timestamp, Option<f64>)>,
}

#[derive(Debug, Default)]
struct Person {
    joined_at: Option<Timestamp>,
    started: bool,
    moved: bool,
    completed: bool,
    /// From where, and why.
    gone: Option<(&'static str, &'static str)>,
    waiting: bool,
}

#[derive(Debug)]
struct Admission {
    ticket: Ticket,
    at: Timestamp,
    waited_ms: u64,
    by_hand: bool,
}

impl Counting {
    /// Of a log that begins behind `gap_to`.
    pub fn after(gap_to: u64) -> Counting {
        Counting { head: gap_to, gap_to, ..Counting::default() }
    }

    pub fn take(&mut self, event: &Event) {
        self.head += 1;
        let at = event.at;
        match &event.what {
            What::Joined(joined) => self.joins(joined.ticket, at),
            What::Moved { from, to, joined_at, .. } => {
                let person = self.people.entry(*from).or_default();
                (person.moved, person.waiting) = (true, false);
                self.joins(*to, *joined_at);
            }
            What::Admitted { ticket, joined_at, why, entry, .. } => {
                let person = self.people.entry(*ticket).or_default();
                person.joined_at = Some(*joined_at);
                person.waiting = false;
                person.started |= matches!(entry, Entry::Claimed(_));
                let (waited_ms, by_hand) = (at.since(*joined_at).0, *why == AdmitWhy::Manual);
                self.admissions.push(Admission { ticket: *ticket, at, waited_ms, by_hand });
            }
            What::Claimed { ticket, .. } => {
                self.people.entry(*ticket).or_default().started = true;
            }
            What::Ended { ticket, was, ending, .. } => {
                let person = self.people.entry(*ticket).or_default();
                person.waiting = false;
                match ending {
                    Ending::Completed => person.completed = true,
                    other => person.gone = Some((stage(*was), ending_word(*other))),
                }
            }
            What::SaleEnded { .. } => {
                for person in self.people.values_mut().filter(|it| it.waiting) {
                    person.waiting = false;
                    person.gone = Some(("waiting", "closed"));
                }
            }
            What::Configured { settings, .. } => {
                self.title.clone_from(&settings.title);
                let pace = |it: waitroom_core::settings::Rate| {
                    f64::from(it.count) * MINUTE_MS as f64 / it.per.0 as f64
                };
                self.paces.push((at, settings.rate.map(pace)));
            }
            _ => {}
        }
    }

    fn joins(&mut self, ticket: Ticket, joined_at: Timestamp) {
        let person = self.people.entry(ticket).or_default();
        person.joined_at = Some(joined_at);
        person.waiting = true;
    }

    pub fn finish(self, room: &str) -> Sale {
        let people = || self.people.values().filter(|it| !it.moved);
        let count = |of: &dyn Fn(&Person) -> bool| people().filter(|it| of(it)).count() as u64;
        let mut drop_off: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for gone in people().filter_map(|it| it.gone) {
            *drop_off.entry(gone).or_default() += 1;
        }
        let lanes = self.by_lane();
        Sale {
            room: room.to_owned(),
            title: self.title.clone(),
            head: self.head,
            gap_to: self.gap_to,
            joined: people().count() as u64,
            admitted: self.admissions.len() as u64,
            started: count(&|it| it.started),
            completed: count(&|it| it.completed),
            no_shows: count(&|it| it.gone.is_some_and(|(_, ending)| ending == "no_show")),
            waits: lanes.iter().map(|(lane, all)| waits(*lane, all)).collect(),
            drop_off: drop_off
                .into_iter()
                .map(|((stage, ending), tickets)| DropOff {
                    stage: stage.into(),
                    ending: ending.into(),
                    tickets,
                })
                .collect(),
            minutes: self.minutes(),
            fairness: lanes.iter().map(|(lane, all)| fairness(*lane, all)).collect(),
        }
    }

    fn by_lane(&self) -> BTreeMap<u8, Vec<&Admission>> {
        let mut lanes: BTreeMap<u8, Vec<&Admission>> = BTreeMap::new();
        for admission in &self.admissions {
            lanes.entry(admission.ticket.lane.0).or_default().push(admission);
        }
        lanes
    }

    fn minutes(&self) -> Vec<Minute> {
        let mut minutes: BTreeMap<u64, (Minute, Vec<u64>)> = BTreeMap::new();
        let begin = |at: Timestamp| at.0 / MINUTE_MS * MINUTE_MS;
        for person in self.people.values().filter(|it| !it.moved) {
            let Some(joined_at) = person.joined_at else { continue };
            minutes.entry(begin(joined_at)).or_default().0.joined += 1;
        }
        for it in &self.admissions {
            let (minute, waits) = minutes.entry(begin(it.at)).or_default();
            minute.paced += u64::from(!it.by_hand);
            minute.by_hand += u64::from(it.by_hand);
            waits.push(it.waited_ms);
        }
        let told = |(at_ms, (mut minute, mut waits)): (u64, (Minute, Vec<u64>))| {
            minute.at_ms = at_ms;
            waits.sort_unstable();
            if !waits.is_empty() {
                minute.limit_per_minute = self.pace_in(at_ms);
                minute.p50_ms = Some(percentile(&waits, 50));
                minute.p90_ms = Some(percentile(&waits, 90));
            }
            minute
        };
        minutes.into_iter().map(told).collect()
    }

    /// The highest pace that was in force in the minute that begins then.
    fn pace_in(&self, at_ms: u64) -> Option<f64> {
        let until = self.paces.iter().skip(1).map(|(at, _)| at.0).chain([u64::MAX]);
        let in_force = self
            .paces
            .iter()
            .zip(until)
            .filter(|((since, _), until)| since.0 < at_ms + MINUTE_MS && *until > at_ms);
        in_force.filter_map(|((_, pace), _)| *pace).max_by(f64::total_cmp)
    }
}

fn stage(was: Status) -> &'static str {
    match was {
        Status::Waiting => "waiting",
        Status::Admitted => "admitted",
        _ => "active",
    }
}

/// The smallest that so many in a hundred do not exceed. Of a sorted list that is not empty.
fn percentile(sorted: &[u64], percent: usize) -> u64 {
    sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1]
}

fn waits(lane: u8, all: &[&Admission]) -> Waits {
    let mut waits: Vec<u64> = all.iter().map(|it| it.waited_ms).collect();
    waits.sort_unstable();
    let of = |percent| percentile(&waits, percent);
    Waits {
        lane,
        admitted: waits.len() as u64,
        p50_ms: of(50),
        p90_ms: of(90),
        p95_ms: of(95),
        p99_ms: of(99),
        longest_ms: of(100),
    }
}

/// `all` is in the order of admission; numbers are the order of joining, and neither has ties.
fn fairness(lane: u8, all: &[&Admission]) -> Fairness {
    let mut came: Vec<(u64, usize)> =
        all.iter().enumerate().map(|(went, it)| (it.ticket.number.0, went)).collect();
    came.sort_unstable();
    let squares: u128 = came
        .iter()
        .enumerate()
        .map(|(came, (_, went))| (came.abs_diff(*went) as u128).pow(2))
        .sum();
    let n = all.len() as f64;
    let rank_correlation =
        (all.len() > 1).then(|| rounded(1.0 - 6.0 * squares as f64 / (n * (n * n - 1.0))));
    Fairness { lane, admitted: all.len() as u64, rank_correlation }
}
