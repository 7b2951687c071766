//! One decision on many staged entities.

use serde_json::{Value, json};

use crate::helpers::{TestApp, run};
use crate::hosted::staging::{FOUND, TEXT, entity};
use crate::stix::text;

const MANY: &str = "/api/ingest/staging";

fn ids(preview: &Value) -> Vec<&Value> {
    let entities = preview["entities"].as_array().unwrap();
    entities.iter().map(|entity| &entity["id"]).collect()
}

fn statuses(batch: &Value) -> Vec<&str> {
    let entities = batch["entities"].as_array().unwrap();
    entities.iter().map(|entity| text(entity, "status")).collect()
}

#[test]
fn listed_entities_are_decided_together_with_one_audit_entry() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let preview = admin.preview(&json!({"text": TEXT})).await;
        let mut listed = ids(&preview);
        listed.push(listed[0]);
        let body = json!({"entity_ids": listed, "status": "accepted", "resolved_tlp": "GREEN"});
        let answer = admin.patch(MANY, &body).await.expect(200).await;
        assert_eq!(
            (&answer["success"], &answer["count"], &answer["remaining"]),
            (&json!(true), &json!(FOUND.len()), &json!(0)),
            "{answer}"
        );
        for entity in answer["entities"].as_array().unwrap() {
            assert_eq!(
                (text(entity, "status"), text(entity, "resolved_tlp")),
                ("accepted", "TLP:GREEN")
            );
        }
        let logged = admin.audited("ingest.staging_change").await;
        assert_eq!(logged.len(), 1);
        let metadata = &logged[0]["metadata"];
        assert_eq!(metadata["entities"].as_array().unwrap().len(), FOUND.len());
        assert_eq!(metadata["status"], "accepted");
        let done = admin.commit(&preview["batch_id"]).await;
        assert_eq!(
            (&done["nodes_created"], &done["remaining"]),
            (&json!(FOUND.len()), &json!(0))
        );
        // What is committed can't be changed, and then nothing of the list is.
        let other = admin.preview(&json!({"text": "Turla uses Carbon."})).await;
        let mixed: Vec<&Value> = ids(&preview).into_iter().chain(ids(&other)).collect();
        let body = json!({"entity_ids": mixed, "status": "rejected"});
        admin.patch(MANY, &body).await.refused(409).await;
        assert!(
            statuses(&admin.batch(&other["batch_id"]).await)
                .iter()
                .all(|status| *status == "pending")
        );
        assert_eq!(admin.audited("ingest.staging_change").await.len(), 1);
        app.stop().await;
    });
}

#[test]
fn a_filter_chooses_entities_of_a_batch_that_the_decision_changes() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let preview = admin.preview(&json!({"text": TEXT})).await;
        let batch = &preview["batch_id"];
        for (filter, status, count) in [
            (json!({"batch_id": batch, "node_type": "ioc"}), "rejected", 2),
            (json!({"batch_id": batch, "node_type": "ioc"}), "rejected", 0),
            (json!({"batch_id": batch, "sensitive": true}), "accepted", 0),
            (
                json!({"batch_id": batch, "status": "pending", "sensitive": false}),
                "accepted",
                3,
            ),
            (json!({"batch_id": batch}), "uncertain", 5),
        ] {
            let answer = admin
                .patch(MANY, &json!({"filter": filter, "status": status}))
                .await;
            let answer = answer.expect(200).await;
            assert_eq!(answer["count"], count, "{filter}: {answer}");
        }
        let statuses = admin.batch(batch).await;
        assert!(
            statuses["entities"]
                .as_array()
                .unwrap()
                .iter()
                .all(|one| one["status"] == "uncertain")
        );
        // A decision that changes nothing is none.
        assert_eq!(admin.audited("ingest.staging_change").await.len(), 3);
        let entities = preview["entities"].as_array().unwrap();
        let confidence = |entity: &Value| entity["proposed_confidence"].as_f64().unwrap();
        let most = entities.iter().map(confidence).fold(0.0, f64::max);
        let sure = entities
            .iter()
            .filter(|entity| confidence(entity) >= most)
            .count();
        let body = json!({"filter": {"batch_id": batch, "min_confidence": most}, "status": "pending"});
        assert_eq!(admin.patch(MANY, &body).await.expect(200).await["count"], sure);
        app.stop().await;
    });
}

#[test]
fn a_sensitivity_warning_holds_back_the_whole_decision() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let preview = admin.preview(&json!({"text": format!("TLP:RED\n{TEXT}")})).await;
        let batch = &preview["batch_id"];
        for chosen in [
            json!({"entity_ids": ids(&preview)}),
            json!({"filter": {"batch_id": batch}}),
        ] {
            let mut body = chosen.clone();
            body["status"] = json!("accepted");
            let error = admin.patch(MANY, &body).await.refused(400).await;
            assert!(
                error.starts_with("accept_marking: must be true, or resolved_tlp"),
                "{error}"
            );
            body["resolved_tlp"] = json!("RED");
            let error = admin.patch(MANY, &body).await.refused(400).await;
            assert!(error.starts_with("resolved_tlp: "), "{error}");
        }
        assert!(
            statuses(&admin.batch(batch).await)
                .iter()
                .all(|status| *status == "pending")
        );
        assert!(admin.audited("ingest.staging_change").await.is_empty());
        let body = json!({"filter": {"batch_id": batch}, "status": "accepted", "accept_marking": true});
        assert_eq!(
            admin.patch(MANY, &body).await.expect(200).await["count"],
            FOUND.len()
        );
        app.stop().await;
    });
}

#[test]
fn what_the_caller_may_not_see_is_neither_decided_nor_told() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        admin
            .settings(json!({"tlp_ceiling": "RED", "elevated_clearance": true}))
            .await;
        let hidden = admin.preview(&json!({"text": TEXT, "default_tlp": "RED"})).await;
        let mixed = admin
            .preview(&json!({"text": TEXT, "default_tlp": "AMBER"}))
            .await;
        let tool = entity(&mixed, "X-Agent");
        admin
            .decide(tool, json!({"status": "pending", "resolved_tlp": "RED"}))
            .await;
        admin
            .settings(json!({"tlp_ceiling": "AMBER", "elevated_clearance": false}))
            .await;
        for body in [
            json!({"entity_ids": ids(&hidden), "status": "rejected"}),
            json!({"entity_ids": ids(&mixed), "status": "rejected"}),
            json!({"entity_ids": [uuid::Uuid::new_v4()], "status": "rejected"}),
        ] {
            assert_eq!(
                admin.patch(MANY, &body).await.refused(404).await,
                "staging record not found"
            );
        }
        for batch in [hidden["batch_id"].clone(), json!(uuid::Uuid::new_v4())] {
            let body = json!({"filter": {"batch_id": batch}, "status": "rejected"});
            assert_eq!(
                admin.patch(MANY, &body).await.refused(404).await,
                "batch not found"
            );
        }
        let body = json!({"filter": {"batch_id": mixed["batch_id"]}, "status": "rejected"});
        let answer = admin.patch(MANY, &body).await.expect(200).await;
        assert_eq!(
            (&answer["count"], &answer["remaining"]),
            (&json!(FOUND.len() - 1), &json!(0))
        );
        app.stop().await;
    });
}

#[test]
fn wrong_choices_are_refused_and_named() {
    run(async {
        let app = TestApp::shared().await;
        let id = uuid::Uuid::new_v4();
        let filter = json!({"batch_id": id});
        for (body, want) in [
            (
                json!({"status": "accepted"}),
                "entity_ids: is required, or filter is",
            ),
            (
                json!({"status": "accepted", "entity_ids": null}),
                "entity_ids: is required, or filter is",
            ),
            (
                json!({"status": "accepted", "entity_ids": [], }),
                "entity_ids: must name from 1 to 1000",
            ),
            (
                json!({"status": "accepted", "entity_ids": (0..1001).map(|_| uuid::Uuid::new_v4()).collect::<Vec<_>>()}),
                "entity_ids: must name from 1 to 1000",
            ),
            (
                json!({"status": "accepted", "entity_ids": ["x"]}),
                "entity_ids[0]: must be a UUID",
            ),
            (
                json!({"status": "accepted", "entity_ids": [id], "filter": filter}),
                "filter: must not be given",
            ),
            (
                json!({"status": "accepted", "filter": {}}),
                "filter.batch_id: is required",
            ),
            (
                json!({"status": "merged", "filter": filter}),
                "status: must be one of pending",
            ),
            (json!({"entity_ids": [id]}), "status: is required"),
        ] {
            let error = app.admin.patch(MANY, &body).await.refused(400).await;
            assert!(error.starts_with(want), "{body}: {error}");
        }
        app.stop().await;
    });
}
