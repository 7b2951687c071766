//! Settings that the memory reads.

use std::sync::Arc;

/// Settings that may change while the service runs.
#[derive(Debug, Clone)]
pub struct Tuning {
    /// Weight of the graph and of recency relative to words and meaning.
    pub graph_weight: f32,
    pub recency_weight: f32,
    /// Days after which recency counts half.
    pub half_life_days: f64,
    /// Cosine similarity from which a note is examined as a near-duplicate, and the share of equal words that makes
    /// it one.
    pub near_cosine: f32,
    pub near_overlap: f64,
    /// Whether writes are audited.
    pub audited: bool,
    /// What to do with personal data; `None` disables the check.
    pub pii: Option<PiiAction>,
    /// Maximum number of notes waiting for a language model; 0 without one.
    pub most_waiting: u64,
}

/// What happens to a note that contains personal data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PiiAction {
    /// Stored unchanged and flagged.
    Log,
    /// Stored with the data redacted, and flagged.
    Redact,
    /// Refused.
    Block,
}

/// Reads the current tuning.
pub type TuningSource = Arc<dyn Fn() -> Tuning + Send + Sync>;
