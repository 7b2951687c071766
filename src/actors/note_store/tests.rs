//! The memory over a real store: what is remembered is found, once, and survives a restart.

mod copy;
mod groups;
mod names;
mod personal_data;
mod questions;
mod races;
mod recall;
mod times;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, json};
use test_support::extent;
use uuid::Uuid;

use super::lead::Lead;
use super::ranking::Ranking;
use super::*;
use crate::actors::audit_writer::{AuditHandle, ListEntries};
use crate::actors::graph_store::tests::{audit_writer, embedder};
use crate::actors::indexed_store::StoreEnvironment;
use crate::clock;
use crate::domain::memory::entity::relationship_label;
use crate::domain::memory::note::NoteStatus;
use crate::domain::memory::view::{MENTIONS, SUPERSEDES};
use crate::search::{Hit, IndexSettings, SearchIndex};
use crate::store::{AuditFilter, Store};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const ALL: Page = Page {
    offset: 0,
    limit: 10_000,
};

const BEACONS: &str = "Beacons of the implant that the operators left on the mail servers went to one machine in Riga \
                       every sixty minutes, without any pause.";

fn run(test: impl Future<Output = ()>) {
    let system = actix::System::with_tokio_rt(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder
            .worker_threads(2)
            .thread_stack_size(16 << 20)
            .enable_all()
            .build()
            .unwrap()
    });
    system.block_on(test);
}

fn tuning() -> Tuning {
    Tuning {
        graph_weight: 0.35,
        recency_weight: 0.3,
        half_life_days: 30.0,
        near_cosine: 0.92,
        near_overlap: 0.8,
        audited: true,
        pii: None,
        most_waiting: 0,
    }
}

fn workspace() -> Uuid {
    Uuid::from_u128(7)
}

async fn open() -> (Arc<Store>, AuditHandle) {
    let store = Arc::new(crate::store::tests::fresh().await);
    let audit = audit_writer(&store);
    (store, audit)
}

fn over(store: &Arc<Store>, audit: &AuditHandle, dir: Option<&Path>, tuning: Tuning) -> Arc<NoteCore> {
    copied_to(store, audit, dir, dir.map(|dir| dir.join("graph")), tuning)
}

fn copied_to(
    store: &Arc<Store>,
    audit: &AuditHandle,
    dir: Option<&Path>,
    copy: Option<PathBuf>,
    tuning: Tuning,
) -> Arc<NoteCore> {
    let index = SearchIndex::open(dir, embedder(), IndexSettings::default(), store.id_secret()).unwrap();
    let copy = copy.map(|path| GraphCopy::open(path, workspace()));
    let ids = store.ids_of(workspace());
    let memory = Memory::new(workspace(), ids, Arc::new(move || tuning.clone()), copy);
    Arc::new(NoteCore::new(
        Arc::clone(store),
        Arc::new(index),
        audit.clone(),
        StoreEnvironment::default(),
        memory,
    ))
}

async fn fresh(tuning: Tuning) -> Arc<NoteCore> {
    let (store, audit) = open().await;
    over(&store, &audit, None, tuning)
}

fn note(content: &str) -> NewNote {
    NewNote {
        content: content.into(),
        domain: "cti".into(),
        source_type: "manual".into(),
        source_ref: String::new(),
        evolve: true,
    }
}

async fn tell(core: &Arc<NoteCore>, notes: Vec<NewNote>) -> Vec<Result<RememberOutcome, DomainError>> {
    let message = Remember {
        notes,
        from: HERE,
        permit: None,
    };
    core.remember(message).await.unwrap()
}

async fn remember(core: &Arc<NoteCore>, content: &str) -> RememberOutcome {
    tell(core, vec![note(content)]).await.remove(0).unwrap()
}

fn read(question: &str) -> Arc<Question> {
    Arc::new(Question::read(question, clock::now()))
}

async fn ids(core: &NoteCore, query: &str, domain: Option<&str>) -> Vec<Uuid> {
    let message = RecallNotes {
        question: read(query),
        k: 10,
        options: RecallOptions {
            scope: Scope {
                domain: domain.map(str::to_owned),
                ..Scope::default()
            },
            ..RecallOptions::default()
        },
    };
    let found = core.recall_notes(message).await.unwrap();
    found.notes.iter().map(|found| found.note.id).collect()
}

#[test]
fn a_note_is_whole_found_by_any_name_and_in_the_graph_at_once() {
    run(async {
        let core = fresh(tuning()).await;
        let long = format!(
            "{} The server was 203.0.113.77.",
            "Fancy Bear used Cobalt Strike. ".repeat(40)
        );
        let told = remember(&core, &long).await;
        assert_eq!(told.status, NoteStatus::Created);
        assert_eq!(told.entities, ["apt28", "cobalt-strike", "203.0.113.77"]);
        remember(&core, "Quiet words about a garden.").await;
        for query in ["APT 28", "fancy bear", "203[.]0[.]113[.]77", "cobalt strike"] {
            assert_eq!(
                ids(&core, query, None).await.first(),
                Some(&told.note_id),
                "{query}"
            );
        }
        let whole = core.read_note(ReadNote(told.note_id)).await.unwrap();
        assert_eq!(whole.note.content, long);
        let nodes = core
            .list_nodes(ListNodes {
                page: ALL,
                node_type: None,
                part: None,
            })
            .await
            .unwrap();
        assert_eq!(nodes.len(), 5);
        let edges = core.list_edges(ListEdges(ALL)).await.unwrap();
        assert_eq!(
            edges.iter().filter(|edge| edge.relationship == MENTIONS).count(),
            3
        );
        assert!(edges.iter().any(|edge| {
            (
                edge.source.as_str(),
                edge.relationship.as_str(),
                edge.target.as_str(),
            ) == ("actor:apt28", "uses", "tool:cobalt-strike")
        }));
        let counts = core.count_memory(CountMemory).await.unwrap();
        assert_eq!(
            (counts.notes, counts.graph_nodes, counts.graph_edges),
            (2, 5, edges.len())
        );
    });
}

#[test]
fn the_same_text_is_one_note_unless_evolution_is_off() {
    run(async {
        let core = fresh(tuning()).await;
        let first = remember(&core, "APT28 targets ministries.").await;
        let again = remember(&core, "  APT28 targets ministries.\r\n").await;
        assert_eq!(
            (again.status, again.note_id),
            (NoteStatus::Duplicate, first.note_id)
        );
        let mut verbatim = note("APT28 targets ministries.");
        verbatim.evolve = false;
        let mut elsewhere = note("APT28 targets ministries.");
        elsewhere.domain = "other".into();
        let both = tell(&core, vec![verbatim, elsewhere]).await;
        for told in both {
            assert_eq!(told.unwrap().status, NoteStatus::Created);
        }
        let twice = tell(&core, vec![note("one and the same"), note("one and the same")]).await;
        let twice: Vec<_> = twice.into_iter().map(Result::unwrap).collect();
        assert_eq!(twice[1].status, NoteStatus::Duplicate);
        assert_eq!(twice[0].note_id, twice[1].note_id);
    });
}

#[test]
fn only_a_near_duplicate_takes_the_place_of_a_note_which_stays_readable() {
    run(async {
        let core = fresh(tuning()).await;
        let report =
            "The group APT28 sent phishing mails to ministries in March and used Mimikatz on the hosts.";
        let old = remember(&core, report).await;
        // Sharing an actor and a tool proves nothing.
        let other = remember(&core, "APT28 has used Mimikatz for years.").await;
        assert_eq!(other.status, NoteStatus::Created);
        let new = remember(&core, &report.replace("sent phishing", "has sent phishing")).await;
        assert_eq!(
            (new.status, new.superseded),
            (NoteStatus::Updated, Some(old.note_id))
        );
        let found = ids(&core, "phishing mails to ministries", None).await;
        assert!(found.contains(&new.note_id) && !found.contains(&old.note_id));
        let kept = core.read_note(ReadNote(old.note_id)).await.unwrap();
        assert_eq!(kept.note.superseded_by, Some(new.note_id));
        assert_eq!(kept.note.content, report);
        let edges = core.list_edges(ListEdges(ALL)).await.unwrap();
        let edge = edges.iter().find(|edge| edge.relationship == SUPERSEDES).unwrap();
        assert_eq!(
            (&edge.source, &edge.target),
            (&new.note_id.to_string(), &old.note_id.to_string())
        );
        let pair = tell(
            &core,
            vec![
                note("Beacons went to one server every sixty minutes without any pause at all."),
                note("Beacons went to one server every sixty minutes, without any pause at all!"),
            ],
        )
        .await;
        let pair: Vec<_> = pair.into_iter().map(Result::unwrap).collect();
        assert_eq!(pair[1].superseded, Some(pair[0].note_id));
        let found = ids(&core, "beacons to one server", None).await;
        assert!(found.contains(&pair[1].note_id) && !found.contains(&pair[0].note_id));
    });
}

#[test]
fn a_note_that_is_superseded_during_a_search_is_found_as_its_successor() {
    run(async {
        let core = fresh(tuning()).await;
        let more = BEACONS.replace("went", "then went");
        let texts = [BEACONS.to_owned(), more.clone(), more.replace("then", "so then")];
        let mut told = Vec::new();
        for text in &texts {
            told.push(remember(&core, text).await);
        }
        assert_eq!(told[2].superseded, Some(told[1].note_id));
        let memory = core.memory().await.unwrap();
        let stale = |note: &RememberOutcome, score| Hit {
            node_id: note.note_id,
            score,
            matched: MatchedBy::Words,
        };
        // The index as it was before the two writes.
        let hits = vec![stale(&told[0], 0.9), stale(&told[1], 0.5)];
        let found = core.load_notes(memory, hits.clone(), Vec::new()).await.unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].note.id, found[0].score), (told[2].note_id, 0.9));
        let graph = memory.graph();
        let ranking = Ranking {
            graph: &graph,
            tuning: &tuning(),
            intent: Intent::Factual,
            now: crate::clock::now(),
            scope: &Scope::default(),
            answered: None,
            has_code_word: false,
            lead: &Lead::default(),
        };
        let ranked = ranking.fuse(hits, HashMap::new(), 10);
        assert_eq!(ranked.len(), 1);
        assert_eq!(ranked[0].hit.node_id, told[2].note_id);
    });
}

#[test]
fn readers_beside_a_writer_always_find_the_fact() {
    run(async {
        let core = fresh(tuning()).await;
        remember(&core, BEACONS).await;
        let writer = {
            let core = Arc::clone(&core);
            tokio::spawn(async move {
                for number in 0..extent(20, 60) {
                    let words = ["these operators", "the operators"][number % 2];
                    let told = remember(&core, &BEACONS.replace("the operators", words)).await;
                    assert_eq!(told.status, NoteStatus::Updated);
                }
            })
        };
        while !writer.is_finished() {
            assert_eq!(ids(&core, "beacons of the implant in Riga", None).await.len(), 1);
        }
        writer.await.unwrap();
    });
}

#[test]
fn a_near_duplicate_is_found_behind_other_domains_and_behind_duplicates() {
    run(async {
        let core = fresh(tuning()).await;
        let near = BEACONS.replace("went", "then went");
        let first = remember(&core, BEACONS).await;
        for domain in 0..8 {
            let mut elsewhere = note(BEACONS);
            elsewhere.domain = format!("other {domain}");
            tell(&core, vec![elsewhere]).await;
        }
        let both = tell(&core, vec![note(BEACONS), note(&near)]).await;
        let both: Vec<RememberOutcome> = both.into_iter().map(Result::unwrap).collect();
        assert_eq!(both[0].status, NoteStatus::Duplicate);
        assert_eq!(both[1].superseded, Some(first.note_id));
        let again = remember(&core, &near.replace("then went", "then have been going")).await;
        assert_eq!(again.status, NoteStatus::Created);
        let again = remember(&core, &near.replace("to one", "towards one")).await;
        assert_eq!(again.superseded, Some(both[1].note_id));
    });
}

#[test]
fn a_domain_is_searched_alone() {
    run(async {
        let core = fresh(tuning()).await;
        let noise = (0..150).map(|number| {
            let mut note = note(&format!("Ransomware note number {number} about backups"));
            note.domain = "noise".into();
            note.evolve = false;
            note
        });
        tell(&core, noise.collect()).await;
        let mine = remember(&core, "Ransomware and backups").await;
        assert_eq!(
            ids(&core, "ransomware backups", Some("cti")).await,
            [mine.note_id]
        );
        assert!(ids(&core, "ransomware backups", Some("nowhere")).await.is_empty());
        assert_eq!(ids(&core, "ransomware backups", Some("noise")).await.len(), 10);
    });
}

#[test]
fn a_restart_loses_nothing_with_or_without_the_index() {
    let dir = tempfile::tempdir().unwrap();
    run(async {
        let index = dir.path().join("index");
        let (store, audit) = open().await;
        let one = over(&store, &audit, Some(&index), tuning());
        let told = remember(&one, "Sandworm uses Industroyer against substations.").await;
        let before = one.count_memory(CountMemory).await.unwrap();
        let nodes = ListNodes {
            page: ALL,
            node_type: None,
            part: None,
        };
        let nodes_before = one.list_nodes(nodes).await.unwrap();
        one.close_idle_index(std::time::Duration::ZERO).await;
        drop(one);
        for kept in [true, false] {
            if !kept {
                std::fs::remove_dir_all(&index).unwrap();
            }
            let two = over(&store, &audit, Some(&index), tuning());
            let after = two.count_memory(CountMemory).await.unwrap();
            assert_eq!(
                (after.notes, after.entities, after.graph_edges),
                (before.notes, before.entities, before.graph_edges)
            );
            let nodes = ListNodes {
                page: ALL,
                node_type: None,
                part: None,
            };
            assert_eq!(two.list_nodes(nodes).await.unwrap().len(), nodes_before.len());
            assert_eq!(ids(&two, "Voodoo Bear", None).await, [told.note_id]);
            let again = remember(&two, "Sandworm uses Industroyer against substations.").await;
            assert_eq!(again.status, NoteStatus::Duplicate);
            two.close_idle_index(std::time::Duration::ZERO).await;
        }
    });
}

#[test]
fn many_writers_lose_nothing_and_share_entities() {
    run(async {
        let core = fresh(tuning()).await;
        let writers: Vec<_> = (0..16)
            .map(|writer| {
                let core = Arc::clone(&core);
                tokio::spawn(async move {
                    for number in 0..5 {
                        let text = format!("APT28 report {writer}-{number} from 10.{writer}.{number}.1");
                        remember(&core, &text).await;
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }
        let counts = core.count_memory(CountMemory).await.unwrap();
        assert_eq!((counts.notes, counts.entities), (80, 81));
        assert_eq!(counts.by_type["actor"].total_mappings, 80);
        let filter = AuditFilter {
            limit: 1000,
            ..AuditFilter::default()
        };
        let listed = ListEntries {
            tenant: workspace(),
            filter,
        };
        let logged = core.notes.audit().call(listed).await.unwrap();
        assert_eq!(
            logged
                .iter()
                .filter(|entry| entry.action == "memory.remember")
                .count(),
            80
        );
    });
}

#[test]
fn a_relationship_is_one_edge_that_any_spelling_finds() {
    run(async {
        let core = fresh(tuning()).await;
        let relate = |value: &str, confidence: f64| IngestRelationship {
            source: EntityDraft::from_name("actor", value, 1.0).unwrap(),
            target: EntityDraft::from_name("tool", "Cobalt Strike", 1.0).unwrap(),
            relationship: relationship_label("USES").unwrap(),
            properties: Map::from_iter([("confidence".into(), json!(confidence))]),
            from: HERE,
        };
        let first = core.ingest_relationship(relate("Fancy Bear", 0.4)).await.unwrap();
        let second = core.ingest_relationship(relate("APT28", 0.9)).await.unwrap();
        assert_eq!(first, second);
        let key = EntityKey::new("actor", "apt-28").unwrap();
        let found = core.read_relationships(ReadRelationships(key)).await.unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].properties["confidence"], 0.9);
        assert_eq!(found[0].node.entity_value, "cobalt-strike");
        let stored = core.notes.store.relations(workspace()).await.unwrap();
        assert_eq!(stored.len(), 1);
        assert_eq!(stored[0].properties.as_ref().unwrap()["confidence"], 0.9);
        let counts = core.count_memory(CountMemory).await.unwrap();
        assert_eq!((counts.notes, counts.entities, counts.graph_edges), (0, 2, 1));
    });
}
