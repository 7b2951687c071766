//! The wording of notes that are compared with each other, and of those written a moment ago.
//!
//! Stored notes are searched for near-duplicates before a note's turn to be written. What is written between that search
//! and the turn is remembered here, so that two notes that arrive together recognise each other.

use std::collections::VecDeque;
use std::sync::Arc;

use uuid::Uuid;

use super::tuning::Tuning;
use crate::domain::memory::digest::Digest;
use crate::domain::memory::note::Note;
use crate::domain::memory::similarity;
use crate::search::cosine;

/// Bytes of texts and vectors that are remembered. A group of sixteen writers has some 20,000.
const MAX_BYTES: usize = 1 << 20;

/// What decides whether a note repeats another.
#[derive(Debug)]
pub(super) struct Wording {
    pub(super) id: Uuid,
    pub(super) domain: String,
    digest: Digest,
    /// Equal for notes that mention the same entities, in any order; near-duplicates do, because their facts are equal.
    mentions: u128,
    content: String,
    pub(super) vector: Option<Vec<i8>>,
}

impl Wording {
    pub(super) fn of(note: &Note, digest: Digest, vector: Option<Vec<i8>>) -> Self {
        let mentions = note.mentions.iter().map(Uuid::as_u128);
        Self {
            id: note.id,
            domain: note.domain.clone(),
            digest,
            mentions: mentions.fold(0, u128::wrapping_add),
            content: note.content.clone(),
            vector,
        }
    }

    /// Whether this note says in nearly the same words what an older one says. The cheap conditions come first.
    pub(super) fn repeats(&self, older: &Self, tuning: &Tuning) -> bool {
        self.mentions == older.mentions
            && self.digest != older.digest
            && self.domain == older.domain
            && cosine_or_one(older.vector.as_deref(), self.vector.as_deref()) >= tuning.near_cosine
            && similarity::is_near_duplicate(&older.content, &self.content, tuning.near_overlap)
    }

    fn bytes(&self) -> usize {
        self.content.len() + self.vector.as_ref().map_or(0, Vec::len) + size_of::<Self>()
    }
}

/// Cosine similarity of two vectors; 1 where one is missing, so that the words decide.
pub(super) fn cosine_or_one(a: Option<&[i8]>, b: Option<&[i8]>) -> f32 {
    a.zip(b).and_then(|(a, b)| cosine(a, b)).unwrap_or(1.0)
}

/// The notes written last, with the revisions of their writes.
#[derive(Debug, Default)]
pub(super) struct RecentNotes {
    notes: VecDeque<(u64, Arc<Wording>)>,
    bytes: usize,
    /// Notes up to this revision may have been forgotten.
    forgotten: u64,
}

impl RecentNotes {
    /// Remembers the notes of a write.
    pub(super) fn add(&mut self, rev: u64, notes: impl IntoIterator<Item = Arc<Wording>>) {
        for note in notes {
            self.bytes += note.bytes();
            self.notes.push_back((rev, note));
        }
        while self.bytes > MAX_BYTES
            && let Some((rev, note)) = self.notes.pop_front()
        {
            self.bytes -= note.bytes();
            self.forgotten = self.forgotten.max(rev);
        }
    }

    /// Forgets everything: there may be notes up to this revision that were never added.
    pub(super) fn forget(&mut self, rev: u64) {
        *self = Self {
            forgotten: rev,
            ..Self::default()
        };
    }

    /// Whether every note written after a revision is remembered.
    pub(super) fn reaches(&self, rev: u64) -> bool {
        self.forgotten <= rev
    }

    /// The notes written after a revision, newest first.
    pub(super) fn after(&self, rev: u64) -> impl Iterator<Item = &Arc<Wording>> {
        let newest = self.notes.iter().rev();
        newest.take_while(move |(of, _)| *of > rev).map(|(_, note)| note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wording(number: u128, length: usize) -> Arc<Wording> {
        Arc::new(Wording {
            id: Uuid::from_u128(number),
            domain: "cti".into(),
            digest: number.to_be_bytes(),
            mentions: 0,
            content: "x".repeat(length),
            vector: None,
        })
    }

    #[test]
    fn what_is_forgotten_is_known_to_be() {
        let mut recent = RecentNotes::default();
        recent.add(10, [wording(1, 10), wording(2, 10)]);
        recent.add(11, [wording(3, 10)]);
        let after = |recent: &RecentNotes, rev| -> Vec<u128> {
            recent.after(rev).map(|note| note.id.as_u128()).collect()
        };
        assert_eq!(after(&recent, 9), [3, 2, 1]);
        assert_eq!(after(&recent, 10), [3]);
        assert!(recent.reaches(0));
        let room = MAX_BYTES - 3 * wording(1, 10).bytes();
        recent.add(12, [wording(4, room)]);
        assert!(!recent.reaches(9) && recent.reaches(11));
        recent.add(13, [wording(5, MAX_BYTES)]);
        assert!(!recent.reaches(12) && recent.reaches(13));
        assert!(after(&recent, 0).is_empty());
        recent.forget(20);
        assert!(!recent.reaches(19) && recent.reaches(20));
    }
}
