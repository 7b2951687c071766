//! Look-up of a list of values among the entities, with the notes that mention each.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::NoteCore;
use super::graph::{EntityState, MemoryGraph};
use crate::actors::worker::{Access, Work};
use crate::domain::error::DomainError;
use crate::domain::kinds::EntityKind;
use crate::domain::lookup::{
    AskedValue, EntityHit, LookupMatch, LookupOfEntities, LookupResult, LookupSummary, MAX_HITS, MAX_NOTES,
    parents_of,
};
use crate::domain::memory::entity::EntityKey;
use crate::domain::memory::view::Page;
use crate::domain::network::{Network, Version};
use crate::domain::node::NodeType;

const ADDRESSES: [EntityKind; 3] = [EntityKind::Ipv4, EntityKind::Ipv6, EntityKind::Cidr];

/// Looks values up among the entities.
#[derive(Debug)]
pub struct LookUpEntities(pub Vec<AskedValue>);

impl Work for LookUpEntities {
    type Core = NoteCore;
    type Reply = LookupOfEntities;
    const NAME: &'static str = "look_up";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) {}

    async fn run(self, core: Arc<NoteCore>) -> Result<Self::Reply, DomainError> {
        let warninglists = core.warninglists.current();
        core.look(move |graph| {
            let networks = Networks::of(graph);
            let results: Vec<LookupResult<EntityHit>> = self
                .0
                .into_iter()
                .map(|asked| {
                    let hits = graph.hits_of(&asked, &networks);
                    let listed = warninglists.of(asked.kind, &asked.value);
                    LookupResult::new(asked, listed, hits, |hit: &EntityHit| hit.matched)
                })
                .collect();
            LookupOfEntities {
                summary: LookupSummary::of(results.iter().map(|result| result.verdict)),
                results,
            }
        })
        .await
    }
}

/// The entities that are addresses and networks, in order.
struct Networks<'g> {
    all: Vec<(Network, &'g EntityState)>,
    places: HashMap<Network, usize>,
    /// The lengths that occur, the longest first.
    lengths: Vec<(Version, u8)>,
}

impl<'g> Networks<'g> {
    fn of(graph: &'g MemoryGraph) -> Self {
        let mut all: Vec<(Network, &EntityState)> = ADDRESSES
            .iter()
            .flat_map(|kind| graph.entities_of_type(kind.row().local))
            .filter_map(|(_, entity)| Some((Network::read(&entity.value)?, entity)))
            .collect();
        let merged = ADDRESSES
            .iter()
            .flat_map(|kind| graph.merged_of_type(kind.row().local));
        all.extend(merged.filter_map(|(value, entity)| Some((Network::read(value)?, entity))));
        all.sort_by_key(|(network, _)| *network);
        let lengths: BTreeSet<(Version, u8)> = all
            .iter()
            .map(|(network, _)| (network.version, network.length()))
            .collect();
        let places = (0..)
            .zip(&all)
            .map(|(place, (network, _))| (*network, place))
            .collect();
        Self {
            all,
            places,
            lengths: lengths.into_iter().rev().collect(),
        }
    }

    /// The networks around this one, the smallest first, and what lies inside it.
    fn near(&self, network: Network) -> impl Iterator<Item = (LookupMatch, Network, &'g EntityState)> {
        let wider = self
            .lengths
            .iter()
            .filter(move |(version, length)| *version == network.version && *length < network.length());
        let around = wider.filter_map(move |(_, length)| {
            let outer = network.widened(*length)?;
            let (_, entity) = self.all.get(*self.places.get(&outer)?)?;
            Some((LookupMatch::Network, outer, *entity))
        });
        let first = self.all.partition_point(|(other, _)| *other <= network);
        let inside = self.all.iter().skip(first).take_while(move |(other, _)| {
            other.version == network.version && other.first() <= network.last()
        });
        let inside = inside
            .filter(move |(other, _)| network.contains(other))
            .map(|(other, entity)| (LookupMatch::Inside, *other, *entity));
        around.chain(inside)
    }
}

impl MemoryGraph {
    /// The entities that have to do with a value, the closest first; one more than are shown.
    fn hits_of(&self, asked: &AskedValue, networks: &Networks<'_>) -> Vec<EntityHit> {
        let mut hits: Vec<EntityHit> = Vec::new();
        let mut add = |matched: LookupMatch, value: &str, entity: &EntityState| {
            let id = entity.public_id();
            let is_new = hits.len() <= MAX_HITS && hits.iter().all(|hit| hit.entity.id != id);
            if is_new {
                hits.push(self.entity_hit(matched, value, entity));
            }
        };
        let Some(kind) = asked.kind else {
            for slot in self.slots_named([asked.value.as_str()]) {
                let kind_of = |entity: &EntityState| EntityKind::of_local(&entity.entity_type);
                let entity = self.entity_in(slot);
                if let Some(entity) = entity
                    .filter(|entity| kind_of(entity).is_some_and(|kind| kind.node_type() == NodeType::Ioc))
                {
                    add(LookupMatch::Value, &asked.value, entity);
                }
            }
            return hits;
        };
        for entity in self.entities_with(kind, &asked.value) {
            add(LookupMatch::Value, &asked.value, entity);
        }
        let mut network = Network::read(&asked.value).filter(|_| ADDRESSES.contains(&kind));
        let parents = parents_of(kind, &asked.value);
        let of_host = parents.iter().find_map(|parent| Network::read(&parent.value));
        network = network.or(of_host);
        for (matched, near, entity) in network.into_iter().flat_map(|network| networks.near(network)) {
            let is_own = matched == LookupMatch::Inside && of_host.is_some();
            if !is_own {
                add(matched, &near.to_string(), entity);
            }
        }
        for parent in parents {
            for entity in self.entities_with(parent.kind, &parent.value) {
                add(parent.matched, &parent.value, entity);
            }
        }
        hits
    }

    /// The entities of a kind with this value, in any spelling that is the same.
    fn entities_with(&self, kind: EntityKind, value: &str) -> impl Iterator<Item = &EntityState> {
        let mut spellings = vec![value.to_owned()];
        if kind == EntityKind::Url {
            match value.split_once("://") {
                Some(("http" | "https", rest)) => spellings.push(rest.to_owned()),
                Some(_) => {}
                None => spellings.extend(["http://", "https://"].map(|scheme| format!("{scheme}{value}"))),
            }
        }
        let keys = spellings.into_iter();
        keys.filter_map(move |value| self.with_key(&EntityKey::new(kind.row().local, &value).ok()?))
    }

    fn entity_hit(&self, matched: LookupMatch, value: &str, entity: &EntityState) -> EntityHit {
        let page = Page {
            offset: 0,
            limit: MAX_NOTES,
        };
        EntityHit {
            entity: self.entity_view(entity),
            matched,
            value: value.to_owned(),
            notes: self.page_of_notes(entity, page),
        }
    }
}
