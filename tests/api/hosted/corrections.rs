//! What analysts set by hand: it stands over what sources state, leaves as a newer object, and can be taken back.

use serde_json::{Value, json};

use crate::helpers::{Client, TestApp, run};
use crate::stix::{names, object, relationship, text, version, with};

/// The node with this name.
async fn node(client: &Client, name: &str) -> Value {
    let found = client.search(name).await;
    let nodes = found["results"].as_array().unwrap();
    let of_name = nodes.iter().find(|node| node["name"] == name);
    of_name.unwrap_or_else(|| panic!("{name} in {found}")).clone()
}

async fn detail(client: &Client, id: &str) -> Value {
    client
        .get(&format!("/api/nodes/{id}?include_rejected=true"))
        .await
        .expect(200)
        .await
}

async fn correct(client: &Client, id: &str, changes: Value) -> Value {
    let path = format!("/api/nodes/{id}");
    client.patch(&path, &changes).await.expect(200).await
}

async fn exported(client: &Client, name: &str) -> Value {
    let recall = client.search(name).await;
    let bundle = client.export(text(&recall, "recall_id")).await;
    let objects = bundle["objects"].as_array().unwrap();
    objects
        .iter()
        .find(|object| object["name"] == name)
        .unwrap()
        .clone()
}

fn group() -> Value {
    with(
        object("intrusion-set", "Umber Heron"),
        json!({"description": "Steals maps.", "aliases": ["Reed Bear", "Marsh Bear"], "confidence": 50}),
    )
}

#[test]
fn what_was_set_stands_over_newer_versions_until_it_is_cleared() {
    run(async {
        let app = TestApp::shared().await;
        let group = group();
        app.admin.ingest(json!([group])).await;
        let before = node(&app.admin, "Umber Heron").await;
        let id = text(&before, "id");
        let first = exported(&app.admin, "Umber Heron").await;

        let changes = json!({"description": "Sells maps.", "aliases": {"add": ["Fen Bear"], "remove": ["Marsh Bear"]},
            "confidence": 0.9, "reason": "Seen in a court file."});
        let done = correct(&app.admin, id, changes).await;
        assert_eq!(done["node"]["description"], "Sells maps.");
        assert_eq!(
            done["node"]["properties"]["aliases"],
            json!(["Reed Bear", "Fen Bear"])
        );
        let fields: Vec<&str> = done["corrections"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| text(one, "field"))
            .collect();
        assert_eq!(fields, ["description", "aliases", "confidence"]);
        // The new name finds it, the wrong one does not name it any more.
        let named = app.admin.search("Fen Bear").await;
        assert_eq!(named["results"][0]["id"], before["id"]);
        let wrong = app.admin.search("Marsh Bear").await;
        assert_ne!(wrong["results"][0]["matched"], "name", "{wrong}");

        // It leaves as a newer object of the same source; the original stays in the evidence.
        let left = exported(&app.admin, "Umber Heron").await;
        assert_eq!(left["description"], "Sells maps.");
        assert_eq!(left["aliases"], json!(["Reed Bear", "Fen Bear"]));
        assert_eq!(left["confidence"], 90);
        assert!(text(&left, "modified") > text(&first, "modified"));
        let shown = detail(&app.admin, id).await;
        let evidence = shown["evidence"].as_array().unwrap();
        assert_eq!(evidence.len(), 2, "{evidence:?}");
        let proof = evidence.iter().find(|one| one["kind"] == "analyst").unwrap();
        let path = format!("/api/evidence/{}", text(proof, "id"));
        let proof = app.admin.get(&path).await.expect(200).await;
        assert_eq!(proof["text"], "Seen in a court file.");
        assert_eq!(
            proof["original"]["corrected"]["description"]["before"],
            "Steals maps."
        );

        // A newer version changes what is stated, not what was set.
        let newer = version(
            &group,
            2031,
            json!({"description": "Steals maps and charts.", "aliases": ["Reed Bear", "Marsh Bear", "Sedge Bear"],
                "goals": ["maps"], "confidence": 10}),
        );
        app.admin.ingest(json!([newer])).await;
        let shown = detail(&app.admin, id).await;
        assert_eq!(shown["node"]["description"], "Sells maps.");
        assert_eq!(
            shown["node"]["properties"]["aliases"],
            json!(["Reed Bear", "Sedge Bear", "Fen Bear"])
        );
        assert_eq!(shown["node"]["properties"]["goals"], json!(["maps"]));
        assert_eq!(shown["node"]["confidence"], 0.9);
        assert_eq!(shown["corrections"][0]["stated"], "Steals maps and charts.");
        let again = exported(&app.admin, "Umber Heron").await;
        assert_eq!(again["description"], "Sells maps.");
        assert_eq!(again["goals"], json!(["maps"]));
        assert!(text(&again, "modified") > text(&newer, "modified"));

        let cleared = correct(&app.admin, id, json!({"clear": ["description", "aliases"]})).await;
        assert_eq!(cleared["node"]["description"], "Steals maps and charts.");
        assert_eq!(
            cleared["node"]["properties"]["aliases"],
            json!(["Reed Bear", "Marsh Bear", "Sedge Bear"])
        );
        assert_eq!(cleared["node"]["confidence"], 0.9);
        app.stop().await;
    });
}

#[test]
fn what_texts_and_entries_say_later_does_not_undo_a_correction() {
    run(async {
        let app = TestApp::shared().await;
        let entry = json!({"nodes": [{"name": "Heron Kit", "node_type": "tool", "confidence": 0.4}]});
        app.admin
            .post("/api/ingest/analyst", &entry)
            .await
            .expect(201)
            .await;
        let before = node(&app.admin, "Heron Kit").await;
        let id = text(&before, "id");
        correct(
            &app.admin,
            id,
            json!({"description": "Ours.", "aliases": {"add": ["Kit of Herons"]}}),
        )
        .await;
        let said = json!({"nodes": [{"name": "Heron Kit", "node_type": "tool", "confidence": 0.7,
            "description": "Theirs.", "properties": {"aliases": ["Heron Case"]}}]});
        app.admin
            .post("/api/ingest/analyst", &said)
            .await
            .expect(201)
            .await;
        let shown = detail(&app.admin, id).await;
        assert_eq!(shown["node"]["description"], "Ours.");
        assert_eq!(
            shown["node"]["properties"]["aliases"],
            json!(["Heron Case", "Kit of Herons"])
        );
        assert_eq!(shown["node"]["confidence"], 0.7);
        // What the source said is kept beside it, and stands again.
        let cleared = correct(&app.admin, id, json!({"clear": ["description"]})).await;
        assert_eq!(cleared["node"]["description"], "Theirs.");
        app.stop().await;
    });
}

#[test]
fn a_correction_of_what_somebody_else_has_changed_is_refused() {
    run(async {
        let app = TestApp::shared().await;
        app.admin.ingest(json!([group()])).await;
        let id = text(&node(&app.admin, "Umber Heron").await, "id").to_owned();
        let path = format!("/api/nodes/{id}");
        let tag = app.admin.get(&path).await.header("etag").unwrap().to_owned();
        let analyst = app.user("analyst").await;
        let with_tag = analyst.with_header("if-match", &tag);
        let done = with_tag.patch(&path, &json!({"confidence": 0.7})).await;
        let newer = done.header("etag").unwrap().to_owned();
        done.expect(200).await;
        assert_ne!(tag, newer);
        let stale = app.admin.with_header("if-match", &tag);
        let refused = stale
            .patch(&path, &json!({"confidence": 0.1}))
            .await
            .refused(412)
            .await;
        assert!(refused.contains("If-Match"), "{refused}");
        assert_eq!(detail(&app.admin, &id).await["node"]["confidence"], 0.7);
        let fresh = app.admin.with_header("if-match", &format!("\"x\", {newer}"));
        fresh
            .patch(&path, &json!({"confidence": 0.1}))
            .await
            .expect(200)
            .await;
        let any = app.admin.with_header("if-match", "*");
        any.patch(&path, &json!({"confidence": 0.2}))
            .await
            .expect(200)
            .await;
        let bad = app.admin.with_header("if-match", "abc");
        bad.patch(&path, &json!({"confidence": 0.2}))
            .await
            .refused(400)
            .await;
        app.stop().await;
    });
}

#[test]
fn markings_are_raised_by_writers_and_lowered_by_administrators_who_say_why() {
    run(async {
        let app = TestApp::shared().await;
        app.admin
            .settings(json!({"tlp_ceiling": "RED", "elevated_clearance": true}))
            .await;
        let amber = with(
            group(),
            json!({"object_marking_refs": ["marking-definition--f88d31f6-486f-44da-b317-01333bde0b82"]}),
        );
        app.admin.ingest(json!([amber])).await;
        let id = text(&node(&app.admin, "Umber Heron").await, "id").to_owned();
        let path = format!("/api/nodes/{id}");
        let analyst = app.user("analyst").await;
        let lower = json!({"tlp": "GREEN", "reason": "Published by the vendor."});
        analyst.patch(&path, &lower).await.refused(403).await;
        let refused = app
            .admin
            .patch(&path, &json!({"tlp": "GREEN"}))
            .await
            .refused(400)
            .await;
        assert!(refused.contains("reason"), "{refused}");
        let done = correct(&app.admin, &id, lower).await;
        assert_eq!(done["node"]["tlp"], "TLP:GREEN");
        // The object is marked as the node when it leaves, and the same version sent again does not raise it.
        app.admin.ingest(json!([amber])).await;
        let left = exported(&app.admin, "Umber Heron").await;
        assert_eq!(
            left["object_marking_refs"],
            json!(["marking-definition--34098fce-860f-48ae-8e50-ebd3cc5e41da"])
        );
        // Neither does a newer one that states the same; one that states more does.
        let newer = version(&amber, 2031, json!({}));
        app.admin.ingest(json!([newer])).await;
        assert_eq!(detail(&app.admin, &id).await["node"]["tlp"], "TLP:GREEN");
        let red = version(
            &amber,
            2032,
            json!({"object_marking_refs": ["marking-definition--5e57c739-391a-4eb3-b6be-7d15ca92d5ed"]}),
        );
        app.admin.ingest(json!([red])).await;
        assert_eq!(detail(&app.admin, &id).await["node"]["tlp"], "TLP:RED");

        // A raised node is hidden from readers below, and a source that marks it lower does not lower it.
        app.admin.ingest(json!([object("tool", "Heron Kit")])).await;
        let kit = node(&app.admin, "Heron Kit").await;
        analyst
            .patch(
                &format!("/api/nodes/{}", text(&kit, "id")),
                &json!({"tlp": "RED"}),
            )
            .await
            .expect(200)
            .await;
        app.admin.settings(json!({"tlp_ceiling": "AMBER"})).await;
        app.admin
            .get(&format!("/api/nodes/{}", text(&kit, "id")))
            .await
            .refused(404)
            .await;
        assert!(
            app.admin.search("Heron Kit").await["results"]
                .as_array()
                .unwrap()
                .is_empty()
        );
        app.stop().await;
    });
}

#[test]
fn a_rejected_node_and_a_rejected_relationship_stay_rejected_and_can_be_restored() {
    run(async {
        let app = TestApp::shared().await;
        let (group, kit) = (group(), object("tool", "Heron Kit"));
        let uses = relationship(&group, "uses", &kit);
        app.admin.ingest(json!([group, kit, uses])).await;
        let id = text(&node(&app.admin, "Umber Heron").await, "id").to_owned();
        let edge = detail(&app.admin, &id).await["relationships"][0]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let path = format!("/api/edges/{edge}");
        let done = app
            .admin
            .patch(&path, &json!({"status": "rejected", "reason": "A mistake."}))
            .await
            .expect(200)
            .await;
        assert_eq!(done["relationship"]["status"], "rejected");
        assert_eq!(done["relationship"]["relationship_type"], "uses");
        let plain = format!("/api/nodes/{id}");
        let shown = app.admin.get(&plain).await.expect(200).await;
        assert_eq!(shown["relationships"], json!([]));
        // A newer version of the relationship does not bring it back.
        app.admin.ingest(json!([version(&uses, 2031, json!({}))])).await;
        let shown = app.admin.get(&plain).await.expect(200).await;
        assert_eq!(shown["relationships"], json!([]));
        let with_rejected = format!("/api/nodes/{id}?include_rejected=true");
        let found = app.admin.get(&with_rejected).await.expect(200).await;
        assert_eq!(
            (
                &found["relationships"][0]["id"],
                &found["relationships"][0]["status"]
            ),
            (&json!(edge), &json!("rejected"))
        );
        let viewer = app.user("viewer").await;
        let asked = format!("{plain}?include_rejected=true");
        let seen = viewer.get(&asked).await.expect(200).await;
        assert_eq!(seen["relationships"], json!([]));
        app.admin
            .patch(&path, &json!({"status": "active"}))
            .await
            .expect(200)
            .await;
        assert_eq!(
            detail(&app.admin, &id).await["relationships"][0]["id"],
            json!(edge)
        );

        correct(&app.admin, &id, json!({"status": "rejected"})).await;
        assert!(!names(&app.admin.search("Umber Heron").await).contains(&"Umber Heron"));
        app.admin.ingest(json!([version(&group, 2031, json!({}))])).await;
        assert!(!names(&app.admin.search("Umber Heron").await).contains(&"Umber Heron"));
        correct(&app.admin, &id, json!({"status": "active"})).await;
        node(&app.admin, "Umber Heron").await;
        app.stop().await;
    });
}

#[test]
fn rejected_evidence_is_not_listed_and_what_it_alone_states_goes_with_it() {
    run(async {
        let app = TestApp::shared().await;
        let preview = json!({"text": "APT28 uses Mimikatz against ministries.", "ingest_mode": "auto"});
        app.admin
            .post("/api/ingest/preview", &preview)
            .await
            .expect(200)
            .await;
        let found = node(&app.admin, "APT28").await;
        let id = text(&found, "id");
        let shown = detail(&app.admin, id).await;
        assert_eq!(shown["relationships"].as_array().unwrap().len(), 1, "{shown}");
        let record = text(&shown["evidence"][0], "id").to_owned();
        let path = format!("/api/evidence/{record}");
        let done = app
            .admin
            .patch(&path, &json!({"status": "rejected", "reason": "Made up."}))
            .await
            .expect(200)
            .await;
        assert_eq!(
            done["evidence"],
            json!({"id": record, "status": "rejected", "nodes": 2, "relationships": 1})
        );
        let client = app.user("viewer").await;
        client.get(&path).await.refused(404).await;
        let shown = client.get(&format!("/api/nodes/{id}")).await.expect(200).await;
        assert_eq!(
            (&shown["evidence"], &shown["relationships"]),
            (&json!([]), &json!([]))
        );
        assert_eq!(shown["node"]["linked_evidence_ids"], json!([]));
        // Who may restore it finds it; who may not doesn't, whatever is asked for.
        let with_rejected = format!("/api/nodes/{id}?include_rejected=true");
        let seen = client.get(&with_rejected).await.expect(200).await;
        assert_eq!(seen["evidence"], json!([]));
        let found = app.admin.get(&with_rejected).await.expect(200).await;
        assert_eq!(
            (&found["evidence"][0]["id"], &found["evidence"][0]["status"]),
            (&json!(record), &json!("rejected"))
        );
        assert_eq!(found["node"]["linked_evidence_ids"], json!([]));
        app.admin
            .patch(&path, &json!({"status": "active"}))
            .await
            .expect(200)
            .await;
        let shown = client.get(&format!("/api/nodes/{id}")).await.expect(200).await;
        assert_eq!(
            (&shown["evidence"][0]["id"], &shown["evidence"][0]["status"]),
            (&json!(record), &Value::Null)
        );
        assert_eq!(shown["relationships"].as_array().unwrap().len(), 1);

        // The original of a node stands and falls with the node.
        app.admin.ingest(json!([object("tool", "Heron Kit")])).await;
        let kit = node(&app.admin, "Heron Kit").await;
        let original = kit["linked_evidence_ids"][0].as_str().unwrap();
        let path = format!("/api/evidence/{original}");
        app.admin
            .patch(&path, &json!({"status": "rejected"}))
            .await
            .refused(409)
            .await;
        app.stop().await;
    });
}

#[test]
fn wrong_corrections_name_the_field() {
    run(async {
        let app = TestApp::shared().await;
        app.admin.ingest(json!([group()])).await;
        let id = text(&node(&app.admin, "Umber Heron").await, "id").to_owned();
        let path = format!("/api/nodes/{id}");
        for (body, field) in [
            (json!({}), "name"),
            (json!({"reason": "x"}), "name"),
            (json!({"naem": "x"}), "naem"),
            (json!({"name": " "}), "name"),
            (json!({"confidence": 2}), "confidence"),
            (json!({"tlp": "PINK"}), "tlp"),
            (json!({"status": "merged"}), "status"),
            (json!({"clear": ["properties"]}), "clear"),
            (json!({"name": "X", "clear": ["name"]}), "clear"),
            (json!({"aliases": {"add": ["A"], "remove": ["A"]}}), "aliases.add"),
            (json!({"aliases": {"add": [""]}}), "aliases.add[0]"),
            (json!({"description": "x", "reason": "r".repeat(2001)}), "reason"),
        ] {
            let refused = app.admin.patch(&path, &body).await.refused(400).await;
            assert!(refused.contains(field), "{body}: {refused}");
        }
        let viewer = app.user("viewer").await;
        viewer
            .patch(&path, &json!({"confidence": 0.5}))
            .await
            .refused(403)
            .await;
        let other = app.workspace("Other").await;
        for path in [
            path,
            "/api/nodes/6f1c0a52-7d6e-4a8e-9c53-0b1f2d3e4a5b".into(),
            "/api/nodes/x".into(),
        ] {
            other
                .patch(&path, &json!({"confidence": 0.5}))
                .await
                .refused(404)
                .await;
        }
        for path in ["/api/edges", "/api/evidence"] {
            let path = format!("{path}/6f1c0a52-7d6e-4a8e-9c53-0b1f2d3e4a5b");
            app.admin
                .patch(&path, &json!({"status": "rejected"}))
                .await
                .refused(404)
                .await;
            app.admin
                .patch(&path, &json!({"status": "gone"}))
                .await
                .refused(400)
                .await;
        }
        app.stop().await;
    });
}

/// The audit log says what was changed, and holds no text that may have to be erased.
#[test]
fn corrections_are_audited_without_their_texts() {
    run(async {
        let app = TestApp::shared().await;
        app.admin.ingest(json!([group()])).await;
        let id = text(&node(&app.admin, "Umber Heron").await, "id").to_owned();
        let changes =
            json!({"description": "Written by Jane Roe.", "confidence": 0.9, "reason": "Jane Roe says so."});
        correct(&app.admin, &id, changes).await;
        let entries = app.admin.audited("node.correct").await;
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0]["resource_id"], json!(id));
        assert_eq!(entries[0]["metadata"]["old"]["confidence"], 0.5);
        assert_eq!(entries[0]["metadata"]["new"]["confidence"], 0.9);
        assert!(
            entries[0]["metadata"]["new"]["description"]
                .as_str()
                .unwrap()
                .starts_with("sha256:")
        );
        assert!(!entries[0].to_string().contains("Jane Roe"), "{}", entries[0]);
        app.stop().await;
    });
}
