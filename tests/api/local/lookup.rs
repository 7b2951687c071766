//! A list of values is looked up among the entities, with the notes that mention them.

use serde_json::{Value, json};

use super::LocalApp;
use crate::helpers::run;

fn told(answer: &Value) -> Vec<String> {
    let results = answer["results"].as_array().unwrap().iter();
    results
        .map(|result| {
            let hits = result["hits"].as_array().unwrap().iter();
            let hits: Vec<String> = hits
                .map(|hit| {
                    format!(
                        "{}={}",
                        hit["match"].as_str().unwrap(),
                        hit["entity_value"].as_str().unwrap()
                    )
                })
                .collect();
            format!("{} {}", result["verdict"].as_str().unwrap(), hits.join(" "))
        })
        .collect()
}

#[test]
fn entities_are_found_in_ranges_and_under_parents_with_their_notes() {
    run(async {
        let app = LocalApp::spawn().await;
        for content in [
            "The loader beacons to 45.148.10.9 and to evil-notes.com.",
            "Block 45.148.10.0/24, they said.",
            "Seen again: evil-notes[.]com and 45.148.10.9.",
        ] {
            app.client
                .post("/api/remember", &json!({"content": content}))
                .await
                .expect(200)
                .await;
        }
        let values = [
            "45.148.10[.]9",
            "45.148.10.77",
            "45.148.0.0/16",
            "hxxps://cdn.evil-notes.com/x",
            "evil-notes.com",
            "8.8.8.8",
            "unheard-of.com",
            "no indicator",
            "45.148.10.9",
        ];
        let answer = app
            .client
            .post("/api/lookup", &json!({"values": values}))
            .await
            .expect(200)
            .await;
        assert_eq!(
            told(&answer),
            [
                "known value=45.148.10.9 network=45.148.10.0/24",
                "contained network=45.148.10.0/24",
                "contained inside=45.148.10.0/24 inside=45.148.10.9",
                "parent parent_domain=evil-notes.com",
                "known value=evil-notes.com",
                "listed ",
                "unknown ",
                "invalid ",
            ]
        );
        let first = &answer["results"][0];
        assert_eq!(first["count"], 2);
        let notes = first["hits"][0]["notes"].as_array().unwrap();
        assert_eq!(notes.len(), 2);
        assert!(
            notes[0]["context"].as_str().unwrap().starts_with("Seen again"),
            "{notes:?}"
        );
        assert_eq!(first["hits"][0]["note_count"], 2);
        let want = json!({"known": 2, "contained": 2, "parent": 1, "listed": 1, "unknown": 1, "invalid": 1});
        assert_eq!(answer["summary"], want);

        let text = json!({"text": "Traffic to 45.148.10.9 and unheard-of.com."});
        let answer = app.client.post("/api/lookup", &text).await.expect(200).await;
        assert_eq!(told(&answer)[1], "unknown ");
        app.stop().await;
    });
}

#[test]
fn what_is_wrong_with_a_look_up_is_said() {
    run(async {
        let app = LocalApp::spawn().await;
        let many: Vec<String> = (0..10_001).map(|n| n.to_string()).collect();
        for (body, kind, place) in [
            (json!({}), "value_error", Value::Null),
            (json!({"values": ["x"], "text": "x"}), "value_error", Value::Null),
            (json!({"values": "x"}), "list_type", json!("values")),
            (json!({"values": many}), "too_long", json!("values")),
            (json!({"values": [1]}), "string_type", json!("values")),
            (
                json!({"text": "x".repeat((1 << 20) + 1)}),
                "string_too_long",
                json!("text"),
            ),
            (json!({"text": 1}), "string_type", json!("text")),
        ] {
            let answer = app.client.post("/api/lookup", &body).await.expect(422).await;
            let issue = &answer["detail"][0];
            assert_eq!(
                (&issue["type"], &issue["loc"][1]),
                (&json!(kind), &place),
                "{answer}"
            );
        }
        app.stop().await;
    });
}
