//! An ordinary REST client.

use std::time::Duration;

use serde_json::{Value, json};

use crate::Fallible;

pub const EMAIL: &str = "admin@example.com";
pub const PASSWORD: &str = "a long enough password";
/// Time after which a connection that waits is not used again.
const IDLE: Duration = Duration::from_secs(1);

/// A signed-in client; clones share its connections.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    token: String,
}

impl Client {
    pub async fn sign_in(base: &str) -> Fallible<Self> {
        Self::sign_in_as(base, EMAIL).await
    }

    /// Signs in as one of the administrators; all have the same password.
    pub async fn sign_in_as(base: &str, email: &str) -> Fallible<Self> {
        // The service closes connections that wait while this thread makes the next bodies.
        let http = reqwest::Client::builder()
            .no_proxy()
            .pool_idle_timeout(IDLE)
            .build()?;
        let mut client = Self {
            http,
            base: base.to_owned(),
            token: String::new(),
        };
        let body = json!({"email": email, "password": PASSWORD}).to_string();
        let answer = client.post("/api/auth/login", body.into_bytes()).await?;
        let token = answer["access_token"].as_str().ok_or("no token")?;
        token.clone_into(&mut client.token);
        Ok(client)
    }

    /// The same client with the address of a restarted service.
    pub fn at(&self, base: &str) -> Self {
        Self {
            base: base.to_owned(),
            ..self.clone()
        }
    }

    /// Ingests a body of which every object must be accepted.
    pub async fn ingest(&self, body: Vec<u8>) -> Fallible<Value> {
        let mut answer = self.post("/api/ingest/stix", body).await?;
        Ok(answer["results"].take())
    }

    /// Queries one of the search routes and returns the response text.
    pub async fn search(&self, path: &str, query: &str, limit: usize) -> Fallible<String> {
        let mut url = reqwest::Url::parse(&format!("{}{path}", self.base))?;
        url.query_pairs_mut()
            .append_pair("q", query)
            .append_pair("limit", &limit.to_string());
        self.get(url).await
    }

    /// Exports a session as a STIX bundle.
    pub async fn export(&self, session: &str) -> Fallible<String> {
        self.get_path(&format!("/api/recall/sessions/{session}/export.stix"))
            .await
    }

    /// Gets a route that takes no parameters.
    pub async fn get_path(&self, path: &str) -> Fallible<String> {
        self.get(reqwest::Url::parse(&format!("{}{path}", self.base))?)
            .await
    }

    async fn get(&self, url: reqwest::Url) -> Fallible<String> {
        text(self.http.get(url).bearer_auth(&self.token).send().await?).await
    }

    /// Posts a JSON body and returns the response status.
    pub async fn status_of(&self, path: &str, body: Vec<u8>) -> Fallible<u16> {
        let request = self.http.post(format!("{}{path}", self.base));
        let request = request.header("content-type", "application/json").body(body);
        let answer = request.bearer_auth(&self.token).send().await?;
        let status = answer.status().as_u16();
        answer.bytes().await?;
        Ok(status)
    }

    /// Posts a JSON body.
    pub async fn post(&self, path: &str, body: Vec<u8>) -> Fallible<Value> {
        let request = self.http.post(format!("{}{path}", self.base));
        let request = request.header("content-type", "application/json").body(body);
        let answer = text(request.bearer_auth(&self.token).send().await?).await?;
        Ok(serde_json::from_str(&answer)?)
    }
}

async fn text(response: reqwest::Response) -> Fallible<String> {
    let (status, url) = (response.status(), response.url().clone());
    let text = response.text().await?;
    if status.is_success() {
        Ok(text)
    } else {
        Err(format!("{url} answered {status}: {text}").into())
    }
}
