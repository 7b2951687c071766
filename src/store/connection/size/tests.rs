//! The size estimate against the engine: what it allows goes through, what it refuses leaves nothing behind.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};
use surrealdb::types::{RecordId, SurrealValue, Variables};
use test_support::extent;
use uuid::Uuid;

use super::super::size;
use super::SizeLimit;
use crate::clock;
use crate::domain::draft::{Drafts, EvidenceDraft, NodeDraft, PassageDraft};
use crate::domain::error::DomainError;
use crate::domain::ids::IdSecret;
use crate::domain::node::NodeType;
use crate::domain::stix::ingest::{self, Markings, StixDefaults, StixPlan};
use crate::domain::tlp::Tlp;
use crate::store::StixOrigin;
use crate::store::audit::rows::audit_rows;
use crate::store::rows::{HeldRow, record};
use crate::store::stix::rows::StixRows;
use crate::store::tests::passages::send;
use crate::store::tests::{entry, fresh_with, run};
use crate::store::{Corrections, DraftsWrite, StixIngestOutcome, StorageMemory, Store};

/// A quarter of the lowest limit that can be configured: a debug build takes minutes to fill that.
const LIMIT: usize = 4 << 20;
const STRANGE: &str = "marking-definition--11111111-1111-4111-8111-111111111111";

fn id(kind: &str, at: usize) -> String {
    format!("{kind}--00000000-0000-4000-8000-{at:012}")
}

fn object(kind: &str, at: usize, year: u32, more: Value) -> Value {
    let time = format!("{year}-01-01T00:00:00.000Z");
    let mut object =
        json!({"type": kind, "id": id(kind, at), "spec_version": "2.1", "created": time, "modified": time});
    for (key, value) in more.as_object().cloned().unwrap_or_default() {
        object[key] = value;
    }
    object
}

/// Bundles of different kinds with `count` objects.
fn bundle(make: &str, count: usize, year: u32) -> Vec<Value> {
    let indicator = |at: usize| {
        let pattern = format!("[domain-name:value = 'h{at}.example']");
        object(
            "indicator",
            at,
            year,
            json!({"pattern": pattern, "pattern_type": "stix", "valid_from": "2020-01-01T00:00:00.000Z"}),
        )
    };
    let noise = |at: usize| -> String {
        let words =
            (0..40).map(|n| Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("{at} {n}").as_bytes()).to_string());
        words.collect()
    };
    match make {
        "indicators" => (0..count).map(indicator).collect(),
        "long" => (0..count)
            .map(|at| {
                object(
                    "tool",
                    at,
                    year,
                    json!({"name": format!("t{at}"), "description": noise(at)}),
                )
            })
            .collect(),
        "edges" => {
            let tools = (0..40).map(|at| object("tool", at, year, json!({"name": format!("t{at}")})));
            let edges = (0..count).map(|at| {
                let ends = json!({"relationship_type": "related-to", "source_ref": id("tool", at % 40),
                    "target_ref": id("tool", (at / 40) % 40)});
                object("relationship", at, year, ends)
            });
            tools.chain(edges).collect()
        }
        "identities" => (0..count)
            .map(|at| {
                object(
                    "identity",
                    at,
                    year,
                    json!({"name": format!("i{at}"), "identity_class": "group"}),
                )
            })
            .collect(),
        "held" => (0..count)
            .map(indicator)
            .map(|mut object| {
                object["object_marking_refs"] = json!([STRANGE]);
                object
            })
            .collect(),
        other => panic!("{other}"),
    }
}

fn plan(make: &str, count: usize, year: u32) -> StixPlan {
    let defaults = StixDefaults {
        tlp: Tlp::Green,
        confidence: 0.5,
        now: clock::now(),
    };
    ingest::plan(bundle(make, count, year).into(), defaults, Markings::new())
}

async fn small(limit: usize) -> Store {
    let memory = StorageMemory {
        transaction: limit,
        ..StorageMemory::default()
    };
    fresh_with(memory).await
}

async fn ingest(
    store: &Store,
    ws: Uuid,
    feed: Option<Uuid>,
    plan: &StixPlan,
) -> Result<StixIngestOutcome, DomainError> {
    let audit = entry(ws, "ingest");
    let origin = StixOrigin {
        feed,
        after: store.last_write(ws).await.unwrap(),
        ..StixOrigin::default()
    };
    store
        .ingest_stix(ws, plan, &origin, clock::now(), |_, _| audit.clone())
        .await
}

/// Nearly the largest number of objects of a kind that the estimate allows, to within one per cent or two objects.
fn most(make: &str, limit: usize) -> usize {
    let of = |count: usize| size::of_plan(&plan(make, count, 2020));
    let few = limit >> 13;
    let (some, more) = (of(few), of(2 * few));
    let each = (more - some) / few as u64;
    let room = limit as u64 - (64 << 10) - some;
    let most = few + (room / each) as usize;
    let most = most - (most / 200).max(1);
    let budget = SizeLimit::new(limit);
    assert!(budget.allow_plan(&plan(make, most, 2020)).is_ok(), "{make}");
    let more = most + (most / 100).max(2);
    assert!(budget.allow_plan(&plan(make, more, 2020)).is_err(), "{make}");
    most
}

async fn count(store: &Store, table: &str) -> usize {
    let mut answer = store
        .db
        .query(format!("SELECT VALUE id FROM {table}"))
        .await
        .unwrap();
    let rows: Vec<surrealdb::types::RecordId> = answer.take(0).unwrap();
    rows.len()
}

/// Number of rows that a feed restricts.
async fn restricted(store: &Store) -> usize {
    let query = "SELECT VALUE id FROM node, edge, stix_support WHERE feeds != NONE";
    let rows: Vec<RecordId> = store.db.query(query).await.unwrap().take(0).unwrap();
    rows.len()
}

#[test]
fn what_the_estimate_allows_goes_through_when_it_is_new_when_it_is_freed_and_when_it_replaces_all_of_it() {
    for make in ["indicators", "long", "edges", "identities", "held"] {
        run(async move {
            let limit = extent(256 << 10, LIMIT);
            let most = most(make, limit);
            println!("{make}: {most} objects in {limit} bytes");
            let (store, ws) = (small(limit).await, Uuid::new_v4());
            let done = ingest(&store, ws, Some(ws), &plan(make, most, 2020)).await;
            assert!(done.is_ok(), "{make}: {done:?}");
            let done = ingest(&store, ws, None, &plan(make, most, 2020)).await;
            assert!(done.is_ok(), "{make}, now without a feed: {done:?}");
            assert_eq!(restricted(&store).await, 0, "{make}");
            // A replaced edge is deleted first, which takes as much again.
            let newer = if make == "edges" { most / 2 } else { most };
            let done = ingest(&store, ws, Some(ws), &plan(make, newer, 2021)).await;
            assert!(done.is_ok(), "{make} again: {done:?}");
        });
    }
}

#[test]
fn what_the_estimate_refuses_leaves_nothing() {
    run(async {
        let (store, ws) = (small(LIMIT).await, Uuid::new_v4());
        let most = most("indicators", LIMIT);
        let too_many = plan("indicators", most + most / 20, 2020);
        let error = ingest(&store, ws, None, &too_many).await.unwrap_err();
        let DomainError::TransactionTooLarge {
            needed_mib,
            limit_mib,
        } = &error
        else {
            panic!("{error:?}");
        };
        assert_eq!((needed_mib, limit_mib), (&Some(5), &4), "{error}");
        for table in ["node", "evidence", "audit_entry"] {
            assert_eq!(count(&store, table).await, 0, "{table}");
        }
    });
}

/// Drafts whose size only their rows reveal.
fn long_drafts(nodes: usize) -> Drafts {
    let text: String = (0..3000).map(|n| format!("{n:x} ")).collect();
    let properties = Map::from_iter([("text".to_owned(), Value::from(text))]);
    Drafts {
        nodes: (0..nodes)
            .map(|n| NodeDraft {
                identity: format!("tool\0{n}"),
                node_type: NodeType::Tool,
                name: format!("t{n}"),
                description: String::new(),
                source: "s".into(),
                source_type: "analyst",
                tlp: Tlp::Green,
                confidence: 0.5,
                properties: properties.clone().into(),
                evidence: vec![0],
                merge_by_name: false,
            })
            .collect(),
        evidence: vec![EvidenceDraft {
            identity: "e".into(),
            kind: "analyst",
            ext_id: None,
            title: "t".into(),
            source: "s".into(),
            tlp: Tlp::Green,
            raw: Map::new().into(),
        }],
        ..Drafts::default()
    }
}

#[test]
fn a_transaction_that_turns_out_too_large_is_taken_back_and_the_store_goes_on() {
    run(async {
        let (store, ws) = (small(LIMIT).await, Uuid::new_v4());
        let write = |drafts| {
            let (store, audit) = (&store, entry(ws, "ingest"));
            async move {
                let write = DraftsWrite {
                    ws,
                    drafts,
                    merges: &HashMap::new(),
                    highest: Tlp::Red,
                    evidence_only: &HashSet::new(),
                    corrections: &Corrections::default(),
                    after: store.last_write(ws).await.unwrap(),
                    now: clock::now(),
                };
                store.ingest_drafts(&write, |_| audit.clone()).await
            }
        };
        let drafts = long_drafts(375);
        let error = write(&drafts).await.unwrap_err();
        let refused = matches!(
            error,
            DomainError::TransactionTooLarge {
                needed_mib: None,
                limit_mib: 4
            }
        );
        assert!(refused, "{error:?}");
        for table in ["node", "evidence", "audit_entry"] {
            assert_eq!(count(&store, table).await, 0, "{table}");
        }
        let parts = [long_drafts(175), long_drafts(225)];
        for part in &parts {
            write(part).await.unwrap();
        }
        assert_eq!(count(&store, "node").await, 225);
    });
}

#[test]
fn passages_that_do_not_fit_are_left_out_and_the_rest_is_written() {
    run(async {
        let (store, ws) = (small(LIMIT).await, Uuid::new_v4());
        let mut drafts = long_drafts(100);
        drafts.passages = (0..4000)
            .map(|n| PassageDraft {
                about: [n % 100; 2],
                tlp: Tlp::Green,
                text: format!("{n} {}", "said of it ".repeat(40)),
            })
            .collect();
        let done = send(&store, ws, &drafts).await;
        assert_eq!(done.ids.len(), 100);
        assert_eq!(count(&store, "node").await, 100);
        let written = count(&store, "passage").await;
        assert!(0 < written && written < 4000, "{written}");
        assert_eq!(done.written.rows.edges.len(), written);
    });
}

#[test]
fn the_quick_estimate_of_a_plan_covers_its_rows() {
    let ws = Uuid::new_v4();
    for make in ["indicators", "long", "edges", "identities", "held"] {
        let plan = plan(make, 100, 2020);
        let exact = size::of_variables(&rows_of(&plan, ws));
        let quick = size::of_plan(&plan);
        assert!(quick >= exact, "{make}: {quick} < {exact}");
        assert!(quick < exact * 5 / 4, "{make}: {quick} is far more than {exact}");
    }
}

/// The rows of a plan, as bound to the statements.
fn rows_of(plan: &StixPlan, ws: Uuid) -> Variables {
    let rows = StixRows {
        ws,
        ids: IdSecret::new(ws, []).ids_of(ws),
        now: clock::now(),
        rev: 1 << 50,
        feed: Some(ws),
    };
    let (mut all, mut held) = (audit_rows([&entry(ws, "ingest")]), Vec::new());
    let mut hold = |row: &RecordId, by: &[String]| {
        for marking in by {
            held.push(
                HeldRow::new(ws, marking, row, Tlp::Green, (Tlp::Green, None))
                    .unwrap()
                    .into_value(),
            );
        }
    };
    for node in &plan.nodes {
        let evidence = rows.evidence(node, None, node.tlp);
        hold(&evidence.id, &node.held_by);
        let mut row = rows.node(ws, node, ws, node.tlp);
        row.link(ws, node.tlp);
        all.extend([evidence.into_value(), row.into_value()]);
    }
    for edge in &plan.relationships {
        let row = rows.edge(edge, record("edge", ws), (ws, ws), edge.tlp);
        hold(&row.id, &edge.held_by);
        all.push(row.into_value());
    }
    for object in &plan.supporting {
        let row = rows.support(object, record("stix_support", ws), object.tlp);
        hold(&row.id, &object.held_by);
        all.push(row.into_value());
    }
    all.extend(held);
    Variables::from_iter([("rows".to_owned(), all.into_value())])
}
