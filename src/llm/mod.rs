//! Language-model extraction and answers, over any OpenAI-compatible chat endpoint.
//!
//! - [`prompt`]: the prompts; texts are passed as data between random markers.
//! - [`client`]: one request, with retries, limits and time-outs. [`ask`](mod@ask): a request with one repair.
//! - [`response_schema`]: the requested JSON schema and the check of the response. [`answer`]: the findings in a text.
//! - [`chunk`]: splits long texts.
//! - [`ground`] and [`belief`]: check the answers against the text. [`unite`](mod@unite): merges them with what the
//!   rules found.
//! - [`synthesis`], [`cite`] and [`source_material`]: answers from notes, checked against the notes. [`evolution`]: how a new
//!   note affects older ones. [`question`]: what a question asks for.
//!
//! Guarantee: nothing in a text or answer changes types, limits or markings, and whatever is not in the text is
//! flagged. The model never decides a TLP.

pub mod answer;
pub mod ask;
pub mod belief;
pub mod chunk;
pub mod cite;
pub mod client;
pub mod evolution;
pub mod ground;
pub mod prompt;
pub mod question;
pub mod response_schema;
pub mod source_material;
pub mod synthesis;
#[cfg(test)]
mod tests;
pub mod unite;

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use secrecy::SecretString;

use self::answer::ChunkAnswer;
use self::ask::ask;
use self::client::ChatClient;
pub use self::client::LlmError;
pub use self::evolution::Evolver;
pub use self::question::Interpreter;
pub use self::synthesis::Synthesizer;
pub use self::unite::unite;
use crate::config::{LlmProvider, LlmSettings};
use crate::domain::error::DomainError;
use crate::domain::staging::SourceType;
use crate::outbound::OutboundError;

/// Chunks of one text that are requested concurrently.
const PARALLEL: usize = 4;
/// Maximum number of characters of one text sent to a model; the rules process all of it.
const MAX_CHARS: usize = 400_000;

/// A configured language model.
pub struct LanguageModel {
    client: Arc<ChatClient>,
    settings: LlmSettings,
}

/// A model's answers about a text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TextAnswers {
    /// One per answered chunk, in order.
    pub answers: Vec<ChunkAnswer>,
    /// Number of bytes of the text sent to the model.
    pub covered: usize,
    pub warnings: Vec<String>,
}

/// The configured model, if any.
///
/// # Errors
/// When the client can't be built.
pub fn model_of(
    settings: &LlmSettings,
    key: Option<SecretString>,
) -> Result<Option<LanguageModel>, DomainError> {
    match settings.provider {
        LlmProvider::None => Ok(None),
        LlmProvider::Openai => {
            let model = LanguageModel::new(settings.clone(), key);
            model
                .map(Some)
                .map_err(|error| DomainError::internal("the language-model client could not be built", error))
        }
    }
}

impl LanguageModel {
    /// # Errors
    /// As [`ChatClient::new`].
    pub fn new(settings: LlmSettings, key: Option<SecretString>) -> Result<Self, OutboundError> {
        let client = Arc::new(ChatClient::new(settings.clone(), key)?);
        Ok(Self { client, settings })
    }

    /// Answers questions from notes; shares the client.
    pub fn synthesizer(&self) -> Synthesizer {
        Synthesizer::new(Arc::clone(&self.client))
    }

    /// Decides how a new note affects older ones; shares the client.
    pub fn evolver(&self) -> Evolver {
        Evolver::new(Arc::clone(&self.client))
    }

    /// Reads what questions ask for; shares the client.
    pub fn interpreter(&self) -> Interpreter {
        Interpreter::new(Arc::clone(&self.client))
    }

    /// Sends all chunks of the text, a few at a time, before `until`. A chunk without a usable answer adds a warning.
    ///
    /// # Errors
    /// The first failure, when no chunk was answered.
    pub async fn read(
        &self,
        text: &str,
        source_type: SourceType,
        until: Instant,
    ) -> Result<TextAnswers, LlmError> {
        let covered = text
            .char_indices()
            .nth(MAX_CHARS)
            .map_or(text.len(), |(at, _)| at);
        let cut = covered < text.len();
        let text = text.get(..covered).unwrap_or(text);
        let parts = chunk::chunks(text, self.settings.max_chunk_chars, self.settings.overlap_chars);
        let mut outcomes = Vec::with_capacity(parts.len());
        for group in parts.chunks(PARALLEL) {
            let asked = group.iter().map(|part| {
                let part = text.get(part.clone()).unwrap_or_default();
                self.part(part, source_type, until)
            });
            outcomes.extend(join_all(asked).await);
            // During an outage the remaining chunks would fail too.
            if outcomes
                .iter()
                .any(|outcome| outcome.as_ref().is_err_and(LlmError::is_outage))
            {
                break;
            }
        }
        let mut reading = reading(outcomes, parts.len(), covered)?;
        if cut {
            reading.warnings.push(format!(
                "language model was asked about the first {MAX_CHARS} characters; rules extractor used for the rest"
            ));
        }
        Ok(reading)
    }

    /// Requests the findings in one chunk.
    async fn part(
        &self,
        text: &str,
        source_type: SourceType,
        until: Instant,
    ) -> Result<ChunkAnswer, LlmError> {
        let messages = prompt::messages(text, source_type);
        let format = answer::SCHEMA.response_format();
        ask(&self.client, messages, &format, until, answer::parse).await
    }
}

fn reading(
    outcomes: Vec<Result<ChunkAnswer, LlmError>>,
    parts: usize,
    covered: usize,
) -> Result<TextAnswers, LlmError> {
    let mut reading = TextAnswers {
        covered,
        ..TextAnswers::default()
    };
    let asked = outcomes.len();
    let mut first = None;
    for (at, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Ok(answer) => reading.answers.push(answer),
            Err(error) => {
                let part = at + 1;
                reading.warnings.push(format!(
                    "language model failed for part {part} of {parts}: {error}; rules extractor used there"
                ));
                first.get_or_insert(error);
            }
        }
    }
    if let Some(error) = first.filter(|_| reading.answers.is_empty()) {
        return Err(error);
    }
    if asked < parts {
        let from = asked + 1;
        reading.warnings.push(format!(
            "language model was not asked about parts {from} to {parts}; rules extractor used there"
        ));
    }
    Ok(reading)
}
