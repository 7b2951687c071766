//! A note: a text somebody remembered, kept whole.

use chrono::{DateTime, Utc};
use uuid::Uuid;

/// The domain of a note that names none.
pub const DEFAULT_DOMAIN: &str = "cti";
/// Sources of one note that are kept.
pub const MAX_SOURCES: usize = 100;
/// Characters of a note that stand for it in the graph.
const LABEL: usize = 80;
/// Characters of a note's first sentence that an answer shows as its context.
const CONTEXT: usize = 150;

/// One note with what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    pub id: Uuid,
    /// As it was given, to the letter.
    pub content: String,
    pub domain: String,
    pub source_type: String,
    pub source_ref: String,
    /// Every source that said it, first one first; at most [`MAX_SOURCES`].
    pub source_refs: Vec<String>,
    /// How far it can be relied on: `a`, `b` or `c`.
    pub tier: String,
    /// 0 to 1.
    pub confidence: f64,
    /// What a reader should know, such as `prompt-injection`.
    pub flags: Vec<String>,
    /// The nodes it mentions, in the order of the text.
    pub mentions: Vec<Uuid>,
    /// The note that took its place.
    pub superseded_by: Option<Uuid>,
    pub created_at: DateTime<Utc>,
}

/// A note as somebody gives it.
#[derive(Debug, Clone)]
pub struct NewNote {
    pub content: String,
    pub domain: String,
    pub source_type: String,
    pub source_ref: String,
    /// Whether what is known already is looked at: duplicates, near-duplicates, language model.
    pub evolve: bool,
}

/// How a note was taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteStatus {
    Created,
    /// The same text is there already; the id is that note's.
    Duplicate,
    /// It took the place of a note that says nearly the same.
    Updated,
}

impl NoteStatus {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            NoteStatus::Created => "created",
            NoteStatus::Duplicate => "duplicate",
            NoteStatus::Updated => "updated",
        }
    }
}

/// What became of one note.
#[derive(Debug, Clone, PartialEq)]
pub struct Remembered {
    pub note_id: Uuid,
    pub status: NoteStatus,
    /// Canonical values, in the order of the text.
    pub entities: Vec<String>,
    /// The note whose place it took.
    pub superseded: Option<Uuid>,
}

/// A text becomes a note that a person entered, in the domain `cti`, with evolution.
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

/// A domain without outer white space, as digests compare it.
pub fn domain_of(given: &str) -> &str {
    match given.trim() {
        "" => DEFAULT_DOMAIN,
        domain => domain,
    }
}

impl Note {
    /// Takes over what the same text adds when it comes again: the trust of a better source, and where that is. True
    /// when it added something.
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

/// The beginning of a text on one line.
pub fn label(content: &str) -> String {
    beginning(content, LABEL)
}

/// What an answer shows beside the content: the first sentence, up to its full stop and on one line, cut after
/// [`CONTEXT`] characters with `...`. The first full stop ends it, also one inside a number, as clients know it.
pub fn context(content: &str) -> String {
    let sentence = content
        .split('.')
        .map(str::trim)
        .find(|sentence| !sentence.is_empty());
    let sentence = sentence.unwrap_or_default();
    let shown = beginning(sentence, CONTEXT);
    let cut = sentence.split_whitespace().map(str::len).sum::<usize>()
        > shown.split_whitespace().map(str::len).sum::<usize>();
    if cut { shown + "..." } else { shown }
}

fn beginning(content: &str, most: usize) -> String {
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
pub fn cut(text: &str, most: usize) -> &str {
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
        assert_eq!(cut(&long, 3), "ééé");
        assert_eq!(cut("ab", 3), "ab");
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
        // Where the cut falls on a space, none stands before the dots.
        assert_eq!(context(&words), format!("{}...", "word ".repeat(30).trim_end()));
        assert_eq!(context(&words[..149]), &words[..149]);
    }
}
