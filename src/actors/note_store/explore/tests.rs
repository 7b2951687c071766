use std::collections::HashSet;
use std::time::{Duration, Instant};

use test_support::{extent, is_full};

use super::super::graph::tests::{ALL, entity, host, id, note, relation};
use super::picture::MAX_EDGES;
use super::*;
use crate::domain::memory::view::{MENTIONS, SUPERSEDES};
use crate::store::StoredEntity;

/// APT28 uses Mimikatz, which exploits a vulnerability; note 10 mentions the first two, 11 only APT28, 12 only the
/// vulnerability. A domain name stands alone.
fn graph() -> MemoryGraph {
    let entities = vec![
        entity(1, "actor", "APT28"),
        entity(2, "tool", "Mimikatz"),
        entity(3, "cve", "CVE-2024-1000"),
        entity(4, "domain", "evil.example"),
    ];
    MemoryGraph::of(
        vec![note(10, &[1, 2]), note(11, &[1]), note(12, &[3])],
        entities,
        vec![relation(20, 1, 2), relation(21, 2, 3)],
    )
}

fn whole() -> ViewGraph {
    ViewGraph {
        limit: 100,
        depth: 1,
        notes: true,
        ..ViewGraph::default()
    }
}

fn around(node: &str, depth: usize) -> ViewGraph {
    ViewGraph {
        around: Some(node.to_owned()),
        depth,
        ..whole()
    }
}

fn ids(view: &GraphView) -> Vec<&str> {
    view.nodes.iter().map(|node| node.node.id.as_str()).collect()
}

fn names(notes: &[u128]) -> Vec<String> {
    notes.iter().map(|note| id(*note).to_string()).collect()
}

#[test]
fn the_best_connected_nodes_come_first_and_ties_by_id() {
    let graph = graph();
    let view = graph.picture(&whole()).unwrap();
    let [n10, n11, n12]: [String; 3] = names(&[10, 11, 12]).try_into().unwrap();
    let order = [
        "actor:apt28",
        "tool:mimikatz",
        &n10,
        "cve:cve-2024-1000",
        &n11,
        &n12,
        "domain:evil.example",
    ];
    let degrees: Vec<usize> = view.nodes.iter().map(|node| node.degree).collect();
    // Digits come before letters, so note 10 precedes the vulnerability.
    assert_eq!(degrees, [3, 3, 2, 2, 1, 1, 0]);
    assert_eq!(ids(&view), order);
    assert_eq!(
        (view.total_nodes, view.total_edges, view.truncated),
        (7, 6, false)
    );
    assert_eq!(view.edges.len(), 6);
    for limit in 1..7 {
        let part = graph.picture(&ViewGraph { limit, ..whole() }).unwrap();
        assert_eq!(ids(&part), order[..limit]);
        assert!(part.truncated);
        assert_eq!((part.total_nodes, part.total_edges), (7, 6));
        let inside: HashSet<&str> = ids(&part).into_iter().collect();
        let expected = graph
            .edges(ALL)
            .into_iter()
            .filter(|edge| inside.contains(edge.source.as_str()) && inside.contains(edge.target.as_str()));
        let mut edges: Vec<Uuid> = part.edges.iter().map(|edge| edge.id).collect();
        let mut expected: Vec<Uuid> = expected.map(|edge| edge.id).collect();
        edges.sort_unstable();
        expected.sort_unstable();
        assert_eq!(edges, expected, "{limit}");
    }
}

#[test]
fn types_names_and_notes_are_filtered() {
    let graph = graph();
    let shown = |types: &[&str], part: Option<&str>, notes: bool| {
        let query = ViewGraph {
            types: types.iter().map(|name| (*name).to_owned()).collect(),
            part: part.map(str::to_owned),
            notes,
            ..whole()
        };
        let view = graph.picture(&query).unwrap();
        ids(&view).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        shown(&["tool", "cve"], None, true),
        ["tool:mimikatz", "cve:cve-2024-1000"]
    );
    assert_eq!(shown(&["note"], None, true), names(&[10, 11, 12]));
    assert_eq!(shown(&["note", "domain"], None, false), ["domain:evil.example"]);
    assert_eq!(shown(&[], None, false).len(), 4);
    assert_eq!(shown(&[], Some("FANCY bear"), true), ["actor:apt28"]);
    assert_eq!(shown(&[], Some("note 1"), true).len(), 3);
    assert!(shown(&[""], None, true).is_empty());
}

#[test]
fn notes_leave_room_for_what_they_mention() {
    // Each note mentions APT28, a tool that others mention too, and something of its own.
    let mut entities = vec![entity(1, "actor", "APT28"), entity(2, "tool", "Mimikatz")];
    entities.extend((0..60).map(|n| entity(100 + n, "domain", &format!("host-{n}.example"))));
    let notes = (0..60).map(|n| note(1000 + n, &[1, 2, 100 + n])).collect();
    let graph = MemoryGraph::of(notes, entities, Vec::new());
    let counts = |query: ViewGraph| {
        let view = graph.picture(&query).unwrap();
        let notes = view.nodes.iter().filter(|node| node.node.node_type == "note");
        (notes.count(), view.nodes.len(), view.truncated)
    };
    for limit in [20, 40, 41] {
        let found = counts(ViewGraph { limit, ..whole() });
        assert_eq!(found, (limit / 2, limit, true));
        // The node in the middle needs no room.
        let hub = |depth| {
            counts(ViewGraph {
                limit,
                ..around("actor:apt28", depth)
            })
        };
        assert_eq!(hub(1), (limit - 1, limit, true), "nothing else is so near");
        assert_eq!(hub(2), ((limit - 1) / 2, limit, true));
    }
}

#[test]
fn a_picture_around_a_node_grows_step_by_step() {
    let mut graph = graph();
    let at = |graph: &MemoryGraph, query: &ViewGraph| {
        let view = graph.picture(query).unwrap();
        (ids(&view).join(" "), view.edges.len(), view.truncated)
    };
    let [n10, n11, n12]: [String; 3] = names(&[10, 11, 12]).try_into().unwrap();
    let one = format!("actor:apt28 tool:mimikatz {n10} {n11}");
    assert_eq!(at(&graph, &around("actor:apt28", 1)), (one.clone(), 4, false));
    let two = format!("{one} cve:cve-2024-1000");
    assert_eq!(at(&graph, &around("actor:apt28", 2)), (two.clone(), 5, false));
    assert_eq!(
        at(&graph, &around("Actor:Fancy Bear", 3)),
        (format!("{two} {n12}"), 6, false)
    );
    // The last step ends with the limit; whether there is more is known all the same.
    for (limit, depth, truncated) in [
        (4, 1, false),
        (4, 2, true),
        (3, 1, true),
        (1, 1, true),
        (5, 2, false),
    ] {
        let query = ViewGraph {
            limit,
            ..around("actor:apt28", depth)
        };
        let view = graph.picture(&query).unwrap();
        assert_eq!(
            (view.nodes.len(), view.truncated),
            (limit, truncated),
            "{limit} {depth}"
        );
    }
    let without_notes = ViewGraph {
        notes: false,
        ..around(&n10, 1)
    };
    assert_eq!(
        at(&graph, &without_notes),
        (format!("{n10} actor:apt28 tool:mimikatz"), 3, false)
    );
    // The way to the vulnerability leads over a tool, which is not shown.
    let only = ViewGraph {
        types: vec!["cve".into()],
        ..around("actor:apt28", 3)
    };
    assert_eq!(at(&graph, &only), ("actor:apt28".into(), 0, false));
    graph.supersede(id(10), id(12));
    let newer = format!("{n12} {n10} cve:cve-2024-1000");
    assert_eq!(at(&graph, &around(&n12, 1)), (newer, 2, false));
    assert!(graph.picture(&around("actor:apt29", 1)).is_none());
    assert!(graph.picture(&around(&id(99).to_string(), 1)).is_none());
}

#[test]
fn a_picture_has_a_bounded_number_of_edges() {
    let entities: Vec<StoredEntity> = (0..150).map(|n| host(n + 1)).collect();
    let pairs = (1..=150).flat_map(|a| (a + 1..=150).map(move |b| (a, b)));
    let relations = pairs.map(|(a, b)| relation(a * 1000 + b, a, b)).collect();
    let everything: Vec<u128> = (1..=150).collect();
    let notes = (0..100).map(|n| note(1_000_000 + n, &everything)).collect();
    let graph = MemoryGraph::of(notes, entities, relations);
    let query = ViewGraph {
        limit: 5000,
        ..whole()
    };
    let view = graph.picture(&query).unwrap();
    assert_eq!((view.nodes.len(), view.total_edges), (250, 11_175 + 15_000));
    assert_eq!((view.edges.len(), view.truncated), (MAX_EDGES, true));
    let fewer = graph
        .picture(&ViewGraph {
            notes: false,
            ..query
        })
        .unwrap();
    assert_eq!((fewer.edges.len(), fewer.truncated), (11_175, false));
}

#[test]
fn a_node_comes_with_a_page_of_its_notes_and_neighbours() {
    let mut graph = graph();
    graph.put_relation(relation(22, 3, 1));
    graph.put_relation(relation(23, 1, 1));
    let all = graph.details("actor:apt28", ALL).unwrap();
    assert_eq!((all.node.degree, all.node.node.label.as_str()), (5, "APT28"));
    let notes: Vec<String> = all.notes.iter().map(|note| note.id.to_string()).collect();
    assert_eq!(notes, names(&[11, 10]));
    assert_eq!(all.notes[0].context, "Note 11");
    let related: Vec<(&str, bool)> = all
        .neighbours
        .iter()
        .map(|near| (near.node.id.as_str(), near.outgoing))
        .collect();
    assert_eq!(
        related,
        [
            ("tool:mimikatz", true),
            ("cve:cve-2024-1000", false),
            ("actor:apt28", true)
        ]
    );
    assert_eq!((all.total_notes, all.total_neighbours), (2, 3));
    for offset in 0..4 {
        let page = Page { offset, limit: 1 };
        let part = graph.details("actor:apt28", page).unwrap();
        assert_eq!((part.total_notes, part.total_neighbours), (2, 3));
        assert_eq!(
            part.notes,
            all.notes.iter().skip(offset).take(1).cloned().collect::<Vec<_>>()
        );
        let neighbours: Vec<_> = all.neighbours.iter().skip(offset).take(1).cloned().collect();
        assert_eq!(part.neighbours, neighbours);
    }
    graph.supersede(id(11), id(12));
    assert_eq!(graph.details("actor:apt28", ALL).unwrap().total_notes, 1);
    assert!(graph.details("actor:nobody", ALL).is_none());
    assert!(graph.details("", ALL).is_none() && graph.details(":", ALL).is_none());
}

#[test]
fn a_note_comes_with_what_it_mentions_and_its_predecessors_and_successor() {
    let mut graph = graph();
    graph.supersede(id(10), id(11));
    graph.supersede(id(11), id(12));
    let middle = graph.details(&id(11).to_string(), ALL).unwrap();
    assert_eq!(
        (middle.notes.len(), middle.total_notes, middle.node.degree),
        (0, 0, 3)
    );
    let near: Vec<(&str, bool, &str)> = middle
        .neighbours
        .iter()
        .map(|near| (near.relationship.as_str(), near.outgoing, near.node.id.as_str()))
        .collect();
    let [n10, n12]: [String; 2] = names(&[10, 12]).try_into().unwrap();
    assert_eq!(
        near,
        [
            (MENTIONS, true, "actor:apt28"),
            (SUPERSEDES, true, &n10),
            (SUPERSEDES, false, &n12)
        ]
    );
    // The edges are those of the list of edges.
    let edges = graph.edges(ALL);
    for near in &middle.neighbours {
        let edge = edges.iter().find(|edge| edge.id == near.edge_id).unwrap();
        let ends = if near.outgoing {
            (&edge.source, &edge.target)
        } else {
            (&edge.target, &edge.source)
        };
        assert_eq!(ends, (&middle.node.node.id, &near.node.id));
        assert_eq!(edge.relationship, near.relationship);
    }
    let second = Page { offset: 1, limit: 1 };
    let part = graph.details(&id(11).to_string(), second).unwrap();
    assert_eq!(
        (part.neighbours.as_slice(), part.total_neighbours),
        (&middle.neighbours[1..2], 3)
    );
}

/// An entity that `size` notes mention, each with an entity of its own.
fn hub(size: u128) -> MemoryGraph {
    let entities = (0..=size).map(|n| host(n + 1)).collect();
    let notes = (0..size).map(|n| note(1_000_000 + n, &[1, n + 2])).collect();
    MemoryGraph::of(notes, entities, Vec::new())
}

fn fastest(mut work: impl FnMut()) -> Duration {
    let time = |_| {
        let since = Instant::now();
        work();
        since.elapsed()
    };
    (0..5).map(time).min().unwrap()
}

#[test]
fn an_entity_with_very_many_notes_is_shown_in_part_and_in_linear_time() {
    let notes_of_hub = extent(5_000, 50_000_usize);
    let [small, large] = [notes_of_hub / 10, notes_of_hub].map(|size| hub(size as u128));
    let centre = || around("host:h1", 3);
    for query in [
        whole(),
        centre(),
        ViewGraph {
            limit: 5000,
            ..centre()
        },
    ] {
        let view = large.picture(&query).unwrap();
        // Half of the room of the first step is left for the others.
        assert!((query.limit - 1..=query.limit).contains(&view.nodes.len()));
        assert_eq!(
            (view.nodes[0].node.id.as_str(), view.nodes[0].degree),
            ("host:h1", notes_of_hub)
        );
        let total = (view.total_nodes, view.total_edges);
        assert_eq!(total, (2 * notes_of_hub + 1, 2 * notes_of_hub));
        let notes = view.nodes.iter().filter(|node| node.node.node_type == "note");
        let notes = notes.count();
        assert!(notes >= (query.limit - 1) / 2, "{notes}");
        assert!(view.edges.len() >= notes, "each note shown mentions it");
        assert!(view.truncated);
        let [less, more] = [&small, &large].map(|graph| fastest(|| drop(graph.picture(&query))));
        // Ten times the size takes about ten times as long; quadratic work would take a hundred times.
        assert!(
            !is_full() || more < 40 * less.max(Duration::from_millis(1)),
            "{less:?} {more:?}"
        );
    }
    let last = Page {
        offset: notes_of_hub - 1,
        limit: 500,
    };
    let details = large.details("host:h1", last).unwrap();
    assert_eq!(
        (details.notes.len(), details.total_notes, details.node.degree),
        (1, notes_of_hub, notes_of_hub)
    );
    assert_eq!(details.notes[0].id, id(1_000_000), "the oldest note is the last");
    let first = large
        .details(
            "host:h1",
            Page {
                offset: 0,
                limit: 500,
            },
        )
        .unwrap();
    assert_eq!((first.notes.len(), first.neighbours.len()), (500, 0));
}
