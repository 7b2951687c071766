//! Owns access to the language model: how many texts are processed concurrently, and for how long.
//!
//! Guarantees a reply within the actor's time-out whatever the model does, the rules' findings in every case, and a
//! warning whenever the model did not contribute. CPU-heavy work runs off the async threads.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::job;
use super::worker::{Access, ActorCore, Tenant, Work, WorkerHandle};
use crate::clock;
use crate::config::{ActorSettings, LlmProvider, LlmSettings};
use crate::domain::error::DomainError;
use crate::domain::extraction::{KnownNames, entities_with};
use crate::domain::memory::synthesis::{Answer as SynthesisAnswer, SynthesisFormat, no_answer};
use crate::domain::question::{ModelReading, Question};
use crate::domain::staging::{Extraction, SourceType};
use crate::llm::evolution::{Decision, OlderNote};
use crate::llm::synthesis::SourceNote;
use crate::llm::{LanguageModel, LlmError, unite};

/// Time after an outage of the model in which no question is sent to it.
const QUESTION_PAUSE: Duration = Duration::from_secs(30);

/// Handle to the extractor.
pub type ExtractorHandle = WorkerHandle<ExtractorCore>;

/// Finds the entities and relations in a text.
#[derive(Debug)]
pub struct Extract {
    /// Workspace that submitted the text.
    pub workspace: Tenant,
    pub text: String,
    pub source_type: SourceType,
    /// The names in the text that the workspace knows.
    pub known: KnownNames,
}

impl Work for Extract {
    type Core = ExtractorCore;
    type Reply = Extraction;
    const NAME: &'static str = "extract";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Tenant {
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

/// Like [`Extract`] for background work: a model failure is an error, not a warning.
#[derive(Debug)]
pub struct ExtractWithModel {
    pub extract: Extract,
    /// Time limit for the model, if lower than the actor's own.
    pub patience: Duration,
}

impl Work for ExtractWithModel {
    type Core = ExtractorCore;
    type Reply = Result<Extraction, LlmError>;
    const NAME: &'static str = "extract_with_model";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Tenant {
        None
    }

    async fn run(self, core: Arc<ExtractorCore>) -> Result<Self::Reply, DomainError> {
        let patience = self.patience.min(core.patience);
        let (found, failure) = core.read(self.extract, patience).await?;
        Ok(failure.map_or(Ok(found), Err))
    }
}

/// Answers a question from notes; gives no answer without a model or when the model fails.
#[derive(Debug)]
pub struct Synthesize {
    pub question: String,
    pub format: SynthesisFormat,
    pub sources: Vec<SourceNote>,
    pub patience: Duration,
}

impl Work for Synthesize {
    type Core = ExtractorCore;
    type Reply = SynthesisAnswer;
    const NAME: &'static str = "synthesize";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Tenant {
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

/// Asks the model how a new note relates to older ones.
#[derive(Debug)]
pub struct JudgeNote {
    pub new: String,
    pub candidates: Vec<OlderNote>,
    pub patience: Duration,
}

impl Work for JudgeNote {
    type Core = ExtractorCore;
    type Reply = Result<Decision, LlmError>;
    const NAME: &'static str = "decide";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Tenant {
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

/// Reads what a question asks for, where the rules do not understand it; `None` without a model, when it fails, or when
/// it is slow.
#[derive(Debug)]
pub struct Understand {
    pub question: String,
    pub patience: Duration,
}

impl Work for Understand {
    type Core = ExtractorCore;
    type Reply = Option<ModelReading>;
    const NAME: &'static str = "understand";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Tenant {
        None
    }

    async fn run(self, core: Arc<ExtractorCore>) -> Result<Self::Reply, DomainError> {
        let Some(model) = core.model.as_ref().filter(|_| !core.is_pausing()) else {
            return Ok(None);
        };
        let until = Instant::now() + self.patience.min(core.patience);
        let interpreter = model.interpreter();
        let asked = interpreter.interpret(&self.question, clock::now(), until);
        // A retry would wait for longer than the question may.
        let outcome = tokio::time::timeout_at(until.into(), asked).await;
        let outcome = outcome.unwrap_or(Err(LlmError::OutOfTime));
        if outcome.as_ref().is_err_and(LlmError::is_outage) {
            core.pause();
        }
        Ok(outcome.unwrap_or_else(|error| {
            tracing::warn!(%error, "the language model did not read a question; searching without it");
            None
        }))
    }
}

/// Reads a question: by the rules, and by the language model where these do not understand it, if one is configured and
/// answers in time.
pub async fn read_question(extractor: &ExtractorHandle, settings: &LlmSettings, text: &str) -> Arc<Question> {
    let question = Question::read(text, clock::now());
    let patience = Duration::from_millis(settings.question_ms);
    let has_model = settings.provider != LlmProvider::None && !patience.is_zero();
    if !has_model || !question.is_beyond_rules() {
        return Arc::new(question);
    }
    let message = Understand {
        question: text.to_owned(),
        // The rest is for waiting for a permit: an outage must be noticed before this call gives up.
        patience: patience / 4 * 3,
    };
    // The extractor may be busy with texts for longer than a question may wait.
    let answer = tokio::time::timeout(patience, extractor.call(message)).await;
    let meant = answer.ok().and_then(Result::ok).flatten();
    Arc::new(question.with_model_reading(meant))
}

/// State shared by all requests to the extractor.
pub struct ExtractorCore {
    model: Option<LanguageModel>,
    /// Until when no question is sent to the model, after an outage: each would wait in vain.
    no_questions_until: Mutex<Option<Instant>>,
    /// Share of a request's time-out that the model may use.
    patience: Duration,
}

impl ExtractorCore {
    /// With `None`, only the rules run.
    pub fn new(model: Option<LanguageModel>, settings: ActorSettings) -> Self {
        let patience = Duration::from_millis(settings.model_patience_ms());
        Self {
            model,
            no_questions_until: Mutex::default(),
            patience,
        }
    }

    fn is_pausing(&self) -> bool {
        let until = *self.no_questions_until.lock();
        until.is_some_and(|until| Instant::now() < until)
    }

    fn pause(&self) {
        *self.no_questions_until.lock() = Some(Instant::now() + QUESTION_PAUSE);
    }

    /// Extracts from a text; also says why the model did not contribute, if it did not.
    async fn read(
        &self,
        request: Extract,
        patience: Duration,
    ) -> Result<(Extraction, Option<LlmError>), DomainError> {
        let Extract {
            workspace: _,
            text,
            source_type,
            known,
        } = request;
        let text: Arc<str> = text.into();
        let until = Instant::now() + patience;
        let of_rules = Arc::clone(&text);
        let mut rules = job::blocking(move || Ok(entities_with(&of_rules, &known))).await?;
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
    type Tenant = Tenant;

    const NAME: &'static str = "extractor";
}
