//! What is hidden changes nothing: neither a score nor an order nor a share of one.

use std::collections::BTreeMap;

use test_support::extent;

use super::*;
use crate::domain::narrowing::Narrowing;
use crate::search::{Ends, Relation, StructuredQuery};

/// Words from common to rare.
const WORDS: [&str; 12] = [
    "intrusion",
    "report",
    "phishing",
    "loader",
    "bear",
    "credential",
    "ransomware",
    "beacon",
    "wiper",
    "turla",
    "zusuzuze",
    "svcqx17",
];
const QUERIES: [&str; 6] = [
    "zusuzuze",
    "svcqx17 loader",
    "phishing report of a bear",
    "intrusion ransomware intrusion",
    "Group 7",
    "which loader brings the wiper in an intrusion with a beacon and a phishing report about turla",
];

/// A text of some words, common ones more often.
fn text(random: &mut Random) -> String {
    let length = 4 + random.next() as usize % 30;
    let words = (0..length).map(|_| {
        let (one, other) = (random.next() as usize % 12, random.next() as usize % 12);
        WORDS[one.min(other).min(random.next() as usize % 12)]
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Nodes and passages that a caller with GREEN may see, and some rejected nodes.
fn visible(count: u128) -> Vec<IndexDoc> {
    let mut random = Random(7);
    let node = |number: u128, random: &mut Random| {
        let mut doc = doc(number, &format!("Group {number}"), &text(random));
        doc.tlp = [Tlp::White, Tlp::Green][random.next() as usize % 2];
        doc.node_type = NodeType::ALL[random.next() as usize % NodeType::ALL.len()];
        if random.next().is_multiple_of(9) {
            doc.status = NodeStatus::Rejected;
        }
        doc
    };
    let mut docs: Vec<IndexDoc> = (1..=count).map(|number| node(number, &mut random)).collect();
    for number in 0..count / 4 {
        let ends = Ends::of(id(1 + number), id(1 + (number * 3) % count));
        docs.push(passage(10_000 + number, Tlp::Green, ends, &text(&mut random)));
    }
    docs
}

fn passage(number: u128, tlp: Tlp, ends: Ends, text: &str) -> IndexDoc {
    IndexDoc {
        vector: Some(quantize(&word_vector(text))),
        ..IndexDoc::passage(id(number), 1, tlp, ends, text.to_owned())
    }
}

/// As many nodes, passages and relationships that it may not see, with the same words.
fn hidden(count: u128) -> Vec<IndexDoc> {
    let mut random = Random(11);
    let mut docs = Vec::new();
    for number in 0..count {
        let mut node = doc(
            20_000 + number,
            &format!("Group {}", number % 9),
            &text(&mut random).repeat(3),
        );
        node.tlp = [Tlp::Amber, Tlp::AmberPk, Tlp::Red][random.next() as usize % 3];
        node.identifiers = vec![format!("CVE-2031-{number}")];
        docs.push(node);
        let secret = Ends::of(id(1 + number % 5), id(2 + number % 7));
        docs.push(passage(30_000 + number, Tlp::Red, secret, &text(&mut random)));
        let about_hidden = Ends::of(id(1 + number % 5), id(20_000 + number));
        docs.push(passage(
            40_000 + number,
            Tlp::White,
            about_hidden,
            &text(&mut random),
        ));
        let relation = Relation {
            ends: secret,
            tlp: Tlp::Red,
            code: 1,
            confidence: 1.0,
        };
        docs.push(IndexDoc::relationship(id(50_000 + number), 1, relation, None));
    }
    docs
}

fn filters() -> Vec<Filter> {
    let green = Filter::up_to(Tlp::Green);
    let narrowing =
        |name: &str, text: &str| Narrowing::read(|other| (other == name).then_some(text)).unwrap();
    vec![
        green.clone(),
        Filter {
            include_rejected: true,
            ..green.clone()
        },
        Filter {
            narrowing: narrowing("node_type", "tool"),
            ..green.clone()
        },
        Filter {
            narrowing: narrowing("min_confidence", "0"),
            ..green
        },
    ]
}

/// All that a caller gets for all questions, down to the last bit.
fn answers(index: &WorkspaceIndex) -> Vec<String> {
    let mut all = Vec::new();
    for filter in filters() {
        for query in QUERIES {
            let vector = quantize(&word_vector(query));
            for mode in MODES {
                let found = index
                    .find(query, Some(&vector), mode, &filter, (12, true))
                    .unwrap();
                let votes: BTreeMap<_, _> = found.votes.iter().collect();
                let reasons: BTreeMap<_, _> = found.reasons.iter().collect();
                all.push(format!(
                    "{mode:?} {query}: {:?} {votes:?} {reasons:?}",
                    found.hits
                ));
            }
            let structured = StructuredQuery {
                text: query.to_owned(),
                keys: vec!["Group 3".into()],
                ..StructuredQuery::default()
            };
            let by_words = StructuredQuery {
                node_types: vec![NodeType::Tool],
                keys: Vec::new(),
                ..structured.clone()
            };
            for structured in [structured, by_words] {
                let found = index
                    .search_structured(&structured, Some(&vector), &filter, 20)
                    .unwrap();
                all.push(format!("structured {query}: {found:?}"));
            }
            let similar = index.find_similar(query, Some(&vector), &filter, 10).unwrap();
            all.push(format!("similar {query}: {similar:?}"));
        }
        all.push(format!("{} nodes", index.count(&filter)));
    }
    all
}

fn index_with(fresh_docs: usize) -> Arc<WorkspaceIndex> {
    let settings = IndexSettings {
        fresh_docs,
        ..IndexSettings::default()
    };
    open_with(None, "word-hash", settings).workspace(id(0)).unwrap()
}

fn assert_same(index: &WorkspaceIndex, expected: &[String], what: &str) {
    for (found, expected) in answers(index).iter().zip(expected) {
        assert_eq!(found, expected, "{what}");
    }
}

/// An older version with other words and another marking.
fn older(doc: &IndexDoc, tlp: Tlp) -> IndexDoc {
    IndexDoc {
        tlp,
        body: format!("{} loader wiper zusuzuze", doc.body),
        ..doc.clone()
    }
}

fn newer(doc: &IndexDoc) -> IndexDoc {
    IndexDoc {
        rev: 9,
        ..doc.clone()
    }
}

#[test]
fn scores_do_not_tell_what_is_hidden() {
    let shown = visible(extent(300, 900));
    let alone = index_with(0);
    alone.apply(shown.clone(), 1).unwrap();
    let expected = answers(&alone);
    assert!(expected.iter().any(|answer| answer.contains("Vote")));
    for count in [1, 40, extent(300, 900)] {
        let secret = hidden(count);
        // All at once, in one segment.
        let index = index_with(0);
        index.apply([shown.clone(), secret.clone()].concat(), 1).unwrap();
        assert_same(&index, &expected, &format!("{count} at once"));
        // Afterwards.
        alone.apply(secret, count as u64 + 1).unwrap();
        assert_same(&alone, &expected, &format!("{count} afterwards"));
    }
    // Whoever may see the rest gets other scores.
    let everything = alone
        .search("intrusion", None, Mode::Keyword, &all(), 40)
        .unwrap();
    let green = Filter::up_to(Tlp::Green);
    assert_ne!(
        alone
            .search("intrusion", None, Mode::Keyword, &green, 40)
            .unwrap(),
        everything
    );
}

#[test]
fn scores_do_not_tell_how_documents_lie() {
    let (shown, secret) = (visible(extent(300, 900)), hidden(extent(120, 400)));
    let alone = index_with(0);
    alone.apply(shown.clone(), 1).unwrap();
    let expected = answers(&alone);
    for fresh_docs in [0, 90] {
        let index = index_with(fresh_docs);
        let mut parts = secret.chunks(secret.len() / 9);
        for (number, part) in shown.chunks(70).enumerate() {
            index.apply(part.to_vec(), number as u64).unwrap();
            index
                .apply(parts.next().unwrap_or_default().to_vec(), number as u64)
                .unwrap();
        }
        assert_same(&index, &expected, &format!("{fresh_docs} in memory"));
        index.close_idle(std::time::Duration::ZERO).unwrap();
        assert_same(&index, &expected, &format!("{fresh_docs} in memory, written"));
    }
}

#[test]
fn scores_do_not_tell_of_older_versions() {
    let (shown, secret) = (visible(extent(300, 900)), hidden(extent(120, 400)));
    let alone = index_with(0);
    alone.apply(shown.iter().map(newer).collect(), 1).unwrap();
    let expected = answers(&alone);
    let old = |docs: &[IndexDoc], tlp: Tlp| docs.iter().map(|doc| older(doc, tlp)).collect::<Vec<_>>();
    let removal = |doc: &IndexDoc| IndexDoc::removal(doc.node_id, 10);
    for fresh_docs in [0, 10_000] {
        let index = index_with(fresh_docs);
        // Hidden nodes were shown, and shown ones hidden.
        index
            .apply([old(&shown, Tlp::Red), old(&secret, Tlp::White)].concat(), 1)
            .unwrap();
        // What is known of words is brought up to date by each of these. They are small enough to stay in memory.
        for part in shown.chunks(200).chain(secret.chunks(200)) {
            answers(&index);
            index.apply(part.iter().map(newer).collect(), 2).unwrap();
        }
        assert_same(
            &index,
            &expected,
            &format!("{fresh_docs} in memory, all are newer"),
        );
        for part in secret.chunks(200) {
            index.apply(part.iter().map(removal).collect(), 10).unwrap();
        }
        assert_same(
            &index,
            &expected,
            &format!("{fresh_docs} in memory, hidden ones are removed"),
        );
        index.flush_older_than(std::time::Duration::ZERO).unwrap();
        assert_same(&index, &expected, &format!("{fresh_docs} in memory, written"));
    }
}
