//! Agents: the hosted service over the Model Context Protocol.

mod forms;

use reqwest::Method;
use serde_json::{Value, json};

use super::merges::node_of;
use crate::helpers::{Answer, Client, TestApp, run};
use crate::stix::{object, relationship, text, with};

/// The revision whose requests stand alone.
const MODERN: &str = "2026-07-28";

impl Client {
    /// Sends a request of the protocol; answers with the whole message.
    pub async fn mcp(&self, method: &'static str, params: Value) -> Value {
        self.mcp_answer(method, params).await.expect(200).await
    }

    pub async fn mcp_answer(&self, method: &'static str, mut params: Value) -> Answer {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let name = params["name"]
            .as_str()
            .or(params["uri"].as_str())
            .map(str::to_owned);
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let mut request = self
            .request(Method::POST, "/mcp")
            .header("mcp-protocol-version", MODERN)
            .header("mcp-method", method);
        if let Some(name) = name {
            request = request.header("mcp-name", name);
        }
        Answer(request.json(&message).send().await.unwrap())
    }

    /// Calls a tool that succeeds; answers with its structured content, which its text repeats.
    pub async fn tool(&self, name: &str, arguments: Value) -> Value {
        let answer = self
            .mcp("tools/call", json!({"name": name, "arguments": arguments}))
            .await;
        let result = &answer["result"];
        assert_eq!(result["isError"], false, "{name}: {answer}");
        let structured = result["structuredContent"].clone();
        let copy: Value = serde_json::from_str(text(&result["content"][0], "text")).unwrap_or_default();
        if structured["bundle"]["objects"] != json!([]) {
            assert_eq!(copy, structured, "{name}");
        }
        structured
    }

    /// Calls a tool that refuses; answers with what it says.
    pub async fn refused_tool(&self, name: &str, arguments: Value) -> String {
        let answer = self
            .mcp("tools/call", json!({"name": name, "arguments": arguments}))
            .await;
        assert_eq!(answer["result"]["isError"], true, "{name}: {answer}");
        text(&answer["result"]["content"][0], "text").to_owned()
    }

    async fn tools(&self) -> Vec<Value> {
        let answer = self.mcp("tools/list", json!({})).await;
        answer["result"]["tools"].as_array().unwrap().clone()
    }
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| text(tool, "name")).collect()
}

#[test]
fn a_tool_that_a_credential_may_not_use_is_not_listed_and_refuses() {
    const READ: [&str; 7] = [
        "search", "lookup", "node", "evidence", "changes", "session", "export",
    ];
    const WRITE: [&str; 4] = ["submit_text", "submit_stix", "review", "feeds"];
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let key = async |scopes: &[&str]| {
            let (_, key) = admin.add_key(scopes).await;
            app.anonymous().with_header("x-api-key", &key)
        };
        let viewer = app.user("viewer").await;
        let audit = app.user("audit").await;
        for (client, reads, writes) in [
            (admin, true, true),
            (&key(&["read"]).await, true, false),
            (&key(&["ingest"]).await, false, true),
            (&viewer, true, false),
            (&audit, true, false),
        ] {
            let tools = client.tools().await;
            let wanted: Vec<&str> = READ
                .into_iter()
                .filter(|_| reads)
                .chain(WRITE.into_iter().filter(|_| writes))
                .collect();
            assert_eq!(names(&tools), wanted);
            assert_eq!(tools, client.tools().await);
            let arguments = json!({"text": "APT28 talks to agent.example.org"});
            if !writes {
                let said = client.refused_tool("submit_text", arguments).await;
                assert_eq!(said, "permission recall:write required");
            }
            if !reads {
                let said = client.refused_tool("search", json!({"query": "x"})).await;
                assert_eq!(said, "permission recall:read required");
            }
            let uri = json!({"uri": "threat-memory://audit/verification"});
            let verified = client.mcp("resources/read", uri).await;
            let may = std::ptr::eq(client, &audit) || std::ptr::eq(client, admin);
            assert_eq!(verified["result"].is_object(), may, "{verified}");
        }
        let nobody = app.anonymous();
        nobody
            .mcp_answer("tools/list", json!({}))
            .await
            .refused(401)
            .await;
        app.stop().await;
    });
}

#[test]
fn refused_calls_are_audited_like_others() {
    run(async {
        let app = TestApp::spawn().await;
        let admin = &app.admin;
        let (_, key) = admin.add_key(&["read"]).await;
        let reader = app.anonymous().with_header("x-api-key", &key);
        let uri = json!({"uri": "threat-memory://audit/verification"});
        reader.mcp_answer("resources/read", uri).await;
        reader
            .mcp_answer("resources/read", json!({"uri": "threat-memory://nothing/here"}))
            .await;
        reader
            .mcp_answer("tools/call", json!({"name": "delete_all", "arguments": {}}))
            .await;
        reader
            .mcp_answer("prompts/get", json!({"name": "no such prompt"}))
            .await;
        for (action, outcomes) in [
            ("mcp.read", vec!["failure", "denied"]),
            ("mcp.call", vec!["failure"]),
            ("mcp.prompt", vec!["failure"]),
        ] {
            let entries = admin.audited(action).await;
            let found: Vec<&str> = entries.iter().map(|entry| text(entry, "outcome")).collect();
            assert_eq!(found, outcomes, "{action}");
        }
        app.stop().await;
    });
}

#[test]
fn an_object_of_any_size_is_an_answer_of_bounded_size() {
    const MOST: usize = 40_000;
    run(async {
        let app = TestApp::spawn().await;
        let admin = &app.admin;
        let mut huge = object("tool", "Quillsnake Spade");
        for at in 0..20_000 {
            huge[format!("x_field_{at}")] = json!({"deep": [[{"deeper": "value"}]]});
        }
        let mut objects = vec![huge.clone()];
        for at in 0..60 {
            let target = object("malware", &format!("Quillsnake {at}"));
            objects.push(relationship(&huge, "uses", &target));
            objects.push(target);
        }
        admin.ingest(json!(objects)).await;
        let id = node_of(admin, &huge).await;
        let node = admin.tool("node", json!({"id": id})).await;
        assert!(node.to_string().len() <= MOST);
        assert!(node["relationships"].as_array().unwrap().len() > 20, "{node}");
        for record in node["node"]["linked_evidence_ids"].as_array().unwrap() {
            let record = admin.tool("evidence", json!({"id": record})).await;
            assert!(record.to_string().len() <= MOST && record["truncated"] == true);
        }
        let (mut seen, mut cursor) = (0, None::<String>);
        let found = admin
            .tool("search", json!({"query": "Quillsnake", "limit": 50}))
            .await;
        let session = json!({"id": found["recall_id"]});
        loop {
            let mut asked = session.clone();
            if let Some(cursor) = &cursor {
                asked["cursor"] = json!(cursor);
            }
            let page = admin.tool("session", asked).await;
            seen += page["session"]["node_ids"].as_array().unwrap().len();
            match page["cursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => break,
            }
        }
        assert_eq!(seen, found["results"].as_array().unwrap().len());
        app.stop().await;
    });
}

#[test]
fn bad_calls_say_what_to_change() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let nil = uuid::Uuid::nil().to_string();
        for (tool, arguments, wanted) in [
            ("search", json!({}), "query: is required"),
            (
                "search",
                json!({"query": ""}),
                "query: is required and must not be empty",
            ),
            (
                "search",
                json!({"query": {"a": 1}}),
                "query: must be a text, a number or a list of texts",
            ),
            (
                "search",
                json!({"query": "x", "limit": 101}),
                "limit: must be a whole number from 1 to 100",
            ),
            (
                "search",
                json!({"query": "x", "limt": 3}),
                "limt: is no argument of this tool; did you mean limit?",
            ),
            (
                "search",
                json!({"query": "x", "mode": "semantic", "cursor": "x"}),
                "cursor: is none that this tool gave; leave it out to begin anew",
            ),
            (
                "search",
                json!({"query": "x".repeat(4_001)}),
                "query: must have at most 4000 characters",
            ),
            (
                "search",
                json!({"query": "x", "node_type": ["spy"]}),
                "node_type: each must be one of actor, cve, ioc, attck, osint, tool, vulnerability",
            ),
            ("node", json!({}), "id: is required"),
            (
                "node",
                json!({"id": "../../api/admin/users"}),
                "id: must be an id as the tools give it",
            ),
            (
                "node",
                json!({"id": nil, "stix_id": "x"}),
                "id: can't be combined with stix_id",
            ),
            ("review", json!({"item": nil}), "item: needs another argument"),
            (
                "node",
                json!({"id": nil, "cursor": "18446744073709551615"}),
                "cursor: must be a whole number",
            ),
            ("node", json!({"id": nil}), "node not found"),
            ("export", json!({"recall_id": nil}), "session not found"),
            (
                "lookup",
                json!({"values": ["a"], "text": "b"}),
                "values: must not be sent together with text",
            ),
            (
                "review",
                json!({"entity": nil, "status": "accepted"}),
                "staging record not found",
            ),
            (
                "submit_text",
                json!({"text": "APT28 and more", "ingest_mode": "auto"}),
                "ingest_mode: is no argument of this tool",
            ),
        ] {
            let said = admin.refused_tool(tool, arguments.clone()).await;
            assert!(said.starts_with(wanted), "{tool} {arguments}: {said}");
        }
        let unknown = admin
            .mcp("tools/call", json!({"name": "delete_all", "arguments": {}}))
            .await;
        assert!(
            text(&unknown["error"], "message")
                .starts_with("there is no tool \"delete_all\"; there are search,"),
            "{unknown}"
        );
        let uri = json!({"uri": "threat-memory://node/../../api/admin/users"});
        let read = admin.mcp("resources/read", uri).await;
        assert_eq!(read["error"]["code"], -32602, "{read}");
        let prompt = admin
            .mcp(
                "prompts/get",
                json!({"name": "triage_indicator", "arguments": {"value": ""}}),
            )
            .await;
        assert_eq!(
            text(&prompt["error"], "message"),
            "value: must be a text of 1 to 500 characters"
        );
        let cursor = admin.mcp("tools/list", json!({"cursor": "x"})).await;
        assert_eq!(cursor["error"]["code"], -32602, "{cursor}");
        app.stop().await;
    });
}

#[test]
fn a_marking_hides_from_an_agent_what_it_hides_over_http() {
    const WORD: &str = "qvxstwzj";
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        admin
            .settings(json!({"tlp_ceiling": "TLP:RED", "elevated_clearance": true}))
            .await;
        let red = json!({"x_mitre_tlp": "TLP:RED", "description": format!("about {WORD}")});
        let hidden = with(object("malware", &format!("Hidden {WORD}")), red.clone());
        let tool = object("tool", "Open Spade");
        let indicator = with(
            object("indicator", &format!("C2 of {WORD}")),
            json!({"pattern": "[ipv4-addr:value = '198.51.100.77']", "pattern_type": "stix", "valid_from": "2020-01-01T00:00:00Z", "x_mitre_tlp": "TLP:RED"}),
        );
        let link = relationship(&hidden, "uses", &tool);
        admin.ingest(json!([hidden, tool, indicator, link])).await;
        let found = admin.search("Open Spade").await;
        let session = text(&found, "recall_id").to_owned();
        let node = node_of(admin, &hidden).await;
        // As the workspace sees no more than this, its key does not either.
        admin
            .settings(json!({"tlp_ceiling": "TLP:AMBER", "elevated_clearance": false}))
            .await;
        let (_, key) = admin.add_key(&["read"]).await;
        let reader = app.anonymous().with_header("x-api-key", &key);
        let open = node_of(&reader, &tool).await;
        for (tool, arguments) in [
            (
                "search",
                json!({"query": format!("Hidden {WORD}"), "min_score": 0}),
            ),
            (
                "search",
                json!({"query": "what uses Open Spade", "explain": true}),
            ),
            ("search", json!({"query": WORD, "mode": "semantic"})),
            ("lookup", json!({"values": ["198.51.100.77"]})),
            ("node", json!({"id": open})),
            ("node", json!({"id": node})),
            ("node", json!({"stix_id": hidden["id"]})),
            ("changes", json!({"since": "0"})),
            ("session", json!({"id": session})),
            ("export", json!({"recall_id": session})),
        ] {
            let answer = reader
                .mcp("tools/call", json!({"name": tool, "arguments": arguments}))
                .await;
            let mut answer = answer["result"].to_string();
            // The question itself comes back.
            for sent in [format!("Hidden {WORD}"), WORD.to_owned()] {
                answer = answer
                    .replace(&format!("\"query\":\"{sent}\""), "")
                    .replace(&format!("\\\"query\\\":\\\"{sent}\\\""), "");
            }
            assert!(!answer.contains(WORD), "{tool} {arguments}: {answer}");
        }
        let unknown = reader
            .refused_tool("node", json!({"id": uuid::Uuid::new_v4()}))
            .await;
        assert_eq!(reader.refused_tool("node", json!({"id": node})).await, unknown);
        let lookup = reader.tool("lookup", json!({"values": ["198.51.100.77"]})).await;
        assert_eq!(lookup["results"][0]["verdict"], "listed", "{lookup}");
        let unseen = json!({"uri": format!("threat-memory://node/{node}")});
        let unseen = reader.mcp("resources/read", unseen).await;
        assert_eq!(
            text(&unseen["error"], "message"),
            format!("threat-memory://node/{node}: node not found")
        );
        for uri in [
            format!("threat-memory://session/{session}"),
            format!("threat-memory://bundle/{session}"),
        ] {
            let read = reader.mcp("resources/read", json!({"uri": uri})).await;
            let read = read.to_string();
            assert!(!read.contains(WORD) && !read.contains(&node), "{uri}: {read}");
        }
        app.stop().await;
    });
}

#[test]
fn both_eras_of_the_protocol_are_served_and_foreign_pages_are_not() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let discovered = admin.mcp("server/discover", json!({})).await;
        let versions = discovered["result"]["supportedVersions"].as_array().unwrap();
        for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
            assert!(versions.contains(&json!(version)), "{discovered}");
            let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}});
            let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
            let begun = admin.post("/mcp", &message).await.expect(200).await;
            assert_eq!(begun["result"]["protocolVersion"], version, "{begun}");
            assert_eq!(begun["result"]["serverInfo"]["name"], "threat-memory");
            let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            assert_eq!(admin.post("/mcp", &initialized).await.status(), 202);
            let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
            assert_eq!(
                admin.post("/mcp", &ping).await.expect(200).await["result"],
                json!({})
            );
            let listed = json!({"jsonrpc": "2.0", "id": "three", "method": "tools/list"});
            let listed = admin.post("/mcp", &listed).await.expect(200).await;
            assert_eq!(
                (&listed["id"], listed["result"]["tools"].as_array().map(Vec::len)),
                (&json!("three"), Some(11))
            );
        }
        let unknown = admin.mcp_answer("tools/forget", json!({})).await;
        assert_eq!(unknown.expect(404).await["error"]["code"], -32601);
        for body in [
            json!([]),
            json!(1),
            json!({"jsonrpc": "2.0", "id": 1}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []}),
        ] {
            let status = admin.post("/mcp", &body).await.status();
            assert!((400..500).contains(&status) || status == 200, "{body}: {status}");
        }
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        for (origin, status) in [
            ("https://evil.example", 403),
            ("null", 403),
            (admin.base.as_str(), 200),
        ] {
            let answer = admin.with_header("origin", origin).post("/mcp", &message).await;
            assert_eq!(answer.status(), status, "{origin}");
        }
        app.stop().await;
    });
}
