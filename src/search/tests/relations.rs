//! Steps along relationships reach what the newest versions of nodes and relationships allow, and nothing hidden.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use test_support::extent;

use super::super::{Ends, Relation, Step, StepFilter};
use super::*;

const NODES: u128 = 6;
const EDGES: u128 = 8;

fn edge(number: u128, rev: u64, (source, target): (u128, u128), (tlp, code): (Tlp, u8)) -> IndexDoc {
    let relation = Relation {
        ends: Ends::of(id(source), id(target)),
        tlp,
        code,
        confidence: 0.25,
    };
    let text = number
        .is_multiple_of(3)
        .then(|| format!("example {number} of a procedure"));
    let mut doc = IndexDoc::relationship(id(1_000 + number), rev, relation, text);
    doc.vector = doc.ends.map(|_| quantize(&word_vector("example of a procedure")));
    doc
}

/// The steps from these nodes, each with the node where it begins.
fn steps(index: &WorkspaceIndex, from: &[u128], codes: &[u8], filter: &Filter) -> Vec<(Uuid, Step)> {
    let from: Vec<Uuid> = from.iter().map(|n| id(*n)).collect();
    let mut steps = Vec::new();
    let along = StepFilter {
        codes,
        filter,
        most: usize::MAX,
    };
    index.steps(&from, along, |step| steps.push((from[step.from], step)));
    steps
}

/// From, relationship, to, and whether in its direction.
type StepSet = BTreeSet<(Uuid, Uuid, Uuid, bool)>;

fn told(steps: &[(Uuid, Step)]) -> StepSet {
    let told = steps.iter();
    told.map(|(from, step)| (*from, step.relationship, step.node, step.outgoing))
        .collect()
}

fn of_tlp(number: usize) -> Tlp {
    Tlp::ALL[number % Tlp::ALL.len()]
}

/// A write: of a node's version with this marking and status, of an edge's version, or of an edge's removal.
#[derive(Debug, Clone)]
enum Write {
    Node(u128, usize, bool),
    Edge(u128, (u128, u128), usize, u8),
    Removal(u128),
    /// Closes the index and opens it again.
    Restart,
}

fn any_write() -> impl Strategy<Value = Write> {
    prop_oneof![
        3 => (0..NODES, 0..5usize, any::<bool>()).prop_map(|(n, tlp, shown)| Write::Node(n, tlp, shown)),
        6 => (0..EDGES, (0..NODES, 0..NODES), 0..5usize, 0..3u8)
            .prop_map(|(n, ends, tlp, code)| Write::Edge(n, ends, tlp, code)),
        1 => (0..EDGES).prop_map(Write::Removal),
        1 => Just(Write::Restart),
    ]
}

/// What the newest versions are.
#[derive(Default)]
struct Model {
    nodes: BTreeMap<u128, (Tlp, bool)>,
    edges: BTreeMap<u128, ((u128, u128), Tlp, u8)>,
}

impl Model {
    fn steps(&self, codes: &[u8], highest: Tlp) -> StepSet {
        let sees = |node: u128| {
            self.nodes
                .get(&node)
                .is_some_and(|(tlp, shown)| *shown && *tlp <= highest)
        };
        let mut told = StepSet::new();
        for (number, ((source, target), tlp, code)) in &self.edges {
            let taken = *tlp <= highest && codes.contains(code) && source != target;
            if taken && sees(*source) && sees(*target) {
                let relationship = id(1_000 + number);
                told.insert((id(*source), relationship, id(*target), true));
                told.insert((id(*target), relationship, id(*source), false));
            }
        }
        told
    }
}

fn settings(fresh: usize) -> IndexSettings {
    IndexSettings {
        fresh_docs: fresh,
        ..IndexSettings::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(extent(6, 48)))]

    #[test]
    fn steps_follow_the_newest_versions_and_nothing_hidden(
        writes in prop::collection::vec(any_write(), 1..extent(20, 40)),
        fresh in prop_oneof![Just(0usize), Just(100)],
    ) {
        let dir = tempfile::tempdir().unwrap();
        let open = || open_with(Some(dir.path()), "word-hash", settings(fresh));
        let mut index = open().workspace(id(0)).unwrap();
        let mut model = Model::default();
        for (rev, write) in (1u64..).zip(writes) {
            let doc = match write {
                Write::Node(n, tlp, shown) => {
                    model.nodes.insert(n, (of_tlp(tlp), shown));
                    let status = if shown { NodeStatus::Active } else { NodeStatus::Rejected };
                    IndexDoc { rev, tlp: of_tlp(tlp), status, ..doc(n, &format!("Node {n}"), "text") }
                }
                Write::Edge(n, ends, tlp, code) => {
                    model.edges.insert(n, (ends, of_tlp(tlp), code));
                    edge(n, rev, ends, (of_tlp(tlp), code))
                }
                Write::Removal(n) => {
                    model.edges.remove(&n);
                    IndexDoc::removal(id(1_000 + n), rev)
                }
                Write::Restart => {
                    index.close_idle(std::time::Duration::ZERO).unwrap();
                    drop(index);
                    index = open().workspace(id(0)).unwrap();
                    continue;
                }
            };
            index.apply(vec![doc.clone()], rev).unwrap();
            let older = IndexDoc { rev: rev - 1, ..doc };
            index.apply(vec![older], rev).unwrap();
        }
        let from: Vec<u128> = (0..NODES).collect();
        for highest in Tlp::ALL {
            for codes in [&[0u8, 1, 2][..], &[1], &[]] {
                let found = steps(&index, &from, codes, &Filter::up_to(highest));
                prop_assert_eq!(told(&found), model.steps(codes, highest));
                prop_assert_eq!(told(&found).len(), found.len(), "no step is told twice");
            }
        }
    }
}

/// Two nodes and relationships from the first to the second.
fn pair(edges: u128, tlp: Tlp) -> Vec<IndexDoc> {
    let nodes = [doc(1, "One", "text"), doc(2, "Two", "text")];
    let edges = (0..edges).map(|n| edge(n, 1, (1, 2), (tlp, 1)));
    nodes.into_iter().chain(edges).collect()
}

#[test]
fn a_step_tells_what_is_known_of_the_relationship_and_of_the_node() {
    let index = holding(pair(1, Tlp::White));
    let mut far = doc(2, "Two", "text");
    far.rev = 2;
    far.facts = Facts::of("CERT", 0.75, "2024-03-01T00:00:00Z".parse().unwrap()).with_code(4);
    index.apply(vec![far], 2).unwrap();
    let found = steps(&index, &[1], &[1], &all());
    let (_, step) = found[0];
    assert_eq!((found.len(), step.code, step.node_code), (1, 1, 4));
    assert_eq!((step.confidence, step.node_confidence), (0.25, 0.75));
    assert_eq!(step.ingested_at, 1_709_251_200_000_000);
}

#[test]
fn hidden_relationships_do_not_count_among_the_steps_to_take() {
    let hidden = (10..20).map(|n| edge(n, 1, (1, 2), (Tlp::Red, 1)));
    let index = holding(pair(3, Tlp::White).into_iter().chain(hidden).collect());
    for (most, expected) in [(0, 0), (1, 1), (2, 2), (3, 3), (10, 3)] {
        let along = StepFilter {
            codes: &[1],
            filter: &Filter::up_to(Tlp::White),
            most,
        };
        let mut taken = 0;
        index.steps(&[id(1)], along, |_| taken += 1);
        assert_eq!(taken, expected, "{most}");
    }
}

#[test]
fn filters_hold_for_the_far_end_only() {
    let index = holding(pair(2, Tlp::White));
    let only_two = Filter {
        only: Some(super::super::RowPredicate::new(|node| node == id(2))),
        ..all()
    };
    assert_eq!(steps(&index, &[1], &[1], &only_two).len(), 2);
    assert!(steps(&index, &[2], &[1], &only_two).is_empty());
    let tools = Filter {
        node_types: Some(vec![NodeType::Tool]),
        ..all()
    };
    assert!(steps(&index, &[1], &[1], &tools).is_empty());
}

#[test]
fn relationships_without_text_change_no_score() {
    let texts = (10..40).map(|n| doc(n, &format!("Node{n}x"), "ladder logic"));
    let index = holding(texts.collect());
    let scores = |index: &WorkspaceIndex| {
        let vector = quantize(&word_vector("ladder logic"));
        let hits = index.search("ladder logic", Some(&vector), Mode::Blended, &all(), 50);
        let hits = hits.unwrap().into_iter();
        hits.map(|hit| (hit.node_id, hit.score)).collect::<Vec<_>>()
    };
    let before = scores(&index);
    let edges = (0..200).filter(|n| n % 3 != 0);
    let edges: Vec<IndexDoc> = edges.map(|n| edge(n, 1, (10, 11), (Tlp::White, 1))).collect();
    let (first, rest) = edges.split_at(20);
    index.apply(first.to_vec(), 2).unwrap();
    assert_eq!(scores(&index), before);
    index.stage(rest.to_vec()).unwrap();
    index.apply_staged(Vec::new(), 3, index.rollbacks()).unwrap();
    assert_eq!(scores(&index), before);
    assert_eq!(steps(&index, &[10], &[1], &all()).len(), edges.len());
    assert_eq!(index.len(), 30);
}

#[test]
fn many_versions_are_compacted_and_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let before = {
        let index = open(Some(dir.path())).workspace(id(0)).unwrap();
        index.apply(pair(1_500, Tlp::White), 1).unwrap();
        for rev in 2..8 {
            let edges = (0..1_500).map(|n| edge(n, rev, (1, 2), (Tlp::White, 1)));
            index.apply(edges.collect(), rev).unwrap();
        }
        index.apply(vec![IndexDoc::removal(id(1_007), 9)], 9).unwrap();
        told(&steps(&index, &[1, 2], &[1], &all()))
    };
    assert_eq!(before.len(), 2 * 1_499);
    let index = open(Some(dir.path())).workspace(id(0)).unwrap();
    assert_eq!(told(&steps(&index, &[1, 2], &[1], &all())), before);
    assert!(index.contains(id(1_007), 9) && index.contains(id(1_008), 7));
    let files = std::fs::read_dir(dir.path().join(id(0).to_string()).join("relations")).unwrap();
    let names: Vec<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.iter().all(|name| !name.starts_with("0-")), "{names:?}");
    assert!(names.len() < 8, "{names:?}");
}
