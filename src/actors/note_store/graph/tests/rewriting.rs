//! Whatever is corrected, removed, merged and told apart: the graph is the one that is made of what is stored.

use super::*;
use crate::domain::memory::entity::EntityKey;

const HOSTS: u128 = 6;
const STEPS: u128 = 600;

/// Everything that the graph shows.
fn shown(graph: &MemoryGraph) -> String {
    let everything = Page {
        offset: 0,
        limit: usize::MAX,
    };
    let mut lines: Vec<String> = Vec::new();
    lines.extend(
        graph
            .nodes(everything, None, None)
            .iter()
            .map(|node| format!("{node:?}")),
    );
    lines.extend(graph.edges(everything).iter().map(|edge| {
        // Of two relationships that say the same since a merge either may be shown.
        format!("{} {} {}", edge.source, edge.relationship, edge.target)
    }));
    let (entities, total) = graph.list_entities(&EntityFilter::default(), EntityOrder::default(), everything);
    assert_eq!(entities.len(), total);
    lines.extend(entities.iter().map(|entity| format!("{entity:?}")));
    lines.extend(graph.all_nodes().map(|node| graph.degree(node).to_string()));
    for number in 1..=HOSTS {
        let key = EntityKey {
            entity_type: "host".into(),
            value: format!("h{number}"),
        };
        lines.push(format!(
            "{number} {:?}",
            graph.with_key(&key).map(|entity| &entity.value)
        ));
        let mut named: Vec<&str> = graph
            .slots_named([key.value.as_str()])
            .into_iter()
            .filter_map(|slot| graph.entity_in(slot))
            .map(|entity| &*entity.value)
            .collect();
        named.sort_unstable();
        lines.push(format!("{named:?}"));
        let mut own = graph.own_entities_named(&crate::search::canonical_key(&key.value));
        own.iter_mut()
            .for_each(|entity| entity.created_at = Utc.timestamp_opt(0, 0).unwrap());
        lines.push(format!("{own:?}"));
    }
    lines.push(format!("{:?} {:?}", graph.counts(), graph.list_domains(10)));
    lines.sort();
    lines.join("\n")
}

/// The same graph, made of what is stored.
fn anew(graph: &MemoryGraph) -> MemoryGraph {
    let heads = graph.notes_by_age().map(|note| graph.head(note)).collect();
    MemoryGraph::of(
        heads,
        graph.own_entities().collect(),
        graph.own_relations().collect(),
    )
}

fn any<T: Copy>(all: &[T], random: &mut impl FnMut(u64) -> u64) -> Option<T> {
    let at = random(all.len().max(1) as u64);
    all.get(usize::try_from(at).unwrap()).copied()
}

fn rewrite(graph: &mut MemoryGraph, step: u128, random: &mut impl FnMut(u64) -> u64) {
    let notes: Vec<Uuid> = graph.present_notes().map(|note| note.id).collect();
    let relations: Vec<Uuid> = graph.own_relations().map(|relation| relation.id).collect();
    let entities: Vec<Uuid> = graph.own_entities().map(|entity| entity.id).collect();
    match random(8) {
        0 => any(&notes, random).into_iter().for_each(|note| {
            // Who stood behind it stands again.
            let older: Vec<NoteHead> = graph
                .older_than(note)
                .filter_map(|slot| Some(graph.head(graph.note_in(slot)?)))
                .collect();
            for head in older {
                graph.put_note(NoteHead {
                    superseded_by: None,
                    ..head
                });
            }
            graph.remove_note(note);
        }),
        1 => any(&relations, random)
            .into_iter()
            .for_each(|id| graph.remove_relation(id)),
        2 => {
            let free = entities.iter().copied().filter(|id| {
                let mut mentioned = graph.present_notes().flat_map(|note| graph.own_mentions_of(note));
                graph.own_relations_of(*id).is_empty()
                    && !mentioned.any(|other| other == *id)
                    && !graph.is_merged_into(*id)
            });
            let free: Vec<Uuid> = free.collect();
            any(&free, random)
                .into_iter()
                .for_each(|id| graph.remove_entity(id));
        }
        3 | 4 => {
            if let (Some(from), Some(into)) = (any(&entities, random), any(&entities, random)) {
                let is_free = graph.own_entity(from).unwrap().merged_into.is_none();
                if is_free && graph.entity_slot(from) != graph.entity_slot(into) {
                    graph.merge(from, Some(into));
                }
            }
        }
        5 => any(&entities, random)
            .into_iter()
            .for_each(|entity| graph.merge(entity, None)),
        6 => {
            if let Some(known) = any(&notes, random).and_then(|id| graph.note(id)) {
                let mut head = graph.head(known);
                head.mentions = entities.iter().copied().filter(|_| random(2) == 0).collect();
                head.digest = (step + 10_000).to_be_bytes();
                head.label = format!("Corrected in {step}");
                head.domain = ["cti", "ops"][usize::try_from(random(2)).unwrap()].into();
                graph.put_note(head);
            }
        }
        _ => {
            let number = 1 + u128::from(random(6));
            graph.add_entity(host(number));
            let slot = graph.entity_slot(id(number)).unwrap();
            if !graph.has_key(slot) {
                graph.index_entity(slot);
            }
        }
    }
}

impl MemoryGraph {
    fn has_key(&self, slot: Slot) -> bool {
        self.slots_from("", "").any(|other| other == slot)
    }
}

#[test]
fn a_graph_is_what_is_stored_whatever_was_rewritten() {
    let mut random = numbers();
    let mut graph = MemoryGraph::of(Vec::new(), (1..=HOSTS).map(host).collect(), Vec::new());
    let (mut merged, mut hidden) = (0, 0);
    for step in 0..STEPS {
        let ends_known = (1..=HOSTS).all(|number| graph.has_entity(id(number)));
        if ends_known && random(2) == 0 {
            write_something(&mut graph, step, &mut random);
        } else {
            rewrite(&mut graph, step, &mut random);
        }
        assert_eq!(shown(&graph), shown(&anew(&graph)), "after step {step}");
        let (own, shown) = (graph.own_entities().count(), graph.entity_count());
        merged = merged.max(own - shown);
        hidden = hidden.max(graph.own_relations().count() - graph.relation_count());
    }
    assert!(merged > 2 && hidden > 2, "{merged} {hidden}");
}

#[test]
fn an_undone_merge_leaves_what_was_with_what_came_since() {
    let mut random = numbers();
    let mut graph = MemoryGraph::of(Vec::new(), (1..=HOSTS).map(host).collect(), Vec::new());
    for step in 0..100 {
        write_something(&mut graph, step, &mut random);
    }
    let mut plain = anew(&graph);
    graph.merge(id(1), Some(id(2)));
    graph.merge(id(2), Some(id(3)));
    let (mut here, mut there) = (numbers(), numbers());
    for step in 100..200 {
        write_something(&mut graph, step, &mut here);
        write_something(&mut plain, step, &mut there);
    }
    assert_ne!(shown(&graph), shown(&plain));
    graph.merge(id(2), None);
    graph.merge(id(1), None);
    assert_eq!(shown(&graph), shown(&plain));
}
