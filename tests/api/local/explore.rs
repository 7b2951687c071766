//! Looking around in the graph over HTTP: pictures of a part of it, one node, sorted entities, domains.

use serde_json::{Value, json};

use crate::helpers::{encode, keys_of, run};
use crate::local::LocalApp;

async fn get(app: &LocalApp, path: &str, query: &[(&str, &str)]) -> Value {
    let path = format!("{path}?{}", encode(query));
    app.client.get(&path).await.expect(200).await
}

fn ids(nodes: &Value) -> Vec<&str> {
    let nodes = nodes.as_array().unwrap();
    nodes.iter().map(|node| node["id"].as_str().unwrap()).collect()
}

/// Three notes in two domains.
async fn filled() -> LocalApp {
    let app = LocalApp::spawn().await;
    for (content, domain) in [
        (
            "APT28 used X-Agent, which came from https://evil.example.com/a/b?c=1#d.",
            "cti",
        ),
        ("Fancy Bear used Mimikatz against a ministry.", "cti"),
        ("Turla uses Snake.", "ops"),
    ] {
        let body = json!({"content": content, "domain": domain, "evolve": false});
        app.client.post("/api/remember", &body).await.expect(200).await;
    }
    app
}

#[test]
fn a_picture_of_the_whole_agrees_with_the_lists() {
    run(async {
        let app = filled().await;
        let view = get(&app, "/api/graph/view", &[]).await;
        assert_eq!(
            keys_of(&view),
            ["edges", "nodes", "total_edges", "total_nodes", "truncated"]
        );
        let nodes = get(&app, "/api/graph/nodes", &[]).await;
        let edges = get(&app, "/api/graph/edges", &[]).await;
        assert_eq!(
            (&view["total_nodes"], &view["total_edges"]),
            (&nodes["count"], &edges["count"])
        );
        assert_eq!(view["truncated"], false);
        for edge in edges["edges"].as_array().unwrap() {
            assert!(view["edges"].as_array().unwrap().contains(edge), "{edge}");
        }
        let most = view["nodes"].as_array().unwrap().iter();
        let degrees: Vec<u64> = most.map(|node| node["degree"].as_u64().unwrap()).collect();
        assert!(degrees.is_sorted_by(|a, b| a >= b), "{degrees:?}");
        for node in nodes["nodes"].as_array().unwrap() {
            let shown = view["nodes"]
                .as_array()
                .unwrap()
                .iter()
                .find(|shown| shown["id"] == node["id"]);
            let mut shown = shown.unwrap().clone();
            let degree = shown.as_object_mut().unwrap().remove("degree").unwrap();
            assert_eq!(&shown, node);
            let ends = |edge: &&Value| edge["source"] == node["id"] || edge["target"] == node["id"];
            let counted = edges["edges"].as_array().unwrap().iter().filter(ends).count();
            assert_eq!(degree, counted, "{node}");
        }
        app.stop().await;
    });
}

#[test]
fn a_picture_is_limited_filtered_and_drawn_around_a_node() {
    run(async {
        let app = filled().await;
        let view = |query: &'static [(&'static str, &'static str)]| get(&app, "/api/graph/view", query);
        let one = view(&[("limit", "1")]).await;
        assert_eq!(
            (ids(&one["nodes"]), &one["truncated"]),
            (vec!["actor:apt28"], &json!(true))
        );
        assert_eq!(one["edges"], json!([]));
        let typed = view(&[("type", "Threat-Actor, NOTE"), ("notes", "false")]).await;
        assert_eq!(ids(&typed["nodes"]), ["actor:apt28", "actor:turla"]);
        let named = view(&[("q", "fancy BEAR"), ("type", "actor")]).await;
        assert_eq!(ids(&named["nodes"]), ["actor:apt28"]);
        let url = "url:https://evil.example.com/a/b?c=1#d";
        let far = view(&[
            ("around", "url:https://evil.example.com/a/b?c=1#d"),
            ("depth", "3"),
            ("notes", "true"),
        ])
        .await;
        let shown = ids(&far["nodes"]);
        assert_eq!(shown[0], url);
        assert!(
            shown.contains(&"tool:mimikatz") && !shown.contains(&"actor:turla"),
            "{shown:?}"
        );
        let near = view(&[("around", "actor:apt28"), ("notes", "no")]).await;
        let shown = ids(&near["nodes"]);
        assert_eq!(shown[0], "actor:apt28");
        assert!(
            shown.len() > 1 && near["edges"].as_array().unwrap().len() >= shown.len() - 1,
            "{near}"
        );
        let unknown = app
            .client
            .get("/api/graph/view?around=actor:nobody")
            .await
            .expect(404)
            .await;
        assert_eq!(unknown, json!({"detail": "node not found"}));
        app.stop().await;
    });
}

#[test]
fn a_node_is_read_by_its_id_with_its_notes_and_neighbours() {
    run(async {
        let app = filled().await;
        let entities = get(&app, "/api/entities", &[("limit", "500")]).await;
        for entity in entities["entities"].as_array().unwrap() {
            let id = entity["id"].as_str().unwrap();
            let details = get(&app, "/api/graph/node", &[("id", id)]).await;
            assert_eq!(
                (
                    &details["node"]["id"],
                    &details["node"]["degree"],
                    &details["total_notes"]
                ),
                (&entity["id"], &entity["connected_count"], &entity["note_count"])
            );
            let related = get(&app, "/api/graph/view", &[("around", id), ("notes", "false")]).await;
            let related = related["nodes"].as_array().unwrap().len() - 1;
            assert_eq!(details["total_neighbours"], related, "{id}");
        }
        let page = get(&app, "/api/graph/node", &[("id", "actor:apt28"), ("limit", "1")]).await;
        assert_eq!(
            keys_of(&page),
            ["neighbours", "node", "notes", "total_neighbours", "total_notes"]
        );
        assert_eq!(
            page["notes"][0]["context"],
            "Fancy Bear used Mimikatz against a ministry"
        );
        assert_eq!(
            keys_of(&page["notes"][0]),
            ["confidence", "context", "created_at", "domain", "id", "tier"]
        );
        assert_eq!(
            keys_of(&page["neighbours"][0]),
            ["edge_id", "node", "outgoing", "relationship"]
        );
        let rest = get(&app, "/api/graph/node", &[("id", "actor:apt28"), ("offset", "1")]).await;
        assert_eq!(
            (rest["notes"].as_array().unwrap().len(), &rest["total_notes"]),
            (1, &json!(2))
        );
        let unknown = app
            .client
            .get("/api/graph/node?id=actor:nobody")
            .await
            .expect(404)
            .await;
        assert_eq!(unknown, json!({"detail": "node not found"}));
        let refused = app.client.get("/api/graph/node").await.expect(422).await;
        assert_eq!(refused["detail"][0]["loc"], json!(["query", "id"]));
        app.stop().await;
    });
}

#[test]
fn a_superseded_note_stands_beside_its_successor() {
    run(async {
        let app = LocalApp::spawn().await;
        let text = "The group APT28 sent phishing mails to ministries in March and used Mimikatz on the hosts of the \
            clerks who opened them. The second sentence is no part of the context.";
        let older = app.client.remember(text).await;
        let newer = app.client.remember(&text.replace("sent", "has sent")).await;
        assert_eq!(newer["status"], "updated");
        let [older, newer] = [&older, &newer].map(|told| told["note_id"].as_str().unwrap());
        let entity = get(&app, "/api/graph/node", &[("id", "actor:apt28")]).await;
        assert_eq!(
            (ids(&entity["notes"]), &entity["total_notes"]),
            (vec![newer], &json!(1))
        );
        // The context is longer than the label.
        let context = entity["notes"][0]["context"].as_str().unwrap();
        assert!(context.ends_with("clerks who opened them"), "{context}");
        for (id, other, outgoing) in [(newer, older, true), (older, newer, false)] {
            let note = get(&app, "/api/graph/node", &[("id", id)]).await;
            assert_eq!((&note["notes"], &note["total_notes"]), (&json!([]), &json!(0)));
            assert_eq!(note["total_neighbours"], note["node"]["degree"]);
            let neighbours = note["neighbours"].as_array().unwrap();
            let link = neighbours
                .iter()
                .find(|near| near["relationship"] == "supersedes")
                .unwrap();
            assert_eq!(
                (&link["node"]["id"], &link["outgoing"]),
                (&json!(other), &json!(outgoing))
            );
            assert!(
                neighbours
                    .iter()
                    .any(|near| near["node"]["id"] == "tool:mimikatz"),
                "{note}"
            );
        }
        app.stop().await;
    });
}

#[test]
fn entities_are_sorted_and_domains_counted() {
    run(async {
        let app = filled().await;
        let listed = get(&app, "/api/entities", &[]).await;
        let by_type = get(&app, "/api/entities", &[("sort", "type"), ("order", "asc")]).await;
        assert_eq!(listed, by_type);
        let by_notes = get(&app, "/api/entities", &[("sort", "notes"), ("order", "desc")]).await;
        assert_eq!(by_notes["entities"][0]["id"], "actor:apt28");
        let mut one_by_one = Vec::new();
        for offset in 0..by_notes["total"].as_u64().unwrap() {
            let offset = offset.to_string();
            let query = [
                ("sort", "notes"),
                ("order", "desc"),
                ("limit", "1"),
                ("offset", &offset),
            ];
            one_by_one.push(get(&app, "/api/entities", &query).await["entities"][0].take());
        }
        assert_eq!(by_notes["entities"], Value::Array(one_by_one));
        for (query, name, msg) in [
            (
                "sort=size",
                "sort",
                "Input should be 'name', 'type', 'notes', 'connections' or 'tier'",
            ),
            ("order=down", "order", "Input should be 'asc' or 'desc'"),
        ] {
            let refused = app
                .client
                .get(&format!("/api/entities?{query}"))
                .await
                .expect(422)
                .await;
            let issue = &refused["detail"][0];
            assert_eq!(
                (&issue["loc"], &issue["msg"]),
                (&json!(["query", name]), &json!(msg))
            );
            assert_eq!(issue["type"], "literal_error");
        }
        let domains = get(&app, "/api/domains", &[]).await;
        assert_eq!(
            domains,
            json!({"domains": [{"name": "cti", "notes": 2}, {"name": "ops", "notes": 1}]})
        );
        app.stop().await;
    });
}
