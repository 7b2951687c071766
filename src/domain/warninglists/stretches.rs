//! The addresses of one version of IP, cut into stretches that are all on the same lists.

use std::collections::BTreeMap;

use super::{ListId, SetId};
use crate::domain::network::Network;

#[derive(Debug, Default)]
pub(super) struct Stretches {
    /// The first address of each stretch, in order. Addresses before the first are on no list.
    firsts: Vec<u128>,
    sets: Vec<SetId>,
}

impl Stretches {
    /// The stretches of these networks, each with its list.
    pub(super) fn of(networks: &[(Network, ListId)], mut set_of: impl FnMut(&[ListId]) -> SetId) -> Self {
        // Where a network begins and where the first address behind it is.
        let mut edges: Vec<(u128, bool, ListId)> = Vec::with_capacity(2 * networks.len());
        for (network, list) in networks {
            edges.push((network.first(), true, *list));
            edges.extend(network.last().checked_add(1).map(|behind| (behind, false, *list)));
        }
        edges.sort_unstable();
        let mut stretches = Self::default();
        let mut open: BTreeMap<ListId, u32> = BTreeMap::new();
        for at in edges.chunk_by(|(one, ..), (other, ..)| one == other) {
            for (_, begins, list) in at {
                let count = open.entry(*list).or_default();
                *count = if *begins {
                    *count + 1
                } else {
                    count.saturating_sub(1)
                };
                if *count == 0 {
                    open.remove(list);
                }
            }
            let lists: Vec<ListId> = open.keys().copied().collect();
            let set = set_of(&lists);
            if stretches.sets.last() != Some(&set) {
                stretches.firsts.extend(at.first().map(|(first, ..)| *first));
                stretches.sets.push(set);
            }
        }
        stretches
    }

    /// The lists that all addresses of a network are on.
    pub(super) fn lists_of(&self, network: &Network, sets: &[Box<[ListId]>]) -> Vec<ListId> {
        let next = self.firsts.partition_point(|first| *first <= network.first());
        let lists = |place: usize| -> &[ListId] {
            let set = self.sets.get(place).and_then(|set| sets.get(*set as usize));
            set.map_or(&[], |set| set)
        };
        let mut on: Vec<ListId> = next.checked_sub(1).map(lists).unwrap_or_default().to_vec();
        let inside = self.firsts.iter().enumerate().skip(next);
        for (place, _) in inside.take_while(|(_, first)| **first <= network.last()) {
            if on.is_empty() {
                break;
            }
            on.retain(|list| lists(place).contains(list));
        }
        on
    }
}
