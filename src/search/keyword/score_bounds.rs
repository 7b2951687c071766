//! How much a word adds to the best of a segment's documents.
//!
//! BM25 says what a word can add at most, to a document that consists of nothing else. In real documents it adds less. The
//! closer the bound, the fewer documents a search has to look at. A word's list is read for it when the word is first asked
//! for.

use std::collections::HashMap;

use parking_lot::Mutex;
use tantivy::SegmentReader;

use super::memtable::TextField;
use super::union::{ScoredTerm, highest};
use crate::search::document::marking_counts::VisibleGroups;
use crate::search::error::SearchError;

/// Documents with a word from which its list is read: a shorter one is soon added up.
const FROM: u32 = 512;
/// Relative change of the mean length of documents from which a list is read again.
const DRIFT: f32 = 0.05;

/// The highest scores of words in one segment.
#[derive(Debug, Default)]
pub(super) struct ScoreBounds(Mutex<HashMap<BoundKey, ScoreBound>>);

/// A word, and whose mean length of documents its bound was computed with.
type BoundKey = (TextField, usize, VisibleGroups);

#[derive(Debug, Clone, Copy)]
struct ScoreBound {
    /// Share of what BM25 allows.
    share: f32,
    /// Mean length of the documents that the scores were computed with.
    mean_length: f32,
}

impl ScoreBounds {
    /// A bound on what a word adds to the score of a document of the segment, before it is rounded.
    pub(super) fn bound(
        &self,
        segment: &SegmentReader,
        name: TextField,
        (groups, mean_length): (VisibleGroups, f32),
        word: &ScoredTerm<'_>,
    ) -> Result<f32, SearchError> {
        let most = word.weight.max_score();
        if word.info.doc_freq < FROM {
            return Ok(most);
        }
        let key = (name, word.info.postings_range.start, groups);
        let known = self.0.lock().get(&key).copied();
        if let Some(share) = known.and_then(|peak| peak.scaled_to(mean_length)) {
            return Ok(most * share);
        }
        let share = if most > 0.0 {
            highest(segment, word)? / most
        } else {
            1.0
        };
        self.0.lock().insert(key, ScoreBound { share, mean_length });
        Ok(most * share)
    }
}

impl ScoreBound {
    /// A bound on the share with another mean length; `None` if it differs too much. A score changes by a smaller factor
    /// than the mean length, and all scores change in the same direction.
    fn scaled_to(self, mean_length: f32) -> Option<f32> {
        let drift = (self.mean_length / mean_length).max(mean_length / self.mean_length);
        (drift <= 1.0 + DRIFT).then(|| (self.share * drift).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_holds_while_documents_become_longer_or_shorter() {
        // The part of BM25 that depends on the document: tf / (tf + 1.2 (0.25 + 0.75 length / mean length)).
        let score = |tf: f32, length: f32, mean: f32| tf / (tf + 1.2 * (0.25 + 0.75 * length / mean));
        let docs = [(1.0, 5.0), (2.0, 40.0), (9.0, 900.0), (1.0, 60.0), (3.0, 80.0)];
        let highest = |mean| {
            docs.iter()
                .map(|(tf, length)| score(*tf, *length, mean))
                .fold(0.0, f32::max)
        };
        for mean_length in [20.0, 70.0, 300.0] {
            let peak = ScoreBound {
                share: highest(mean_length),
                mean_length,
            };
            for changed in [0.953, 0.97, 1.0, 1.01, 1.049] {
                let bound = peak.scaled_to(mean_length * changed).unwrap();
                assert!(
                    bound * (1.0 + 1e-6) >= highest(mean_length * changed),
                    "{mean_length} {changed}"
                );
            }
            assert!(
                peak.scaled_to(mean_length * 1.1).is_none() && peak.scaled_to(mean_length * 0.9).is_none()
            );
        }
    }
}
