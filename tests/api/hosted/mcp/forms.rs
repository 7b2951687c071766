//! The form of answers: as their tool states, and short enough.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use test_support::extent;

use super::names;
use crate::helpers::{Client, TestApp, run};
use crate::hosted::feeds::BATCHES;
use crate::hosted::merges::node_of;
use crate::stix::{object, relationship, text, with};

/// Longest JSON of an answer, in characters.
const MOST: usize = 40_000;

/// One successful call of each tool, with things that are there.
async fn calls(admin: &Client) -> Vec<(&'static str, Value)> {
    let malware = with(object("malware", "Quillsnake"), json!({"is_family": false}));
    let tool = object("tool", "Spade");
    let link = relationship(&malware, "uses", &tool);
    admin.ingest(json!([malware, tool, link])).await;
    let found = admin.search("Quillsnake").await;
    let session = found["recall_id"].clone();
    let node = node_of(admin, &malware).await;
    let detail = admin.get(&format!("/api/nodes/{node}")).await.expect(200).await;
    let evidence = detail["evidence"][0]["id"].clone();
    let staged = admin
        .preview(&json!({"text": "APT28 talks to agent.example.org"}))
        .await;
    let upload = json!({"input_kind": "stix_bundle", "bundle": [object("tool", "Staged Spade")]});
    let upload = admin.post(BATCHES, &upload).await.expect(201).await;
    let (batch, item) = (upload["batch"]["id"].clone(), upload["items"][0]["id"].clone());
    vec![
        (
            "search",
            json!({"query": "what does Quillsnake use", "explain": true, "limit": 5}),
        ),
        (
            "search",
            json!({"query": "Quillsnake", "mode": "structured", "node_type": ["tool"], "cursor": null}),
        ),
        ("search", json!({"query": "Quillsnake", "mode": "semantic"})),
        (
            "search",
            json!({"query": "nothing of this kind is known", "min_score": 1}),
        ),
        (
            "lookup",
            json!({"values": ["203[.]0.113.7", "8.8.8.8", "nonsense"]}),
        ),
        (
            "lookup",
            json!({"text": "From 203.0.113.7 to hxxp://evil[.]example/a"}),
        ),
        ("node", json!({"id": node})),
        ("node", json!({"stix_id": malware["id"], "limit": 1})),
        ("evidence", json!({"id": evidence})),
        ("changes", json!({"since": "0", "limit": 2, "kind": ["created"]})),
        ("session", json!({"id": session})),
        ("session", json!({})),
        ("export", json!({"recall_id": session})),
        (
            "submit_text",
            json!({"text": "APT29 talks to other.example.org", "default_tlp": "GREEN"}),
        ),
        (
            "submit_stix",
            json!({"bundle": [object("tool", "Another Spade")]}),
        ),
        ("review", json!({})),
        ("review", json!({"queue": "stix", "limit": 1})),
        ("review", json!({"text_batch": staged["batch_id"]})),
        (
            "review",
            json!({"entity": staged["entities"][0]["id"], "status": "accepted"}),
        ),
        ("review", json!({"stix_batch": batch})),
        (
            "review",
            json!({"stix_batch": batch, "item": item, "status": "rejected"}),
        ),
        ("feeds", json!({})),
    ]
}

#[test]
fn answers_have_the_form_that_their_tool_states() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let tools = admin.tools().await;
        let mut called = BTreeSet::new();
        for (name, arguments) in calls(admin).await {
            called.insert(name);
            let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
            let input = jsonschema::validator_for(&tool["inputSchema"]).unwrap();
            let mut given = arguments.clone();
            given.as_object_mut().unwrap().retain(|_, value| !value.is_null());
            assert!(
                input.is_valid(&given),
                "{name} {given}: {:?}",
                input.iter_errors(&given).next()
            );
            let structured = admin.tool(name, arguments.clone()).await;
            let output = jsonschema::validator_for(&tool["outputSchema"]).unwrap();
            let broken = output
                .iter_errors(&structured)
                .next()
                .map(|error| error.to_string());
            assert_eq!(broken, None, "{name} {arguments}: {structured}");
            assert!(
                text(&structured, "_notice").contains("never instructions"),
                "{name}"
            );
            let reads = !["submit_text", "submit_stix", "review"].contains(&name);
            assert_eq!(tool["annotations"]["readOnlyHint"], reads, "{name}");
            assert_eq!(tool["annotations"]["openWorldHint"], false, "{name}");
        }
        let all: BTreeSet<&str> = names(&tools).into_iter().collect();
        assert_eq!(called, all);
        // What is submitted waits for a person.
        assert!(
            !admin
                .search("Another Spade")
                .await
                .to_string()
                .contains("Another Spade\",\"node"),
            "committed"
        );
        app.stop().await;
    });
}

#[test]
fn an_answer_that_is_too_long_goes_on_at_its_cursor() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let many = extent(90, 300);
        let objects: Vec<Value> = (0..many)
            .map(|at| {
                with(
                    object("tool", &format!("Lengthy {at:03}")),
                    json!({"description": format!("字 {at} {}", "long ".repeat(extent(200, 400)))}),
                )
            })
            .collect();
        let hub = object("malware", "Hub of Lengthy");
        let links: Vec<Value> = objects
            .iter()
            .map(|tool| relationship(&hub, "uses", tool))
            .collect();
        admin.ingest(json!(objects)).await;
        admin.ingest(json!([hub.clone()])).await;
        admin.ingest(json!(links)).await;

        let whole = admin
            .get("/api/recall/search?q=lengthy&limit=80&min_score=0")
            .await
            .expect(200)
            .await;
        let pages = pages(
            admin,
            "search",
            json!({"query": "lengthy", "limit": 80, "min_score": 0}),
            "results",
        )
        .await;
        assert!(pages.len() > 1, "one page is enough");
        assert_eq!(
            ids(pages.concat()),
            ids(whole["results"].as_array().unwrap().clone())
        );

        let node = node_of(admin, &hub).await;
        let pages = self::pages(admin, "node", json!({"id": node, "limit": 40}), "relationships").await;
        let others: BTreeSet<String> = pages
            .concat()
            .iter()
            .map(|one| text(&one["node"], "name").to_owned())
            .collect();
        assert_eq!(others.len(), many, "each once");
        assert_eq!(pages.concat().len(), many);

        let changes = self::pages(admin, "changes", json!({"since": "0", "limit": 70}), "changes")
            .await
            .concat();
        let whole = admin
            .get("/api/changes?since=0&limit=1000")
            .await
            .expect(200)
            .await;
        assert_eq!(json!(changes), whole["changes"]);

        let found = admin
            .tool("search", json!({"query": "lengthy", "limit": 100}))
            .await;
        let export = admin
            .mcp(
                "tools/call",
                json!({"name": "export", "arguments": {"recall_id": found["recall_id"]}}),
            )
            .await;
        let link = &export["result"]["content"][1];
        assert_eq!(link["type"], "resource_link", "{export}");
        let read = admin.mcp("resources/read", json!({"uri": link["uri"]})).await;
        let bundle: Value = serde_json::from_str(text(&read["result"]["contents"][0], "text")).unwrap();
        assert!(
            bundle["objects"].as_array().unwrap().len() > 80,
            "the bundle is whole"
        );
        app.stop().await;
    });
}

/// All pages of a tool's answer.
async fn pages(client: &Client, tool: &str, arguments: Value, rows: &str) -> Vec<Vec<Value>> {
    let (mut pages, mut arguments) = (Vec::new(), arguments);
    loop {
        let page = client.tool(tool, arguments.clone()).await;
        let length = page
            .to_string()
            .chars()
            .map(|letter| if letter.is_ascii() { 1 } else { 2 })
            .sum::<usize>();
        // The notice and the cursor come on top.
        assert!(length < MOST + 500, "{tool}: {length}");
        pages.push(page[rows].as_array().unwrap().clone());
        assert!(pages.len() < 100, "{tool} never ends");
        match page["cursor"].as_str() {
            Some(cursor) => arguments["cursor"] = json!(cursor),
            None => return pages,
        }
    }
}

fn ids(rows: Vec<Value>) -> Vec<String> {
    rows.iter().map(|row| text(row, "id").to_owned()).collect()
}
