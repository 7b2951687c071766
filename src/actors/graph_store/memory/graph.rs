//! The graph in memory: which note mentions what, and what is related to what.
//!
//! Derived from the database and rebuilt at every start; a write is added right after it is durable. It answers
//! the lists and counts of the local API and says where a question's entities are mentioned.

use std::collections::{BTreeMap, HashMap};

use uuid::Uuid;

use crate::domain::memory::entity::{EntityKey, known_types};
use crate::domain::memory::view::{
    EntityRelationship, EntityView, GraphEdge, GraphNode, MENTIONS, MemoryFigures, NOTE_TYPE, Page,
    SUPERSEDES, TypeCount,
};
use crate::search::canonical_key;
use crate::store::{NoteHead, StoredEntity, StoredRelation};

/// Place of an entity or a relationship in its list; neither is ever taken out.
type Slot = usize;

/// An entity with what is connected to it.
#[derive(Debug)]
pub(super) struct EntityState {
    pub(super) stored: StoredEntity,
    /// The notes that mention it, oldest first, superseded ones included.
    notes: Vec<Uuid>,
    relations: Vec<Slot>,
}

/// The graph; see the module.
#[derive(Debug, Default)]
pub(super) struct MemoryGraph {
    entities: Vec<EntityState>,
    entity_at: HashMap<Uuid, Slot>,
    by_key: BTreeMap<EntityKey, Slot>,
    /// Canonical names, aliases and values.
    by_name: HashMap<String, Vec<Slot>>,
    notes: HashMap<Uuid, NoteHead>,
    /// Note ids, oldest first.
    order: Vec<Uuid>,
    /// Active notes by the digest of domain and content.
    digests: HashMap<String, Uuid>,
    relations: Vec<StoredRelation>,
    relation_at: HashMap<Uuid, Slot>,
    /// Edges from notes: mentions and supersessions.
    note_edges: usize,
}

/// Which entities a list shall hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntityFilter {
    pub entity_type: Option<String>,
    pub tier: Option<String>,
    /// Part of the value, the name or an alias, in any case.
    pub part: Option<String>,
}

impl MemoryGraph {
    /// The graph of what is stored.
    pub(super) fn of(
        mut heads: Vec<NoteHead>,
        mut entities: Vec<StoredEntity>,
        mut relations: Vec<StoredRelation>,
    ) -> Self {
        let mut graph = Self::default();
        entities.sort_by_key(|entity| (entity.created_at, entity.id));
        relations.sort_by_key(|relation| (relation.created_at, relation.id));
        heads.sort_by_key(|head| (head.created_at, head.id));
        entities.into_iter().for_each(|entity| graph.add_entity(entity));
        relations
            .into_iter()
            .for_each(|relation| graph.put_relation(relation));
        heads.into_iter().for_each(|head| graph.add_note(head));
        graph
    }

    pub(super) fn add_entity(&mut self, entity: StoredEntity) {
        if self.entity_at.contains_key(&entity.id) {
            return;
        }
        let slot = self.entities.len();
        self.entity_at.insert(entity.id, slot);
        let draft = &entity.draft;
        let names = [&draft.key.value, &draft.name].into_iter().chain(&draft.aliases);
        for name in names
            .map(|name| canonical_key(name))
            .filter(|name| !name.is_empty())
        {
            let slots = self.by_name.entry(name).or_default();
            if !slots.contains(&slot) {
                slots.push(slot);
            }
        }
        self.by_key.insert(draft.key.clone(), slot);
        self.entities.push(EntityState {
            stored: entity,
            notes: Vec::new(),
            relations: Vec::new(),
        });
    }

    pub(super) fn add_note(&mut self, head: NoteHead) {
        if self.notes.contains_key(&head.id) {
            return;
        }
        self.link(head.id, &head.mentions);
        if head.superseded_by.is_none() {
            self.digests.insert(head.digest.clone(), head.id);
        } else {
            self.note_edges += 1;
        }
        self.order.push(head.id);
        self.notes.insert(head.id, head);
    }

    fn link(&mut self, note: Uuid, mentions: &[Uuid]) {
        self.note_edges += mentions.len();
        for mention in mentions {
            let slot = self.entity_at.get(mention).copied();
            if let Some(entity) = slot.and_then(|slot| self.entities.get_mut(slot)) {
                entity.notes.push(note);
            }
        }
    }

    /// Adds what a note mentions besides.
    pub(super) fn add_mentions(&mut self, note: Uuid, more: &[Uuid]) {
        let Some(head) = self.notes.get_mut(&note) else {
            return;
        };
        let new: Vec<Uuid> = more
            .iter()
            .copied()
            .filter(|id| !head.mentions.contains(id))
            .collect();
        head.mentions.extend(&new);
        self.link(note, &new);
    }

    /// Adds a relationship, or gives a known one its new properties.
    pub(super) fn put_relation(&mut self, relation: StoredRelation) {
        if let Some(known) = self
            .relation_at
            .get(&relation.id)
            .and_then(|slot| self.relations.get_mut(*slot))
        {
            *known = relation;
            return;
        }
        let slot = self.relations.len();
        self.relation_at.insert(relation.id, slot);
        for end in [relation.source, relation.target] {
            let at = self.entity_at.get(&end).copied();
            if let Some(entity) = at.and_then(|at| self.entities.get_mut(at)) {
                entity.relations.push(slot);
            }
        }
        self.relations.push(relation);
    }

    /// Notes that another note took the place of one.
    pub(super) fn supersede(&mut self, old: Uuid, by: Uuid) {
        let Some(head) = self.notes.get_mut(&old) else {
            return;
        };
        if head.superseded_by.replace(by).is_none() {
            self.note_edges += 1;
        }
        if self.digests.get(&head.digest) == Some(&old) {
            self.digests.remove(&head.digest);
        }
    }

    /// The active note with this digest.
    pub(super) fn duplicate_of(&self, digest: &str) -> Option<Uuid> {
        self.digests.get(digest).copied()
    }

    pub(super) fn note(&self, id: Uuid) -> Option<&NoteHead> {
        self.notes.get(&id)
    }

    pub(super) fn has_entity(&self, id: Uuid) -> bool {
        self.entity_at.contains_key(&id)
    }

    pub(super) fn relation(&self, id: Uuid) -> Option<&StoredRelation> {
        self.relations.get(*self.relation_at.get(&id)?)
    }

    pub(super) fn is_active(&self, note: Uuid) -> bool {
        self.notes
            .get(&note)
            .is_some_and(|head| head.superseded_by.is_none())
    }

    /// The entities that carry one of these names, aliases or values, in any spelling.
    pub(super) fn named<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Vec<Slot> {
        let mut found = Vec::new();
        for name in names {
            for slot in self.by_name.get(&canonical_key(name)).into_iter().flatten() {
                if !found.contains(slot) {
                    found.push(*slot);
                }
            }
        }
        found
    }

    /// The newest active notes that mention the entity, at most `limit`.
    pub(super) fn notes_about(&self, entity: Slot, limit: usize) -> Vec<Uuid> {
        let notes = self.entities.get(entity).map(|entity| entity.notes.as_slice());
        let newest = notes.unwrap_or_default().iter().rev();
        newest
            .copied()
            .filter(|note| self.is_active(*note))
            .take(limit)
            .collect()
    }

    /// The entities that a relationship connects with this one.
    pub(super) fn related(&self, entity: Slot) -> Vec<Slot> {
        let Some(state) = self.entities.get(entity) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for relation in state
            .relations
            .iter()
            .filter_map(|slot| self.relations.get(*slot))
        {
            let other = if relation.source == state.stored.id {
                relation.target
            } else {
                relation.source
            };
            if let Some(slot) = self
                .entity_at
                .get(&other)
                .filter(|slot| **slot != entity && !found.contains(*slot))
            {
                found.push(*slot);
            }
        }
        found
    }

    /// The canonical values of these entities.
    pub(super) fn values(&self, ids: &[Uuid]) -> Vec<String> {
        let value = |id: &Uuid| Some(self.entity(id)?.stored.draft.key.value.clone());
        ids.iter().filter_map(value).collect()
    }

    fn entity(&self, id: &Uuid) -> Option<&EntityState> {
        self.entities.get(*self.entity_at.get(id)?)
    }

    fn active_notes<'a>(&'a self, entity: &'a EntityState) -> impl Iterator<Item = &'a NoteHead> {
        let heads = entity.notes.iter().filter_map(|id| self.notes.get(id));
        heads.filter(|head| head.superseded_by.is_none())
    }
}

/// What the API lists.
impl MemoryGraph {
    fn entity_view(&self, entity: &EntityState) -> EntityView {
        let draft = &entity.stored.draft;
        EntityView {
            id: draft.key.to_string(),
            name: draft.name.clone(),
            node_type: draft.key.entity_type.clone(),
            aliases: draft.aliases.clone(),
            confidence: draft.confidence,
            connected_count: entity.notes.len() + entity.relations.len(),
            entity_type: draft.key.entity_type.clone(),
            entity_value: draft.key.value.clone(),
            note_count: self.active_notes(entity).count(),
            tier: self.active_notes(entity).map(|head| &head.tier).min().cloned(),
        }
    }

    fn entity_node(&self, entity: &EntityState) -> GraphNode {
        let draft = &entity.stored.draft;
        GraphNode {
            id: draft.key.to_string(),
            label: draft.name.clone(),
            node_type: draft.key.entity_type.clone(),
            tier: self.active_notes(entity).map(|head| &head.tier).min().cloned(),
            aliases: draft.aliases.clone(),
            confidence: draft.confidence,
            created_at: entity.stored.created_at,
        }
    }

    fn note_node(head: &NoteHead) -> GraphNode {
        GraphNode {
            id: head.id.to_string(),
            label: head.label.clone(),
            node_type: NOTE_TYPE.into(),
            tier: Some(head.tier.clone()),
            aliases: Vec::new(),
            confidence: head.confidence,
            created_at: head.created_at,
        }
    }

    /// Entities, then notes, each oldest first.
    pub(super) fn nodes(&self, page: Page, node_type: Option<&str>, part: Option<&str>) -> Vec<GraphNode> {
        let part = part.map(str::to_lowercase);
        let entities = self.entities.iter().filter(|entity| {
            node_type.is_none_or(|wanted| entity.stored.draft.key.entity_type == wanted)
                && contains(entity, part.as_deref())
        });
        let wants_notes = node_type.is_none_or(|wanted| wanted == NOTE_TYPE);
        let notes = self
            .order
            .iter()
            .filter(|_| wants_notes)
            .filter_map(|id| self.notes.get(id));
        let notes = notes.filter(|head| {
            part.as_deref()
                .is_none_or(|part| head.label.to_lowercase().contains(part))
        });
        entities
            .map(Listed::Entity)
            .chain(notes.map(Listed::Note))
            .skip(page.offset)
            .take(page.limit)
            .map(|listed| match listed {
                Listed::Entity(entity) => self.entity_node(entity),
                Listed::Note(head) => Self::note_node(head),
            })
            .collect()
    }

    /// Relationships between entities, then what each note mentions and which one it took the place of.
    pub(super) fn edges(&self, page: Page) -> Vec<GraphEdge> {
        let relations = self.relations.iter().filter_map(|relation| {
            Some(GraphEdge {
                id: relation.id,
                source: self.entity(&relation.source)?.stored.draft.key.to_string(),
                target: self.entity(&relation.target)?.stored.draft.key.to_string(),
                relationship: relation.relationship.clone(),
                created_at: relation.created_at,
            })
        });
        let of_note = |head: &NoteHead| {
            let mentions = head.mentions.iter().map(|id| (*id, MENTIONS));
            let superseding = head.superseded_by.iter().map(|id| (*id, SUPERSEDES));
            let ends: Vec<_> = mentions.chain(superseding).collect();
            ends.into_iter().map(move |(other, kind)| (other, kind))
        };
        let heads = self.order.iter().filter_map(|id| self.notes.get(id));
        let from_notes = heads.flat_map(|head| of_note(head).map(move |end| (head, end)));
        let taken = self.relations.len().saturating_sub(page.offset).min(page.limit);
        let mut edges: Vec<GraphEdge> = relations.skip(page.offset).take(page.limit).collect();
        let skipped = page.offset.saturating_sub(self.relations.len());
        let rest = from_notes.skip(skipped).take(page.limit - taken);
        edges.extend(rest.filter_map(|(head, (other, kind))| self.note_edge(head, other, kind)));
        edges
    }

    fn note_edge(&self, head: &NoteHead, other: Uuid, kind: &str) -> Option<GraphEdge> {
        let (source, target, created_at) = if kind == SUPERSEDES {
            let newer = self.notes.get(&other)?;
            (newer.id.to_string(), head.id.to_string(), newer.created_at)
        } else {
            let entity = self.entity(&other)?;
            (
                head.id.to_string(),
                entity.stored.draft.key.to_string(),
                head.created_at,
            )
        };
        Some(GraphEdge {
            id: Uuid::new_v5(&head.id, format!("{kind}\0{other}").as_bytes()),
            source,
            target,
            relationship: kind.to_owned(),
            created_at,
        })
    }

    /// A page of the entities that fit the filter, in the order of type and value, and how many fit.
    pub(super) fn list_entities(&self, filter: &EntityFilter, page: Page) -> (Vec<EntityView>, usize) {
        let part = filter.part.as_deref().map(str::to_lowercase);
        let fits = |entity: &&EntityState| {
            let kind = &entity.stored.draft.key.entity_type;
            filter.entity_type.as_ref().is_none_or(|wanted| kind == wanted)
                && contains(entity, part.as_deref())
                && filter
                    .tier
                    .as_ref()
                    .is_none_or(|tier| self.active_notes(entity).map(|head| &head.tier).min() == Some(tier))
        };
        let fitting: Vec<&EntityState> = self
            .by_key
            .values()
            .filter_map(|slot| self.entities.get(*slot))
            .filter(fits)
            .collect();
        let shown = fitting.iter().skip(page.offset).take(page.limit);
        (
            shown.map(|entity| self.entity_view(entity)).collect(),
            fitting.len(),
        )
    }

    /// Every relationship of an entity.
    pub(super) fn relationships_of(&self, key: &EntityKey) -> Vec<EntityRelationship> {
        let Some(entity) = self.by_key.get(key).and_then(|slot| self.entities.get(*slot)) else {
            return Vec::new();
        };
        let relations = entity
            .relations
            .iter()
            .filter_map(|slot| self.relations.get(*slot));
        relations
            .filter_map(|relation| {
                let outgoing = relation.source == entity.stored.id;
                let other = if outgoing {
                    relation.target
                } else {
                    relation.source
                };
                Some(EntityRelationship {
                    relationship: relation.relationship.clone(),
                    outgoing,
                    properties: relation.properties.clone().unwrap_or_default(),
                    node: self.entity_view(self.entity(&other)?),
                })
            })
            .collect()
    }

    pub(super) fn figures(&self) -> MemoryFigures {
        let mut by_type: BTreeMap<String, TypeCount> = known_types()
            .map(|name| (name.to_owned(), TypeCount::default()))
            .collect();
        for entity in &self.entities {
            let count = by_type
                .entry(entity.stored.draft.key.entity_type.clone())
                .or_default();
            count.unique_entities += 1;
            count.total_mappings += entity.notes.len();
        }
        MemoryFigures {
            notes: self.notes.len(),
            notes_created: 0,
            entities: self.entities.len(),
            graph_nodes: self.entities.len() + self.notes.len(),
            graph_edges: self.relations.len() + self.note_edges,
            by_type,
        }
    }
}

enum Listed<'a> {
    Entity(&'a EntityState),
    Note(&'a NoteHead),
}

fn contains(entity: &EntityState, part: Option<&str>) -> bool {
    let Some(part) = part else { return true };
    let draft = &entity.stored.draft;
    let mut names = [&draft.key.value, &draft.name].into_iter().chain(&draft.aliases);
    names.any(|name| name.to_lowercase().contains(part))
}

#[cfg(test)]
mod tests {
    use chrono::{TimeZone, Utc};

    use super::*;
    use crate::domain::memory::entity::EntityDraft;

    const ALL: Page = Page {
        offset: 0,
        limit: 100,
    };

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn entity(number: u128, kind: &str, name: &str) -> StoredEntity {
        StoredEntity {
            id: id(number),
            draft: EntityDraft::named(kind, name, 0.9).unwrap(),
            created_at: Utc.timestamp_opt(0, 0).unwrap(),
        }
    }

    fn note(number: u128, mentions: &[u128]) -> NoteHead {
        NoteHead {
            id: id(number),
            label: format!("Note {number}"),
            domain: "cti".into(),
            tier: "b".into(),
            confidence: 1.0,
            digest: number.to_string(),
            mentions: mentions.iter().map(|n| id(*n)).collect(),
            superseded_by: None,
            created_at: Utc.timestamp_opt(i64::try_from(number).unwrap(), 0).unwrap(),
        }
    }

    fn relation(number: u128, source: u128, target: u128) -> StoredRelation {
        StoredRelation {
            id: id(number),
            source: id(source),
            target: id(target),
            relationship: "uses".into(),
            confidence: 0.5,
            proof: None,
            note: None,
            properties: None,
            created_at: Utc.timestamp_opt(0, 0).unwrap(),
        }
    }

    fn graph() -> MemoryGraph {
        let entities = vec![
            entity(1, "actor", "APT28"),
            entity(2, "tool", "Mimikatz"),
            entity(3, "cve", "CVE-2024-1"),
        ];
        MemoryGraph::of(
            vec![note(10, &[1, 2]), note(11, &[1])],
            entities,
            vec![relation(20, 1, 2)],
        )
    }

    #[test]
    fn lists_and_counts_agree() {
        let graph = graph();
        let figures = graph.figures();
        assert_eq!(figures.graph_nodes, graph.nodes(ALL, None, None).len());
        assert_eq!(figures.graph_edges, graph.edges(ALL).len());
        assert_eq!((figures.entities, figures.notes, figures.graph_edges), (3, 2, 4));
        assert_eq!(
            figures.by_type["actor"],
            TypeCount {
                unique_entities: 1,
                total_mappings: 2
            }
        );
        assert_eq!(figures.by_type["person"], TypeCount::default());
        let one_by_one: Vec<_> = (0..6)
            .flat_map(|offset| graph.edges(Page { offset, limit: 1 }))
            .collect();
        assert_eq!(one_by_one, graph.edges(ALL));
    }

    #[test]
    fn filters_fit_values_names_and_aliases() {
        let graph = graph();
        let list = |kind: Option<&str>, tier: Option<&str>, part: Option<&str>| {
            let filter = EntityFilter {
                entity_type: kind.map(str::to_owned),
                tier: tier.map(str::to_owned),
                part: part.map(str::to_owned),
            };
            let (found, total) = graph.list_entities(&filter, ALL);
            assert_eq!(found.len(), total);
            found.into_iter().map(|entity| entity.id).collect::<Vec<_>>()
        };
        assert_eq!(
            list(None, None, None),
            ["actor:apt28", "cve:cve-2024-1", "tool:mimikatz"]
        );
        assert_eq!(list(None, None, Some("fancy")), ["actor:apt28"]);
        assert_eq!(list(Some("tool"), None, None), ["tool:mimikatz"]);
        assert_eq!(list(None, Some("b"), None), ["actor:apt28", "tool:mimikatz"]);
        assert!(list(Some("nope"), None, None).is_empty());
    }

    #[test]
    fn a_superseded_note_leaves_the_counts_of_its_entities_and_says_by_what() {
        let mut graph = graph();
        assert_eq!(graph.duplicate_of("10"), Some(id(10)));
        graph.supersede(id(10), id(11));
        assert_eq!(graph.duplicate_of("10"), None);
        assert!(!graph.is_active(id(10)));
        let slot = graph.named(["Fancy Bear"])[0];
        assert_eq!(graph.notes_about(slot, 10), [id(11)]);
        let edges = graph.edges(ALL);
        let edge = edges.iter().find(|edge| edge.relationship == SUPERSEDES).unwrap();
        assert_eq!(
            (edge.source.clone(), edge.target.clone()),
            (id(11).to_string(), id(10).to_string())
        );
        assert_eq!(graph.figures().graph_edges, edges.len());
    }

    #[test]
    fn relationships_are_seen_from_both_ends_and_kept_once() {
        let mut graph = graph();
        let mut changed = relation(20, 1, 2);
        changed.properties = Some(serde_json::Map::from_iter([("source".into(), "x".into())]));
        graph.put_relation(changed);
        let actor = graph.relationships_of(&EntityKey::new("actor", "fancy bear").unwrap());
        assert_eq!(actor.len(), 1);
        assert_eq!(
            (actor[0].outgoing, actor[0].node.entity_value.as_str()),
            (true, "mimikatz")
        );
        assert_eq!(actor[0].properties["source"], "x");
        let tool = graph.relationships_of(&EntityKey::new("tool", "MIMIKATZ").unwrap());
        assert!(!tool[0].outgoing);
        let slot = graph.named(["mimikatz"])[0];
        assert_eq!(graph.related(slot), graph.named(["apt28"]));
    }
}
