//! Owns the way to the language model: how many texts are read at a time, and for how long.
//!
//! Promises: an answer within the actor's time-out whatever the model does, the rules' findings in any case, and a
//! warning whenever the model had no part in it. CPU-heavy work runs beside the async threads.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::job;
use super::worker::{Access, ActorCore, Party, Work, WorkerHandle};
use crate::config::ActorSettings;
use crate::domain::error::DomainError;
use crate::domain::extraction::entities_of;
use crate::domain::memory::synthesis::{Answer as SynthesisAnswer, SynthesisFormat, no_answer};
use crate::domain::staging::{Extraction, SourceType};
use crate::llm::evolution::{Candidate, Decision};
use crate::llm::synthesis::Source;
use crate::llm::{LanguageModel, LlmError, unite};

/// Way to the extractor.
pub type ExtractorHandle = WorkerHandle<ExtractorCore>;

/// Finds the entities and relations in a text.
#[derive(Debug)]
pub struct Extract {
    /// Whose text it is.
    pub workspace: Party,
    pub text: String,
    pub source_type: SourceType,
}

impl Work for Extract {
    type Core = ExtractorCore;
    type Reply = Extraction;
    const NAME: &'static str = "extract";
    const ACCESS: Access = Access::Read;

    fn party(&self) -> Party {
        self.workspace
    }

    async fn run(self, core: Arc<ExtractorCore>) -> Result<Self::Reply, DomainError> {
        let (mut found, failure) = core.read(self, core.patience).await?;
        if let Some(error) = failure {
            tracing::warn!(%error, "language model unavailable");
            found.warnings.push(format!(
                "language model unavailable: {error}; rules extractor used"
            ));
        }
        Ok(found)
    }
}

/// The same for work that can wait: why the model had no part in it is an error, not a warning.
#[derive(Debug)]
pub struct ExtractWithModel {
    pub extract: Extract,
    /// What the model may take, if it is less than what the actor gives it.
    pub patience: Duration,
}

impl Work for ExtractWithModel {
    type Core = ExtractorCore;
    type Reply = Result<Extraction, LlmError>;
    const NAME: &'static str = "extract_with_model";
    const ACCESS: Access = Access::Read;

    fn party(&self) -> Party {
        None
    }

    async fn run(self, core: Arc<ExtractorCore>) -> Result<Self::Reply, DomainError> {
        let patience = self.patience.min(core.patience);
        let (found, failure) = core.read(self.extract, patience).await?;
        Ok(failure.map_or(Ok(found), Err))
    }
}

/// Answers a question out of notes; without a model, or when it fails, there is no answer.
#[derive(Debug)]
pub struct Synthesize {
    pub question: String,
    pub format: SynthesisFormat,
    pub sources: Vec<Source>,
    pub patience: Duration,
}

impl Work for Synthesize {
    type Core = ExtractorCore;
    type Reply = SynthesisAnswer;
    const NAME: &'static str = "synthesize";
    const ACCESS: Access = Access::Read;

    fn party(&self) -> Party {
        None
    }

    async fn run(self, core: Arc<ExtractorCore>) -> Result<Self::Reply, DomainError> {
        let until = Instant::now() + self.patience.min(core.patience);
        let Some(model) = &core.model else {
            return Ok(no_answer(&self.question));
        };
        let synthesizer = model.synthesizer();
        let asked = synthesizer.answer(&self.question, self.format, &self.sources, until);
        Ok(asked.await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the language model gave no answer");
            no_answer(&self.question)
        }))
    }
}

/// Asks what a new note makes of older ones.
#[derive(Debug)]
pub struct Decide {
    pub new: String,
    pub candidates: Vec<Candidate>,
    pub patience: Duration,
}

impl Work for Decide {
    type Core = ExtractorCore;
    type Reply = Result<Decision, LlmError>;
    const NAME: &'static str = "decide";
    const ACCESS: Access = Access::Read;

    fn party(&self) -> Party {
        None
    }

    async fn run(self, core: Arc<ExtractorCore>) -> Result<Self::Reply, DomainError> {
        let until = Instant::now() + self.patience.min(core.patience);
        let Some(model) = &core.model else {
            return Ok(Ok(Decision::Add));
        };
        Ok(model.evolver().decide(&self.new, &self.candidates, until).await)
    }
}

/// What all requests to the extractor share.
pub struct ExtractorCore {
    model: Option<LanguageModel>,
    /// What the model may take of a request's time.
    patience: Duration,
}

impl ExtractorCore {
    /// `None`: the rules alone.
    pub fn new(model: Option<LanguageModel>, settings: ActorSettings) -> Self {
        let patience = Duration::from_millis(Self::patience_ms(settings));
        Self { model, patience }
    }

    /// Milliseconds that a model may take of one request; the rest is for waiting at the gate and for the rules.
    pub fn patience_ms(settings: ActorSettings) -> u64 {
        settings.timeout_ms / 4 * 3
    }

    /// What is found in a text, and why the model had no part in it.
    async fn read(
        &self,
        request: Extract,
        patience: Duration,
    ) -> Result<(Extraction, Option<LlmError>), DomainError> {
        let Extract {
            workspace: _,
            text,
            source_type,
        } = request;
        let text: Arc<str> = text.into();
        let until = Instant::now() + patience;
        let of_rules = Arc::clone(&text);
        let mut rules = job::blocking(move || Ok(entities_of(&of_rules))).await?;
        let Some(model) = &self.model else {
            rules
                .warnings
                .push("no language model is configured; rules extractor used".to_owned());
            return Ok((rules, None));
        };
        let reading = match model.read(&text, source_type, until).await {
            Ok(reading) => reading,
            Err(error) => return Ok((rules, Some(error))),
        };
        rules.warnings.extend(reading.warnings);
        let (answers, covered) = (reading.answers, reading.covered);
        let united =
            job::blocking(move || Ok(unite(text.get(..covered).unwrap_or(&text), rules, answers))).await?;
        Ok((united, None))
    }
}

impl ActorCore for ExtractorCore {
    const NAME: &'static str = "extractor";
}
