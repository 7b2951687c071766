//! How good an answer is.

/// Results that count.
pub const FIRST: usize = 10;

/// Figures of one answer, or their means.
#[derive(Clone, Copy, Default)]
pub struct Score {
    /// R-precision at 10: |right ∩ first R'| / R', where R' = min(10, number of right answers).
    pub precision: f64,
    /// The same with the first ten results: |right ∩ first 10| / R', at most 1.
    pub found: f64,
    /// Reciprocal of the rank of the first right answer; 0 if it is not among the results.
    pub reciprocal: f64,
}

impl Score {
    pub fn of(results: &[String], right: &[String]) -> Self {
        let wanted = right.len().min(FIRST);
        let among = |first: usize| {
            let hits = results.iter().take(first).filter(|id| right.contains(id));
            hits.count().min(wanted) as f64 / wanted.max(1) as f64
        };
        let rank = results.iter().position(|id| right.contains(id));
        Self {
            precision: among(wanted),
            found: among(FIRST),
            reciprocal: rank.map_or(0.0, |at| 1.0 / (at + 1) as f64),
        }
    }
}

/// Adds up scores.
#[derive(Clone, Copy, Default)]
pub struct Tally {
    pub questions: usize,
    sum: Score,
}

impl Tally {
    pub fn add(&mut self, score: Score) {
        self.questions += 1;
        self.sum.precision += score.precision;
        self.sum.found += score.found;
        self.sum.reciprocal += score.reciprocal;
    }

    pub fn mean(&self) -> Score {
        let all = self.questions as f64;
        Score {
            precision: self.sum.precision / all,
            found: self.sum.found / all,
            reciprocal: self.sum.reciprocal / all,
        }
    }
}
