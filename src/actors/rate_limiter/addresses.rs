//! Windows of callers who are known by nothing but their address. Anybody can have many addresses, so their number is
//! bounded. When it is exceeded, whoever has been silent for longest is forgotten.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use metrics::counter;

use super::RateState;
use super::network::Network;
use super::window::{Limit, Windows};

/// Most addresses that are remembered, all groups together. One takes about 300 bytes, so 30 MiB.
const MAX_ADDRESSES: usize = 100_000;
/// Most entries in their windows. One takes 24 bytes and up to as much again to grow, so 48 MiB.
const MAX_ENTRIES: usize = 1_000_000;

/// The addresses of all groups of routes.
#[derive(Debug)]
pub(super) struct Addresses {
    groups: BTreeMap<&'static str, Group>,
    /// Addresses of all groups, and entries in all their windows.
    addresses: usize,
    entries: usize,
    /// Counts admitted requests.
    turn: u64,
    most_addresses: usize,
    most_entries: usize,
}

/// Addresses with windows of the same lengths.
#[derive(Debug, Default)]
struct Group {
    seen: HashMap<Network, AddressEntry>,
    /// By their last admitted request. As their windows are alike, this is also the order in which they expire.
    order: BTreeMap<u64, Network>,
}

#[derive(Debug)]
struct AddressEntry {
    windows: Windows,
    /// The last admitted request: its number and its time.
    turn: u64,
    last: Instant,
}

impl Default for Addresses {
    fn default() -> Self {
        Self {
            groups: BTreeMap::new(),
            addresses: 0,
            entries: 0,
            turn: 0,
            most_addresses: MAX_ADDRESSES,
            most_entries: MAX_ENTRIES,
        }
    }
}

impl Addresses {
    /// Counts a request. All requests of a group must come with windows of the same lengths.
    pub(super) fn take(
        &mut self,
        group: &'static str,
        network: Network,
        limits: &[Limit],
        now: Instant,
    ) -> RateState {
        self.turn += 1;
        let Group { seen, order } = self.groups.entry(group).or_default();
        let seen = seen.entry(network).or_insert_with(|| {
            self.addresses += 1;
            AddressEntry {
                windows: Windows::new(limits, now),
                turn: self.turn,
                last: now,
            }
        });
        self.entries -= seen.windows.entries();
        let state = seen.windows.take(limits, now);
        self.entries += seen.windows.entries();
        if state.allowed {
            order.remove(&seen.turn);
            seen.turn = self.turn;
            seen.last = now;
        }
        order.entry(seen.turn).or_insert(network);
        self.make_room(now);
        state
    }

    /// Forgets the addresses whose windows are empty.
    pub(super) fn sweep(&mut self, now: Instant) {
        while let Some(group) = self.expired_group(now) {
            self.forget_first(group);
        }
    }

    /// Forgets the least recent addresses until there are few enough, in constant time for each.
    fn make_room(&mut self, now: Instant) {
        while self.addresses > self.most_addresses || self.entries > self.most_entries {
            let expired = self.expired_group(now);
            let Some(group) = expired.or_else(|| self.least_recent()) else {
                return;
            };
            self.forget_first(group);
            if expired.is_none() {
                counter!("rate_limit_forgotten_total").increment(1);
            }
        }
    }

    /// A group whose first address has expired.
    fn expired_group(&self, now: Instant) -> Option<&'static str> {
        let mut groups = self.groups.iter();
        let found = groups.find(|(_, group)| group.first().is_some_and(|seen| seen.has_expired(now)));
        found.map(|(name, _)| *name)
    }

    /// The group with the address whose last admitted request is the longest ago.
    fn least_recent(&self) -> Option<&'static str> {
        let firsts = self.groups.iter();
        let firsts = firsts.filter_map(|(name, group)| Some((group.order.first_key_value()?.0, *name)));
        firsts.min().map(|(_, name)| name)
    }

    fn forget_first(&mut self, group: &'static str) {
        let group = self.groups.get_mut(group);
        let forgotten = group.and_then(|group| group.seen.remove(&group.order.pop_first()?.1));
        if let Some(seen) = forgotten {
            self.addresses -= 1;
            self.entries -= seen.windows.entries();
        }
    }
}

impl Group {
    fn first(&self) -> Option<&AddressEntry> {
        self.seen.get(self.order.first_key_value()?.1)
    }
}

impl AddressEntry {
    fn has_expired(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last) >= self.windows.span()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use test_support::{extent, is_full};

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const DAY: Duration = Duration::from_secs(86_400);

    fn network(n: u32) -> Network {
        Network::of(Ipv4Addr::from(n + (10 << 24)).into())
    }

    fn small(most_addresses: usize, most_entries: usize) -> Addresses {
        Addresses {
            most_addresses,
            most_entries,
            ..Addresses::default()
        }
    }

    fn knows(addresses: &Addresses, group: &str, n: u32) -> bool {
        addresses.groups[group].seen.contains_key(&network(n))
    }

    #[test]
    fn a_flood_of_addresses_is_bounded_and_costs_the_same_from_its_beginning_to_its_end() {
        let most = extent(10_000, MAX_ADDRESSES);
        let (mut addresses, start) = (small(most, MAX_ENTRIES), Instant::now());
        let limits = [(10, MINUTE), (200, DAY)];
        let mut tenths = Vec::new();
        for tenth in 0..10 {
            let since = Instant::now();
            for n in tenth * most as u32..(tenth + 1) * most as u32 {
                let state = addresses.take(
                    "demo",
                    network(n),
                    &limits,
                    start + Duration::from_micros(n.into()),
                );
                assert_eq!((state.allowed, state.remaining), (true, 9));
            }
            tenths.push(since.elapsed());
            let demo = &addresses.groups["demo"];
            assert_eq!((addresses.addresses, addresses.entries), (most, 2 * most));
            assert_eq!((demo.seen.len(), demo.order.len()), (most, most));
        }
        // The first tenth only fills the store. The others forget an address for each new one.
        let (second, last) = (tenths[1], tenths[9]);
        assert!(!is_full() || last < second * 3, "{tenths:?}");
    }

    #[test]
    fn the_expired_go_first_and_then_those_that_were_admitted_longest_ago() {
        let (mut addresses, start) = (small(3, 100), Instant::now());
        let second = Duration::from_secs(1);
        let at = |seconds: u32| start + second * seconds;
        addresses.take("day", network(1), &[(1, DAY)], at(0));
        addresses.take("minute", network(2), &[(5, MINUTE)], at(1));
        addresses.take("day", network(3), &[(5, DAY)], at(2));
        // Refused, so it does not become more recent.
        assert!(!addresses.take("day", network(1), &[(1, DAY)], at(3)).allowed);
        addresses.take("day", network(4), &[(5, DAY)], at(90));
        assert!(!knows(&addresses, "minute", 2), "it had expired");
        assert!(knows(&addresses, "day", 1));
        addresses.take("day", network(5), &[(5, DAY)], at(91));
        assert!(!knows(&addresses, "day", 1), "it was the least recent");
        addresses.take("day", network(3), &[(5, DAY)], at(92));
        addresses.take("day", network(6), &[(5, DAY)], at(93));
        assert!(knows(&addresses, "day", 3) && !knows(&addresses, "day", 4));
        addresses.sweep(at(95) + DAY);
        assert_eq!((addresses.addresses, addresses.entries), (0, 0));
    }

    #[test]
    fn the_least_recent_is_found_among_all_groups() {
        let (mut addresses, start) = (small(2, 100), Instant::now());
        let limits = [(5, DAY)];
        for (group, n) in [("b", 1), ("a", 2), ("c", 3)] {
            addresses.take(group, network(n), &limits, start);
        }
        assert!(!knows(&addresses, "b", 1));
        assert!(knows(&addresses, "a", 2) && knows(&addresses, "c", 3));
    }

    #[test]
    fn long_logs_are_bounded_too() {
        let (mut addresses, start) = (small(1000, 100), Instant::now());
        for n in 0..2000_u32 {
            let now = start + Duration::from_secs(n.into());
            assert!(addresses.take("a", network(n % 20), &[(1000, DAY)], now).allowed);
            assert!(addresses.entries <= 100);
        }
        let counted: usize = addresses.groups["a"]
            .seen
            .values()
            .map(|seen| seen.windows.entries())
            .sum();
        assert_eq!(addresses.entries, counted);
    }
}
