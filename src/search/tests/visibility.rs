//! Rows the caller may not see are neither shown nor counted against the limit.

use std::collections::HashMap;

use proptest::prelude::*;
use test_support::extent;

use super::super::canonical_key;
use super::*;

#[test]
fn the_limit_counts_visible_rows() {
    let docs = (0..200u128).map(|n| {
        let mut doc = doc(n, &format!("Group {n}"), "credential phishing campaign");
        // The hidden documents match better.
        if n >= 20 {
            doc.tlp = Tlp::Red;
            doc.body.push_str(" phishing phishing");
        }
        doc
    });
    let index = holding(docs.collect());
    for mode in MODES {
        let hits = found(&index, "phishing", mode, &Filter::up_to(Tlp::Amber), 15);
        assert_eq!(hits.len(), 15, "{mode:?}");
        assert!(hits.iter().all(|node| *node < id(20)), "{mode:?}");
    }
}

#[test]
fn a_hidden_exact_match_stays_hidden() {
    let mut secret = doc(1, "Operation Quiet", "secret");
    secret.tlp = Tlp::Red;
    secret.identifiers = vec!["CVE-2030-1".into()];
    let index = holding(vec![secret, doc(2, "Other", "open")]);
    let filter = Filter::up_to(Tlp::AmberPk);
    for query in ["Operation Quiet", "CVE-2030-1", "cve20301"] {
        assert!(!found(&index, query, Mode::Blended, &filter, 10).contains(&id(1)));
        assert_eq!(index.lookup(&[query], &filter).unwrap(), []);
    }
}

#[test]
fn a_change_of_marking_or_status_is_seen_at_once() {
    let index = holding(vec![doc(1, "Target", "words")]);
    let amber = Filter::up_to(Tlp::Amber);
    let rejected = Filter {
        include_rejected: true,
        ..amber.clone()
    };
    let mut change = doc(1, "Target", "words");
    for (rev, tlp, status, active, with_rejected) in [
        (2, Tlp::Red, NodeStatus::Active, false, false),
        (3, Tlp::Green, NodeStatus::Active, true, true),
        (4, Tlp::Green, NodeStatus::Rejected, false, true),
        (5, Tlp::Green, NodeStatus::Merged, false, false),
        (6, Tlp::Green, NodeStatus::Active, true, true),
    ] {
        (change.rev, change.tlp, change.status) = (rev, tlp, status);
        index.apply(vec![change.clone()], rev).unwrap();
        for mode in MODES {
            assert_eq!(
                !found(&index, "target words", mode, &amber, 5).is_empty(),
                active,
                "{rev} {mode:?}"
            );
            assert_eq!(
                !found(&index, "target words", mode, &rejected, 5).is_empty(),
                with_rejected,
                "{rev} {mode:?}"
            );
        }
    }
}

#[test]
fn a_removed_node_does_not_come_back() {
    let index = holding(vec![doc(1, "Target", "words")]);
    index.apply(vec![IndexDoc::removal(id(1), 9)], 9).unwrap();
    index.apply(vec![doc(1, "Target", "words")], 9).unwrap();
    let everything = Filter {
        include_rejected: true,
        ..all()
    };
    for mode in MODES {
        assert_eq!(found(&index, "target", mode, &everything, 5), NONE);
    }
}

#[test]
fn workspaces_do_not_see_or_influence_each_other() {
    let search = open(None);
    let (one, other) = (
        search.workspace(id(100)).unwrap(),
        search.workspace(id(200)).unwrap(),
    );
    one.apply(
        vec![
            doc(1, "Alpha", "ransomware crew"),
            doc(2, "Beta", "espionage crew"),
        ],
        1,
    )
    .unwrap();
    let before = one
        .search("ransomware crew", None, Mode::Keyword, &all(), 10)
        .unwrap();
    // The same ids with other content, and many documents that make the words common.
    other
        .apply(
            (1..500)
                .map(|n| doc(n, "Gamma", "ransomware ransomware crew"))
                .collect(),
            7,
        )
        .unwrap();
    assert_eq!(
        one.search("ransomware crew", None, Mode::Keyword, &all(), 10)
            .unwrap(),
        before
    );
    assert_eq!(found(&one, "Gamma", Mode::Keyword, &all(), 10), NONE);
    assert_eq!(found(&other, "Alpha", Mode::Keyword, &all(), 10), NONE);
    assert_eq!((one.len(), other.len()), (2, 499));
    assert_eq!((one.checkpoint(), other.checkpoint()), (1, 7));
}

#[test]
fn a_filter_of_types_holds_in_every_mode() {
    let mut docs: Vec<IndexDoc> = (0..60u128)
        .map(|n| doc(n, &format!("Item {n}"), "shared words"))
        .collect();
    for (doc, node_type) in docs.iter_mut().zip(NodeType::ALL.iter().cycle()) {
        doc.node_type = *node_type;
    }
    let index = holding(docs);
    let filter = Filter {
        node_types: Some(vec![NodeType::Cve, NodeType::Ioc]),
        ..all()
    };
    for mode in MODES {
        let hits = found(&index, "shared words", mode, &filter, 100);
        assert!(
            hits.iter()
                .all(|node| matches!((node.as_u128() - id(0).as_u128()) % 7, 1 | 2)),
            "{mode:?}"
        );
        assert!(hits.len() >= 17, "{mode:?}");
    }
    let none = Filter {
        node_types: Some(Vec::new()),
        ..all()
    };
    assert_eq!(found(&index, "shared words", Mode::Blended, &none, 10), NONE);
}

prop_compose! {
    fn any_doc()(n in 0u128..24, rev in 1u64..6, kind in 0usize..7, status in 0usize..3, tlp in 0usize..5,
                 name in "(apt28|Fancy Bear|loader|T1059|phish kit)", body in "(phishing|loader|bear|[a-z]{3,6}){1,4}",
                 with_vector: bool) -> IndexDoc {
        let mut doc = doc(n, &name, &body);
        (doc.rev, doc.node_type, doc.status, doc.tlp) = (rev, NodeType::ALL[kind], NodeStatus::ALL[status], Tlp::ALL[tlp]);
        doc.aliases = vec![canonical_key(&name)];
        doc.vector = doc.vector.filter(|_| with_vector);
        doc
    }
}

/// The documents of a batch that end up indexed, by the rules that `apply` guarantees.
fn winners(known: &HashMap<Uuid, IndexDoc>, batch: Vec<IndexDoc>) -> HashMap<Uuid, IndexDoc> {
    let mut won: HashMap<Uuid, IndexDoc> = HashMap::new();
    for doc in batch {
        let bare = |held: &IndexDoc| held.vector.is_none() || held.status == NodeStatus::Merged;
        let newer = |held: &IndexDoc| {
            doc.rev > held.rev || (doc.rev == held.rev && doc.vector.is_some() && bare(held))
        };
        let last = |held: &IndexDoc| (doc.rev, doc.vector.is_some()) >= (held.rev, held.vector.is_some());
        if known.get(&doc.node_id).is_none_or(newer) && won.get(&doc.node_id).is_none_or(last) {
            won.insert(doc.node_id, doc);
        }
    }
    won
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(extent(12, 48)))]

    #[test]
    fn no_search_returns_what_the_filter_excludes(
        batches in prop::collection::vec(prop::collection::vec(any_doc(), 1..12), 1..4),
        highest in 0usize..5, include_rejected: bool, kinds in prop::option::of(prop::collection::vec(0usize..7, 0..3)),
        limit in 0usize..30,
    ) {
        let index = open(None).workspace(id(0)).unwrap();
        let mut newest: HashMap<Uuid, IndexDoc> = HashMap::new();
        for batch in batches {
            index.apply(batch.clone(), 1).unwrap();
            newest.extend(winners(&newest, batch));
        }
        let node_types = kinds.map(|kinds| kinds.into_iter().map(|kind| NodeType::ALL[kind]).collect::<Vec<_>>());
        let filter = Filter { highest_tlp: Tlp::ALL[highest], include_rejected, node_types, ..all() };
        for mode in MODES {
            for query in ["apt28", "Fancy Bear", "phishing loader", "T1059"] {
                let hits = found(&index, query, mode, &filter, limit);
                prop_assert!(hits.len() <= limit);
                for node in hits {
                    let doc = &newest[&node];
                    let status = doc.status == NodeStatus::Active || (include_rejected && doc.status == NodeStatus::Rejected);
                    prop_assert!(status && doc.tlp <= filter.highest_tlp, "{:?}", doc);
                    prop_assert!(filter.node_types.as_ref().is_none_or(|types| types.contains(&doc.node_type)), "{:?}", doc);
                }
            }
        }
        prop_assert_eq!(index.len(), newest.len());
    }
}
