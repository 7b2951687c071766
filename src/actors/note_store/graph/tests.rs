mod rewriting;

use std::collections::BTreeMap;

use chrono::{TimeZone, Utc};

use super::super::EntityOrder;
use super::*;
use crate::domain::memory::entity::{EntityDraft, EntityKey};
use crate::domain::memory::view::{Page, SUPERSEDES, TypeCount};

pub(in super::super) const ALL: Page = Page {
    offset: 0,
    limit: 100,
};

pub(in super::super) fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

pub(in super::super) fn entity(number: u128, kind: &str, name: &str) -> StoredEntity {
    StoredEntity {
        id: id(number),
        draft: EntityDraft::from_name(kind, name, 0.9).unwrap(),
        created_at: Utc.timestamp_opt(0, 0).unwrap(),
        merged_into: None,
    }
}

pub(in super::super) fn note(number: u128, mentions: &[u128]) -> NoteHead {
    NoteHead {
        id: id(number),
        label: format!("Note {number}"),
        domain: "cti".into(),
        tier: Tier::B,
        confidence: 1.0,
        digest: number.to_be_bytes(),
        mentions: mentions.iter().map(|n| id(*n)).collect(),
        superseded_by: None,
        created_at: Utc.timestamp_opt(i64::try_from(number).unwrap(), 0).unwrap(),
    }
}

pub(in super::super) fn relation(number: u128, source: u128, target: u128) -> StoredRelation {
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

pub(in super::super) fn graph() -> MemoryGraph {
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
    let counts = graph.counts();
    assert_eq!(counts.graph_nodes, graph.nodes(ALL, None, None).len());
    assert_eq!(counts.graph_edges, graph.edges(ALL).len());
    assert_eq!((counts.entities, counts.notes, counts.graph_edges), (3, 2, 4));
    assert_eq!(
        counts.by_type["actor"],
        TypeCount {
            unique_entities: 1,
            total_mappings: 2
        }
    );
    assert_eq!(counts.by_type["person"], TypeCount::default());
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
        let (found, total) = graph.list_entities(&filter, EntityOrder::default(), ALL);
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
    assert_eq!(graph.duplicate_of(&10u128.to_be_bytes()), Some(id(10)));
    graph.supersede(id(10), id(11));
    assert_eq!(graph.duplicate_of(&10u128.to_be_bytes()), None);
    assert!(!graph.is_active(id(10)));
    let slot = graph.slots_named(["Fancy Bear"])[0];
    assert_eq!(about(&graph, slot), [id(11)]);
    let edges = graph.edges(ALL);
    let edge = edges.iter().find(|edge| edge.relationship == SUPERSEDES).unwrap();
    assert_eq!(
        (edge.source.clone(), edge.target.clone()),
        (id(11).to_string(), id(10).to_string())
    );
    assert_eq!(graph.counts().graph_edges, edges.len());
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
    let slot = graph.slots_named(["mimikatz"])[0];
    assert_eq!(graph.related_entities(slot, &[], 9), graph.slots_named(["apt28"]));
    assert!(
        graph
            .related_entities(slot, &graph.slots_named(["apt28"]), 9)
            .is_empty()
    );
    graph.put_relation(relation(21, 2, 2));
    graph.put_relation(relation(22, 2, 3));
    let tool = graph.relationships_of(&EntityKey::new("tool", "mimikatz").unwrap());
    assert_eq!(tool.len(), 3);
    assert_eq!(graph.related_entities(slot, &[], 9).len(), 2);
    assert_eq!(graph.related_entities(slot, &[], 1), graph.slots_named(["apt28"]));
}

#[test]
fn a_text_kept_twice_is_known_while_one_of_the_two_stands() {
    let mut graph = graph();
    let (same, newer) = ([1; 16], [2; 16]);
    for (number, digest) in [(12, same), (13, same), (14, same), (15, newer)] {
        let mut note = note(number, &[]);
        note.digest = digest;
        graph.put_note(note);
    }
    assert_eq!(graph.duplicate_of(&same), Some(id(14)));
    for (old, known) in [(12, Some(14)), (14, Some(13)), (13, None)] {
        graph.supersede(id(old), id(15));
        assert_eq!(graph.duplicate_of(&same), known.map(id));
        assert_eq!(graph.current(id(old)), Some(id(15)));
    }
    graph.supersede(id(15), id(11));
    assert_eq!(graph.current(id(12)), Some(id(11)));
    assert_eq!(graph.current(id(99)), None);
}

#[test]
fn notes_are_listed_by_age_whenever_they_come() {
    let mut graph = graph();
    for number in [14, 12, 13] {
        graph.put_note(note(number, &[1]));
    }
    graph.add_mentions(id(11), &[id(3)]);
    graph.add_mentions(id(10), &[id(3)]);
    let ids = |numbers: &[u128]| numbers.iter().map(|number| id(*number)).collect::<Vec<_>>();
    let by_age: Vec<Uuid> = graph.notes_by_age().map(|note| note.id).collect();
    assert_eq!(by_age, ids(&[10, 11, 12, 13, 14]));
    let slot = graph.slots_named(["apt28"])[0];
    assert_eq!(about(&graph, slot), ids(&[14, 13, 12, 11, 10]));
    let slot = graph.slots_named(["cve-2024-1"])[0];
    assert_eq!(about(&graph, slot), ids(&[11, 10]));
}

fn about(graph: &MemoryGraph, slot: Slot) -> Vec<Uuid> {
    let notes = graph.notes_about_in(slot, None, None);
    notes.map(|note| note.id).collect()
}

#[test]
fn domains_are_told_apart_only_where_there_are_several() {
    let mut graph = graph();
    assert!(graph.is_all_of("cti") && !graph.is_all_of("other"));
    let mut other = note(12, &[]);
    other.domain = "other".into();
    graph.put_note(other);
    assert!(!graph.is_all_of("cti") && !graph.is_all_of("other"));
}

/// Pseudo-random numbers (Knuth's MMIX generator), the same in every run.
pub(in super::super) fn numbers() -> impl FnMut(u64) -> u64 {
    let mut state = 42u64;
    move |below| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}

/// Writes something to a graph with the entities 1 to 6.
pub(in super::super) fn write_something(
    graph: &mut MemoryGraph,
    step: u128,
    random: &mut impl FnMut(u64) -> u64,
) {
    let known = graph.note_count() as u64;
    let tier = Tier::ALL[random(3) as usize];
    let (source, target) = (1 + random(6), 1 + random(6));
    let mut any = || {
        let at = random(known.max(1)) as usize;
        graph.present_notes().nth(at).map(|note| note.id)
    };
    match (step % 6, any(), any()) {
        (0 | 1, older, _) => {
            let mentions: Vec<u128> = (1..=6).filter(|_| random(3) == 0).collect();
            let mut head = note(100 + step, &mentions);
            head.tier = tier;
            head.superseded_by = older.filter(|_| random(5) == 0);
            graph.put_note(head);
        }
        (2, ..) => {
            let number = u128::from(source * 10 + target);
            graph.put_relation(relation(number, source.into(), target.into()));
        }
        (3, Some(old), Some(by)) if old != by => graph.supersede(old, by),
        (4, Some(note), _) => graph.add_mentions(note, &[id(target.into())]),
        (5, Some(note), _) => graph.trust(note, tier, 0.5),
        _ => {}
    }
}

#[test]
fn degrees_and_counts_stay_true_whatever_is_written() {
    let mut random = numbers();
    let mut graph = MemoryGraph::of(Vec::new(), (1..=6).map(host).collect(), Vec::new());
    for step in 0..400 {
        write_something(&mut graph, step, &mut random);
    }
    let everything = Page {
        offset: 0,
        limit: usize::MAX,
    };
    let mut degrees: BTreeMap<String, usize> = BTreeMap::new();
    for edge in graph.edges(everything) {
        let ends = HashSet::from([edge.source, edge.target]);
        ends.into_iter()
            .for_each(|end| *degrees.entry(end).or_default() += 1);
    }
    assert!(graph.edges(everything).len() > 300 && graph.note_count() > 80);
    for node in graph.all_nodes() {
        let shown = graph.to_graph_node(node);
        assert_eq!(
            graph.degree(node),
            degrees.get(&shown.id).copied().unwrap_or(0),
            "{}",
            shown.id
        );
    }
    for entity in &graph.entities {
        let notes = entity.notes.iter().filter_map(|slot| graph.note_in(*slot));
        let active: Vec<_> = notes.filter(|note| note.is_active()).collect();
        assert_eq!(entity.note_count(), active.len());
        assert_eq!(entity.tier(), active.iter().map(|note| note.tier).min());
    }
}

/// An entity whose value is its number.
pub(in super::super) fn host(number: u128) -> StoredEntity {
    let key = EntityKey {
        entity_type: "host".into(),
        value: format!("h{number}"),
    };
    StoredEntity {
        id: id(number),
        draft: EntityDraft {
            name: key.value.clone(),
            key,
            aliases: Vec::new(),
            confidence: 1.0,
        },
        created_at: Utc.timestamp_opt(0, 0).unwrap(),
        merged_into: None,
    }
}

#[test]
fn a_graph_read_as_a_whole_is_the_one_that_grew() {
    let kinds = ["actor", "tool", "malware", "campaign"];
    let entities: Vec<StoredEntity> = (0..12_000)
        .map(|number| {
            let kind = kinds[number % kinds.len()];
            let mut entity = entity(
                1 + number as u128,
                kind,
                &format!("Name {}", number * 7_919 % 12_000),
            );
            entity.draft.aliases = vec![format!("Alias {}", number / 3), String::new()];
            entity
        })
        .collect();
    let (mut grown, mut loading) = (MemoryGraph::default(), Loading::default());
    for entities in entities.chunks(7) {
        let changes = || Changes {
            entities: entities.to_vec(),
            ..Changes::default()
        };
        grown.apply(changes());
        // A copy may name an entity twice.
        grown.apply(changes());
        loading.apply(changes());
        loading.apply(changes());
    }
    let whole = loading.end();
    let keys = |graph: &MemoryGraph| -> Vec<String> {
        graph.entities_by_key().map(EntityState::public_id).collect()
    };
    assert_eq!(keys(&whole), keys(&grown));
    assert_eq!(keys(&whole).len(), 12_000);
    assert!(keys(&whole).is_sorted_by_key(|key| {
        key.split_once(':')
            .map(|(kind, value)| (kind.to_owned(), value.to_owned()))
    }));
    for number in (0..12_000).step_by(113) {
        for name in [format!("name {number}"), format!("ALIAS {number}")] {
            assert_eq!(
                whole.slots_named([name.as_str()]),
                grown.slots_named([name.as_str()])
            );
        }
        let key = &entities[number].draft.key;
        assert_eq!(whole.with_key(key).unwrap().id, entities[number].id);
        assert_eq!(grown.with_key(key).unwrap().id, entities[number].id);
    }
    assert_eq!(whole.slots_named(["alias 5"]).len(), 3);
    assert!(whole.slots_named([""]).is_empty());
    let beyond = EntityKey {
        entity_type: "tool".into(),
        value: "zzz".into(),
    };
    assert!(whole.with_key(&beyond).is_none() && grown.with_key(&beyond).is_none());
    let tools: Vec<Slot> = whole.entities_of_type("tool").map(|(slot, _)| slot).collect();
    assert_eq!(tools.len(), 3_000);
}
