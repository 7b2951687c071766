//! Embeddings from an OpenAI-compatible endpoint, as an alternative to the built-in model.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use reqwest::Url;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use crate::blocking;
use crate::config::{EmbeddingProvider, EmbeddingSettings};
use crate::domain::error::DomainError;
use crate::outbound::{GuardedClient, Limits, OutboundError};
use crate::search::{BuiltinEmbedder, EmbedError, Embedder};

/// Time-out for embedding a query; after it the search uses keywords only.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);
/// How long queries skip the endpoint after a slow failure.
const FAILURE_PAUSE: Duration = Duration::from_secs(10);
/// Largest JSON text of one number of a vector, its separator included, in bytes.
const NUMBER_BYTES: usize = 32;
/// Largest answer without its numbers, in bytes.
const FRAME_BYTES: usize = 1 << 20;

/// Begins to create the embedder that the settings select, beside what else a start has to do.
///
/// # Errors
/// When the built-in model can't be loaded or the client can't be built.
pub fn begin(
    settings: &EmbeddingSettings,
    key: Option<SecretString>,
    runtime: &Handle,
) -> impl Future<Output = Result<Arc<dyn Embedder>, DomainError>> + use<> {
    let (settings, on) = (settings.clone(), runtime.clone());
    let created = blocking::spawn_on(runtime, move || embedder_of(&settings, key, &on));
    async {
        created.await.unwrap_or_else(|error| {
            Err(DomainError::internal(
                "the embedding model could not be loaded",
                error,
            ))
        })
    }
}

fn embedder_of(
    settings: &EmbeddingSettings,
    key: Option<SecretString>,
    runtime: &Handle,
) -> Result<Arc<dyn Embedder>, DomainError> {
    let failed = |error: String| DomainError::internal("the embedding model could not be loaded", error);
    match settings.provider {
        EmbeddingProvider::Builtin => Ok(Arc::new(
            BuiltinEmbedder::load().map_err(|error| failed(error.to_string()))?,
        )),
        EmbeddingProvider::Openai => {
            let embedder = HttpEmbedder::new(settings.clone(), key, runtime.clone());
            Ok(Arc::new(embedder.map_err(|error| failed(error.to_string()))?))
        }
    }
}

/// Client of `POST {base_url}/embeddings`.
struct HttpEmbedder {
    settings: EmbeddingSettings,
    key: Option<SecretString>,
    client: GuardedClient,
    url: Url,
    runtime: Handle,
    /// Queries skip the endpoint until this time.
    resting: Mutex<Option<Instant>>,
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    input: &'a [&'a str],
}

#[derive(Deserialize)]
struct Response {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: usize,
    embedding: Vec<f32>,
}

impl HttpEmbedder {
    fn new(
        settings: EmbeddingSettings,
        key: Option<SecretString>,
        runtime: Handle,
    ) -> Result<Self, OutboundError> {
        let numbers = settings.batch.saturating_mul(settings.dimension);
        let cap = numbers.saturating_mul(NUMBER_BYTES).saturating_add(FRAME_BYTES);
        let limits = Limits {
            // An error's body is never used.
            error_bodies: false,
            ..Limits::new(Duration::from_millis(settings.timeout_ms), cap)
        };
        let (client, url) = GuardedClient::of_endpoint(&settings.base_url, "embeddings", limits)?;
        Ok(Self {
            settings,
            key,
            client,
            url,
            runtime,
            resting: Mutex::new(None),
        })
    }

    async fn batch(&self, texts: &[&str], patience: Duration) -> Result<Vec<Vec<f32>>, EmbedError> {
        let body = Request {
            model: &self.settings.model,
            input: texts,
        };
        let posted = self
            .client
            .post_json(&self.url, self.key.as_ref(), &body, patience);
        let answer = posted.await.map_err(|error| embed_error(&error.to_string()))?;
        if !answer.status.is_success() {
            let status = answer.status.as_u16();
            return Err(embed_error(&format!(
                "the endpoint answered with status {status}"
            )));
        }
        let response: Response =
            serde_json::from_slice(&answer.body).map_err(|error| embed_error(&error.to_string()))?;
        let mut items = response.data;
        items.sort_by_key(|item| item.index);
        Ok(items.into_iter().map(|item| item.embedding).collect())
    }

    /// One vector per text. Call only from blocking threads, as it blocks on the runtime.
    fn vectors(&self, texts: &[&str], patience: Duration) -> Result<Vec<Vec<f32>>, EmbedError> {
        let answer = self.runtime.block_on(self.batch(texts, patience))?;
        let dimension = self.settings.dimension;
        if answer.len() != texts.len() || answer.iter().any(|vector| vector.len() != dimension) {
            let rule = format!("expected {} vectors of {dimension} numbers", texts.len());
            return Err(embed_error(&rule));
        }
        self.pause_until(None);
        Ok(answer)
    }

    fn pause_until(&self, until: Option<Instant>) {
        *self.resting.lock() = until;
    }

    fn is_paused(&self) -> bool {
        let until = *self.resting.lock();
        until.is_some_and(|until| Instant::now() < until)
    }

    fn timeout(&self) -> Duration {
        Duration::from_millis(self.settings.timeout_ms)
    }
}

fn embed_error(why: &str) -> EmbedError {
    EmbedError(Arc::from(why))
}

impl Embedder for HttpEmbedder {
    fn id(&self) -> String {
        format!("openai/{}/{}", self.settings.base_url, self.settings.model)
    }

    fn dimension(&self) -> usize {
        self.settings.dimension
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in texts.chunks(self.settings.batch) {
            vectors.extend(self.vectors(batch, self.timeout())?);
        }
        Ok(vectors)
    }

    fn embed_query(&self, query: &str) -> Result<Vec<f32>, EmbedError> {
        if self.is_paused() {
            return Err(EmbedError("the endpoint failed a moment ago".into()));
        }
        let asked = Instant::now();
        let patience = self.timeout().min(QUERY_TIMEOUT);
        let vectors = self.vectors(&[query], patience);
        // A fast failure does not delay queries, so the endpoint is still tried.
        if vectors.is_err() && asked.elapsed() > patience / 2 {
            self.pause_until(Some(Instant::now() + FAILURE_PAUSE));
        }
        vectors?.pop().ok_or(EmbedError("no vector for the query".into()))
    }
}
