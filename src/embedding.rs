//! Embeddings from an OpenAI-compatible endpoint, for those who want another model than the built-in one.

use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use crate::config::{EmbeddingProvider, EmbeddingSettings};
use crate::domain::error::DomainError;
use crate::search::{BuiltinEmbedder, EmbedError, Embedder};

/// The embedder that the settings ask for.
///
/// # Errors
/// When the built-in model can't be loaded or the client can't be built.
pub fn embedder_of(
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
    client: reqwest::Client,
    runtime: Handle,
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
    ) -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .timeout(Duration::from_millis(settings.timeout_ms))
            // The operator named this host; nothing it answers may send texts or the key elsewhere.
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(Self {
            settings,
            key,
            client,
            runtime,
        })
    }

    async fn batch(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, reqwest::Error> {
        let url = format!("{}/embeddings", self.settings.base_url.trim_end_matches('/'));
        let body = Request {
            model: &self.settings.model,
            input: texts,
        };
        let mut request = self.client.post(url).json(&body);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key.expose_secret());
        }
        let response: Response = request.send().await?.error_for_status()?.json().await?;
        let mut items = response.data;
        items.sort_by_key(|item| item.index);
        Ok(items.into_iter().map(|item| item.embedding).collect())
    }
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
            // Called on blocking threads only, where waiting for the runtime is allowed.
            let answer = self.runtime.block_on(self.batch(batch));
            let answer = answer.map_err(|error| EmbedError(Arc::from(error.without_url().to_string())))?;
            let fits = |vector: &Vec<f32>| vector.len() == self.settings.dimension;
            if answer.len() != batch.len() || !answer.iter().all(fits) {
                let rule = format!(
                    "expected {} vectors of {} numbers",
                    batch.len(),
                    self.settings.dimension
                );
                return Err(EmbedError(Arc::from(rule)));
            }
            vectors.extend(answer);
        }
        Ok(vectors)
    }
}
