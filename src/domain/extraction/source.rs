//! The text under inspection, with bounded look-around at a candidate.
//!
//! Every window is bounded, so no text makes a rule slow.

use std::ops::Range;

use super::mention::Mention;
use super::refang::RefangedText;
use crate::domain::kinds::EntityKind;
use crate::domain::normal_form::normal_form;

/// The refanged text and the hits so far.
pub(super) struct Source<'t> {
    pub text: &'t str,
    pub refanged: &'t RefangedText<'t>,
    pub hits: Vec<Mention>,
    /// End of the last backslash path that does not name a file.
    pub no_file_before: usize,
    /// Offset of the last `logsource:`, which ends the YAML of a Sigma rule.
    pub sigma_before: usize,
}

impl<'t> Source<'t> {
    pub fn new(refanged: &'t RefangedText<'t>) -> Self {
        Source {
            text: &refanged.text,
            refanged,
            hits: Vec::new(),
            no_file_before: 0,
            sigma_before: 0,
        }
    }

    /// Records a hit with its value in normal form; one that was deliberately defanged is hardly ever a mistake.
    pub fn push(
        &mut self,
        kind: EntityKind,
        value: String,
        span: Range<usize>,
        rule: &'static str,
        confidence: f32,
    ) {
        let confidence = if self.is_defanged(&span) {
            confidence.max(0.97)
        } else {
            confidence
        };
        self.hits.push(Mention {
            kind,
            value: normal_form(kind, &value),
            span,
            rule,
            confidence,
            known: Vec::new(),
        });
    }

    /// Whether the span was defanged in the original.
    pub fn is_defanged(&self, span: &Range<usize>) -> bool {
        self.refanged.is_deliberate(span)
    }

    /// Up to `len` bytes before `at`.
    pub fn before(&self, at: usize, len: usize) -> &'t str {
        let mut start = at.saturating_sub(len);
        while !self.text.is_char_boundary(start) {
            start += 1;
        }
        self.text.get(start..at).unwrap_or_default()
    }

    /// Up to `len` bytes from `at`.
    pub fn after(&self, at: usize, len: usize) -> &'t str {
        let mut end = at.saturating_add(len).min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        self.text.get(at..end).unwrap_or_default()
    }

    /// The word before `at`, skipping spaces, quotes and a colon.
    pub fn previous_word(&self, at: usize) -> &'t str {
        last_word(self.before(at, 32))
    }

    /// Up to three words before `at`, nearest first, within the same sentence and line.
    pub fn previous_words(&self, at: usize) -> impl Iterator<Item = &'t str> {
        let window = self.before(at, 48);
        let window = window.rsplit('\n').next().unwrap_or_default();
        let window = window.rsplit(". ").next().unwrap_or_default();
        window
            .rsplit(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .take(3)
    }
}

/// The last word of a window.
pub(super) fn last_word(window: &str) -> &str {
    let window = window.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '\n' && c != '.');
    let window = window
        .strip_suffix('.')
        .filter(|w| w.ends_with("er") || w.ends_with('v'))
        .unwrap_or(window);
    window
        .rsplit(|c: char| !c.is_alphanumeric())
        .next()
        .unwrap_or_default()
}

/// Whether the list contains the word, in any case.
pub(super) fn is_one_of(word: &str, list: &[&str]) -> bool {
    list.iter().any(|entry| entry.eq_ignore_ascii_case(word))
}
