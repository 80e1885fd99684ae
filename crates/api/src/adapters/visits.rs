//! What is known of sessions besides the log: pages looked at, and from where.
//!
//! Two generations of a bounded table: when the young one is full it becomes the old one, and the
//! old one is forgotten. Who was seen lately is in one of the two, whatever the load.

use std::collections::HashMap;
use std::net::IpAddr;

use waitroom_core::id::TicketId;

/// Sessions in one generation; some 150 bytes each, so both together stay around 30 MB.
const GENERATION: usize = 100_000;

#[derive(Debug, Default)]
pub struct Visits {
    young: HashMap<TicketId, Visit>,
    old: HashMap<TicketId, Visit>,
}

/// One session, as far as it told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visit {
    pub page_views: u64,
    pub last_seen_ms: u64,
    /// The network, not the address.
    pub network: Option<String>,
    /// A keyed hash, not the text.
    pub user_agent: Option<String>,
}

/// Who asks, already without what would name a person.
#[derive(Clone, Debug, Default)]
pub struct Traces {
    pub network: Option<String>,
    pub user_agent: Option<String>,
}

impl Visits {
    pub fn of(&self, id: TicketId) -> Option<&Visit> {
        self.young.get(&id).or_else(|| self.old.get(&id))
    }

    /// Notes that the visitor was seen, and counts `pages`. Returns the views so far.
    pub fn note(&mut self, id: TicketId, now_ms: u64, pages: u64, traces: Traces) -> u64 {
        if !self.young.contains_key(&id) {
            if self.young.len() >= GENERATION {
                self.old = std::mem::take(&mut self.young);
            }
            let known = self.old.remove(&id).unwrap_or_default();
            self.young.insert(id, known);
        }
        let visit = self.young.entry(id).or_default();
        visit.page_views += pages;
        visit.last_seen_ms = visit.last_seen_ms.max(now_ms);
        visit.network = traces.network.or(visit.network.take());
        visit.user_agent = traces.user_agent.or(visit.user_agent.take());
        visit.page_views
    }
}

/// Enough of an address to see that two visits came from one place, too little to find a person.
pub fn network(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            format!("{a}.{b}.{c}.0/24")
        }
        IpAddr::V6(address) => {
            let kept = std::net::Ipv6Addr::from(u128::from(address) >> 80 << 80);
            format!("{kept}/48")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> TicketId {
        TicketId::from_bytes(number.to_be_bytes())
    }

    #[test]
    fn the_table_forgets_the_longest_unseen_and_never_grows() {
        let mut visits = Visits::default();
        for number in 0..3 * GENERATION as u128 {
            visits.note(id(number), 1, 1, Traces::default());
            // Somebody who keeps coming is remembered through all of it.
            visits.note(id(7), 1, 1, Traces::default());
        }
        assert!(visits.young.len() + visits.old.len() <= 2 * GENERATION);
        assert_eq!(visits.of(id(7)).map(|it| it.page_views), Some(3 * GENERATION as u64 + 1));
        assert_eq!(visits.of(id(8)), None);
    }

    #[test]
    fn what_is_not_told_again_is_kept() {
        let mut visits = Visits::default();
        let told = Traces { network: Some("192.0.2.0/24".into()), user_agent: Some("ab".into()) };
        assert_eq!(visits.note(id(1), 5, 1, told), 1);
        assert_eq!(visits.note(id(1), 4, 1, Traces::default()), 2);
        let visit = visits.of(id(1)).expect("it was noted");
        assert_eq!((visit.last_seen_ms, visit.network.as_deref()), (5, Some("192.0.2.0/24")));
    }

    #[test]
    fn addresses_lose_the_part_that_names_a_household() {
        let cut = |text: &str| network(text.parse().expect("an address"));
        assert_eq!(cut("192.0.2.77"), "192.0.2.0/24");
        assert_eq!(cut("::ffff:192.0.2.77"), "192.0.2.0/24");
        assert_eq!(cut("2001:db8:1:2:3:4:5:6"), "2001:db8:1::/48");
    }
}
