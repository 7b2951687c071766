//! The history of the memory, notes that are erased, and corrections that a kill interrupts.

use std::path::Path;

use serde_json::{Value, json};

use super::corrections::{entities, graph, keep, merge};
use crate::helpers::{Client, encode, run};
use crate::local::durability::local;
use crate::local::{LocalApp, started_once};
use crate::process::Service;

async fn changes(client: &Client, query: &[(&str, &str)]) -> (Vec<Value>, String) {
    let page = client.get(&format!("/api/changes?{}", encode(query))).await;
    let page = page.expect(200).await;
    let next = page["next"].as_str().unwrap().to_owned();
    (page["changes"].as_array().unwrap().clone(), next)
}

#[test]
fn the_history_has_every_change_once_and_in_order() {
    run(async {
        let app = LocalApp::spawn().await;
        let client = &app.client;
        let (none, start) = changes(client, &[("since", "0")]).await;
        assert_eq!(none, Vec::<Value>::new());
        let first = keep(client, "Turla uses ComRAT.").await;
        let second = keep(client, "APT28 uses X-Agent.").await;
        let (_, between) = changes(client, &[]).await;
        client
            .patch(&format!("/api/notes/{first}"), &json!({"domain": "ops"}))
            .await
            .expect(200)
            .await;
        client
            .post(&format!("/api/notes/{first}/supersede"), &json!({"by": second}))
            .await
            .expect(200)
            .await;
        client
            .post("/api/entities/merge", &merge("actor:turla", "actor:apt28"))
            .await
            .expect(200)
            .await;
        client
            .post("/api/entities/unmerge", &json!({"entity": "actor:turla"}))
            .await
            .expect(200)
            .await;
        client
            .delete(&format!("/api/notes/{second}"))
            .await
            .expect(200)
            .await;
        let (all, end) = changes(client, &[("since", &start), ("limit", "500")]).await;
        let mut told: Vec<(&str, &str)> = all
            .iter()
            .map(|change| {
                let what = change.get("note").or(change.get("entity")).unwrap();
                (change["kind"].as_str().unwrap(), what.as_str().unwrap())
            })
            .collect();
        // New entities of one write are in the order of their secret ids.
        told[1..3].sort_unstable();
        told[4..6].sort_unstable();
        assert_eq!(
            told,
            [
                ("created", first.as_str()),
                ("created", "actor:turla"),
                ("created", "malware:comrat"),
                ("created", &second),
                ("created", "actor:apt28"),
                ("created", "malware:x-agent"),
                ("changed", &first),
                ("superseded", &first),
                ("merged", "actor:turla"),
                ("unmerged", "actor:turla"),
                ("deleted", "actor:apt28"),
                ("deleted", "malware:x-agent"),
                ("changed", &first),
                ("deleted", &second),
            ]
        );
        assert_eq!(all[6]["before"], json!({"domain": "cti", "version": 1}));
        assert_eq!(all[6]["after"], json!({"domain": "ops", "version": 2}));
        assert_eq!(all[8]["after"], json!({"merged_into": "actor:apt28"}));
        for limit in ["1", "3", "5"] {
            let (mut at, mut read) = ("0".to_owned(), Vec::new());
            loop {
                let (page, next) = changes(client, &[("since", &at), ("limit", limit)]).await;
                if page.is_empty() {
                    assert_eq!(next, at);
                    break;
                }
                read.extend(page);
                at = next;
            }
            assert_eq!(read, all, "{limit}");
            assert_eq!(at, end);
        }
        assert_eq!(changes(client, &[("since", &between)]).await.0, all[6..]);
        let at = all[6]["at"].as_str().unwrap();
        assert_eq!(changes(client, &[("since", at)]).await.0, all[6..]);
        assert_eq!(changes(client, &[("until", at)]).await.0, all[..7]);
        let deleted = changes(client, &[("kind", "deleted")]).await.0;
        assert_eq!(deleted, [all[10].clone(), all[11].clone(), all[13].clone()]);
        assert_eq!(
            changes(client, &[("since", "2100-01-01")]).await.0,
            Vec::<Value>::new()
        );
        for (query, field) in [
            ([("since", "yesterday")], "since"),
            ([("until", "yesterday")], "until"),
            ([("kind", "renamed")], "kind"),
            ([("limit", "501")], "limit"),
        ] {
            let refused = client.get(&format!("/api/changes?{}", encode(&query))).await;
            let refused = refused.expect(422).await;
            assert_eq!(refused["detail"][0]["loc"], json!(["query", field]), "{query:?}");
        }
        app.stop().await;
    });
}

/// The files below a directory that hold a text, in any case.
fn holders(dir: &Path, wanted: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holders(&path, wanted));
        } else {
            let mut bytes = std::fs::read(&path).unwrap();
            bytes.make_ascii_lowercase();
            if bytes.windows(wanted.len()).any(|part| part == wanted.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

#[test]
fn an_erased_note_leaves_its_text_in_no_file() {
    run(async {
        let dir = started_once();
        let app = LocalApp::durable(dir.path()).await;
        let client = &app.client;
        for number in 0..30 {
            keep(
                client,
                &format!("APT28 used X-Agent against host{number}.example.com."),
            )
            .await;
        }
        let id = keep(
            client,
            "Turla uses qzxmarker against qzxmarker.example.net in zzqoldtext.",
        )
        .await;
        let path = format!("/api/notes/{id}");
        client
            .patch(&path, &json!({"content": "Turla uses qzxmarker in zzqnewtext."}))
            .await
            .expect(200)
            .await;
        assert!(!holders(dir.path(), "qzxmarker").is_empty());
        let told = client
            .delete(&format!("{path}?erase=true"))
            .await
            .expect(200)
            .await;
        assert_eq!((&told["note_id"], &told["erased"]), (&json!(id), &json!(true)));
        for marker in ["qzxmarker", "zzqoldtext", "zzqnewtext"] {
            assert_eq!(holders(dir.path(), marker), Vec::<String>::new(), "{marker}");
        }
        client
            .delete(&format!("{path}?erase=true"))
            .await
            .expect(404)
            .await;
        assert_eq!(client.recall("X-Agent").await.len(), 10);
        let found = client.recall("host7.example.com").await;
        assert!(!found.is_empty());
        let (all, _) = changes(client, &[("limit", "500")]).await;
        assert!(!json!(all).to_string().contains("qzxmarker"));
        let last = all.last().unwrap();
        assert_eq!((&last["kind"], &last["note"]), (&json!("deleted"), &json!(id)));
        app.stop().await;
        for marker in ["qzxmarker", "zzqoldtext", "zzqnewtext"] {
            assert_eq!(holders(dir.path(), marker), Vec::<String>::new(), "{marker}");
        }
        let app = LocalApp::durable(dir.path()).await;
        assert_eq!(app.client.recall("X-Agent").await.len(), 10);
        app.stop().await;
    });
}

/// Whatever a killed process had begun is there as a whole or not at all.
#[test]
fn a_correction_survives_a_kill_as_a_whole_or_not_at_all() {
    run(async {
        let dir = started_once();
        let service = Service::start(local(dir.path(), 16));
        let client = service.anonymous();
        let mut notes = Vec::new();
        for number in 0..40 {
            notes.push(keep(&client, &format!("Actor Turla used host{number}.example.com.")).await);
        }
        let acts = notes.iter().enumerate().map(|(number, id)| {
            let (client, id) = (client.clone(), id.clone());
            tokio::spawn(async move {
                let path = format!("/api/notes/{id}");
                let request = if number % 2 == 0 {
                    client.request(reqwest::Method::DELETE, &path)
                } else {
                    let body = json!({"content": format!("Actor Turla used new{number}.example.org.")});
                    client.request(reqwest::Method::PATCH, &path).json(&body)
                };
                let answer = request.send().await;
                answer.is_ok_and(|answer| answer.status() == 200)
            })
        });
        let acts: Vec<_> = acts.collect();
        tokio::time::sleep(std::time::Duration::from_millis(40)).await;
        service.kill();
        let mut done = Vec::new();
        for act in acts {
            done.push(act.await.unwrap());
        }
        let service = Service::start(local(dir.path(), 16));
        let client = service.anonymous();
        let mut expected = Vec::new();
        for (number, id) in notes.iter().enumerate() {
            let answer = client.get(&format!("/api/notes/{id}")).await;
            let there = answer.status() == 200;
            if number % 2 == 0 {
                assert!(there || !done[number] || answer.status() == 404);
                assert!(!(there && done[number]), "{number} was deleted");
                if there {
                    expected.push(format!("domain:host{number}.example.com"));
                }
                continue;
            }
            let note = answer.expect(200).await;
            let is_new = note.get("versions").is_some();
            assert!(is_new || !done[number], "{number} was corrected");
            let host = match is_new {
                true => format!("domain:new{number}.example.org"),
                false => format!("domain:host{number}.example.com"),
            };
            assert!(
                note["content"]
                    .as_str()
                    .unwrap()
                    .contains(host.split_once(':').unwrap().1)
            );
            expected.push(host);
        }
        expected.sort();
        let mut found = entities(&client).await;
        found.retain(|id| id.starts_with("domain:"));
        found.sort();
        assert_eq!(found, expected);
        service.kill();
        // The copy of the graph says the same as the database.
        let client_graph = async |dir: &Path| {
            let service = Service::start(local(dir, 16));
            let shown = graph(&service.anonymous()).await;
            service.kill();
            shown
        };
        let copied = client_graph(dir.path()).await;
        std::fs::remove_dir_all(dir.path().join("graph")).unwrap();
        assert_eq!(client_graph(dir.path()).await, copied);
    });
}
