//! Several processes on one database, each with its own index.

mod indexing;
mod merges;
mod processes;
mod redistribution;

use std::future::Future;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use serde_json::json;
use uuid::Uuid;

use super::core::GraphCore;
use super::{IngestStix, Recall};
use crate::actors::audit_writer::{AuditHandle, AuditWriter};
use crate::actors::indexed_store::StoreEnvironment;
use crate::actors::roster::Roster;
use crate::actors::worker::Work;
use crate::clock;
use crate::config::{Flags, Settings};
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::narrowing::Narrowing;
use crate::domain::permission::{Role, Tier};
use crate::domain::principal::{Credential, Principal, Workspace};
use crate::domain::question::Question;
use crate::domain::session::RecallMode;
use crate::domain::stix::ingest::{self, StixDefaults};
use crate::domain::tlp::Tlp;
use crate::search::{BuiltinEmbedder, IndexSettings, SearchIndex};
use crate::store::tests::fresh;
use crate::store::{StixOrigin, Store};

pub(in crate::actors) fn audit_writer(store: &Arc<Store>) -> AuditHandle {
    let actors = Settings::load(None, &Flags::default()).unwrap().actors;
    let store = Arc::clone(store);
    Roster::new(move |name| actors.of(name)).stateful(move || AuditWriter::new(Arc::clone(&store)))
}

pub(super) fn analyst() -> Principal {
    let workspace = Workspace {
        id: Uuid::new_v4(),
        name: "w".into(),
        tier: Tier::Team,
        tlp_ceiling: Tlp::Amber,
        elevated_clearance: false,
        red_export_grant: false,
        features: vec![],
        created_at: clock::now(),
        is_operator: false,
        suspended: false,
    };
    let credential = Credential::User {
        id: Uuid::new_v4(),
        email: "a@b".into(),
        role: Role::Analyst,
    };
    Principal {
        workspace,
        credential,
        ip: IpAddr::from([127, 0, 0, 1]),
    }
}

async fn names(core: &Arc<GraphCore>, by: &Principal, query: &str) -> Vec<String> {
    let message = Recall {
        by: by.clone(),
        question: Arc::new(Question::read(query, clock::now())),
        mode: RecallMode::Blended,
        limit: 10,
        include_rejected: false,
        narrowing: Narrowing::default(),
        min_score: None,
        explain: false,
    };
    let found = message.run(Arc::clone(core)).await.unwrap();
    found
        .results
        .rows()
        .iter()
        .map(|row| row.node.name.clone())
        .collect()
}

/// Runs a test on threads whose stack is large enough for the engine.
pub(super) fn run(test: impl Future<Output = ()>) {
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

pub(super) async fn open() -> Arc<Store> {
    Arc::new(fresh().await)
}

/// The built-in model, which takes a debug build long to load.
pub(in crate::actors) fn embedder() -> Arc<BuiltinEmbedder> {
    static MODEL: LazyLock<Arc<BuiltinEmbedder>> =
        LazyLock::new(|| Arc::new(BuiltinEmbedder::load().unwrap()));
    Arc::clone(&MODEL)
}

/// The graph of a single process.
pub(super) fn graph(store: &Arc<Store>) -> Arc<GraphCore> {
    let index = SearchIndex::open(None, embedder(), IndexSettings::default(), store.id_secret()).unwrap();
    Arc::new(GraphCore::new(
        Arc::clone(store),
        Arc::new(index),
        audit_writer(store),
        StoreEnvironment::default(),
    ))
}

/// The graph of one of several processes that share a store.
fn process(store: &Arc<Store>) -> Arc<GraphCore> {
    let index = SearchIndex::open(None, embedder(), IndexSettings::default(), store.id_secret()).unwrap();
    let environment = StoreEnvironment {
        shared_store: true,
        ..StoreEnvironment::default()
    };
    Arc::new(GraphCore::new(
        Arc::clone(store),
        Arc::new(index),
        audit_writer(store),
        environment,
    ))
}

#[test]
fn a_second_process_finds_what_the_first_one_wrote() {
    run(async {
        let store = open().await;
        let (one, two) = (process(&store), process(&store));
        let by = analyst();
        assert!(names(&two, &by, "Quiet Heron").await.is_empty());
        let objects = vec![json!({"type": "campaign", "name": "Quiet Heron",
            "id": "campaign--31b940d4-6f7f-459a-80ea-9c1f17b58abc"})];
        let defaults = StixDefaults {
            tlp: Tlp::Green,
            confidence: 0.5,
            now: clock::now(),
        };
        one.ingest_stix(IngestStix {
            by: by.clone(),
            objects: objects.into(),
            defaults,
            origin: StixOrigin::default(),
        })
        .await
        .unwrap();
        assert_eq!(names(&one, &by, "Quiet Heron").await, ["Quiet Heron"]);
        two.graph.follow().await;
        assert_eq!(names(&two, &by, "Quiet Heron").await, ["Quiet Heron"]);
    });
}

#[test]
fn what_a_cut_left_held_back_is_marked_anew_at_the_next_start() {
    run(async {
        let store = open().await;
        let core = graph(&store);

        let mut by = analyst();
        by.workspace.tlp_ceiling = Tlp::Green;
        let marking = "marking-definition--31b940d4-6f7f-459a-80ea-9c1f17b58abc";
        let tool = json!({"type": "campaign", "name": "Quiet Heron", "object_marking_refs": [marking],
            "id": "campaign--31b940d4-6f7f-459a-80ea-9c1f17b58abc"});
        let licence = json!({"type": "marking-definition", "id": marking, "spec_version": "2.1",
            "created": "2020-01-01T00:00:00.000Z", "definition_type": "statement",
            "definition": {"statement": "TLP:GREEN"}});
        let defaults = StixDefaults {
            tlp: Tlp::Green,
            confidence: 0.5,
            now: clock::now(),
        };
        let message = IngestStix {
            by: by.clone(),
            objects: vec![tool].into(),
            defaults,
            origin: StixOrigin::default(),
        };
        message.run(Arc::clone(&core)).await.unwrap();
        // The definition is durable, then the process dies.
        let plan = ingest::plan(vec![licence].into(), defaults, ingest::Markings::new());
        let entry = AuditEntry::by(&by, "ingest.stix", "node", Outcome::Success, clock::now());
        store
            .ingest_stix(
                by.workspace.id,
                &plan,
                &StixOrigin {
                    after: store.last_write(by.workspace.id).await.unwrap(),
                    ..StixOrigin::default()
                },
                clock::now(),
                |_, _| entry.clone(),
            )
            .await
            .unwrap();
        assert!(names(&core, &by, "Quiet Heron").await.is_empty());
        core.release_waiting(by.workspace.id).await.unwrap();
        assert_eq!(names(&core, &by, "Quiet Heron").await, ["Quiet Heron"]);
        core.release_waiting(by.workspace.id).await.unwrap();
    });
}
