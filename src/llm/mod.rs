//! Reading texts with a language model, over any OpenAI-compatible chat endpoint.
//!
//! - [`prompt`]: what the model is told; the text is data between random markers.
//! - [`client`]: one question, with repetitions, limits and time-outs. [`ask`](mod@ask): with one repair.
//! - [`shape`]: the JSON that is asked for, and the check of what comes back. [`answer`]: what was found in a text.
//! - [`chunk`]: long texts in parts.
//! - [`ground`] and [`belief`]: holding the answers against the text. [`unite`](mod@unite): uniting them with what
//!   the rules found.
//! - [`synthesis`], [`cite`] and [`known`]: answers from notes, held against the notes. [`evolution`]: what a new note
//!   changes.
//!
//! Promise: nothing in a text or an answer changes types, limits or markings; what does not stand in the text is
//! marked so. The model never decides a TLP.

pub mod answer;
pub mod ask;
pub mod belief;
pub mod chunk;
pub mod cite;
pub mod client;
pub mod evolution;
pub mod ground;
pub mod known;
pub mod prompt;
pub mod shape;
pub mod synthesis;
#[cfg(test)]
mod tests;
pub mod unite;

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use secrecy::SecretString;

use self::answer::Answer;
use self::ask::ask;
use self::client::ChatClient;
pub use self::client::LlmError;
pub use self::evolution::Evolver;
pub use self::synthesis::Synthesizer;
pub use self::unite::unite;
use crate::config::{LlmProvider, LlmSettings};
use crate::domain::error::DomainError;
use crate::domain::staging::SourceType;

/// Parts of one text that are asked about at a time.
const PARALLEL: usize = 4;
/// Characters of one text that a model is asked about; the rules read all of it.
const MAX_CHARS: usize = 400_000;

/// A model to ask.
pub struct LanguageModel {
    client: Arc<ChatClient>,
    settings: LlmSettings,
}

/// What a model said about a text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// One for each part that was answered, in order.
    pub answers: Vec<Answer>,
    /// Bytes of the text that were asked about.
    pub covered: usize,
    pub warnings: Vec<String>,
}

/// The model that the settings name, if any.
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
    /// When the TLS set-up of this machine is unusable.
    pub fn new(settings: LlmSettings, key: Option<SecretString>) -> Result<Self, reqwest::Error> {
        let client = Arc::new(ChatClient::new(settings.clone(), key)?);
        Ok(Self { client, settings })
    }

    /// Answers questions from notes, over the same connection.
    pub fn synthesizer(&self) -> Synthesizer {
        Synthesizer::new(Arc::clone(&self.client))
    }

    /// Decides how a new note changes older ones, over the same connection.
    pub fn evolver(&self) -> Evolver {
        Evolver::new(Arc::clone(&self.client))
    }

    /// Asks about every part of the text, some at a time, until `until`; a part without a usable answer costs a
    /// warning.
    ///
    /// # Errors
    /// The first failure, when no part has an answer.
    pub async fn read(
        &self,
        text: &str,
        source_type: SourceType,
        until: Instant,
    ) -> Result<Reading, LlmError> {
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
            // The rest of a long text would wait for nothing.
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

    /// One part of a text.
    async fn part(&self, text: &str, source_type: SourceType, until: Instant) -> Result<Answer, LlmError> {
        let messages = prompt::messages(text, source_type);
        let format = answer::SHAPE.response_format();
        ask(&self.client, messages, &format, until, answer::parse).await
    }
}

fn reading(
    outcomes: Vec<Result<Answer, LlmError>>,
    parts: usize,
    covered: usize,
) -> Result<Reading, LlmError> {
    let mut reading = Reading {
        covered,
        ..Reading::default()
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
