//! Agents: the local memory over the Model Context Protocol, by HTTP and on standard input and output.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use super::durability::local;
use super::{LocalApp, started_once};
use crate::helpers::{Client, run};
use crate::process::{Service, program};
use crate::stix::text;

const PATIENCE: Duration = Duration::from_secs(60);

/// `threat-memory mcp`, spoken to line by line.
struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<String>,
    /// What it wrote on standard error, once it has ended.
    log: Option<JoinHandle<String>>,
    sent: u64,
}

impl Agent {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut errors = child.stderr.take().unwrap();
        let log = std::thread::spawn(move || {
            let mut log = String::new();
            errors.read_to_string(&mut log).ok();
            log
        });
        let (lines, output) = channel();
        let reader = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in reader.lines().map_while(Result::ok) {
                lines.send(line).ok();
            }
        });
        Self {
            input: child.stdin.take(),
            child,
            output,
            log: Some(log),
            sent: 0,
        }
    }

    /// An agent of the memory in a directory, past the handshake.
    fn of(dir: &Path) -> Self {
        let mut agent = Self::start(program().arg("mcp").arg("--data-dir").arg(dir));
        agent.shake_hands();
        agent
    }

    fn shake_hands(&mut self) {
        let client = json!({"name": "desktop", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        let begun = self.ask("initialize", params);
        assert_eq!(begun["result"]["serverInfo"]["name"], "threat-memory", "{begun}");
        self.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
    }

    fn write(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        if let Err(error) = writeln!(input, "{line}").and_then(|()| input.flush()) {
            self.child.kill().ok();
            let log = self.log.take().map(JoinHandle::join);
            panic!("{error}; it wrote {log:?}");
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.sent += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.sent, "method": method, "params": params});
        self.write(&message.to_string());
        self.answer(self.sent)
    }

    /// The answer to a request.
    fn answer(&self, id: u64) -> Value {
        loop {
            let line = self.output.recv_timeout(PATIENCE).expect("an answer in time");
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line}"));
            if message["id"] == id {
                return message;
            }
        }
    }

    fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({"name": name, "arguments": arguments}));
        assert_ne!(answer["result"]["isError"], true, "{name}: {answer}");
        answer["result"]["structuredContent"].clone()
    }

    fn recalled(&mut self, query: &str) -> Vec<String> {
        let found = self.tool("recall", json!({"query": query}));
        let notes = found["results"].as_array().unwrap().iter();
        notes.map(|note| text(note, "content").to_owned()).collect()
    }

    /// Closes standard input and waits for the end.
    fn close(mut self) {
        drop(self.input.take());
        let until = std::time::Instant::now() + PATIENCE;
        while self.child.try_wait().unwrap().is_none() {
            assert!(std::time::Instant::now() < until, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn every_tool_of_the_memory_answers_in_its_form() {
    run(async {
        let app = LocalApp::spawn().await;
        let client = &app.client;
        let listed = client.mcp("tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().unwrap();
        let kept = client
            .tool(
                "remember",
                json!({"content": "APT28 (Fancy Bear) uses X-Agent against 203.0.113.7.", "source": "mail"}),
            )
            .await;
        let note = text(&kept, "note_id");
        for (name, arguments) in [
            (
                "remember",
                json!({"content": "APT29 uses Brute Ratel.", "domain": "cti", "evolve": false}),
            ),
            (
                "recall",
                json!({"query": "what does APT28 use", "k": 3, "domain": "cti"}),
            ),
            (
                "synthesize",
                json!({"query": "what does APT28 use", "format": "direct_answer"}),
            ),
            ("entity", json!({"type": "actor", "value": "Fancy Bear", "k": 5})),
            (
                "graph",
                json!({"type": "actor", "value": "APT28", "max_depth": 2}),
            ),
            ("stats", json!({})),
            ("note", json!({"id": note})),
            ("lookup", json!({"values": ["203[.]0.113.7"]})),
            ("changes", json!({"since": "0"})),
            // As the tool that is replaced calls it.
            ("zettelforge_recall", json!({"query": "APT28"})),
        ] {
            let structured = client.tool(name, arguments.clone()).await;
            let plain = name.trim_start_matches("zettelforge_");
            let tool = tools.iter().find(|tool| tool["name"] == plain).unwrap();
            let output = jsonschema::validator_for(&tool["outputSchema"]).unwrap();
            let broken = output
                .iter_errors(&structured)
                .next()
                .map(|error| error.to_string());
            assert_eq!(broken, None, "{name} {arguments}: {structured}");
        }
        let graph = client
            .tool("graph", json!({"type": "actor", "value": "fancy-bear"}))
            .await;
        assert!(graph["edges"].to_string().contains("malware:x-agent"), "{graph}");
        for (name, arguments, wanted) in [
            (
                "sync",
                json!({"limit": 3}),
                "Synchronization is not available in this edition",
            ),
            (
                "entity",
                json!({"type": "actor", "value": "nobody at all"}),
                "The memory knows no actor that is called",
            ),
            (
                "graph",
                json!({"type": "actor", "value": "APT28", "max_depth": 9}),
                "max_depth: Input should be less than or equal to 3",
            ),
            (
                "recall",
                json!({"query": "x", "k": "many"}),
                "k: Input should be a valid integer",
            ),
            ("note", json!({"id": "x"}), "note not found"),
        ] {
            let said = client.refused_tool(name, arguments.clone()).await;
            assert!(said.starts_with(wanted), "{name} {arguments}: {said}");
        }
        let uri = json!({"uri": "threat-memory://node/actor:apt28"});
        let read = client.mcp("resources/read", uri).await;
        assert!(
            text(&read["result"]["contents"][0], "text").contains("X-Agent"),
            "{read}"
        );
        app.stop().await;
    });
}

/// All pages of an answer to a tool, by its cursors.
async fn pages(client: &Client, tool: &str, arguments: &Value) -> Vec<Value> {
    let mut pages = vec![client.tool(tool, arguments.clone()).await];
    while let Some(cursor) = pages.last().unwrap()["cursor"].as_str() {
        let mut more = arguments.clone();
        more["cursor"] = json!(cursor);
        pages.push(client.tool(tool, more).await);
        assert!(pages.len() < 100, "{tool} does not end");
    }
    pages
}

#[test]
fn pages_of_an_answer_hold_everything_that_the_api_has() {
    run(async {
        let app = LocalApp::spawn().await;
        let client = &app.client;
        for note in 0..30 {
            let hosts: Vec<String> = (0..15).map(|at| format!("host{note}-{at}.example.net")).collect();
            client
                .remember(&format!("Turla uses {}.", hosts.join(", ")))
                .await;
        }
        let asked = json!({"type": "actor", "value": "Turla"});
        let whole = client
            .get("/api/graph/view?around=actor:turla&depth=2&limit=1000")
            .await;
        let whole = whole.expect(200).await;
        let shown = pages(client, "graph", &asked).await;
        assert!(shown.len() > 1 && shown.len() < 20, "{} pages", shown.len());
        for rows in ["nodes", "edges"] {
            let ids = |page: &Value| -> Vec<String> {
                let rows = page[rows].as_array().unwrap().iter();
                rows.map(|row| text(row, "id").to_owned()).collect()
            };
            let all: BTreeSet<String> = shown.iter().flat_map(ids).collect();
            assert_eq!(all, ids(&whole).into_iter().collect(), "{rows}");
        }
        let details = client.get("/api/graph/node?id=actor:turla&limit=500").await;
        let details = details.expect(200).await;
        let shown = pages(client, "entity", &asked).await;
        for rows in ["notes", "neighbours"] {
            let of = |page: &Value| page[rows].as_array().unwrap().clone();
            let all: Vec<Value> = shown.iter().flat_map(of).collect();
            assert_eq!(all, of(&details), "{rows}");
        }
        app.stop().await;
    });
}

#[test]
fn an_entity_is_what_is_named_whole_and_never_another() {
    run(async {
        let app = LocalApp::spawn().await;
        let client = &app.client;
        client.remember("Seen: 198.51.100.99 and 10.9.9.1.").await;
        for _ in 0..2 {
            let others: Vec<String> = (100..160).map(|last| format!("10.9.9.{last}")).collect();
            client.remember(&format!("Also {}.", others.join(" and "))).await;
        }
        for tool in ["entity", "graph"] {
            let said = client
                .refused_tool(tool, json!({"type": "ipv4", "value": "198.51.100.9"}))
                .await;
            assert!(
                said.contains("knows no ipv4") && said.contains("\"198.51.100.99\""),
                "{said}"
            );
            let found = client
                .tool(tool, json!({"type": "ipv4", "value": "10.9.9.1"}))
                .await;
            assert!(found.to_string().contains("ipv4:10.9.9.1\""), "{found}");
        }
        let said = client
            .refused_tool("lookup", json!({"values": vec![1; 10_000]}))
            .await;
        assert!(
            said.starts_with("values: ") && said.ends_with("more") && said.len() < 2100,
            "{said}"
        );
        let long = "x".repeat(70_000);
        let said = client
            .refused_tool("entity", json!({"type": "actor", "value": long}))
            .await;
        assert!(said.starts_with("value: must have at most"), "{said}");
        let said = client.refused_tool("changes", json!({"until": long})).await;
        assert!(said.starts_with("until: must have at most"), "{said}");
        app.stop().await;
    });
}

#[test]
fn what_a_client_sends_on_standard_input_is_answered_or_told() {
    let dir = started_once();
    let mut agent = Agent::of(dir.path());
    // Longer than a line of the library by default.
    let long = "x".repeat(17 << 20);
    let answer = agent.ask(
        "tools/call",
        json!({"name": "remember", "arguments": {"content": long}}),
    );
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    agent.close();
    let mut early = Agent::start(program().arg("mcp").arg("--data-dir").arg(dir.path()));
    early.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
    let ended = early.child.wait().unwrap();
    let log = early.log.take().unwrap().join().unwrap();
    assert!(!ended.success() && log.contains("does not begin"), "{log}");
}

#[test]
fn the_key_of_the_settings_opens_the_memory_to_an_agent() {
    let dir = started_once();
    let settings = dir.path().join("settings.toml");
    std::fs::write(&settings, "[web]\napi_key = \"a key of the tests\"\n").unwrap();
    let mut agent = Agent::start(
        program()
            .args(["mcp", "--config"])
            .arg(&settings)
            .arg("--data-dir")
            .arg(dir.path()),
    );
    agent.shake_hands();
    assert!(agent.recalled("nothing of this").is_empty());
    agent.close();
}

#[test]
fn an_agent_opens_the_memory_or_goes_through_who_has_it_open() {
    let dir = started_once();
    let mut first = Agent::of(dir.path());
    first.tool(
        "remember",
        json!({"content": "APT28 uses X-Agent against banks."}),
    );
    // The memory is open: the second one goes through the first.
    let mut second = Agent::of(dir.path());
    assert_eq!(second.recalled("X-Agent"), ["APT28 uses X-Agent against banks."]);
    second.tool(
        "remember",
        json!({"content": "APT29 uses Brute Ratel against embassies."}),
    );
    assert_eq!(
        first.recalled("Brute Ratel"),
        ["APT29 uses Brute Ratel against embassies."]
    );
    // The first one is killed: the second one opens the memory itself, and nothing is lost.
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    assert_eq!(second.recalled("X-Agent"), ["APT28 uses X-Agent against banks."]);
    assert_eq!(
        second.recalled("Brute Ratel"),
        ["APT29 uses Brute Ratel against embassies."]
    );
    second.close();
    let mut third = Agent::of(dir.path());
    assert_eq!(third.recalled("X-Agent"), ["APT28 uses X-Agent against banks."]);
    third.close();
}

#[test]
fn agents_that_start_together_share_the_memory() {
    // A memory that is made at this start, and one that was there.
    for dir in [tempfile::tempdir().unwrap(), started_once()] {
        let command = || {
            let mut command = program();
            command.arg("mcp").arg("--data-dir").arg(dir.path());
            command
        };
        let mut agents: Vec<Agent> = (0..3).map(|_| Agent::start(&mut command())).collect();
        agents.iter_mut().for_each(Agent::shake_hands);
        for (at, agent) in agents.iter_mut().enumerate() {
            agent.tool(
                "remember",
                json!({"content": format!("Note number {at} of quillsnakes.")}),
            );
        }
        for agent in &mut agents {
            assert_eq!(agent.recalled("quillsnakes").len(), 3);
        }
        agents.into_iter().for_each(Agent::close);
    }
}

#[test]
fn an_agent_goes_through_a_service_with_a_key() {
    run(async {
        let dir = started_once();
        let mut command = local(dir.path(), 8);
        command.env("LOCAL_WEB_API_KEY", "a key of the tests");
        let service = Service::start(command);
        let client = service.anonymous().with_header("x-api-key", "a key of the tests");
        client.remember("APT28 uses X-Agent against banks.").await;
        let mut agent = Agent::start(
            program()
                .arg("mcp")
                .arg("--data-dir")
                .arg(dir.path())
                .env("LOCAL_WEB_API_KEY", "a key of the tests"),
        );
        agent.shake_hands();
        assert_eq!(agent.recalled("X-Agent"), ["APT28 uses X-Agent against banks."]);
        agent.close();
        for (key, said) in [
            (None, "set THREAT_MEMORY_API_KEY"),
            (Some("wrong"), "does not know the key"),
        ] {
            let mut refused = program();
            refused.args(["mcp", "--url", &client.base]);
            if let Some(key) = key {
                refused.env("THREAT_MEMORY_API_KEY", key);
            }
            let ended = crate::process::finish(&mut refused);
            let text = String::from_utf8_lossy(&ended.stderr).into_owned();
            assert!(!ended.status.success() && text.contains(said), "{text}");
        }
        service.stop();
    });
}

#[test]
fn a_hostile_client_gets_errors_and_no_hang() {
    let dir = started_once();
    let mut agent = Agent::of(dir.path());
    for line in [
        "",
        "not JSON",
        "[]",
        "{}",
        "{\"jsonrpc\":\"2.0\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"tools/list\"}",
        "\u{0}",
    ] {
        agent.write(line);
    }
    agent.write(&"[".repeat(100_000));
    let unknown = agent.ask("tools/forget", json!({}));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    let wrong = agent.ask("tools/call", json!({"name": 3}));
    assert!(wrong["error"].is_object(), "{wrong}");
    let huge = agent.ask(
        "tools/call",
        json!({"name": "remember", "arguments": {"content": "x".repeat(3_000_000)}}),
    );
    assert!(
        huge["error"].is_object() || huge["result"]["isError"] == true,
        "{}",
        huge.to_string().len()
    );
    // What is cancelled may stay without an answer; what comes after is answered.
    agent.sent += 1;
    let id = agent.sent;
    agent.write(
        &json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "stats"}}).to_string(),
    );
    agent.write(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
            .to_string(),
    );
    agent.write(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9_999}})
            .to_string(),
    );
    assert!(agent.ask("tools/list", json!({}))["result"]["tools"].is_array());
    // Standard input that ends in the middle of a message.
    let input = agent.input.as_mut().unwrap();
    input.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"meth").unwrap();
    agent.close();
}
