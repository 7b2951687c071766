//! Memory per request: at most 12 bytes per byte of the body, plus 50 MiB. Measured on the real program with the
//! kernel's process statistics.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use test_support::{extent, is_full};

use crate::helpers::{Client, run};
use crate::process::{Service, hosted, started_once};

const PER_BYTE: usize = 12;
const ROOM: usize = 50 << 20;

/// An incompressible text.
fn noise(seed: usize, length: usize) -> String {
    let mut state = seed as u64 + 1;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + u8::try_from((state >> 40) % 26).unwrap())
    };
    (0..length).map(|_| next()).collect()
}

/// A value of `/proc/PID/status` in bytes.
fn figure(pid: u32, name: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

/// Exercises everything once, so that memory retained from then on is not counted.
async fn warm_up(client: &Client) {
    // As many as are worked on by other threads.
    let names: Vec<String> = (0..120).map(|n| format!("warm {n}")).collect();
    let items: Vec<Value> = names.iter().map(|name| json!({"title": name})).collect();
    let tools: Vec<Value> = names
        .iter()
        .map(|name| crate::stix::object("tool", name))
        .collect();
    for (way, body) in [
        ("osint", json!({"collector": "w", "items": items})),
        (
            "analyst",
            json!({"nodes": [{"name": "warm", "node_type": "tool"}]}),
        ),
        (
            "report",
            json!({"title": "w", "content_blocks": [{"entity_name": "X-Agent", "node_type": "tool",
                "description": "APT28 uses X-Agent."}]}),
        ),
        (
            "misp",
            json!({"event": {"uuid": "w", "Attribute": [{"type": "domain", "value": "warm.example"}]}}),
        ),
        ("stix", json!({"bundle": tools})),
    ] {
        client.send_in(way, &body).await;
    }
    let text = json!({"text": "APT28 uses warm.example.com now."});
    client.post("/api/ingest/preview", &text).await.expect(200).await;
    client.nodes_of("warm").await;
}

/// A service that has done everything once, and its administrator.
async fn warm(dir: &Path) -> (Service, Client) {
    let service = Service::start(hosted(dir));
    let client = service.admin().await;
    warm_up(&client).await;
    // Memory taken during the warm-up is released after a while.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    (service, client)
}

/// What a body is, the body, and the status of its answer.
type Case = (&'static str, Value, u16);

/// Sends each body, and compares the memory that it takes with the limit: in the quick round in one process, which keeps
/// some of the memory of the bodies before, and else each in a process of its own.
fn needs_little(way: &str, cases: &[Case]) {
    run(async {
        let dir = started_once();
        if is_full() {
            for case in cases {
                let (service, client) = warm(dir.path()).await;
                measure(&service, &client, way, case).await;
                service.kill();
            }
        } else {
            let (service, client) = warm(dir.path()).await;
            for case in cases {
                measure(&service, &client, way, case).await;
            }
        }
    });
}

async fn measure(service: &Service, client: &Client, way: &str, (what, body, status): &Case) {
    let bytes = serde_json::to_vec(body).unwrap();
    let pid = service.pid();
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
    let (before, mapped) = (figure(pid, "VmRSS"), figure(pid, "RssFile"));
    let size = bytes.len();
    let answer = client.post_bytes(&format!("/api/ingest/{way}"), bytes).await;
    let (got, told) = answer.whole().await;
    assert_eq!(got, *status, "{way}, {what}: {told}");
    // A service at rest unmaps its own code. What is mapped again is no memory of the request.
    let mapped = figure(pid, "RssFile").saturating_sub(mapped);
    let needed = figure(pid, "VmHWM").saturating_sub(before + mapped);
    let allowed = PER_BYTE * size + ROOM;
    println!(
        "{way}, {what}: {} KiB sent, {} MiB needed, {} MiB allowed",
        size >> 10,
        needed >> 20,
        allowed >> 20
    );
    assert!(needed <= allowed, "{way}, {what}: {needed} bytes for {size}");
}

/// A list of so many objects that it is refused.
fn countless() -> Vec<Value> {
    vec![json!({"a": 0}); extent(200_000, 400_000)]
}

#[test]
fn osint_items_need_little_however_small_they_are_and_whoever_collected_them() {
    let small = |count: usize, collector: usize| {
        let items: Vec<Value> = (0..count).map(|n| json!({"title": format!("a{n}")})).collect();
        json!({"collector": noise(1, collector), "items": items})
    };
    let items: Vec<Value> = (0..extent(30, 400))
        .map(|n| {
            let tags: Vec<String> = (0..100).map(|tag| noise(n * 100 + tag, 200)).collect();
            json!({"title": format!("a{n}"), "description": noise(n, 10_000), "tags": tags})
        })
        .collect();
    needs_little(
        "osint",
        &[
            ("small items", small(extent(300, 4_000), 3), 201),
            ("ten thousand under a long collector", small(10_000, 500), 400),
            ("some under a long collector", small(extent(200, 1_500), 500), 201),
            ("long items", json!({"collector": "rss", "items": items}), 201),
        ],
    );
}

#[test]
fn analyst_entries_need_little() {
    let nodes: Vec<Value> = (0..extent(300, 4_000))
        .map(|n| json!({"name": format!("a{n}"), "node_type": "osint"}))
        .collect();
    let tiny = json!({"nodes": [{"name": "x", "node_type": "osint", "properties": {"p": countless()}}]});
    needs_little(
        "analyst",
        &[
            ("small entries", json!({"nodes": nodes}), 201),
            ("countless tiny properties", tiny, 400),
        ],
    );
}

#[test]
fn reports_need_little_however_long_their_title_is() {
    let report = |blocks: usize| {
        let blocks: Vec<Value> = (0..blocks)
            .map(|n| json!({"entity_name": format!("a{n}"), "node_type": "osint"}))
            .collect();
        json!({"title": noise(1, 500), "source_name": noise(2, 500), "content_blocks": blocks})
    };
    needs_little(
        "report",
        &[
            ("ten thousand blocks under a long title", report(10_000), 400),
            ("some blocks under a long title", report(extent(300, 2_500)), 201),
        ],
    );
}

#[test]
fn misp_events_need_little_however_much_their_attributes_share() {
    let event = |count: usize, length: usize, tags: usize| {
        let attributes: Vec<Value> = (0..count)
            .map(|n| {
                json!({"type": "domain", "value": format!("host{n}.example"), "category": "Network activity",
                    "uuid": uuid::Uuid::new_v4().to_string(), "to_ids": true, "distribution": "5"})
            })
            .collect();
        let tags: Vec<Value> = (0..tags).map(|n| json!({"name": noise(n, 200)})).collect();
        json!({"event": {"uuid": uuid::Uuid::new_v4().to_string(), "info": noise(1, length),
            "Orgc": {"name": noise(2, length)}, "Tag": tags, "Attribute": attributes}})
    };
    let tiny = json!({"event": {"uuid": "u", "Attribute": [], "x": countless()}});
    let attributes: Vec<Value> = (0..100_000)
        .map(|n| json!({"type": "text", "value": n.to_string()}))
        .collect();
    needs_little(
        "misp",
        &[
            ("attributes", event(extent(200, 3_000), 20, 3), 201),
            ("many that share much", event(5_000, 500, 100), 400),
            ("some that share much", event(extent(60, 150), 500, 100), 201),
            ("countless tiny objects", tiny, 400),
            (
                "a hundred thousand tiny attributes",
                json!({"event": {"uuid": "u", "Attribute": attributes}}),
                400,
            ),
        ],
    );
}

#[test]
fn stix_objects_need_little_whoever_made_them() {
    let identity = json!({"type": "identity", "id": crate::stix::id("identity"), "spec_version": "2.1",
        "created": "2020-01-01T00:00:00.000Z", "modified": "2020-01-01T00:00:00.000Z", "name": noise(1, 500)});
    let bundle = |count: usize, length: usize| {
        let mut objects = vec![identity.clone()];
        objects.extend((0..count).map(|n| {
            let made = json!({"created_by_ref": identity["id"], "description": noise(n, length)});
            crate::stix::with(crate::stix::object("tool", &format!("a{n}")), made)
        }));
        json!({"bundle": objects})
    };
    let mut endless = bundle(extent(150, 1_000), 10);
    endless["bundle"][0]["name"] = json!(noise(1, 1 << 20));
    needs_little(
        "stix",
        &[
            ("objects of one author", bundle(extent(150, 1_000), 500), 201),
            ("an author with an endless name", endless, 201),
            ("countless tiny objects", json!({"bundle": countless()}), 400),
        ],
    );
}

#[test]
fn previews_need_little_however_much_they_name() {
    let named = |count: usize| {
        let hosts: Vec<String> = (0..count).map(|n| format!("h{n}.evil{n}.com")).collect();
        json!({"text": hosts.join(" ")})
    };
    needs_little(
        "preview",
        &[
            ("many entities", named(extent(400, 3_900)), 200),
            ("too many entities", named(20_000), 400),
        ],
    );
}
