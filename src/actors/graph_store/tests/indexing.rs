//! How a write reaches the search index: page by page, and searchable once it is complete.

use std::future::ready;
use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;

use super::{GraphCore, IngestStix, analyst, graph, names, open, run};
use crate::actors::graph_store::core::NODES_PER_PAGE;
use crate::actors::graph_store::documents;
use crate::actors::worker::Work;
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::narrowing::Narrowing;
use crate::domain::principal::Principal;
use crate::domain::stix::ingest::{self, StixDefaults};
use crate::domain::tlp::Tlp;
use crate::search::{Filter, IndexDoc, Mode};
use crate::store::StixOrigin;

fn tools(count: usize, year: u32) -> Vec<Value> {
    let tool = |n| {
        json!({"type": "tool", "id": format!("tool--00000000-0000-4000-8000-{n:012}"), "spec_version": "2.1",
            "name": format!("Heron{n}"), "description": format!("Number {n} of {year}."),
            "created": "2020-01-01T00:00:00.000Z", "modified": format!("{year}-01-01T00:00:00.000Z")})
    };
    (0..count).map(tool).collect()
}

async fn ingest(core: &Arc<GraphCore>, by: &Principal, objects: Vec<Value>) {
    let message = IngestStix {
        by: by.clone(),
        objects: objects.into(),
        defaults: StixDefaults {
            tlp: Tlp::Green,
            confidence: 0.5,
            now: clock::now(),
        },
        origin: StixOrigin::default(),
    };
    message.run(Arc::clone(core)).await.unwrap();
}

/// The stored nodes of the workspace as documents, and their revision.
async fn stored(core: &GraphCore, ws: Uuid) -> (Vec<IndexDoc>, u64) {
    let changes = core.graph.store.node_changes(ws, 0, 10_000).await.unwrap();
    let ids: Vec<Uuid> = changes.iter().map(|change| change.id).collect();
    let nodes = core.graph.store.nodes_to_index(ws, &ids).await.unwrap();
    let docs = nodes
        .iter()
        .map(|stored| documents::of_stored(core.graph.store.ids_of(ws), stored))
        .collect();
    (docs, changes.last().unwrap().rev)
}

#[test]
fn all_pages_of_a_write_are_searchable_by_words_and_by_vector() {
    run(async {
        let store = open().await;
        let (core, by) = (graph(&store), analyst());
        let ws = by.workspace.id;
        let count = 2 * NODES_PER_PAGE + 7;
        for (year, changed) in [(2021, count), (2022, 3)] {
            ingest(&core, &by, tools(changed, year)).await;
            let (_, rev) = stored(&core, ws).await;
            let target = core.graph.index_of(ws).await.unwrap();
            assert_eq!(target.len(), count);
            assert!(target.checkpoint() <= rev);
            let third = store
                .ids_of(ws)
                .node("tool--00000000-0000-4000-8000-000000000002");
            assert!(target.contains(third, rev));
        }
        for n in [0, NODES_PER_PAGE, count - 1] {
            assert_eq!(
                names(&core, &by, &format!("Heron{n}")).await[0],
                format!("Heron{n}")
            );
        }
        let target = core.graph.index_of(ws).await.unwrap();
        let query = core.graph.index.embed_query("Heron").unwrap();
        let filter = Filter::up_to(Tlp::Red);
        let found = target.search("", Some(&query), Mode::Vector, &filter, 2 * count);
        assert_eq!(found.unwrap().len(), count, "every node has its vector");
    });
}

#[test]
fn a_write_with_a_failed_page_is_indexed_again() {
    run(async {
        let store = open().await;
        let (core, by) = (graph(&store), analyst());
        let ws = by.workspace.id;
        ingest(&core, &by, tools(4, 2021)).await;
        let (docs, first) = stored(&core, ws).await;

        // Another process over the same database, whose index knows nothing yet, fails half-way.
        let core = graph(&store);
        let state = core.graph.state(ws);
        state.caught_up.get_or_init(|| ready(())).await;
        state.record_durable(first);
        let (half, rest) = docs.split_at(2);
        let missing = rest[0].name.clone();
        let failed = DomainError::internal("a page failed", "test");
        let pages = vec![Ok(half.to_vec()), Err(failed), Ok(rest.to_vec())];
        core.graph
            .index_revision(ws, &state, first, pages.into_iter().map(ready))
            .await;
        let target = core.graph.index_of(ws).await.unwrap();
        assert!(
            target.checkpoint() < first,
            "the next start begins before the write"
        );
        assert!(!names(&core, &by, &missing).await.contains(&missing));

        core.graph.fill_vectors().await;
        assert_eq!(names(&core, &by, &missing).await[0], missing);
        assert_eq!(target.len(), 4);
    });
}

/// The nodes that the index alone finds under a filter, by name.
async fn passing(core: &GraphCore, ws: Uuid, given: &[(&str, &str)]) -> Vec<String> {
    let value = |name: &str| given.iter().find(|(key, _)| *key == name).map(|(_, text)| *text);
    let filter = Filter {
        narrowing: Narrowing::read(value).unwrap(),
        ..Filter::up_to(Tlp::Red)
    };
    let target = core.graph.index_of(ws).await.unwrap();
    let hits = target.search("heron", None, Mode::Keyword, &filter, 100).unwrap();
    let ids: Vec<Uuid> = hits.iter().map(|hit| hit.node_id).collect();
    let nodes = core.graph.store.nodes_to_index(ws, &ids).await.unwrap();
    let mut names: Vec<String> = nodes.into_iter().map(|stored| stored.node.name).collect();
    names.sort();
    names
}

#[test]
fn filters_see_the_same_after_a_second_version_and_a_rebuild() {
    run(async {
        let store = open().await;
        let (core, by) = (graph(&store), analyst());
        let ws = by.workspace.id;
        let heron = |n: usize, year: u32, more: Value| {
            let mut tool = tools(n + 1, year).remove(n);
            tool["description"] = json!("A heron.");
            let more = more.as_object().unwrap().clone();
            tool.as_object_mut().unwrap().extend(more);
            tool
        };
        let from = |source: &str| json!({"external_references": [{"source_name": source, "description": "Their report."}], "confidence": 30});
        let both = vec![heron(0, 2021, from("Alpha")), heron(1, 2021, from("Alpha"))];
        ingest(&core, &by, both).await;
        // The first has a newer version with another source and confidence, the second comes once more as it is.
        let newer = json!({"external_references": [{"source_name": "Bravo", "description": "Their report."}], "confidence": 80});
        let again = vec![heron(0, 2022, newer), heron(1, 2021, from("Alpha"))];
        ingest(&core, &by, again).await;

        let (docs, _) = stored(&core, ws).await;
        let ids: Vec<Uuid> = docs.iter().map(|doc| doc.node_id).collect();
        let nodes = core.graph.store.nodes_to_index(ws, &ids).await.unwrap();
        let time_of = |name: &str| {
            let node = nodes.iter().find(|stored| stored.node.name == name).unwrap();
            node.node.ingested_at
        };
        let (first, second) = (time_of("Heron1"), time_of("Heron0"));
        assert!(first < second, "a newer version counts as ingested anew");
        let [first, second] = [first, second].map(|time| time.to_rfc3339());
        let rebuilt = graph(&store);
        for (which, core) in [("live", &core), ("rebuilt", &rebuilt)] {
            for (given, found) in [
                (
                    vec![("since", second.as_str()), ("until", &second)],
                    vec!["Heron0"],
                ),
                (vec![("since", first.as_str()), ("until", &first)], vec!["Heron1"]),
                (vec![("source", "bravo")], vec!["Heron0"]),
                (vec![("source", "ALPHA")], vec!["Heron1"]),
                (vec![("min_confidence", "0.8")], vec!["Heron0"]),
                (vec![("min_confidence", "0.3")], vec!["Heron0", "Heron1"]),
                (vec![("min_confidence", "0.81")], vec![]),
            ] {
                assert_eq!(passing(core, ws, &given).await, found, "{which}: {given:?}");
            }
        }
    });
}

#[test]
fn a_write_is_searchable_although_a_later_one_changed_its_node_before_it_was_indexed() {
    run(async {
        let store = open().await;
        let (core, by) = (graph(&store), analyst());
        let ws = by.workspace.id;
        core.graph.index_of(ws).await.unwrap();
        let state = core.graph.state(ws);
        let defaults = StixDefaults {
            tlp: Tlp::Green,
            confidence: 0.5,
            now: clock::now(),
        };
        let mut first = None;
        for (after, year) in [(0, 2021), (1, 2022)] {
            let plan = ingest::plan(tools(1, year).into(), defaults, ingest::Markings::new());
            let origin = StixOrigin {
                after,
                ..StixOrigin::default()
            };
            let audit = AuditEntry::by(&by, "ingest.stix", "node", Outcome::Success, clock::now());
            let done = store.ingest_stix(ws, &plan, &origin, clock::now(), |_, _| audit.clone());
            let written = done.await.unwrap().written;
            state.record_durable(written.rev);
            first.get_or_insert(written);
        }
        // The first write answers, and the second is not indexed yet.
        core.index_stored(ws, &state, &first.unwrap()).await;
        assert_eq!(names(&core, &by, "Heron0").await, ["Heron0"]);
    });
}
