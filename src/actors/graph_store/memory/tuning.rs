//! What the memory reads of the settings.

use std::sync::Arc;

/// What may be changed while the service runs.
#[derive(Debug, Clone)]
pub struct Tuning {
    /// Weight of the graph and of recency beside words and meaning.
    pub graph_weight: f32,
    pub recency_weight: f32,
    /// Days after which recency counts half.
    pub half_life_days: f64,
    /// Cosine from which a note is looked at as a near-duplicate, and share of equal words that makes it one.
    pub near_cosine: f32,
    pub near_overlap: f64,
    /// Whether writes go into the audit log.
    pub audited: bool,
    /// What to do with personal data, if it is looked for.
    pub pii: Option<PiiAction>,
    /// Notes that may wait for a language model; none without one.
    pub most_waiting: u64,
}

/// What happens to a note that holds personal data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PiiAction {
    /// It is stored as it is and flagged.
    Log,
    /// It is stored with the data blanked out, and flagged.
    Redact,
    /// It is refused.
    Block,
}

/// Where the tuning of this moment is read.
pub type TuningSource = Arc<dyn Fn() -> Tuning + Send + Sync>;
