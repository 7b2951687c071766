//! The TAXII 2.1 server.

mod filters;
mod front;
mod hand_in;
mod objects;
mod rules;

use reqwest::Method;
use serde_json::Value;

use crate::helpers::{Answer, Client};

pub const MEDIA_TYPE: &str = "application/taxii+json;version=2.1";

/// The API root of the caller's workspace.
pub async fn root_of(client: &Client) -> String {
    let me = client.get("/api/auth/me").await.expect(200).await;
    format!("/taxii2/{}/", me["workspace"]["id"].as_str().unwrap())
}

/// Asks as a TAXII client does.
pub async fn ask(client: &Client, path: &str) -> Answer {
    let request = client.request(Method::GET, path).header("accept", MEDIA_TYPE);
    Answer(request.send().await.unwrap())
}

/// The aliases of the collections of an answer.
pub fn aliases(collections: &Value) -> Vec<&str> {
    let all = collections["collections"].as_array().unwrap().iter();
    all.map(|one| one["alias"].as_str().unwrap()).collect()
}

/// A page of a collection.
pub struct Page {
    pub objects: Vec<Value>,
    /// When its last object was added.
    pub last: Option<String>,
    pub held_back: u64,
}

/// All pages from one on, by `next`.
pub async fn pull_pages(client: &Client, path: &str) -> Vec<Page> {
    let (mut pages, mut next) = (Vec::new(), None);
    let separator = if path.contains('?') { '&' } else { '?' };
    loop {
        let path = match &next {
            None => path.to_owned(),
            Some(next) => format!("{path}{separator}next={next}"),
        };
        let answer = ask(client, &path).await;
        let header = |name: &str| answer.header(name).map(str::to_owned);
        let (last, held_back) = (header("x-taxii-date-added-last"), header("x-held-back"));
        let page = answer.expect(200).await;
        pages.push(Page {
            objects: page["objects"].as_array().cloned().unwrap_or_default(),
            last,
            held_back: held_back.map_or(0, |count| count.parse().unwrap()),
        });
        assert_eq!(page["more"] == true, page["next"].is_string(), "{page}");
        match page["next"].as_str() {
            Some(more) => next = Some(more.to_owned()),
            None => return pages,
        }
    }
}

/// The objects of all pages from one on.
pub async fn pull(client: &Client, path: &str) -> Vec<Value> {
    let pages = pull_pages(client, path).await;
    pages.into_iter().flat_map(|page| page.objects).collect()
}
