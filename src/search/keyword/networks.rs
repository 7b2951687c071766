//! The addresses and networks that documents have as keys, in order, so that an address finds the networks around it and
//! a network what lies inside it.
//!
//! Each class of documents has lists of its own: what the caller may not see is not even passed over. A segment's lists
//! are made once, by the first look-up, since a segment never changes; that of a commit in memory by each.

use std::collections::BTreeMap;

use tantivy::DocId;
use uuid::Uuid;

use super::Keywords;
use super::segments::Segment;
use crate::domain::network::{Network, Version};
use crate::search::document::{CompiledFilter, KeyKind, RowFilter};
use crate::search::error::SearchError;

/// Keys of addresses and networks lie between these: they begin with a hexadecimal digit or a colon.
pub(super) const FIRST_KEY: &str = "0";
pub(super) const END_KEY: &str = "g";
/// Maximum number of nodes that have a network around one looked up.
const MAX_AROUND: usize = 100;

/// The address or network that a key is.
pub(super) fn network_of_key(key: &str) -> Option<Network> {
    let is_written_so = |b: u8| b.is_ascii_hexdigit() || matches!(b, b'.' | b':' | b'/');
    let is_one = key.len() <= 43 && key.contains(['.', ':']) && key.bytes().all(is_written_so);
    is_one.then(|| Network::read(key)).flatten()
}

/// A network that a document has.
#[derive(Debug, Clone, Copy)]
struct NetworkRow {
    network: Network,
    doc: DocId,
    /// Place of the smallest network around it in the list, plus one; 0 if there is none.
    outer: u32,
}

/// The networks and addresses of one class of documents and one version of IP, each in ascending order. Of two networks one
/// contains the other, or they share no address.
#[derive(Debug, Default)]
struct Lists {
    networks: Vec<NetworkRow>,
    /// Numbers of IPv4 addresses.
    short: Vec<(u32, DocId)>,
    /// Numbers of IPv6 addresses.
    long: Vec<(u128, DocId)>,
}

impl Lists {
    fn add(&mut self, network: Network, doc: DocId) {
        match (network.is_address(), network.version) {
            (false, _) => self.networks.push(NetworkRow {
                network,
                doc,
                outer: 0,
            }),
            // The number of an IPv4 address has 32 bits.
            (true, Version::V4) => self.short.push((network.first() as u32, doc)),
            (true, Version::V6) => self.long.push((network.first(), doc)),
        }
    }

    fn sort(&mut self) {
        self.networks.shrink_to_fit();
        self.short.shrink_to_fit();
        self.long.shrink_to_fit();
        self.networks.sort_unstable_by_key(|row| (row.network, row.doc));
        self.short.sort_unstable();
        self.long.sort_unstable();
        let mut open: Vec<(Network, u32)> = Vec::new();
        for (place, row) in (1..).zip(&mut self.networks) {
            while open
                .last()
                .is_some_and(|(outer, _)| !outer.contains(&row.network))
            {
                open.pop();
            }
            row.outer = open.last().map_or(0, |(_, place)| *place);
            open.push((row.network, place));
        }
    }

    /// Number of networks that come no later than this one.
    fn up_to(&self, network: &Network) -> usize {
        self.networks.partition_point(|row| row.network <= *network)
    }

    /// The networks that contain this one, itself included, the smallest first.
    fn around(&self, network: Network) -> impl Iterator<Item = (Network, DocId)> {
        let mut next = self.up_to(&network);
        let rows = std::iter::from_fn(move || {
            let row = self.networks.get(next.checked_sub(1)?)?;
            next = row.outer as usize;
            Some((row.network, row.doc))
        });
        rows.filter(move |(outer, _)| outer.contains(&network))
    }

    /// What lies inside this network and is smaller, networks first.
    fn inside(&self, network: Network) -> impl Iterator<Item = (Network, DocId)> {
        let (first, last) = (network.first(), network.last());
        let networks = self.networks.get(self.up_to(&network)..).unwrap_or_default();
        let networks = networks.iter().map(|row| (row.network, row.doc));
        let short = self
            .short
            .partition_point(|(number, _)| u128::from(*number) < first);
        let short = self.short.get(short..).unwrap_or_default().iter();
        let long = self.long.partition_point(|(number, _)| *number < first);
        let long = self.long.get(long..).unwrap_or_default().iter();
        let addresses = short
            .map(|(number, doc)| (u128::from(*number), *doc))
            .chain(long.copied())
            .take_while(move |(number, _)| *number <= last);
        let at = move |(number, doc)| Some((Network::of_number(network.version, number)?, doc));
        networks
            .take_while(move |(inner, _)| inner.first() <= last)
            .chain(addresses.filter_map(at))
    }
}

/// The addresses and networks of a set of documents.
#[derive(Debug, Default)]
pub(in crate::search) struct NetworkBook {
    lists: BTreeMap<(u8, Version), Lists>,
}

impl NetworkBook {
    /// The book of documents, each with its class.
    pub(super) fn of(entries: impl Iterator<Item = (Network, DocId, u8)>) -> Self {
        let mut book = Self::default();
        for (network, doc, class) in entries {
            let lists = book.lists.entry((class, network.version)).or_default();
            lists.add(network, doc);
        }
        book.lists.values_mut().for_each(Lists::sort);
        book
    }

    /// The book of a segment. Reads every key that may be an address.
    pub(super) fn of_segment(segment: &Segment) -> Result<Self, SearchError> {
        let mut entries = Vec::new();
        let keys = segment.keys.terms().range().ge(FIRST_KEY).lt(END_KEY);
        let mut keys = keys.into_stream()?;
        while keys.advance() {
            let key = std::str::from_utf8(keys.key()).unwrap_or_default();
            let Some(network) = network_of_key(key) else {
                continue;
            };
            segment.carriers(keys.value(), |doc, kind| {
                if kind != KeyKind::Alias {
                    entries.push((network, doc, segment.class(doc)));
                }
                true
            })?;
        }
        Ok(Self::of(entries.into_iter()))
    }

    /// The lists of the classes and the version asked for.
    fn lists<'b>(&'b self, version: Version, allowed: &'b CompiledFilter) -> impl Iterator<Item = &'b Lists> {
        let shown = move |(class, of): &(u8, Version)| *of == version && allowed.class(*class);
        let lists = self.lists.iter().filter(move |(key, _)| shown(key));
        lists.map(|(_, lists)| lists)
    }
}

/// What is known around and inside a network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkHits {
    /// The nodes that have a network that contains it, the smallest networks first.
    pub around: Vec<(Network, Uuid)>,
    /// The nodes that have an address or a smaller network inside it, in ascending order.
    pub inside: Vec<(Network, Uuid)>,
}

impl NetworkHits {
    fn sort(&mut self, most_inside: usize) {
        self.around
            .sort_unstable_by_key(|(network, node)| (std::cmp::Reverse(network.length()), *node));
        self.around.dedup();
        self.around.truncate(MAX_AROUND);
        self.inside.sort_unstable();
        self.inside.dedup();
        self.inside.truncate(most_inside);
    }
}

impl Keywords<'_> {
    /// The visible nodes around and inside each network, at most so many inside each.
    pub(in crate::search) fn networks(
        &self,
        networks: &[Network],
        allowed: &CompiledFilter,
        most_inside: usize,
    ) -> Result<Vec<NetworkHits>, SearchError> {
        let mut found = vec![NetworkHits::default(); networks.len()];
        let fresh = self.fresh.networks();
        let node_of = |slot: DocId| {
            let (node, class) = self.fresh.node_at(slot)?;
            allowed.row(class, &self.table_entry(node)).then_some(node)
        };
        take(&fresh, networks, allowed, most_inside, &node_of, &mut found);
        for rows in self.rows() {
            let node_of = |doc| rows.shows(doc, allowed).then(|| rows.segment.node(doc));
            let book = rows.segment.networks()?;
            take(book, networks, allowed, most_inside, &node_of, &mut found);
        }
        found.iter_mut().for_each(|found| found.sort(most_inside));
        Ok(found)
    }
}

/// Adds what a book has around and inside the networks.
fn take(
    book: &NetworkBook,
    networks: &[Network],
    allowed: &CompiledFilter,
    most_inside: usize,
    node_of: &dyn Fn(DocId) -> Option<Uuid>,
    found: &mut [NetworkHits],
) {
    for (network, found) in networks.iter().zip(found) {
        for lists in book.lists(network.version, allowed) {
            let shown = |(network, doc)| Some((network, node_of(doc)?));
            found
                .around
                .extend(lists.around(*network).filter_map(shown).take(MAX_AROUND));
            if !network.is_address() {
                found
                    .inside
                    .extend(lists.inside(*network).filter_map(shown).take(most_inside));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn network() -> impl Strategy<Value = Network> {
        let v4 = (any::<u8>(), 24u8..=32).prop_map(|(last, length)| format!("192.0.2.{last}/{length}"));
        let wide = (any::<u8>(), 0u8..=24).prop_map(|(third, length)| format!("192.0.{third}.0/{length}"));
        let v6 = (any::<u8>(), 100u8..=128).prop_map(|(last, length)| format!("2001:db8::{last:x}/{length}"));
        prop_oneof![v4, wide, v6].prop_map(|text| Network::read(&text).unwrap())
    }

    #[test]
    fn an_indicator_takes_at_most_48_bytes() {
        assert_eq!(size_of::<(u32, DocId)>(), 8);
        assert_eq!(size_of::<(u128, DocId)>(), 32);
        assert!(size_of::<NetworkRow>() <= 48);
        let text = |n: u32| match n % 3 {
            0 => format!("10.{}.{}.0/24", n / 256 % 256, n % 256),
            1 => format!("192.0.{}.{}", n / 256 % 256, n % 256),
            _ => format!("2001:db8::{n:x}"),
        };
        let entries = (0..1000).map(|n| (Network::read(&text(n)).unwrap(), n, 7));
        let book = NetworkBook::of(entries);
        for lists in book.lists.values() {
            assert_eq!(lists.networks.capacity(), lists.networks.len());
            assert_eq!(lists.short.capacity(), lists.short.len());
            assert_eq!(lists.long.capacity(), lists.long.len());
        }
    }

    proptest! {
        #[test]
        fn lists_find_what_comparing_each_finds(
            stored in prop::collection::vec(network(), 0..40),
            asked in network(),
        ) {
            let entries = (0..).zip(&stored).map(|(doc, network)| (*network, doc, 7));
            let book = NetworkBook::of(entries);
            let empty = Lists::default();
            let lists = book.lists.get(&(7, asked.version)).unwrap_or(&empty);
            let of = |keeps: &dyn Fn(&Network) -> bool| {
                let found = (0..).zip(&stored).filter(|(_, network)| keeps(network));
                let mut found: Vec<(Network, DocId)> = found.map(|(doc, network)| (*network, doc)).collect();
                found.sort_unstable();
                found
            };
            let mut around: Vec<_> = lists.around(asked).collect();
            prop_assert!(around.is_sorted_by_key(|(network, _)| std::cmp::Reverse(network.length())));
            around.sort_unstable();
            prop_assert_eq!(around, of(&|network| !network.is_address() && network.contains(&asked)));
            let mut inside: Vec<_> = lists.inside(asked).collect();
            inside.sort_unstable();
            let is_inside = |network: &Network| asked.contains(network) && *network != asked;
            if !asked.is_address() {
                prop_assert_eq!(inside, of(&is_inside));
            }
        }
    }

    #[test]
    fn keys_that_are_addresses_are_told_from_others() {
        for (key, want) in [
            ("192.0.2.1", true),
            ("192.0.2.0/24", true),
            ("2001:db8::/32", true),
            ("::1", true),
            ("example.com/24", false),
            ("2024.3094", false),
            ("abba", false),
            ("192.0.2.0/24/x", false),
        ] {
            assert_eq!(network_of_key(key).is_some(), want, "{key}");
        }
    }
}
