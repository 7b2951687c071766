//! The redistribution state of a feed follows what the feed brought into every export.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;

use super::{GraphCore, IngestStix, analyst, graph, open, run};
use crate::actors::graph_store::{ExportBundle, ExportSession};
use crate::actors::worker::Work;
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::feed::{Feed, Redistribution};
use crate::domain::principal::Principal;
use crate::domain::session::{RecallMode, RecallSession};
use crate::domain::stix::ingest::StixDefaults;
use crate::domain::stix::object::visit_refs;
use crate::domain::tlp::Tlp;
use crate::store::{AuditFilter, SessionRecord, Store};

const RED: &str = "marking-definition--5e57c739-391a-4eb3-b6be-7d15ca92d5ed";

fn id(kind: &str, number: u32) -> String {
    format!("{kind}--00000000-0000-4000-8000-{number:012}")
}

fn object(kind: &str, number: u32, more: Value) -> Value {
    let time = "2020-01-01T00:00:00.000Z";
    let mut object = json!({"type": kind, "id": id(kind, number), "spec_version": "2.1", "created": time});
    if kind != "marking-definition" {
        object["modified"] = time.into();
    }
    for (key, value) in more.as_object().unwrap() {
        object[key] = value.clone();
    }
    object
}

fn tool(number: u32) -> Value {
    object("tool", number, json!({"name": format!("Tool {number}")}))
}

fn uses(number: u32, source: u32, target: u32) -> Value {
    let ends = json!({"relationship_type": "uses", "source_ref": id("tool", source), "target_ref": id("tool", target)});
    object("relationship", number, ends)
}

/// A workspace, and a caller in it.
struct Scene {
    store: Arc<Store>,
    core: Arc<GraphCore>,
    by: Principal,
}

impl Scene {
    async fn new() -> Self {
        let store = open().await;
        let core = graph(&store);
        let by = analyst();
        Self { store, core, by }
    }

    async fn feed(&self, name: &str, redistribution_state: Redistribution) -> Uuid {
        let feed = Feed {
            id: Uuid::new_v4(),
            name: name.into(),
            description: String::new(),
            connector_config_ref: "https://taxii.example/collections/1/objects/".into(),
            default_tlp: Tlp::Green,
            redistribution_state,
            enabled: true,
            running_batch_id: None,
            created_at: clock::now(),
            updated_at: clock::now(),
            last_pull_at: None,
        };
        let audit = AuditEntry::by(&self.by, "feed.register", "feed", Outcome::Success, clock::now());
        let registered = self.store.register_feed(self.by.workspace.id, &feed, &audit);
        registered.await.unwrap();
        feed.id
    }

    async fn bring(&self, feed: Option<Uuid>, objects: Vec<Value>) {
        let message = IngestStix {
            by: self.by.clone(),
            objects: objects.into(),
            defaults: StixDefaults {
                tlp: Tlp::Green,
                confidence: 0.5,
                now: clock::now(),
            },
            origin: feed.into(),
        };
        message.run(Arc::clone(&self.core)).await.unwrap();
    }

    /// A session whose results are these tools.
    async fn session(&self, tools: impl IntoIterator<Item = u32>) -> Uuid {
        let ws = self.by.workspace.id;
        let ids = self.store.ids_of(ws);
        let node_ids: Vec<Uuid> = tools.into_iter().map(|n| ids.node(&id("tool", n))).collect();
        let session = RecallSession {
            id: Uuid::new_v4(),
            query: "q".into(),
            mode: RecallMode::Blended,
            result_count: node_ids.len() as u64,
            max_tlp: Tlp::Green,
            has_red_node: false,
            node_ids,
            created_at: clock::now(),
        };
        let session_id = session.id;
        let record = SessionRecord {
            session,
            user: self.by.user_id(),
            include_rejected: false,
        };
        let audit = AuditEntry::by(
            &self.by,
            "recall.search",
            "recall_session",
            Outcome::Success,
            clock::now(),
        );
        self.store.save_session(ws, &record, &audit).await.unwrap();
        session_id
    }

    async fn export(&self, session: Uuid) -> Result<ExportBundle, DomainError> {
        let by = self.by.clone();
        let message = ExportSession { by, session };
        message.run(Arc::clone(&self.core)).await
    }

    /// Exports what must be exportable: the ids of the objects, and how many were withheld.
    async fn exported(&self, session: Uuid) -> (HashSet<String>, u64) {
        let exported = self.export(session).await.unwrap();
        let bundle: Value = serde_json::from_str(&exported.bundle).unwrap();
        let objects = bundle["objects"].as_array().unwrap();
        let ids: HashSet<String> = objects
            .iter()
            .map(|object| object["id"].as_str().unwrap().to_owned())
            .collect();
        for object in objects {
            visit_refs(object.as_object().unwrap(), &mut |id| {
                assert!(ids.contains(id), "{id} dangles in {object}");
            });
        }
        (ids, exported.held_back)
    }

    /// Why an export is refused, and its entry in the audit log.
    async fn refused(&self, session: Uuid) -> (String, AuditEntry) {
        let error = self.export(session).await.unwrap_err();
        let DomainError::Forbidden(reason) = error else {
            panic!("{error:?}");
        };
        let filter = AuditFilter {
            limit: 1,
            ..AuditFilter::default()
        };
        let entry = self
            .store
            .list_audit(self.by.workspace.id, &filter)
            .await
            .unwrap();
        let entry = entry.into_iter().next().unwrap();
        assert_eq!(
            (entry.action.as_str(), entry.outcome),
            ("recall.export_denied", Outcome::Denied)
        );
        assert_eq!(entry.resource_id, Some(session.to_string()));
        assert_eq!(entry.metadata["reason"], json!(reason));
        (reason, entry)
    }
}

#[test]
fn a_denial_names_the_source_that_forbids_it_and_follows_its_current_state() {
    run(async {
        let scene = Scene::new().await;
        let acme = scene.feed("ACME feed", Redistribution::InternalOnly).await;
        let open = scene.feed("Open feed", Redistribution::Allowed).await;
        let elsewhere = scene.feed("Elsewhere", Redistribution::Prohibited).await;
        scene.bring(Some(acme), vec![tool(1)]).await;
        scene.bring(Some(open), vec![tool(2)]).await;
        scene.bring(Some(elsewhere), vec![tool(3)]).await;
        // A feed that the store does not know forbids nothing.
        scene.bring(Some(Uuid::new_v4()), vec![tool(4)]).await;
        let session = scene.session([1, 2, 4]).await;

        let (reason, entry) = scene.refused(session).await;
        let want = "the session holds nodes of a source that does not allow redistribution: \"ACME feed\"";
        assert_eq!(reason, format!("{want} (internal_only)"));
        assert_eq!(entry.metadata["feeds"], json!([acme]));
        scene
            .store
            .set_redistribution(acme, Redistribution::Prohibited)
            .await;
        assert_eq!(scene.refused(session).await.0, format!("{want} (prohibited)"));

        scene
            .store
            .set_redistribution(acme, Redistribution::Allowed)
            .await;
        let (ids, withheld) = scene.exported(session).await;
        let tools: HashSet<String> = [1, 2, 4].map(|number| id("tool", number)).into();
        assert!(withheld == 0 && ids.is_superset(&tools), "{ids:?}");
        scene
            .store
            .set_redistribution(open, Redistribution::InternalOnly)
            .await;
        assert_eq!(scene.refused(session).await.1.metadata["feeds"], json!([open]));
        // The same object without a feed: nobody restricts it any longer.
        scene.bring(None, vec![tool(2)]).await;
        scene.exported(session).await;
    });
}

#[test]
fn a_denial_names_five_sources_at_most_and_the_audit_log_all() {
    run(async {
        let scene = Scene::new().await;
        let mut feeds = Vec::new();
        for number in 1..=7 {
            let feed = scene
                .feed(&format!("Feed {number}"), Redistribution::Prohibited)
                .await;
            scene.bring(Some(feed), vec![tool(number)]).await;
            feeds.push(feed);
        }
        let (reason, entry) = scene.refused(scene.session(1..=5).await).await;
        assert!(
            reason.ends_with("\"Feed 4\" (prohibited), \"Feed 5\" (prohibited)"),
            "{reason}"
        );
        assert_eq!(entry.metadata["feeds"], json!(feeds[..5]));
        let (reason, entry) = scene.refused(scene.session(1..=7).await).await;
        assert!(
            reason.starts_with(
                "the session holds nodes of sources that do not allow redistribution: \"Feed 1\""
            ),
            "{reason}"
        );
        assert!(reason.ends_with("\"Feed 5\" (prohibited) and 2 more"), "{reason}");
        assert_eq!(entry.metadata["feeds"], json!(feeds));
    });
}

#[test]
fn what_the_caller_may_not_see_neither_denies_nor_names_a_source() {
    run(async {
        let mut scene = Scene::new().await;
        let closed = scene.feed("Closed feed", Redistribution::Prohibited).await;
        let mut red = tool(1);
        red["object_marking_refs"] = json!([RED]);
        scene.bring(Some(closed), vec![red]).await;
        scene.bring(None, vec![tool(2)]).await;
        let session = scene.session([1, 2]).await;
        let (ids, withheld) = scene.exported(session).await;
        assert!(ids.contains(&id("tool", 2)) && !ids.contains(&id("tool", 1)));
        assert_eq!(withheld, 0, "what is hidden is not counted");

        scene.by.workspace.tlp_ceiling = Tlp::Red;
        scene.by.workspace.elevated_clearance = true;
        let (reason, entry) = scene.refused(session).await;
        assert!(
            reason.contains("TLP:RED") && !entry.metadata.contains_key("feeds"),
            "{reason}"
        );
        scene.by.workspace.red_export_grant = true;
        let (reason, entry) = scene.refused(session).await;
        assert!(reason.ends_with("\"Closed feed\" (prohibited)"), "{reason}");
        assert_eq!(entry.metadata["feeds"], json!([closed]));
    });
}

#[test]
fn a_withheld_node_of_a_blocked_feed_denies_too() {
    run(async {
        let scene = Scene::new().await;
        let closed = scene.feed("Closed feed", Redistribution::Prohibited).await;
        let mut strange = tool(1);
        strange["object_marking_refs"] = json!([id("marking-definition", 9)]);
        scene.bring(Some(closed), vec![strange]).await;
        scene.bring(None, vec![tool(2)]).await;
        let session = scene.session([1, 2]).await;
        let (reason, _) = scene.refused(session).await;
        assert!(reason.ends_with("\"Closed feed\" (prohibited)"), "{reason}");
        scene
            .store
            .set_redistribution(closed, Redistribution::Allowed)
            .await;
        assert_eq!(
            scene.exported(session).await.1,
            1,
            "its marking is still not defined"
        );
    });
}

#[test]
fn relationships_and_supporting_objects_of_a_blocked_feed_stay_behind() {
    run(async {
        let scene = Scene::new().await;
        let closed = scene.feed("Closed feed", Redistribution::InternalOnly).await;
        let statement = json!({"definition_type": "statement", "definition": {"statement": "x"}});
        let theirs = [
            object(
                "identity",
                5,
                json!({"name": "Their author", "identity_class": "group"}),
            ),
            object("marking-definition", 6, statement),
        ];
        scene.bring(Some(closed), theirs.to_vec()).await;
        let mut authored = tool(1);
        authored["created_by_ref"] = json!(id("identity", 5));
        authored["object_marking_refs"] = json!([id("marking-definition", 6)]);
        scene.bring(None, vec![authored, tool(2), uses(3, 1, 2)]).await;
        scene.bring(Some(closed), vec![uses(4, 2, 1)]).await;
        let session = scene.session([1, 2]).await;

        let theirs = [id("identity", 5), id("relationship", 4)];
        let (ids, withheld) = scene.exported(session).await;
        assert!(
            ids.contains(&id("relationship", 3)) && ids.contains(&id("tool", 1)),
            "{ids:?}"
        );
        assert!(theirs.iter().all(|id| !ids.contains(id)), "{ids:?}");
        assert!(
            ids.contains(&id("marking-definition", 6)),
            "a marking leaves with what carries it"
        );
        assert_eq!(withheld, 2);

        scene
            .store
            .set_redistribution(closed, Redistribution::Allowed)
            .await;
        let (ids, withheld) = scene.exported(session).await;
        assert!(theirs.iter().all(|id| ids.contains(id)), "{ids:?}");
        assert_eq!(withheld, 0);

        scene
            .store
            .set_redistribution(closed, Redistribution::Prohibited)
            .await;
        assert_eq!(scene.exported(session).await.1, 2);
    });
}
