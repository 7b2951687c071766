//! A note: a remembered text with its metadata.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// Default domain of a note.
pub const DEFAULT_DOMAIN: &str = "cti";
/// Maximum number of sources kept per note.
pub const MAX_SOURCES: usize = 100;
/// Length of a note's label in the graph, in characters.
const LABEL: usize = 80;
/// Maximum length of a note's context in an answer, in characters.
const CONTEXT: usize = 150;

/// A stored note.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    pub id: Uuid,
    /// The text exactly as given.
    pub content: String,
    pub domain: String,
    pub source_type: String,
    pub source_ref: String,
    /// All sources of the text, first one first; at most [`MAX_SOURCES`].
    pub source_refs: Vec<String>,
    /// Trust tier: `a`, `b` or `c`.
    pub tier: String,
    /// 0 to 1.
    pub confidence: f64,
    /// Warnings for readers, such as `prompt-injection`.
    pub flags: Vec<String>,
    /// The mentioned nodes, in text order.
    pub mentions: Vec<Uuid>,
    /// The note that superseded this one.
    pub superseded_by: Option<Uuid>,
    pub created_at: DateTime<Utc>,
}

/// A note to be remembered.
#[derive(Debug, Clone)]
pub struct NewNote {
    pub content: String,
    pub domain: String,
    pub source_type: String,
    pub source_ref: String,
    /// Whether to compare it with existing notes: duplicates, near-duplicates, language model.
    pub evolve: bool,
}

/// Outcome of remembering a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum NoteStatus {
    Created,
    /// The same text is already stored; the returned id is that note's.
    Duplicate,
    /// It superseded a note that says nearly the same.
    Updated,
}

impl NoteStatus {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            NoteStatus::Created => "created",
            NoteStatus::Duplicate => "duplicate",
            NoteStatus::Updated => "updated",
        }
    }
}

/// Result of remembering one note.
#[derive(Debug, Clone, PartialEq)]
pub struct RememberOutcome {
    pub note_id: Uuid,
    pub status: NoteStatus,
    /// Canonical values, in text order.
    pub entities: Vec<String>,
    /// The note that it superseded.
    pub superseded: Option<Uuid>,
}

/// Wraps a text as a note entered by a person, in the domain `cti`, with evolution.
impl From<&str> for NewNote {
    fn from(content: &str) -> Self {
        NewNote {
            content: content.to_owned(),
            domain: DEFAULT_DOMAIN.into(),
            source_type: "manual".into(),
            source_ref: String::new(),
            evolve: true,
        }
    }
}

/// The trimmed domain, the form used by digests.
pub fn domain_of(given: &str) -> &str {
    match given.trim() {
        "" => DEFAULT_DOMAIN,
        domain => domain,
    }
}

impl Note {
    /// Merges a repetition of the same text: the better tier and the additional sources. Returns
    /// whether anything changed.
    pub fn repeat(&mut self, again: &Note) -> bool {
        // Tiers are letters, the best one first.
        let better = again.tier < self.tier;
        if better {
            self.tier.clone_from(&again.tier);
            self.confidence = self.confidence.max(again.confidence);
        }
        let room = MAX_SOURCES.saturating_sub(self.source_refs.len());
        let new: Vec<String> = again
            .source_refs
            .iter()
            .filter(|source| !self.source_refs.contains(source))
            .take(room)
            .cloned()
            .collect();
        let more = !new.is_empty();
        self.source_refs.extend(new);
        better || more
    }
}

/// The beginning of a text, on one line.
pub fn label(content: &str) -> String {
    first_line(content, LABEL)
}

/// The context of a note in an answer: the first sentence on one line, truncated with `...` after [`CONTEXT`]
/// characters. Any full stop ends the sentence, even one inside a number, because clients expect that.
pub fn context(content: &str) -> String {
    let sentence = content
        .split('.')
        .map(str::trim)
        .find(|sentence| !sentence.is_empty());
    let sentence = sentence.unwrap_or_default();
    let shown = first_line(sentence, CONTEXT);
    let cut = sentence.split_whitespace().map(str::len).sum::<usize>()
        > shown.split_whitespace().map(str::len).sum::<usize>();
    if cut { shown + "..." } else { shown }
}

fn first_line(content: &str, most: usize) -> String {
    let mut words = content.split_whitespace();
    let mut out = String::new();
    let mut left = most;
    while let Some(word) = words.next().filter(|_| left > 0) {
        if !out.is_empty() {
            out.push(' ');
            left -= 1;
        }
        for c in word.chars().take(left) {
            out.push(c);
        }
        left = left.saturating_sub(word.chars().count());
    }
    out.truncate(out.trim_end().len());
    out
}

/// The first `most` characters of a text.
pub fn truncate_chars(text: &str, most: usize) -> &str {
    text.char_indices()
        .nth(most)
        .map_or(text, |(at, _)| text.get(..at).unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_are_one_line_and_bounded() {
        assert_eq!(label("  a\n\tb  c "), "a b c");
        assert_eq!(label(""), "");
        let long = "é".repeat(200);
        assert_eq!(label(&long).chars().count(), LABEL);
        assert_eq!(truncate_chars(&long, 3), "ééé");
        assert_eq!(truncate_chars("ab", 3), "ab");
        for size in 0..200 {
            assert!(label(&"word and ".repeat(size)).chars().count() <= LABEL);
        }
    }

    #[test]
    fn the_context_is_the_first_sentence_cut_after_150_characters() {
        let long = "é".repeat(151);
        let cut = format!("{}...", "é".repeat(150));
        let words = "word ".repeat(40);
        for (content, shown) in [
            (
                "Fancy Bear is another name for APT28; Pawn Storm too.",
                "Fancy Bear is another name for APT28; Pawn Storm too",
            ),
            ("First one. Second one.", "First one"),
            ("Seen at 10.1.2.3", "Seen at 10"),
            ("a\n b\tc", "a b c"),
            ("   ", ""),
            (" ...and more. End", "and more"),
            (long.as_str(), cut.as_str()),
            (&long[..300], &long[..300]),
        ] {
            assert_eq!(context(content), shown, "{content}");
        }
        // A cut at a space leaves no space before the dots.
        assert_eq!(context(&words), format!("{}...", "word ".repeat(30).trim_end()));
        assert_eq!(context(&words[..149]), &words[..149]);
    }
}
