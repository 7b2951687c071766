//! Reading one node or evidence record by id: what is shown and what is hidden.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::helpers::{Client, TestApp, keys_of, run};
use crate::stix::{object, relationship, text, version, with};

impl Client {
    pub async fn read_node(&self, id: &str) -> Value {
        self.get(&format!("/api/nodes/{id}")).await.expect(200).await
    }

    pub async fn read_evidence(&self, id: &str) -> Value {
        self.get(&format!("/api/evidence/{id}")).await.expect(200).await
    }

    async fn sees(&self, path: &str) -> bool {
        match self.get(path).await.status() {
            200 => true,
            404 => false,
            other => panic!("{path}: {other}"),
        }
    }
}

fn red(object: Value) -> Value {
    with(object, json!({"labels": ["TLP:RED"]}))
}

/// The names of the related nodes, sorted.
fn ends(read: &Value) -> Vec<&str> {
    let relationships = read["relationships"].as_array().unwrap().iter();
    let mut names: Vec<&str> = relationships.map(|edge| text(&edge["node"], "name")).collect();
    names.sort_unstable();
    names
}

async fn close(admin: &Client) {
    let closed = json!({"tlp_ceiling": "AMBER", "elevated_clearance": false});
    admin.settings(closed).await;
}

#[test]
fn a_node_is_read_with_its_relationships_and_its_evidence() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let group = with(
            object("intrusion-set", "Heron Group"),
            json!({"description": "Fishes."}),
        );
        let (tool, place) = (object("tool", "Heronkit"), object("attack-pattern", "Wading"));
        let uses = with(
            relationship(&group, "uses", &tool),
            json!({"confidence": 90, "description": "The group uses it."}),
        );
        let seen = with(
            relationship(&place, "related-to", &group),
            json!({"confidence": 20}),
        );
        admin.ingest(json!([group, tool, place, uses, seen])).await;
        let found = admin.one("Heron Group").await;
        let id = text(&found, "id");

        let read = admin.read_node(id).await;
        assert_eq!(
            keys_of(&read),
            [
                "evidence",
                "merged",
                "more_evidence",
                "more_relationships",
                "node",
                "relationships"
            ]
        );
        let mut searched = found.clone();
        for key in ["score", "matched"] {
            searched.as_object_mut().unwrap().remove(key);
        }
        assert_eq!(read["node"], searched);
        let shown = |name: &str, kind: &str, direction: &str, confidence: f64, at: usize| {
            let edge = &read["relationships"][at];
            assert_eq!(
                keys_of(edge),
                ["confidence", "direction", "id", "node", "relationship_type"]
            );
            assert_eq!(keys_of(&edge["node"]), ["id", "name", "node_type", "tlp"]);
            let said = (
                &edge["relationship_type"],
                &edge["direction"],
                &edge["node"]["name"],
            );
            assert_eq!(said, (&json!(kind), &json!(direction), &json!(name)));
            assert_eq!(edge["confidence"], json!(confidence));
        };
        // Ordered by confidence, highest first.
        shown("Heronkit", "uses", "outgoing", 0.9, 0);
        shown("Wading", "related-to", "incoming", 0.2, 1);
        assert_eq!(
            (&read["more_relationships"], &read["more_evidence"]),
            (&json!(false), &json!(false))
        );

        let head = &read["evidence"][0];
        assert_eq!(
            keys_of(head),
            ["created_at", "id", "kind", "source", "title", "tlp"]
        );
        assert_eq!(
            (&head["kind"], &head["title"], &head["tlp"], &head["id"]),
            (
                &json!("stix"),
                &json!("Heron Group"),
                &json!("TLP:GREEN"),
                &found["linked_evidence_ids"][0]
            )
        );
        let evidence = admin.read_evidence(text(head, "id")).await;
        let mut rest = evidence.clone();
        for key in ["text", "original"] {
            rest.as_object_mut().unwrap().remove(key);
        }
        assert_eq!(&rest, head);
        assert_eq!(
            (&evidence["text"], &evidence["original"]),
            (&json!("Fishes."), &group)
        );

        for (action, resource, id) in [
            ("node.read", "node", id),
            ("evidence.read", "evidence", text(head, "id")),
        ] {
            let audited = admin.audited(action).await;
            assert_eq!(audited.len(), 1, "{action}");
            assert_eq!(
                (&audited[0]["resource"], &audited[0]["resource_id"]),
                (&json!(resource), &json!(id))
            );
        }
        app.stop().await;
    });
}

#[test]
fn every_kind_of_evidence_is_read_with_its_words() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let item = json!({"title": "Heronword", "type": "osint", "description": "Seen at the pond."});
        admin
            .send_in("osint", &json!({"collector": "c", "items": [item]}))
            .await;
        let entry = json!({"name": "Heronkit", "node_type": "tool", "description": "By hand."});
        admin.send_in("analyst", &json!({"nodes": [entry]})).await;
        let block = json!({"entity_name": "Heron Group", "node_type": "actor", "excerpt": "It waded."});
        admin
            .send_in("report", &json!({"title": "Birds", "content_blocks": [block]}))
            .await;
        let attribute = json!({"uuid": Uuid::new_v4(), "type": "domain", "category": "Network activity",
            "value": "heron-misp.com"});
        let event = json!({"uuid": Uuid::new_v4(), "info": "Pond event", "Attribute": [attribute],
            "distribution": "3"});
        admin.send_in("misp", &json!({"event": event})).await;
        let told = "They called heron-told.com twice.";
        admin.preview(&json!({"text": told, "ingest_mode": "auto"})).await;
        for (name, kind, words) in [
            ("Heronword", "osint", "Seen at the pond."),
            ("Heronkit", "analyst", "By hand."),
            ("Heron Group", "report", "Heron Group\nIt waded."),
            ("heron-misp.com", "misp", "Pond event"),
            ("heron-told.com", "staged", told),
        ] {
            let node = admin.one(name).await;
            let evidence = admin
                .read_evidence(text(&json!({"id": node["linked_evidence_ids"][0]}), "id"))
                .await;
            assert_eq!(
                (&evidence["kind"], &evidence["text"]),
                (&json!(kind), &json!(words)),
                "{evidence}"
            );
            assert!(evidence["original"].is_object());
        }
        app.stop().await;
    });
}

#[test]
fn what_is_marked_above_the_clearance_shows_in_no_read() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        admin.open().await;
        let (hub, open, secret) = (
            object("intrusion-set", "Heron Group"),
            object("tool", "Heronkit"),
            red(object("tool", "Otterkit")),
        );
        let objects = [
            hub.clone(),
            open.clone(),
            secret.clone(),
            relationship(&hub, "uses", &secret),
            red(relationship(&hub, "related-to", &open)),
        ];
        admin.ingest(json!(objects)).await;
        let entry = json!({"name": "Heronkit", "node_type": "tool", "tlp": "RED", "description": "hush"});
        admin.send_in("analyst", &json!({"nodes": [entry]})).await;
        let (hub, open) = (admin.one("Heron Group").await, admin.one("Heronkit").await);
        let secret = admin.one("Otterkit").await;
        let all = admin.read_node(text(&hub, "id")).await;
        assert_eq!(ends(&all), ["Heronkit", "Otterkit"]);
        let both = admin.read_node(text(&open, "id")).await;
        assert_eq!(both["evidence"].as_array().unwrap().len(), 2);
        let hushed = text(&both["evidence"][0], "id");
        assert_eq!(admin.read_evidence(hushed).await["text"], "hush");

        close(admin).await;
        let hidden = [
            format!("/api/nodes/{}", text(&secret, "id")),
            format!(
                "/api/evidence/{}",
                secret["linked_evidence_ids"][0].as_str().unwrap()
            ),
            format!("/api/evidence/{hushed}"),
        ];
        for path in &hidden {
            assert!(!admin.sees(path).await, "{path}");
        }
        assert!(ends(&admin.read_node(text(&hub, "id")).await).is_empty());
        let read = admin.read_node(text(&open, "id")).await;
        assert_eq!(read["evidence"].as_array().unwrap().len(), 1);
        assert!(!read.to_string().contains(hushed));
        // Another workspace sees none of it, whatever its clearance.
        let other = app.workspace("other").await;
        other.open().await;
        admin.open().await;
        for path in hidden.iter().chain([&format!("/api/nodes/{}", text(&hub, "id"))]) {
            assert!(admin.sees(path).await, "{path}");
            assert!(!other.sees(path).await, "{path}");
        }
        for id in ["x", "%00", &Uuid::new_v4().to_string()] {
            let error = admin.get(&format!("/api/nodes/{id}")).await.refused(404).await;
            assert_eq!(error, "node not found");
            let error = admin.get(&format!("/api/evidence/{id}")).await.refused(404).await;
            assert_eq!(error, "evidence record not found");
        }
        app.stop().await;
    });
}

#[test]
fn what_was_rejected_is_read_only_by_those_who_may_ask_for_it() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let (hub, kit) = (object("intrusion-set", "Heron Group"), object("tool", "Heronkit"));
        admin
            .ingest(json!([hub, kit, relationship(&hub, "uses", &kit)]))
            .await;
        let (hub, node) = (admin.one("Heron Group").await, admin.one("Heronkit").await);
        admin
            .ingest(json!([version(&kit, 2030, json!({"revoked": true}))]))
            .await;
        let (hub, node, evidence) = (
            format!("/api/nodes/{}", text(&hub, "id")),
            format!("/api/nodes/{}", text(&node, "id")),
            format!(
                "/api/evidence/{}",
                node["linked_evidence_ids"][0].as_str().unwrap()
            ),
        );
        let callers = [
            (admin.clone(), true),
            (app.user("analyst").await, true),
            (app.user("viewer").await, false),
            (app.user("audit").await, false),
            (app.api_key(&["read"]).await, false),
        ];
        for (caller, may) in callers {
            for path in [&node, &evidence] {
                assert!(!caller.sees(path).await, "{path}");
                let asked = format!("{path}?include_rejected=true");
                assert_eq!(caller.sees(&asked).await, may, "{asked}");
            }
            let seen = caller.get(&hub).await.expect(200).await;
            assert!(ends(&seen).is_empty());
            let asked = format!("{hub}?include_rejected=true");
            let seen = caller.get(&asked).await.expect(200).await;
            assert_eq!(ends(&seen).len(), usize::from(may));
        }
        app.stop().await;
    });
}

#[test]
fn relationships_come_in_pages() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let hub = object("intrusion-set", "Heron Group");
        let mut objects = vec![hub.clone()];
        for n in 0..25 {
            let kit = object("tool", &format!("Heronkit {n:02}"));
            objects.push(relationship(&hub, "uses", &kit));
            // A relationship sent twice counts twice, and a self-reference counts once.
            objects.push(relationship(&hub, "uses", &kit));
            objects.push(kit);
        }
        objects.push(relationship(&hub, "related-to", &hub));
        admin.ingest(json!(objects)).await;
        let node = format!("/api/nodes/{}", text(&admin.one("Heron Group").await, "id"));
        let whole = admin.get(&node).await.expect(200).await;
        let whole = whole["relationships"].as_array().unwrap().clone();
        assert_eq!(whole.len(), 51);
        for limit in [1, 7, 50, 51, 1000] {
            let mut paged: Vec<Value> = Vec::new();
            loop {
                let path = format!("{node}?limit={limit}&offset={}", paged.len());
                let page = admin.get(&path).await.expect(200).await;
                let rows = page["relationships"].as_array().unwrap();
                assert!(rows.len() <= limit, "{path}");
                paged.extend(rows.iter().cloned());
                assert_eq!(page["more_relationships"], json!(paged.len() < 51), "{path}");
                if page["more_relationships"] == false {
                    break;
                }
            }
            assert_eq!(paged, whole, "in pages of {limit}");
        }
        let beyond = admin.get(&format!("{node}?offset=51")).await.expect(200).await;
        assert!(ends(&beyond).is_empty());
        for (query, want) in [
            ("limit=0", "limit: must be a whole number from 1 to 1000"),
            ("limit=1001", "limit: must be a whole number from 1 to 1000"),
            ("offset=-1", "offset: must be a whole number from 0"),
            (
                "include_rejected=perhaps",
                "include_rejected: must be true or false",
            ),
        ] {
            let error = admin.get(&format!("{node}?{query}")).await.refused(400).await;
            assert!(error.starts_with(want), "{query}: {error}");
        }
        app.stop().await;
    });
}
