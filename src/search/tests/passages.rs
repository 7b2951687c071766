//! Passages vote for the nodes that they are about, as far as the caller may see both, and are no results themselves.

use std::collections::{BTreeMap, HashMap, HashSet};

use proptest::prelude::*;
use test_support::extent;

use super::super::Ends;
use super::*;

/// A passage about two nodes; its number is out of the way of the nodes'.
fn passage(number: u128, ends: (u128, u128), tlp: Tlp, text: &str) -> IndexDoc {
    let about = Ends::of(id(ends.0), id(ends.1));
    let mut doc = IndexDoc::passage(id(10_000 + number), 1, tlp, about, text.to_owned());
    doc.vector = Some(quantize(&word_vector(text)));
    doc
}

const QUESTION: &str = "the adversary rewrote ladder logic";

/// Nodes that say nothing about the question.
fn nodes() -> Vec<IndexDoc> {
    let texts = [
        "alpha crew",
        "beta crew",
        "gamma method",
        "delta method",
        "epsilon method",
    ];
    let mut docs: Vec<IndexDoc> = (1..)
        .zip(texts)
        .map(|(n, text)| doc(n, &format!("Node{n}x"), text))
        .collect();
    docs.extend((20..40).map(|n| doc(n, &format!("Other{n}x"), "unrelated filler words")));
    docs
}

fn hits(index: &WorkspaceIndex, filter: &Filter) -> Vec<(Uuid, f32)> {
    let vector = quantize(&word_vector(QUESTION));
    let hits = index
        .search(QUESTION, Some(&vector), Mode::Blended, filter, 100)
        .unwrap();
    hits.into_iter().map(|hit| (hit.node_id, hit.score)).collect()
}

fn first(index: &WorkspaceIndex, filter: &Filter) -> Uuid {
    hits(index, filter)[0].0
}

/// The passages that spoke for a node.
fn speakers(index: &WorkspaceIndex, node: u128, filter: &Filter) -> Vec<Uuid> {
    let vector = quantize(&word_vector(QUESTION));
    let found = index
        .find(QUESTION, Some(&vector), Mode::Blended, filter, (100, true))
        .unwrap();
    let vote = found.votes.get(&id(node)).cloned().unwrap_or_default();
    vote.passages.into_iter().map(|(passage, _)| passage).collect()
}

#[test]
fn a_sentence_finds_what_a_similar_passage_is_about() {
    let index = holding(nodes());
    assert_ne!(first(&index, &all()), id(3));
    let example = passage(
        1,
        (1, 3),
        Tlp::White,
        "Node1x rewrote the ladder logic of controllers",
    );
    index.apply(vec![example.clone()], 2).unwrap();
    assert_eq!(first(&index, &all()), id(3));
    assert_eq!(speakers(&index, 3, &all()), [example.node_id]);
    let only_methods = Filter {
        only: Some(super::super::RowPredicate::new(|node| {
            node == id(4) || node == id(1)
        })),
        ..all()
    };
    assert!(
        hits(&index, &only_methods)
            .iter()
            .all(|(node, _)| [id(1), id(4)].contains(node))
    );
}

#[test]
fn a_passage_is_no_result_and_changes_no_search_for_nodes() {
    let questions = ["crew method", "Node3x", "filler", QUESTION];
    let index = holding(nodes());
    let modes = [Mode::Keyword, Mode::Vector];
    let answers = |index: &WorkspaceIndex| -> Vec<_> {
        let ask = |question: &&str| {
            let vector = quantize(&word_vector(question));
            modes.map(|mode| index.search(question, Some(&vector), mode, &all(), 100).unwrap())
        };
        questions.iter().flat_map(ask).collect()
    };
    let before = answers(&index);
    let texts = (0..300).map(|n| passage(n, (1, 3), Tlp::White, "crew method filler ladder logic Node3x"));
    index.apply(texts.collect(), 2).unwrap();
    assert_eq!(answers(&index), before);
    assert!(hits(&index, &all()).iter().all(|(node, _)| *node < id(10_000)));
    assert_eq!(
        index.lookup(&["crew method", "\u{1}passage"], &all()).unwrap(),
        []
    );
}

#[test]
fn thousands_of_nearer_passages_about_hidden_nodes_displace_none() {
    let index = holding(nodes());
    let mut hidden = doc(50, "Node50x", "zeta crew");
    hidden.tlp = Tlp::Red;
    // The vector alone speaks for the one that the caller may see, and less than those of the others.
    let mut seen = passage(1, (1, 3), Tlp::White, "nothing that shares a word");
    seen.vector = Some(quantize(&word_vector("rewrote ladder logic beside other lines")));
    let nearer = (2..5_000).map(|n| passage(n, (50, 3), Tlp::White, QUESTION));
    let docs = nearer.chain([hidden, seen.clone()]).collect();
    index.apply(docs, 2).unwrap();
    assert_eq!(speakers(&index, 3, &Filter::up_to(Tlp::Amber)), [seen.node_id]);
    let mut spoke = speakers(&index, 3, &all());
    spoke.retain(|passage| *passage == seen.node_id);
    assert_eq!(spoke, NONE, "to others the nearer ones speak");
}

#[test]
fn an_end_that_changes_is_seen_with_its_new_marking() {
    let index = holding(nodes());
    let said = passage(
        1,
        (1, 3),
        Tlp::White,
        "Node1x rewrote the ladder logic of controllers",
    );
    index.apply(vec![said.clone()], 2).unwrap();
    let amber = Filter::up_to(Tlp::Amber);
    assert_eq!(speakers(&index, 3, &amber), [said.node_id]);
    for (rev, tlp, heard) in [(3, Tlp::Red, false), (4, Tlp::Green, true), (5, Tlp::Red, false)] {
        let mut end = doc(1, "Node1x", "alpha crew");
        (end.rev, end.tlp) = (rev, tlp);
        index.apply(vec![end], rev).unwrap();
        assert_eq!(!speakers(&index, 3, &amber).is_empty(), heard, "{tlp}");
    }
    // An end without a vector is known by its text alone.
    let mut end = doc(1, "Node1x", "alpha crew");
    (end.rev, end.vector) = (6, None);
    index.apply(vec![end], 6).unwrap();
    assert_eq!(speakers(&index, 3, &amber), [said.node_id]);
}

#[test]
fn a_passage_without_a_vector_votes_by_its_words() {
    let index = holding(nodes());
    let place = || hits(&index, &all()).iter().position(|(node, _)| *node == id(4));
    let before = place();
    let mut example = passage(1, (1, 4), Tlp::White, "rewrote ladder logic of controllers");
    example.vector = None;
    index.apply(vec![example], 2).unwrap();
    let rank = |place: Option<usize>| place.unwrap_or(usize::MAX);
    assert!(rank(place()) < rank(before), "{:?} after {before:?}", place());
}

#[test]
fn a_passage_follows_its_newest_version() {
    for settings in [
        IndexSettings::default(),
        IndexSettings {
            fresh_docs: 100,
            ..IndexSettings::default()
        },
    ] {
        let index = open_with(None, "word-hash", settings).workspace(id(0)).unwrap();
        index.apply(nodes(), 1).unwrap();
        let silent = hits(&index, &all());
        let example = passage(1, (1, 3), Tlp::White, "rewrote ladder logic of controllers");
        let at = |rev, ends: (u128, u128), tlp| IndexDoc {
            rev,
            ..passage(1, ends, tlp, &example.body)
        };
        index.apply(vec![example.clone()], 2).unwrap();
        assert_eq!(first(&index, &all()), id(3));
        index.apply(vec![at(3, (1, 5), Tlp::White)], 3).unwrap();
        assert_eq!(first(&index, &all()), id(5));
        index.apply(vec![at(4, (1, 5), Tlp::Red)], 4).unwrap();
        assert_eq!(first(&index, &all()), id(5));
        assert_eq!(hits(&index, &Filter::up_to(Tlp::Amber)), silent);
        index
            .apply(vec![IndexDoc::removal(example.node_id, 5)], 5)
            .unwrap();
        index.apply(vec![example.clone()], 6).unwrap();
        assert_eq!(hits(&index, &all()), silent);
    }
}

#[test]
fn on_disk_it_survives_a_restart_and_a_compaction() {
    let dir = tempfile::tempdir().unwrap();
    let example = passage(1, (1, 3), Tlp::White, "rewrote ladder logic of controllers");
    let others = || (2..5_000u128).map(|n| passage(n, (20, 21), Tlp::White, &format!("noise {n}")));
    let before = {
        let index = open(Some(dir.path())).workspace(id(0)).unwrap();
        index.apply(nodes(), 1).unwrap();
        index
            .apply(others().chain([example.clone()]).collect(), 2)
            .unwrap();
        // Replacing most rows compacts the table at the commit after.
        let again = others().map(|doc| IndexDoc { rev: 3, ..doc });
        index.apply(again.collect(), 3).unwrap();
        index
            .apply(
                nodes()
                    .into_iter()
                    .map(|doc| IndexDoc { rev: 4, ..doc })
                    .collect(),
                4,
            )
            .unwrap();
        hits(&index, &all())
    };
    assert_eq!(before[0].0, id(3));
    let index = open(Some(dir.path())).workspace(id(0)).unwrap();
    assert_eq!(hits(&index, &all()), before);
    assert_eq!(speakers(&index, 3, &all())[0], example.node_id);
}

fn any_passage() -> impl Strategy<Value = (u128, u128, usize, bool, usize)> {
    (1u128..6, 1u128..6, 0usize..5, any::<bool>(), 0usize..4)
}

/// Why each result was found.
fn reasons(index: &WorkspaceIndex, filter: &Filter) -> BTreeMap<Uuid, (String, Vec<(Uuid, f32)>)> {
    let vector = quantize(&word_vector(QUESTION));
    let found = index
        .find(QUESTION, Some(&vector), Mode::Blended, filter, (100, true))
        .unwrap();
    let why = |hit: &super::super::Hit| {
        let vote = found.votes.get(&hit.node_id).cloned().unwrap_or_default();
        (
            hit.node_id,
            (format!("{:?}", found.reasons[&hit.node_id]), vote.passages),
        )
    };
    found.hits.iter().map(why).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(extent(8, 64)))]

    /// Hidden passages and passages about hidden nodes change neither results nor order, whatever they say.
    #[test]
    fn what_the_caller_may_not_see_does_not_vote(
        markings in prop::collection::vec(0usize..5, 5),
        rejected in prop::collection::vec(any::<bool>(), 5),
        passages in prop::collection::vec(any_passage(), 0..40),
        highest in 0usize..5, include_rejected: bool, split in 0usize..3,
    ) {
        let texts = ["rewrote ladder logic", "the adversary rewrote controllers", "ladder logic filler", "adversary noise"];
        let mut all_nodes = nodes();
        for ((doc, marking), rejected) in all_nodes.iter_mut().zip(&markings).zip(&rejected) {
            doc.tlp = Tlp::ALL[*marking];
            doc.status = if *rejected { NodeStatus::Rejected } else { NodeStatus::Active };
        }
        let seen: HashMap<Uuid, bool> = all_nodes
            .iter()
            .map(|doc| (doc.node_id, doc.tlp <= Tlp::ALL[highest] && (include_rejected || doc.status == NodeStatus::Active)))
            .collect();
        let docs: Vec<IndexDoc> = (0u128..)
            .zip(&passages)
            .map(|(n, (source, target, tlp, with_vector, text))| {
                let mut doc = passage(n, (*source, *target), Tlp::ALL[*tlp], texts[*text]);
                doc.vector = doc.vector.filter(|_| *with_vector);
                doc
            })
            .collect();
        let visible = |(doc, (source, target, ..)): &(&IndexDoc, &(u128, u128, usize, bool, usize))| {
            doc.tlp <= Tlp::ALL[highest] && seen[&id(*source)] && seen[&id(*target)]
        };
        let (shown, hidden): (Vec<_>, Vec<_>) = docs.iter().zip(&passages).partition(visible);
        let only = |part: Vec<(&IndexDoc, _)>| part.into_iter().map(|(doc, _)| doc.clone()).collect::<Vec<_>>();
        let (shown, mut hidden) = (only(shown), only(hidden));
        let filter = Filter { include_rejected, ..Filter::up_to(Tlp::ALL[highest]) };

        let with = open(None).workspace(id(0)).unwrap();
        let without = open(None).workspace(id(1)).unwrap();
        for index in [&with, &without] {
            index.apply(all_nodes.clone(), 1).unwrap();
            index.apply(shown.clone(), 2).unwrap();
        }
        // Many of them, so that they would take all places.
        if split > 0 {
            let more: Vec<IndexDoc> = hidden.iter().flat_map(|doc| (0..40u128).map(move |n| {
                IndexDoc { node_id: Uuid::from_u128(doc.node_id.as_u128() + (n + 1) * 100_000), ..doc.clone() }
            })).collect();
            hidden.extend(more);
        }
        // The frequency of a word covers the whole workspace, so the other index holds the same texts, about nothing.
        let nothing = hidden.iter().map(|doc| IndexDoc {
            ends: Some(Ends::of(id(999), id(999))),
            ..doc.clone()
        });
        without.apply(nothing.collect(), 3).unwrap();
        with.apply(hidden, 3).unwrap();
        prop_assert_eq!(hits(&with, &filter), hits(&without, &filter));
        let told = reasons(&with, &filter);
        prop_assert_eq!(&told, &reasons(&without, &filter));
        let shown: HashSet<Uuid> = shown.iter().map(|doc| doc.node_id).collect();
        for (node, (_, passages)) in told {
            prop_assert!(*seen.get(&node).unwrap_or(&true), "{} is hidden", node);
            prop_assert!(passages.iter().all(|(passage, _)| shown.contains(passage)));
        }
    }
}

#[test]
fn a_passage_with_the_words_but_another_meaning_is_named() {
    let index = holding(nodes());
    let mut example = passage(1, (1, 4), Tlp::White, "rewrote ladder logic of controllers");
    let opposite: Vec<f32> = word_vector(QUESTION).iter().map(|part| -part).collect();
    example.vector = Some(quantize(&opposite));
    index.apply(vec![example], 2).unwrap();
    assert_eq!(speakers(&index, 4, &all()), [id(10_001)]);
}
