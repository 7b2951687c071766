//! Filters that a caller sets on results: they are applied inside the search, whatever way leads to a result.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use proptest::prelude::*;
use test_support::extent;

use super::super::{Ends, StructuredQuery};
use super::*;
use crate::domain::narrowing::Narrowing;

const SOURCES: [&str; 4] = ["CERT Alpha", " cert alpha", "Bravo", ""];

fn day(day: u32) -> DateTime<Utc> {
    format!("2024-03-{day:02}T12:00:00Z").parse().unwrap()
}

/// What the documents of a test say besides their text.
#[derive(Debug, Clone, Copy)]
struct DocFacts {
    node_type: NodeType,
    source: &'static str,
    confidence: f64,
    day: u32,
}

impl DocFacts {
    fn put_on(self, doc: IndexDoc) -> IndexDoc {
        IndexDoc {
            node_type: self.node_type,
            facts: Facts::of(self.source, self.confidence, day(self.day)),
            ..doc
        }
    }

    fn passes(self, narrowing: &Narrowing) -> bool {
        let source = |asked: &str| self.source.trim().to_lowercase() == asked;
        narrowing.allows(self.node_type)
            && narrowing
                .source
                .as_ref()
                .is_none_or(|asked| source(asked.folded()))
            && narrowing.since.is_none_or(|since| day(self.day) >= since)
            && narrowing.until.is_none_or(|until| day(self.day) <= until)
            && narrowing
                .min_confidence
                .is_none_or(|least| self.confidence >= least)
    }
}

fn narrowing(given: &[(&str, &str)]) -> Narrowing {
    let value = |name: &str| given.iter().find(|(key, _)| *key == name).map(|(_, text)| *text);
    Narrowing::read(value).unwrap()
}

fn narrowed(given: &[(&str, &str)]) -> Filter {
    Filter {
        narrowing: narrowing(given),
        ..all()
    }
}

/// Thousands of alike nodes, of which three differ in source, confidence and day.
fn crowd() -> Arc<WorkspaceIndex> {
    let usual = DocFacts {
        node_type: NodeType::Ioc,
        source: "Bravo",
        confidence: 0.4,
        day: 1,
    };
    let rare = DocFacts {
        source: "CERT Alpha",
        confidence: 0.9,
        day: 20,
        ..usual
    };
    let docs = (0..6000u128).map(|n| {
        let said = if [1000, 3000, 5999].contains(&n) {
            rare
        } else {
            usual
        };
        said.put_on(doc(n, "Beacon host", "A loader was seen here, again and again."))
    });
    holding(docs.collect())
}

#[test]
fn the_few_that_pass_are_found_among_thousands() {
    let index = crowd();
    let few = [id(1000), id(3000), id(5999)];
    for given in [
        ("source", "cert ALPHA "),
        ("min_confidence", "0.9"),
        ("since", "2024-03-02"),
    ] {
        let filter = narrowed(&[given]);
        for mode in MODES {
            for query in ["loader seen", "Beacon host"] {
                let mut hits = found(&index, query, mode, &filter, 10);
                hits.sort_unstable();
                assert_eq!(hits, few, "{given:?} {mode:?} {query}");
            }
        }
        let keyed = StructuredQuery {
            keys: vec!["beacon host".into()],
            ..StructuredQuery::default()
        };
        let hits = index.search_structured(&keyed, None, &filter, 10).unwrap();
        assert_eq!(hits.len(), 3, "{given:?}");
    }
    let none = narrowed(&[("until", "2024-02-29")]);
    for mode in MODES {
        assert_eq!(found(&index, "loader seen", mode, &none, 10), NONE);
    }
}

#[test]
fn a_mention_stays_a_mention_whatever_is_asked_for() {
    let text = "Quiet Heron was used to read credentials out of the memory of the local security process";
    let mut tool = doc(1, "Quiet Heron", "quiet heron quiet heron quiet heron");
    tool.node_type = NodeType::Tool;
    let technique = |number, name: &str, body: &str| IndexDoc {
        node_type: NodeType::Attck,
        ..doc(number, name, body)
    };
    let index = holding(vec![
        tool,
        technique(
            2,
            "Local Memory",
            "Adversaries read credentials out of the memory of the security process.",
        ),
        technique(
            3,
            "Heron Watching",
            "Quiet heron, quiet heron, quiet heron: a quiet heron.",
        ),
    ]);
    let techniques = narrowed(&[("node_type", "attck")]);
    let hits = found(&index, text, Mode::Blended, &techniques, 10);
    assert_eq!(hits, [id(2), id(3)]);
    let everything: Vec<Uuid> = found(&index, text, Mode::Blended, &all(), 10);
    let ranked: Vec<Uuid> = everything.into_iter().filter(|node| *node != id(1)).collect();
    assert_eq!(ranked, hits);
}

#[test]
fn passages_speak_only_for_nodes_that_pass() {
    let node = |number, node_type| IndexDoc {
        node_type,
        ..doc(number, &format!("Node{number}"), "nothing to see")
    };
    let about = |number: u128, source, target, text: &str| {
        let ends = Ends::of(id(source), id(target));
        let passage = IndexDoc::passage(id(number), 1, Tlp::White, ends, text.to_owned());
        IndexDoc {
            vector: Some(quantize(&word_vector(text))),
            ..passage
        }
    };
    let text = "smuggles sluice commands through the historian";
    let mut docs = vec![
        node(1, NodeType::Tool),
        node(2, NodeType::Attck),
        node(3, NodeType::Actor),
    ];
    // So many that they would fill every place among those that vote.
    docs.extend((0..300).map(|n| about(1000 + n, 3, 1, text)));
    docs.push(about(
        2000,
        3,
        2,
        "smuggles sluice commands with other words through the historian",
    ));
    let index = holding(docs);
    let vector = quantize(&word_vector(text));
    let filter = narrowed(&[("node_type", "attck")]);
    let answer = index.find(text, Some(&vector), Mode::Blended, &filter, (10, true));
    let answer = answer.unwrap();
    assert_eq!(answer.hits.len(), 1);
    assert_eq!(answer.votes.keys().copied().collect::<Vec<_>>(), [id(2)]);
    assert_eq!(answer.votes[&id(2)].passages[0].0, id(2000));
}

#[test]
fn facts_follow_the_newest_version_into_files_and_compactions() {
    let dir = tempfile::tempdir().unwrap();
    let said = |day, source| DocFacts {
        node_type: NodeType::Actor,
        source,
        confidence: 0.5,
        day,
    };
    let version = |rev: u64, said: DocFacts| {
        let docs = (0..5000u128).map(|n| IndexDoc {
            rev,
            ..said.put_on(doc(n, &format!("Heron{n}"), "wader"))
        });
        docs.collect::<Vec<_>>()
    };
    {
        let search = open(Some(dir.path()));
        let index = search.workspace(id(0)).unwrap();
        index.apply(version(1, said(1, "Bravo")), 1).unwrap();
        index.apply(version(2, said(9, "CERT Alpha")), 2).unwrap();
        index.apply(vec![doc(9999, "Last", "wader")], 3).unwrap();
        search.close().unwrap();
    }
    let index = open(Some(dir.path())).workspace(id(0)).unwrap();
    assert_eq!(index.checkpoint(), 3, "the files were kept");
    for mode in MODES {
        for (given, passing) in [
            (("source", "cert alpha"), 5000),
            (("since", "2024-03-09"), 5000),
            (("source", "bravo"), 0),
            (("until", "2024-03-08"), 1),
        ] {
            let hits = found(&index, "wader", mode, &narrowed(&[given]), 9000);
            // A document of the tests without facts counts as ingested in 1970.
            assert_eq!(hits.len(), passing, "{given:?} {mode:?}");
        }
    }
}

prop_compose! {
    fn any_doc()(n in 0u128..40, rev in 1u64..4, kind in 0usize..7, tlp in 0usize..5, source in 0usize..4,
                 confidence in 0u32..5, day in 1u32..6, with_vector: bool,
                 name in "(heron|Quiet Otter|bittern)", body in "(phishing|loader|sluice|[a-z]{3,6}){1,4}") -> (IndexDoc, DocFacts) {
        let said = DocFacts {
            node_type: NodeType::ALL[kind], source: SOURCES[source], confidence: f64::from(confidence) / 4.0, day,
        };
        let mut doc = said.put_on(doc(n, &name, &body));
        (doc.rev, doc.tlp) = (rev, Tlp::ALL[tlp]);
        doc.vector = doc.vector.filter(|_| with_vector);
        (doc, said)
    }
}

prop_compose! {
    fn any_narrowing()(types in prop::option::of("(tool|actor|ioc|cve,attck|osint,tool)"), source in prop::option::of(0usize..3),
                       since in prop::option::of(1u32..4), until in prop::option::of(3u32..6),
                       least in prop::option::of(0u32..5)) -> Narrowing {
        let since = since.map(|day| format!("2024-03-{day:02}"));
        let until = until.map(|day| format!("2024-03-{day:02}"));
        let least = least.map(|least| (f64::from(least) / 4.0).to_string());
        let given = [("node_type", types.as_deref()), ("source", source.map(|at| SOURCES[at])),
            ("since", since.as_deref()), ("until", until.as_deref()), ("min_confidence", least.as_deref())];
        let given: Vec<(&str, &str)> = given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        narrowing(&given)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(extent(8, 48)))]

    #[test]
    fn a_filter_keeps_what_passes_it_and_nothing_else(
        docs in prop::collection::vec(any_doc(), 1..extent(40, 120)), narrowing in any_narrowing(), highest in 0usize..5,
        limit in 1usize..20, fresh_docs in prop::sample::select(vec![0usize, 1000]),
        ends in prop::collection::vec((0u128..40, 0u128..40), 0..20),
    ) {
        let settings = IndexSettings { fresh_docs, ..IndexSettings::default() };
        let index = open_with(None, "word-hash", settings).workspace(id(0)).unwrap();
        let mut newest: HashMap<Uuid, (u64, DocFacts)> = HashMap::new();
        for (doc, said) in docs {
            if newest.get(&doc.node_id).is_none_or(|(rev, _)| doc.rev > *rev) {
                newest.insert(doc.node_id, (doc.rev, said));
                index.apply(vec![doc], 1).unwrap();
            }
        }
        let passages = ends.into_iter().enumerate().map(|(n, (source, target))| {
            let ends = Ends::of(id(source), id(target));
            let text = "phishing with a loader".to_owned();
            let vector = Some(quantize(&word_vector(&text)));
            IndexDoc { vector, ..IndexDoc::passage(id(5000 + n as u128), 1, Tlp::White, ends, text) }
        });
        index.apply(passages.collect(), 2).unwrap();
        let wide = Filter::up_to(Tlp::ALL[highest]);
        let filter = Filter { narrowing: narrowing.clone(), ..wide.clone() };
        let passes = |node: &Uuid| newest[node].1.passes(&narrowing);
        for mode in MODES {
            for query in ["phishing loader", "sluice", "Quiet Otter phishing", "heron"] {
                let mut whole = found(&index, query, mode, &wide, 1000);
                whole.retain(passes);
                let hits = found(&index, query, mode, &filter, limit);
                prop_assert_eq!(hits.len(), whole.len().min(limit), "{:?} {}", mode, query);
                prop_assert!(hits.iter().all(|node| whole.contains(node)), "{:?} {}", mode, query);
                // Blended scores depend on the other results, and so do those of what the query names.
                if mode == Mode::Vector || (mode == Mode::Keyword && query == "phishing loader") {
                    prop_assert_eq!(&hits[..], &whole[..hits.len()], "{:?} {}", mode, query);
                }
            }
        }
        let keys = ["quiet otter", "heron"];
        let mut whole = index.lookup(&keys, &wide).unwrap();
        whole.retain(|hit| passes(&hit.node_id));
        prop_assert_eq!(index.lookup(&keys, &filter).unwrap(), whole);
    }
}
