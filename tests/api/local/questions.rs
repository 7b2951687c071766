//! Recall that is limited to a time, answers from the graph, and says why.

use serde_json::{Value, json};

use crate::helpers::{keys_of, run};
use crate::local::LocalApp;

async fn recall(app: &LocalApp, body: Value) -> Value {
    app.client.post("/api/recall", &body).await.expect(200).await
}

fn ids(found: &Value) -> Vec<&str> {
    let results = found["results"].as_array().unwrap();
    results.iter().map(|note| note["id"].as_str().unwrap()).collect()
}

#[test]
fn times_bound_the_notes_and_are_inclusive() {
    run(async {
        let app = LocalApp::spawn().await;
        for content in ["Turla uses Snake.", "Turla uses Kazuar.", "Turla uses Carbon."] {
            app.client.remember(content).await;
        }
        let all = recall(&app, json!({"query": "Turla"})).await;
        let mut times: Vec<&str> = all["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|note| note["created_at"].as_str().unwrap())
            .collect();
        times.sort_unstable();
        let day = times[1].get(..10).unwrap();
        for (limits, count) in [
            (json!({"since": times[1]}), 2),
            (json!({"until": times[1]}), 2),
            (json!({"since": times[1], "until": times[1]}), 1),
            (json!({"since": day}), 3),
            (json!({"since": "2020-01-01", "until": "2020-12-31"}), 0),
            (json!({"until": "2020-12-31T23:59:59+14:00"}), 0),
            (json!({"since": null, "until": ""}), 3),
        ] {
            let mut body = json!({"query": "Which malware does Turla use?"});
            for (name, value) in limits.as_object().unwrap() {
                body[name] = value.clone();
            }
            let found = recall(&app, body).await;
            assert_eq!(found["count"], count, "{limits}");
        }
        app.stop().await;
    });
}

#[test]
fn a_bad_time_is_refused_by_name_and_rule() {
    run(async {
        let app = LocalApp::spawn().await;
        for (limits, field, rule) in [
            (json!({"since": "yesterday"}), "since", "a date (YYYY-MM-DD"),
            (json!({"until": "2024-02-30"}), "until", "RFC 3339"),
            (json!({"until": "2024-01-01T10:00:00"}), "until", "RFC 3339"),
            (json!({"since": 2024}), "since", "RFC 3339"),
            (json!({"since": ["2024-01-01"]}), "since", "RFC 3339"),
            (
                json!({"since": "2024-01-02", "until": "2024-01-01"}),
                "since",
                "not be after 'until'",
            ),
            (json!({"explain": "perhaps"}), "explain", "valid boolean"),
        ] {
            let mut body = limits.clone();
            body["query"] = json!("Turla");
            let refused = app.client.post("/api/recall", &body).await.expect(422).await;
            let issue = &refused["detail"][0];
            assert_eq!(issue["loc"], json!(["body", field]), "{limits}");
            assert!(issue["msg"].as_str().unwrap().contains(rule), "{issue}");
        }
        app.stop().await;
    });
}

#[test]
fn an_answer_explains_itself_only_if_asked() {
    run(async {
        let app = LocalApp::spawn().await;
        let told = app.client.remember("Sandworm used Industroyer in Kyiv.").await;
        app.client.remember("M0932 mitigates T0859.").await;
        app.client.remember("Sandworm used T0859.").await;
        let query = "Which malware does Voodoo Bear use?";
        let plain = recall(&app, json!({"query": query})).await;
        assert_eq!(keys_of(&plain), ["count", "latency_ms", "query", "results"]);
        assert!(plain["results"][0].get("why").is_none());
        let found = recall(&app, json!({"query": query, "explain": true})).await;
        assert_eq!(ids(&found), ids(&plain));
        assert_eq!(found["results"][0]["id"], told["note_id"]);
        let why = &found["results"][0]["why"];
        assert_eq!(why["matched"], json!({"kind": "alias", "text": "Voodoo Bear"}));
        assert_eq!(
            why["path"][0],
            json!({"id": "actor:sandworm-team", "name": "Sandworm Team"})
        );
        let step = &why["path"][1];
        assert_eq!(
            (&step["id"], &step["relationship"]),
            (&json!("malware:industroyer"), &json!("uses"))
        );
        assert_eq!(step["outgoing"], true);
        assert_eq!(why["passages"][0]["text"], "Sandworm used Industroyer in Kyiv.");
        let shares = why["shares"].as_object().unwrap();
        let sum: f64 = shares.values().map(|share| share.as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-3, "{why}");
        let question = &found["question"];
        assert_eq!(question["wanted"], json!(["software"]));
        assert_eq!(question["names"][0]["id"], "actor:sandworm-team");
        // The ids of a path are those of the graph.
        let id = step["id"].as_str().unwrap();
        app.client
            .get(&format!("/api/graph/node?id={id}"))
            .await
            .expect(200)
            .await;
        let two = json!({"query": "which mitigations cover what Sandworm uses", "explain": true});
        let found = recall(&app, two).await;
        assert_eq!(found["results"][0]["content"], "M0932 mitigates T0859.");
        assert_eq!(found["results"][0]["why"]["path"].as_array().unwrap().len(), 3);
        let other = recall(&app, json!({"query": "Sandworm", "explain": true})).await;
        assert_eq!(other["question"]["wanted"], json!([]));
        app.stop().await;
    });
}
