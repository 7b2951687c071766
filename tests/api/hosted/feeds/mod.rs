//! Threat feeds: a TAXII server of the tests, its pulls, their review and commit.

mod access;
mod attack;
mod commit;
mod crash;
mod delete;
mod hidden;
mod hostile;
mod markings;
mod pages;
mod pull;
mod register;
mod review;
pub mod server;
mod slow;
mod upload;
mod versions;

use reqwest::Method;
use serde_json::{Value, json};
use test_support::eventually;
use threat_memory::config::Settings;

use self::server::Server;
use crate::helpers::{Answer, Client};
use crate::stix::{object, text};

pub const FEEDS: &str = "/api/threat-intel/feeds";
pub const BATCHES: &str = "/api/threat-intel/batches";
/// Objects on a page.
pub const PAGE: usize = 10;

/// Settings that allow pulls from the servers of the tests.
pub fn allowing(mut settings: Settings) -> Settings {
    settings.feeds.local_development = true;
    settings.feeds.allowed_hosts = vec!["127.0.0.1".into()];
    settings.feeds.page_objects = PAGE;
    settings
}

/// Tools with numbered names.
pub fn tools(count: usize) -> Vec<Value> {
    (0..count)
        .map(|at| object("tool", &format!("Feed Tool {at:05}")))
        .collect()
}

/// The path of a batch.
pub fn batch_path(batch: &str) -> String {
    format!("{BATCHES}/{batch}")
}

/// The path of an item.
pub fn item_path(item: &Value) -> String {
    format!("{BATCHES}/{}/items/{}", text(item, "batch_id"), text(item, "id"))
}

/// One field of each item.
pub fn all<'i>(items: &'i [Value], field: &str) -> Vec<&'i str> {
    items.iter().map(|item| text(item, field)).collect()
}

/// The STIX ids of objects.
pub fn ids(objects: &[Value]) -> Vec<&str> {
    all(objects, "id")
}

/// The item of an object.
#[track_caller]
pub fn item_of<'i>(items: &'i [Value], object: &Value) -> &'i Value {
    let found = items.iter().find(|item| item["stix_id"] == object["id"]);
    found.unwrap_or_else(|| panic!("no item of {object} in {items:?}"))
}

impl Client {
    /// Registers a feed with this URL; `more` replaces the defaults. Returns its id.
    pub async fn feed_at(&self, url: &str, more: Value) -> String {
        let mut body = json!({"name": "Feed", "connector_config_ref": url, "default_tlp": "TLP:GREEN",
            "redistribution_state": "allowed"});
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        let made = self.post(FEEDS, &body).await.expect(201).await;
        text(&made["feed"], "id").to_owned()
    }

    /// Registers a server's collection. Returns the feed's id.
    pub async fn feed_of(&self, server: &Server) -> String {
        self.feed_at(&server.url(), json!({})).await
    }

    /// Asks for a pull.
    pub async fn pulls(&self, feed: &str) -> Answer {
        let body = json!({"input_kind": "taxii_2_1_pull", "feed_source_id": feed});
        self.post(BATCHES, &body).await
    }

    /// Pulls a feed to its end. Returns the batch.
    pub async fn pull(&self, feed: &str) -> Value {
        let answer = self.pulls(feed).await.expect(201).await;
        self.pulled(text(&answer["batch"], "id")).await
    }

    /// Waits for the end of a pull, and returns the batch; it must not have failed.
    pub async fn pulled(&self, batch: &str) -> Value {
        eventually(|| async {
            let batch = self.feed_batch(batch).await;
            assert_ne!(batch["status"], "failed", "{batch}");
            if batch["status"] == "pulling" {
                Err(batch)
            } else {
                Ok(batch)
            }
        })
        .await
    }

    pub async fn feed_batch(&self, batch: &str) -> Value {
        let answer = self.get(&batch_path(batch)).await.expect(200).await;
        answer["batch"].clone()
    }

    /// All items of a batch that the caller may see, page by page.
    pub async fn items(&self, batch: &str) -> Vec<Value> {
        let (mut items, mut after) = (Vec::new(), String::new());
        loop {
            let path = format!("{}?limit=1000{after}", batch_path(batch));
            let answer = self.get(&path).await.expect(200).await;
            items.extend(answer["items"].as_array().unwrap().iter().cloned());
            match answer["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return items,
            }
        }
    }

    /// Decides about an item, and returns it.
    pub async fn review(&self, item: &Value, decision: Value) -> Value {
        let answer = self.post(&item_path(item), &decision).await.expect(200).await;
        answer["item"].clone()
    }

    pub async fn accept_items(&self, items: &[Value]) {
        for item in items {
            self.review(item, json!({"status": "accepted"})).await;
        }
    }

    /// Commits these items, or all accepted ones.
    pub async fn commits(&self, batch: &str, items: Option<&[&str]>) -> Answer {
        let path = format!("{}/commit", batch_path(batch));
        match items {
            Some(items) => self.post(&path, &json!({"item_ids": items})).await,
            None => Answer(self.request(Method::POST, &path).send().await.unwrap()),
        }
    }

    /// Commits, and returns the results.
    pub async fn commit_items(&self, batch: &str, items: Option<&[&str]>) -> Value {
        let answer = self.commits(batch, items).await.expect(200).await;
        assert_eq!(answer["success"], true, "{answer}");
        answer["results"].clone()
    }

    /// Accepts and commits everything in a batch.
    pub async fn commit_all(&self, batch: &str) -> Value {
        self.accept_items(&self.items(batch).await).await;
        self.commit_items(batch, None).await
    }
}
