//! Shared helpers for the tests of the ingest endpoints other than STIX.

use serde_json::{Value, json};

use crate::helpers::{Client, encode};
use crate::stix::text;

impl Client {
    /// Opens the caller's workspace for every marking, for reads and exports.
    pub async fn open(&self) {
        let all = json!({"tlp_ceiling": "TLP:RED", "elevated_clearance": true, "red_export_grant": true});
        self.settings(all).await;
    }

    /// Sends a body to one of the ingest routes and returns `results`.
    pub async fn send_in(&self, way: &str, body: &Value) -> Value {
        let answer = self.post(&format!("/api/ingest/{way}"), body).await;
        let answer = answer.expect(201).await;
        assert_eq!(answer["success"], true, "{answer}");
        answer["results"].clone()
    }

    /// The error of an ingest endpoint that refuses a body.
    pub async fn refuses(&self, way: &str, body: &Value) -> String {
        let answer = self.post(&format!("/api/ingest/{way}"), body).await;
        answer.refused(400).await
    }

    /// The nodes among the first hundred results for `query`.
    pub async fn nodes_of(&self, query: &str) -> Vec<Value> {
        let path = format!("/api/recall/search?{}", encode(&[("q", query), ("limit", "100")]));
        let found = self.get(&path).await.expect(200).await;
        found["results"].as_array().unwrap().clone()
    }

    /// The nodes with this name, found by searching for it.
    pub async fn named(&self, name: &str) -> Vec<Value> {
        let mut found = self.nodes_of(name).await;
        found.retain(|node| text(node, "name") == name);
        found
    }

    /// The only node with this name.
    #[track_caller]
    pub fn one(&self, name: &str) -> impl Future<Output = Value> {
        let caller = std::panic::Location::caller();
        async move {
            let mut found = self.named(name).await;
            assert_eq!(found.len(), 1, "nodes called {name}, at {caller}: {found:?}");
            found.remove(0)
        }
    }
}

/// The counters of a response: nodes created, nodes updated, evidence created.
pub fn counts(results: &Value) -> [u64; 3] {
    ["nodes_created", "nodes_updated", "evidence_created"].map(|key| {
        results[key]
            .as_u64()
            .unwrap_or_else(|| panic!("{key} in {results}"))
    })
}
