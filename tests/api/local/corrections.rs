//! Notes that are corrected, superseded and deleted, and entities that are merged.

use serde_json::{Value, json};

use crate::helpers::{Client, encode, run};
use crate::local::{LocalApp, started_once};

fn id_of(told: &Value) -> String {
    told["note_id"].as_str().unwrap().to_owned()
}

pub(super) async fn keep(client: &Client, content: &str) -> String {
    let body = json!({"content": content, "evolve": false});
    id_of(&client.post("/api/remember", &body).await.expect(200).await)
}

pub(super) async fn note(client: &Client, id: &str) -> Value {
    client.get(&format!("/api/notes/{id}")).await.expect(200).await
}

pub(super) async fn entities(client: &Client) -> Vec<String> {
    let list = client.get("/api/entities?limit=500").await.expect(200).await;
    let all = list["entities"].as_array().unwrap().iter();
    all.map(|entity| entity["id"].as_str().unwrap().to_owned())
        .collect()
}

/// The relationships between entities, as texts.
async fn relationships(client: &Client) -> Vec<String> {
    let edges = client.get("/api/graph/edges").await.expect(200).await;
    let all = edges["edges"].as_array().unwrap().iter();
    let mut found: Vec<String> = all
        .filter(|edge| edge["source"].as_str().unwrap().contains(':'))
        .map(|edge| {
            [&edge["source"], &edge["relationship"], &edge["target"]]
                .map(|part| part.as_str().unwrap())
                .join(" ")
        })
        .collect();
    found.sort();
    found
}

/// Everything that the graph shows, without ids of notes and times.
pub(super) async fn graph(client: &Client) -> Value {
    let mut all = serde_json::Map::new();
    for path in [
        "/api/graph/nodes",
        "/api/graph/edges",
        "/api/entities?limit=500",
        "/api/domains",
    ] {
        all.insert(path.to_owned(), client.get(path).await.expect(200).await);
    }
    let stats = client.get("/api/storage").await.expect(200).await;
    all.insert("storage".into(), stats);
    Value::Object(all)
}

#[test]
fn what_a_correction_took_out_is_cited_no_more() {
    run(async {
        let app = LocalApp::spawn().await;
        let client = &app.client;
        let id = keep(
            client,
            "APT28 uses Mimikatz against the Berlin office of Jane Roe.",
        )
        .await;
        let corrected = "APT28 uses Mimikatz against a target in Paris.";
        let path = format!("/api/notes/{id}");
        client
            .patch(&path, &json!({"content": corrected}))
            .await
            .expect(200)
            .await;
        let asked = json!({"query": "What does APT28 use?", "explain": true});
        let found = client.post("/api/recall", &asked).await.expect(200).await;
        assert_eq!(found["results"][0]["why"]["passages"][0]["text"], corrected);
        assert!(!found.to_string().contains("Jane Roe"), "{found}");
        assert_eq!(relationships(client).await, ["actor:apt28 uses tool:mimikatz"]);
        app.stop().await;
    });
}

#[test]
fn a_corrected_note_says_something_else_and_its_old_text_can_be_read() {
    run(async {
        let app = LocalApp::spawn().await;
        let client = &app.client;
        let id = keep(client, "Turla uses ComRAT against embassies.").await;
        let other = keep(client, "ComRAT was seen in Norway.").await;
        let correction = json!({"content": "Turla uses Kazuar against embassies.", "domain": "ops"});
        let path = format!("/api/notes/{id}");
        let now = client.patch(&path, &correction).await.expect(200).await;
        assert_eq!(now, note(client, &id).await);
        assert_eq!(now["content"], correction["content"]);
        assert_eq!(now["domain"], "ops");
        assert_eq!(now["entities"], json!(["turla", "kazuar"]));
        let version = &now["versions"][0];
        assert_eq!(version["content"], "Turla uses ComRAT against embassies.");
        assert_eq!(
            (&version["version"], &version["domain"]),
            (&json!(1), &json!("cti"))
        );
        assert_eq!(client.recall("Kazuar").await, [id.as_str()]);
        assert_eq!(client.recall("ComRAT").await, [other.as_str()]);
        assert_eq!(relationships(client).await, ["actor:turla uses malware:kazuar"]);
        let domains = client.get("/api/domains").await.expect(200).await;
        assert_eq!(
            domains["domains"],
            json!([{"name": "cti", "notes": 1}, {"name": "ops", "notes": 1}])
        );
        // The same again is no change.
        client.patch(&path, &correction).await.expect(200).await;
        assert_eq!(note(client, &id).await["versions"].as_array().unwrap().len(), 1);
        client
            .patch(
                &path,
                &json!({"source_type": "report", "source_ref": "https://a.example"}),
            )
            .await
            .expect(200)
            .await;
        let last = note(client, &id).await;
        assert_eq!(
            (&last["tier"], &last["source_refs"]),
            (&json!("b"), &json!(["https://a.example"]))
        );
        assert_eq!(last["versions"].as_array().unwrap().len(), 2);
        app.stop().await;
    });
}

#[test]
fn a_correction_that_can_not_be_is_refused_by_field() {
    run(async {
        let app = LocalApp::spawn().await;
        let client = &app.client;
        let id = keep(client, "Turla uses ComRAT.").await;
        let path = format!("/api/notes/{id}");
        for (body, field) in [
            (json!({"content": ""}), "content"),
            (json!({"content": 7}), "content"),
            (json!({"domain": "x".repeat(101)}), "domain"),
            (json!({"source_type": ""}), "source_type"),
            (json!({"source_ref": "x".repeat(501)}), "source_ref"),
        ] {
            let refused = client.patch(&path, &body).await.expect(422).await;
            assert_eq!(refused["detail"][0]["loc"], json!(["body", field]), "{body}");
        }
        client.patch(&path, &json!({})).await.expect(422).await;
        let unknown = "/api/notes/0197f3a0-5a58-7c11-8a55-0f6f3f4f6a10";
        let body = json!({"content": "x"});
        client.patch(unknown, &body).await.expect(404).await;
        client.patch("/api/notes/nonsense", &body).await.expect(404).await;
        client.delete(unknown).await.expect(404).await;
        let by = json!({"by": id});
        client
            .post(&format!("{unknown}/supersede"), &by)
            .await
            .expect(404)
            .await;
        let gone = json!({"by": "0197f3a0-5a58-7c11-8a55-0f6f3f4f6a10"});
        client
            .post(&format!("{path}/supersede"), &gone)
            .await
            .expect(404)
            .await;
        let itself = client
            .post(&format!("{path}/supersede"), &by)
            .await
            .expect(400)
            .await;
        assert!(itself["detail"].as_str().unwrap().starts_with("by: "), "{itself}");
        assert!(note(client, &id).await.get("versions").is_none());
        app.stop().await;
    });
}

#[test]
fn a_superseded_note_gives_its_place_to_the_other() {
    run(async {
        let app = LocalApp::spawn().await;
        let client = &app.client;
        let old = keep(client, "The wiper ZEROCLEARE encrypts nothing.").await;
        let new = keep(client, "ZEROCLEARE overwrites the boot record.").await;
        let path = format!("/api/notes/{old}/supersede");
        let told = client.post(&path, &json!({"by": new})).await.expect(200).await;
        assert_eq!(told["superseded_by"], json!(new));
        assert_eq!(client.recall("ZEROCLEARE").await, [new.as_str()]);
        let back = format!("/api/notes/{new}/supersede");
        let cycle = client.post(&back, &json!({"by": old})).await.expect(400).await;
        assert!(cycle["detail"].as_str().unwrap().starts_with("by: "));
        // Who stood behind it stands again.
        let gone = client
            .delete(&format!("/api/notes/{new}"))
            .await
            .expect(200)
            .await;
        assert_eq!(gone["restored"], json!([old]));
        assert_eq!(client.recall("ZEROCLEARE").await, [old.as_str()]);
        assert_eq!(note(client, &old).await["superseded_by"], Value::Null);
        app.stop().await;
    });
}

/// Notes that are written and deleted in any order leave what the others leave alone.
#[test]
fn a_deleted_note_leaves_nothing_but_what_others_state() {
    run(async {
        let app = LocalApp::spawn().await;
        let client = &app.client;
        let stays = [
            "APT28 uses X-Agent.",
            "Sandworm exploited CVE-2023-1234.",
            "Seen again: APT28 uses X-Agent, reported on 203.0.113.7.",
        ];
        let goes = [
            "APT28 uses Mimikatz and X-Agent at 198.51.100.9.",
            "Sandworm uses Industroyer.",
            "APT28 uses X-Agent in a second campaign.",
        ];
        let plain = LocalApp::spawn().await;
        for text in stays {
            keep(&plain.client, text).await;
        }
        let mut gone = Vec::new();
        for text in goes {
            gone.push(keep(client, text).await);
        }
        for text in stays {
            keep(client, text).await;
        }
        assert!(entities(client).await.contains(&"malware:industroyer".to_owned()));
        for id in &gone {
            let told = client.delete(&format!("/api/notes/{id}")).await.expect(200).await;
            assert_eq!(told, json!({"note_id": id, "erased": false, "restored": []}));
            client.get(&format!("/api/notes/{id}")).await.expect(404).await;
            client.delete(&format!("/api/notes/{id}")).await.expect(404).await;
        }
        assert_eq!(entities(client).await, entities(&plain.client).await);
        assert_eq!(relationships(client).await, relationships(&plain.client).await);
        for path in ["/api/storage", "/api/domains"] {
            let [here, there] = [client, &plain.client].map(|client| client.get(path));
            assert_eq!(
                here.await.expect(200).await,
                there.await.expect(200).await,
                "{path}"
            );
        }
        for words in ["Industroyer", "198.51.100.9", "second campaign", "Mimikatz"] {
            let found = client.recall(words).await;
            assert!(!gone.iter().any(|id| found.contains(id)), "{words}");
        }
        plain.stop().await;
        app.stop().await;
    });
}

pub(super) fn merge(from: &str, into: &str) -> Value {
    json!({"from": from, "into": into})
}

#[test]
fn merged_entities_answer_as_one_until_they_are_told_apart() {
    run(async {
        let (app, twin) = (LocalApp::spawn().await, LocalApp::spawn().await);
        let client = &app.client;
        let first = [
            "APT28 uses X-Agent.",
            "Turla uses X-Agent.",
            "Turla exploited CVE-2023-1234.",
            "APT28 and Turla share servers.",
        ];
        for text in first {
            keep(client, text).await;
        }
        let before = graph(client).await;
        let merged = client
            .post("/api/entities/merge", &merge("actor:Turla", "actor:apt28"))
            .await
            .expect(200)
            .await;
        assert_eq!(
            (&merged["id"], &merged["note_count"]),
            (&json!("actor:apt28"), &json!(4))
        );
        for asked in ["actor:turla", "actor:apt28"] {
            let query = encode(&[("id", asked)]);
            let node = client
                .get(&format!("/api/graph/node?{query}"))
                .await
                .expect(200)
                .await;
            assert_eq!(node["node"]["id"], "actor:apt28");
            assert_eq!(
                (&node["total_notes"], &node["total_neighbours"]),
                (&json!(4), &json!(2))
            );
        }
        let listed = client.get("/api/entities?type=actor").await.expect(200).await;
        assert_eq!(listed["total"], 1);
        let listed = client.get("/api/entities?q=turla").await.expect(200).await;
        assert_eq!(listed["entities"][0]["id"], "actor:apt28");
        for question in ["What does Turla use?", "What does APT28 use?", "Turla"] {
            let found = client.recall(question).await;
            assert!(found.len() >= 2, "{question}: {found:?}");
        }
        let asked = json!({"query": "Which vulnerabilities did APT28 exploit?"});
        let found = client.post("/api/recall", &asked).await.expect(200).await;
        assert_eq!(found["results"][0]["content"], first[2]);
        for text in [
            "Turla uses Kazuar.",
            "APT28 uses Zebrocy in 2024.",
            "Turla uses X-Agent again.",
        ] {
            keep(client, text).await;
        }
        let node = client
            .get("/api/graph/node?id=actor:turla")
            .await
            .expect(200)
            .await;
        assert_eq!(node["total_notes"], 7);
        client
            .post("/api/entities/unmerge", &json!({"entity": "actor:turla"}))
            .await
            .expect(200)
            .await;
        // The same notes, never merged.
        for text in first {
            keep(&twin.client, text).await;
        }
        for text in [
            "Turla uses Kazuar.",
            "APT28 uses Zebrocy in 2024.",
            "Turla uses X-Agent again.",
        ] {
            keep(&twin.client, text).await;
        }
        assert_eq!(entities(client).await, entities(&twin.client).await);
        assert_eq!(relationships(client).await, relationships(&twin.client).await);
        let rows = |list: &Value| list["entities"].clone();
        let [here, there] = [client, &twin.client].map(|client| client.get("/api/entities?limit=500"));
        assert_eq!(
            rows(&here.await.expect(200).await),
            rows(&there.await.expect(200).await)
        );
        assert_ne!(before, graph(client).await);
        twin.stop().await;
        app.stop().await;
    });
}

#[test]
fn an_undone_merge_leaves_exactly_what_was() {
    run(async {
        let dir = started_once();
        let app = LocalApp::durable(dir.path()).await;
        for text in [
            "APT28 uses X-Agent.",
            "Turla uses X-Agent.",
            "Sandworm uses X-Agent.",
            "APT28 met Turla.",
        ] {
            keep(&app.client, text).await;
        }
        let before = graph(&app.client).await;
        let merge_of = async |from: &str, into: &str| {
            let answer = app.client.post("/api/entities/merge", &merge(from, into)).await;
            answer.expect(200).await
        };
        merge_of("actor:turla", "actor:apt28").await;
        merge_of("actor:apt28", "actor:sandworm").await;
        let merged = graph(&app.client).await;
        app.stop().await;
        // From the copy of the graph, and from the database alone.
        for copied in [true, false] {
            if !copied {
                std::fs::remove_dir_all(dir.path().join("graph")).unwrap();
            }
            let app = LocalApp::durable(dir.path()).await;
            assert_eq!(graph(&app.client).await, merged, "copied: {copied}");
            app.stop().await;
        }
        let app = LocalApp::durable(dir.path()).await;
        for entity in ["actor:apt28", "actor:turla"] {
            let undo = json!({"entity": entity});
            let answer = app.client.post("/api/entities/unmerge", &undo).await;
            answer.expect(200).await;
        }
        assert_eq!(graph(&app.client).await, before);
        app.stop().await;
        let app = LocalApp::durable(dir.path()).await;
        assert_eq!(graph(&app.client).await, before);
        app.stop().await;
    });
}

#[test]
fn a_merge_that_can_not_be_is_refused_by_field() {
    run(async {
        let app = LocalApp::spawn().await;
        let client = &app.client;
        keep(client, "APT28 and Turla use X-Agent.").await;
        let path = "/api/entities/merge";
        for (body, status, field) in [
            (merge("actor:apt28", "malware:x-agent"), 400, "into: "),
            (merge("actor:apt28", "actor:APT 28"), 400, "into: "),
            (merge("actor:apt28", "actor:nobody"), 404, "entity not found"),
            (merge("actor:nobody", "actor:apt28"), 404, "entity not found"),
            (merge("apt28", "turla"), 404, "entity not found"),
        ] {
            let refused = client.post(path, &body).await.expect(status).await;
            assert!(
                refused["detail"].as_str().unwrap().starts_with(field),
                "{body}: {refused}"
            );
        }
        let missing = client
            .post(path, &json!({"from": "actor:apt28"}))
            .await
            .expect(422)
            .await;
        assert_eq!(missing["detail"][0]["loc"], json!(["body", "into"]));
        client
            .post(path, &merge("actor:apt28", "actor:turla"))
            .await
            .expect(200)
            .await;
        for (body, field) in [
            (merge("actor:turla", "actor:apt28"), "into: "),
            (merge("actor:apt28", "actor:turla"), "from: "),
        ] {
            let refused = client.post(path, &body).await.expect(400).await;
            assert!(
                refused["detail"].as_str().unwrap().starts_with(field),
                "{body}: {refused}"
            );
        }
        let undo = "/api/entities/unmerge";
        let not_merged = client
            .post(undo, &json!({"entity": "actor:turla"}))
            .await
            .expect(400)
            .await;
        assert!(not_merged["detail"].as_str().unwrap().starts_with("entity: "));
        client
            .post(undo, &json!({"entity": "actor:nobody"}))
            .await
            .expect(404)
            .await;
        app.stop().await;
    });
}
