//! Texts of one session share an open batch: each entity is staged once, and each text is evidence of the entities it
//! names.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::helpers::{Client, TestApp, run};
use crate::hosted::staging::{entity, results};
use crate::stix::{evidence, text};

impl Client {
    async fn part(&self, session: &str, told: &str) -> Value {
        self.preview(&json!({"text": told, "session_id": session})).await
    }

    async fn accept(&self, entity: &Value) {
        self.decide(entity, json!({"status": "accepted"})).await;
    }

    /// The evidence texts of a node, in the order they were linked.
    async fn told_of(&self, name: &str) -> Vec<String> {
        let node = self.one(name).await;
        let mut told = Vec::new();
        for id in node["linked_evidence_ids"].as_array().unwrap() {
            let record = self.read_evidence(id.as_str().unwrap()).await;
            told.push(text(&record, "text").to_owned());
        }
        told
    }

    async fn relations_of(&self, name: &str) -> Vec<(String, String)> {
        let node = self.one(name).await;
        let read = self.read_node(text(&node, "id")).await;
        let relations = read["relationships"].as_array().unwrap().iter();
        relations
            .map(|edge| {
                let kind = text(edge, "relationship_type").to_owned();
                (kind, text(&edge["node"], "name").to_owned())
            })
            .collect()
    }
}

fn names(view: &Value) -> Vec<&str> {
    let entities = view["entities"].as_array().unwrap().iter();
    entities.map(|entity| text(entity, "name")).collect()
}

const ONE: &str = "Part one: APT28 was seen again.";
const TWO: &str = "Part two: Fancy Bear uses X-Agent. It called zq-evil.com.";

#[test]
fn texts_of_one_session_are_one_batch_with_each_entity_once() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let first = admin.part("s-1", ONE).await;
        let second = admin.part("s-1", TWO).await;
        assert_eq!(second["batch_id"], first["batch_id"]);
        assert_eq!(names(&second), ["APT28", "X-Agent", "zq-evil.com"]);
        assert_eq!(entity(&second, "APT28"), entity(&first, "APT28"));
        let counted = |view: &Value| {
            let summary = &view["summary"];
            ["total_parsed", "total_to_add", "missing_tlp"].map(|key| summary[key].as_u64().unwrap())
        };
        assert_eq!((counted(&first), counted(&second)), ([1, 1, 1], [3, 3, 3]));
        let batch = admin.batch(&first["batch_id"]).await;
        assert_eq!(batch["entities"], second["entities"]);
        assert_eq!(
            (&batch["batch"]["summary"], &batch["batch"]["session_id"]),
            (&second["summary"], &json!("s-1"))
        );
        // Other sessions, other workspaces and texts without a session have their own batches.
        let other = app.workspace("other").await;
        let apart = [
            admin.part("s-2", ONE).await,
            admin.preview(&json!({"text": ONE})).await,
            other.part("s-1", ONE).await,
        ];
        let ids: HashSet<&str> = apart
            .iter()
            .chain([&first])
            .map(|view| text(view, "batch_id"))
            .collect();
        assert_eq!(ids.len(), 4);

        for found in second["entities"].as_array().unwrap() {
            admin.accept(found).await;
        }
        assert_eq!(
            admin.commit(&first["batch_id"]).await,
            results([3, 0, 2, 0, 0, 0])
        );
        // The later text's relationship uses the earlier entity as its end, and both texts are its evidence.
        assert_eq!(admin.told_of("APT28").await, [ONE, TWO]);
        assert_eq!(admin.told_of("zq-evil.com").await, [TWO]);
        assert_eq!(
            admin.relations_of("APT28").await,
            [("uses".to_owned(), "X-Agent".to_owned())]
        );
        assert_eq!(admin.commit(&first["batch_id"]).await, results([0; 6]));
        // A completed batch accepts no more texts.
        let third = admin.part("s-1", TWO).await;
        assert_ne!(third["batch_id"], first["batch_id"]);
        assert_eq!(third["summary"]["total_to_update"], 3);
        let audited = admin.audited("ingest.preview").await;
        assert_eq!(audited.len(), 5);
        app.stop().await;
    });
}

#[test]
fn what_is_committed_already_gets_the_later_text_as_evidence() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let first = admin
            .part("s", "APT28 was seen again; zq-open.com was called.")
            .await;
        let id = &first["batch_id"];
        admin.accept(entity(&first, "APT28")).await;
        assert_eq!(admin.commit(id).await, results([1, 0, 1, 0, 0, 1]));
        let second = admin.part("s", TWO).await;
        assert_eq!(second["batch_id"], *id);
        assert_eq!(names(&second), ["APT28", "zq-open.com", "X-Agent", "zq-evil.com"]);
        admin.accept(entity(&second, "X-Agent")).await;
        assert_eq!(admin.commit(id).await, results([1, 1, 1, 0, 0, 2]));
        assert_eq!(evidence(&admin.one("APT28").await), 2);
        assert_eq!(
            admin.relations_of("APT28").await,
            [("uses".to_owned(), "X-Agent".to_owned())]
        );
        // This also holds if the later text names nothing else.
        let told = "Part three: APT28 once more.";
        admin.part("s", told).await;
        assert_eq!(admin.commit(id).await, results([0, 1, 1, 0, 0, 2]));
        assert_eq!(admin.told_of("APT28").await[2], told);
        assert_eq!(admin.commit(id).await, results([0, 0, 0, 0, 0, 2]));
        app.stop().await;
    });
}

#[test]
fn what_was_rejected_in_a_session_is_not_staged_again() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let first = admin
            .part("s", "APT28 was seen again; zq-open.com was called.")
            .await;
        let id = &first["batch_id"];
        admin
            .decide(entity(&first, "APT28"), json!({"status": "rejected"}))
            .await;
        let second = admin.part("s", TWO).await;
        assert_eq!(entity(&second, "APT28")["status"], "rejected");
        assert_eq!(admin.commit(id).await, results([0, 0, 0, 0, 1, 3]));
        let third = admin.part("s", "APT28 uses X-Agent against zq-third.com.").await;
        assert_eq!(
            names(&third),
            ["zq-open.com", "X-Agent", "zq-evil.com", "zq-third.com"]
        );
        for found in third["entities"].as_array().unwrap() {
            admin.accept(found).await;
        }
        assert_eq!(admin.commit(id).await, results([4, 0, 3, 0, 0, 0]));
        // Relationships stated for the rejected entity must not be attached to entities staged after it.
        for name in ["X-Agent", "zq-third.com"] {
            let relations = admin.relations_of(name).await;
            let said = relations
                .iter()
                .all(|(_, other)| other.starts_with("zq-") || other == "X-Agent");
            assert!(said, "{relations:?}");
        }
        assert!(admin.named("APT28").await.is_empty());
        app.stop().await;
    });
}

#[test]
fn texts_that_arrive_at_the_same_time_meet_in_one_batch() {
    run(async {
        let app = TestApp::shared().await;
        let parts: Vec<_> = (0..12)
            .map(|n| {
                let client = app.admin.clone();
                let told = format!("APT28 was seen again, now with zq-{n}.com.");
                tokio::spawn(async move { client.part("s", &told).await })
            })
            .collect();
        let mut ids = HashSet::new();
        for part in parts {
            ids.insert(text(&part.await.unwrap(), "batch_id").to_owned());
        }
        assert_eq!(ids.len(), 1);
        let id = json!(ids.iter().next().unwrap());
        let batch = app.admin.batch(&id).await;
        let unique: HashSet<&str> = names(&batch).into_iter().collect();
        assert_eq!((names(&batch).len(), unique.len()), (13, 13));
        assert_eq!(batch["batch"]["summary"]["total_parsed"], 13);
        for found in batch["entities"].as_array().unwrap() {
            app.admin.accept(found).await;
        }
        assert_eq!(app.admin.commit(&id).await, results([13, 0, 12, 0, 0, 0]));
        assert_eq!(evidence(&app.admin.one("APT28").await), 12);
        app.stop().await;
    });
}

/// A later text that states TLP:RED adds warnings to pending entities, and becomes evidence only once an entity that it
/// introduced is accepted.
#[test]
fn a_sensitive_later_text_waits_for_a_decision_in_the_automatic_mode() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let waiting = admin.part("s", "zq-open.com was called.").await;
        let id = &waiting["batch_id"];
        let auto = async |told: &str| {
            let body = json!({"text": told, "session_id": "s", "ingest_mode": "auto"});
            admin.preview(&body).await
        };
        assert_eq!(auto(ONE).await["batch_id"], *id);
        assert_eq!(admin.told_of("APT28").await, [ONE]);
        let told = "TLP:RED\nAPT28 uses X-Agent. It called zq-open.com.";
        let second = auto(told).await;
        assert_eq!(second["batch_id"], *id);
        for name in ["X-Agent", "zq-open.com"] {
            let found = entity(&second, name);
            let warned = found["warnings"].to_string().contains("TLP:RED");
            assert!(warned && found["status"] == "pending", "{found}");
        }
        assert_eq!(second["summary"]["sensitive_warns"], 2);
        assert_eq!(admin.told_of("APT28").await, [ONE]);
        assert!(admin.named("X-Agent").await.is_empty());
        // Committing an entity that the unrestricted text names does not make the sensitive text evidence.
        let confirmed = json!({"status": "accepted", "accept_marking": true});
        admin.decide(entity(&second, "zq-open.com"), confirmed).await;
        assert_eq!(admin.commit(id).await, results([1, 0, 1, 0, 0, 1]));
        assert_eq!(admin.told_of("zq-open.com").await, ["zq-open.com was called."]);
        let red = json!({"status": "accepted", "resolved_tlp": "AMBER"});
        admin.decide(entity(&second, "X-Agent"), red).await;
        assert_eq!(admin.commit(id).await, results([1, 2, 1, 0, 0, 0]));
        assert_eq!(admin.told_of("APT28").await, [ONE, told]);
        app.stop().await;
    });
}

/// Texts of different markings never share a batch, so none takes another one away from those who may see it.
#[test]
fn a_session_has_a_batch_for_each_marking() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        admin.open().await;
        let first = admin.part("s", "TLP:GREEN\nAPT28 was seen again.").await;
        let second = admin
            .part("s", "TLP:RED\nAPT28 uses X-Agent. X-Agent called zq-evil.com.")
            .await;
        assert_ne!(second["batch_id"], first["batch_id"]);
        assert_eq!(entity(&second, "X-Agent")["proposed_tlp"], "TLP:RED");
        let again = admin.part("s", "TLP:GREEN\nzq-open.com was called.").await;
        assert_eq!(again["batch_id"], first["batch_id"]);
        for found in second["entities"].as_array().unwrap() {
            admin.accept(found).await;
        }
        let closed = json!({"tlp_ceiling": "AMBER", "elevated_clearance": false});
        admin.settings(closed.clone()).await;
        let path = |view: &Value| format!("/api/ingest/batch/{}", text(view, "batch_id"));
        admin.get(&path(&second)).await.refused(404).await;
        let own = admin.batch(&first["batch_id"]).await;
        assert_eq!(names(&own), ["APT28", "zq-open.com"]);
        for word in ["RED", "X-Agent", "zq-evil"] {
            assert!(!own.to_string().contains(word), "{own}");
        }
        for found in own["entities"].as_array().unwrap() {
            admin.accept(found).await;
        }
        assert_eq!(
            admin.commit(&first["batch_id"]).await,
            results([2, 0, 2, 0, 0, 0])
        );
        let green = ["TLP:GREEN\nAPT28 was seen again."];
        assert_eq!(admin.told_of("APT28").await, green);
        // The node of the open text stays what it was when the strict one is committed.
        admin.open().await;
        admin.commit(&second["batch_id"]).await;
        admin.settings(closed).await;
        let node = admin.one("APT28").await;
        assert_eq!(node["tlp"], "TLP:GREEN");
        assert_eq!(admin.told_of("APT28").await, green);
        assert!(admin.named("zq-evil.com").await.is_empty());
        app.stop().await;
    });
}

#[test]
fn a_text_that_is_sent_again_waits_for_one_review() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.workspace("again").await;
        let told = json!({"text": TWO, "default_tlp": "TLP:GREEN"});
        // At the same moment, and later with other white space around it.
        let (first, second) = tokio::join!(admin.preview(&told), admin.preview(&told));
        let third = json!({"text": format!("{TWO}\n"), "default_tlp": "TLP:GREEN"});
        let third = admin.preview(&third).await;
        for view in [&second, &third] {
            assert_eq!(view["batch_id"], first["batch_id"]);
            assert_eq!(names(view), ["APT28", "X-Agent", "zq-evil.com"]);
        }
        // What differs in its source, its marking or its mode is another one, and so is the text of a session.
        for other in [
            json!({"text": TWO, "default_tlp": "TLP:AMBER"}),
            json!({"text": TWO, "default_tlp": "TLP:GREEN", "source_type": "chat"}),
            json!({"text": TWO, "default_tlp": "TLP:GREEN", "session_id": "s"}),
            json!({"text": TWO, "default_tlp": "TLP:GREEN", "default_confidence": 0.3}),
            json!({"text": format!("{TWO} Again."), "default_tlp": "TLP:GREEN"}),
        ] {
            let view = admin.preview(&other).await;
            assert_ne!(view["batch_id"], first["batch_id"], "{other}");
        }
        // Decisions stay.
        admin.accept(entity(&third, "X-Agent")).await;
        admin
            .decide(entity(&third, "zq-evil.com"), json!({"status": "rejected"}))
            .await;
        let fourth = admin.preview(&told).await;
        assert_eq!(fourth["batch_id"], first["batch_id"]);
        assert_eq!(entity(&fourth, "X-Agent")["status"], "accepted");
        assert_eq!(entity(&fourth, "zq-evil.com")["status"], "rejected");
        admin.accept(entity(&fourth, "APT28")).await;
        admin.commit(&first["batch_id"]).await;
        assert_eq!(admin.told_of("X-Agent").await.len(), 1, "one text is one record");
        // A committed batch takes no more: the text waits for a new review, with what is known by now.
        let late = admin.preview(&told).await;
        assert_ne!(late["batch_id"], first["batch_id"]);
        assert_eq!(late["summary"]["duplicates"], 2);
        assert_eq!(admin.preview(&told).await["batch_id"], late["batch_id"]);
    });
}
