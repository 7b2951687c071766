//! The local service and an ordinary client of it.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::Fallible;
use crate::notes::{asked, note};
use crate::program::{Service, program};

/// A running service.
pub struct Memory {
    pub service: Service,
    http: reqwest::Client,
}

impl Memory {
    /// Starts the program on `dir`; also returns the time until its first healthy response.
    pub async fn start(dir: &Path, write_concurrency: usize) -> Fallible<(Self, Duration)> {
        let mut command = program();
        command
            .args(["local", "--port", "0", "--data-dir"])
            .arg(dir)
            .env("LOCAL_WEB_ADMIN_BIND", "127.0.0.1:0")
            .env("LOCAL_WEB_RATE_LIMIT_PER_MINUTE", "100000000")
            .env("LOCAL_WEB_WRITE_CONCURRENCY", write_concurrency.to_string());
        let (service, healthy) = Service::launch(command, "/api/health").await?;
        let http = reqwest::Client::builder().no_proxy().build()?;
        Ok((Self { service, http }, healthy))
    }

    async fn post(&self, path: &str, body: &Value) -> Fallible<Value> {
        let url = format!("{}{path}", self.service.base());
        let answer = self.http.post(url).json(body).send().await?;
        let status = answer.status();
        let text = answer.text().await?;
        if !status.is_success() {
            return Err(format!("{path} answered {status}: {text}").into());
        }
        Ok(serde_json::from_str(&text)?)
    }

    pub async fn remember(&self, number: usize) -> Fallible<()> {
        let told = self
            .post("/api/remember", &json!({"content": note(number)}))
            .await?;
        if told["status"] != "created" {
            return Err(format!("note {number} was {}", told["status"]).into());
        }
        Ok(())
    }

    /// Returns false if no permit was available.
    pub async fn try_remember(&self, number: usize) -> Fallible<bool> {
        let url = format!("{}/api/remember", self.service.base());
        let asked = self.http.post(url).json(&json!({"content": note(number)}));
        let answer = asked.send().await?;
        if answer.status() == reqwest::StatusCode::TOO_MANY_REQUESTS {
            return Ok(false);
        }
        answer.error_for_status()?.bytes().await?;
        Ok(true)
    }

    pub async fn recall(&self, number: usize) -> Fallible<()> {
        let found = self
            .post("/api/recall", &json!({"query": asked(number), "k": 10}))
            .await?;
        if found["count"].as_u64().unwrap_or(0) == 0 {
            return Err("a question found nothing".into());
        }
        Ok(())
    }
}
